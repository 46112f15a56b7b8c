#include "simulation/simulation.h"

#include <algorithm>
#include <utility>

#include "simulation/core_process.h"
#include "simulation/repeatable_random.h"
#include "simulation/transport_process.h"
#include "simulation/virtual_time.h"

namespace lintel::simulation {

namespace {

constexpr double worsened_drop = 0.5;
constexpr uint64_t slow_poll_ns = 2 * millisecond;
constexpr uint64_t over_pause_ns = millisecond;  // between checks whether everything has ended
// The death of a peer must be detected within this many times peer_timeout_ns.
constexpr uint64_t timeouts_of_rest = 2;

}  // namespace

Simulation::Simulation(const Scenario& scenario)
    : scenario_(scenario),
      dice_(scenario.seed ^ 0x5eed),
      network_(events_, dice_, scenario_.network, static_cast<uint32_t>(scenario.processes.size())),
      record_(static_cast<uint32_t>(scenario.processes.size())),
      dead_(scenario.processes.size()),
      cuts_(scenario.incidents.empty() ? 0 : scenario.processes.size() * scenario.processes.size()),
      data_cuts_(scenario.processes.size()) {
  virtual_now_ns = start_ns;
  if (scenario_.level == Level::core) CoreProcess::set_up();
  reseed_random(scenario_.seed);
  if (scenario_.has_device) device_.emplace(scenario_.seed ^ 0xdef, scenario_.failing_copies);
  for (const PairTrouble& pair : scenario_.trouble)
    network_.set_trouble(pair.from, pair.to, pair.trouble);
  for (uint32_t i = 0; i < scenario_.processes.size(); ++i) {
    places_.emplace_back();
    const ProcessShape& shape = scenario_.processes[i];
    if (scenario_.level == Level::core)
      places_[i].process = std::make_unique<CoreProcess>(network_, record_, i, shape);
    else
      places_[i].process = std::make_unique<TransportProcess>(network_, record_, i, shape);
  }
  for (const Flow& flow : scenario_.flows)
    for (const OutgoingMessage& message : flow.messages)
      places_[flow.from].process->add(flow.to, message);
  for (const Incident& incident : scenario_.incidents) {
    changes_.push_back({start_ns + incident.at_ns, &incident, true});
    if (incident.duration_ns < scenario_.limit_ns)
      changes_.push_back({start_ns + incident.at_ns + incident.duration_ns, &incident, false});
  }
  std::stable_sort(changes_.begin(), changes_.end(),
                   [](const Change& a, const Change& b) { return a.at_ns < b.at_ns; });
  for (const Change& change : changes_) events_.add(change.at_ns, EventKind::scene_changes);
}

Outcome Simulation::run() {
  Outcome outcome;
  for (uint32_t i = 0; i < places_.size(); ++i) schedule(i, start_ns);
  uint64_t next_look_ns = start_ns;
  bool over = false;
  while (!over && record_.problems().empty() && !events_.empty()) {
    const Event event = events_.take();
    // The clock may have jumped to a later time.
    virtual_now_ns = std::max(virtual_now_ns, event.at_ns);
    if (virtual_now_ns > start_ns + scenario_.limit_ns) break;
    switch (event.kind) {
      case EventKind::frame_arrives:
        deliver(event.index);
        break;
      case EventKind::scene_changes:
        change_scene();
        break;
      case EventKind::process_runs:
        if (event.turn == places_[event.index].turn) run_process(event.index);
        break;
    }
    if (virtual_now_ns < next_look_ns) continue;
    next_look_ns = virtual_now_ns + over_pause_ns;
    over = is_over();
  }
  outcome.duration_ns = virtual_now_ns - start_ns;
  if (record_.problems().empty() && !over) {
    record_.add_problem("not everything has been sent and answered");
    for (size_t i = 0; i < places_.size(); ++i)
      if (SimulatedProcess& process = *places_[i].process;
          process.is_running() && !process.is_done())
        record_.add_problem("process " + std::to_string(i) + " is not done" +
                            process.describe_rest());
  }
  if (record_.problems().empty()) check_rest();
  outcome.trace = record_.trace();
  outcome.messages = record_.messages();
  outcome.bytes = record_.bytes();
  outcome.network = network_.counters();
  outcome.latencies_ns = std::move(record_.latencies_ns());
  outcome.sent_by_ns = record_.ends_ns();
  for (const uint64_t end_ns : outcome.sent_by_ns)
    outcome.last_delivery_ns = std::max(outcome.last_delivery_ns, end_ns);
  for (const Place& place : places_) {
    outcome.retransmissions += place.process->retransmissions();
    outcome.most_frame_memory =
        std::max(outcome.most_frame_memory, place.process->most_frame_memory());
  }
  check_retransmissions(outcome);
  outcome.problems = record_.problems();
  return outcome;
}

void Simulation::schedule(uint32_t index, uint64_t at_ns) {
  Place& place = places_[index];
  place.runs_at_ns = at_ns;
  ++place.turn;
  if (at_ns != UINT64_MAX) events_.add(at_ns, EventKind::process_runs, index, place.turn);
}

void Simulation::deliver(uint32_t frame) {
  TravellingFrame arrived = network_.take(frame);
  const uint32_t to = arrived.to;
  Place& place = places_[to];
  if (!place.process->is_running()) return;
  if (!place.process->take(std::move(arrived))) {
    ++lost_for_room_;
    return;
  }
  const uint64_t at_ns = virtual_now_ns + scenario_.processes[to].poll_ns;
  if (at_ns < place.runs_at_ns) schedule(to, at_ns);
}

void Simulation::run_process(uint32_t index) {
  Place& place = places_[index];
  if (!place.process->is_running()) return;
  if (virtual_now_ns < place.stopped_until_ns) {
    schedule(index, place.stopped_until_ns);
    return;
  }
  schedule(index, place.process->run());
  check_memory(index);
}

void Simulation::change_scene() {
  for (; next_change_ < changes_.size() && changes_[next_change_].at_ns <= virtual_now_ns;
       ++next_change_) {
    const Change& change = changes_[next_change_];
    apply(*change.incident, change.begins);
  }
}

void Simulation::cut(uint32_t from, uint32_t to, int change) {
  int& cuts = cuts_[from * places_.size() + to];
  cuts += change;
  network_.cut(from, to, cuts != 0);
}

void Simulation::cut_data(uint32_t to, int change) {
  const bool is_cut = (data_cuts_[to] += change) != 0;
  for (uint32_t from = 0; from < places_.size(); ++from) network_.cut_data(from, to, is_cut);
}

void Simulation::note_severe(const Incident& incident) {
  if (!scenario_.is_severe(incident)) return;
  const bool everybody =
      incident.kind == IncidentKind::worsen || incident.kind == IncidentKind::cut_rail;
  for (uint32_t i = 0; i < places_.size(); ++i)
    if (everybody || i == incident.process) record_.note_severe_incident(i);
}

void Simulation::apply(const Incident& incident, bool begins) {
  Place& place = places_[incident.process];
  SimulatedProcess& process = *place.process;
  const int change = begins ? 1 : -1;
  if (begins) note_severe(incident);
  switch (incident.kind) {
    case IncidentKind::cut_one_way:
      cut(incident.process, incident.other, change);
      break;
    case IncidentKind::cut_both_ways:
      cut(incident.process, incident.other, change);
      cut(incident.other, incident.process, change);
      break;
    case IncidentKind::isolate:
      for (uint32_t i = 0; i < places_.size(); ++i) {
        cut(incident.process, i, change);
        cut(i, incident.process, change);
      }
      break;
    case IncidentKind::stop:
      if (begins)
        place.stopped_until_ns =
            std::max(place.stopped_until_ns, virtual_now_ns + incident.duration_ns);
      break;
    case IncidentKind::suspend:
      for (uint32_t i = 0; begins && i < places_.size(); ++i)
        places_[i].stopped_until_ns =
            std::max(places_[i].stopped_until_ns,
                     virtual_now_ns + incident.duration_ns + scenario_.stagger_ns(i));
      break;
    case IncidentKind::slow_down:
      process.set_poll_ns(begins ? slow_poll_ns : scenario_.processes[incident.process].poll_ns);
      break;
    case IncidentKind::fill_link:
      if (process.is_running()) process.set_full(begins);
      break;
    case IncidentKind::restart:
    case IncidentKind::leave:
      if (begins) {
        if (process.is_running()) process.end(incident.kind == IncidentKind::leave);
      } else if (!process.is_running() && dead_[incident.process] == 0) {
        process.set_mtu(incident.mtu);
        process.start();
        schedule(incident.process, virtual_now_ns);
      }
      break;
    case IncidentKind::die:
      if (!begins) {
        forget(incident.process);
        break;
      }
      if (process.is_running()) process.end(false);
      dead_[incident.process] = 1;
      break;
    case IncidentKind::jump:
      if (begins) virtual_now_ns += incident.duration_ns;
      break;
    case IncidentKind::worsen:
      worsened_ += change;
      for (PairTrouble pair : scenario_.trouble) {
        if (worsened_ != 0) pair.trouble.drop = worsened_drop;
        network_.set_trouble(pair.from, pair.to, pair.trouble);
      }
      break;
    case IncidentKind::narrow:
      if (begins)
        narrowed_.insert(incident.mtu);
      else
        narrowed_.erase(narrowed_.find(incident.mtu));
      network_.set_longest(narrowed_.empty() ? UINT32_MAX : *narrowed_.begin());
      break;
    case IncidentKind::take_nothing:
      cut_data(incident.process, change);
      break;
    case IncidentKind::cut_rail:
      network_.cut_rail(incident.rail, (rail_cuts_[incident.rail] += change) != 0);
      break;
  }
}

// The applications of the other processes send nothing more to it.
void Simulation::forget(uint32_t dead) {
  for (Place& place : places_) place.process->give_up(dead);
}

bool Simulation::is_over() {
  if (next_change_ < changes_.size()) return false;
  return std::all_of(places_.begin(), places_.end(), [](const Place& place) {
    return !place.process->is_running() || place.process->is_done();
  });
}

// Half of the memory is for sent frames, half for early ones. A quarter more is allowed for
// messages of several frames.
void Simulation::check_memory(uint32_t index) {
  const uint64_t bound = scenario_.processes[index].memory_bytes / 4 * 5;
  if (const uint64_t used = places_[index].process->transport().frame_memory_used(); used > bound)
    record_.add_problem("process " + std::to_string(index) + " keeps " + std::to_string(used) +
                        " bytes of frames");
}

// Lost frames are retransmitted, and delayed ones may be. In addition: if the first round trip is
// longer than the first timeout, each stream retransmits a few frames. A silent peer causes some
// retransmissions per timeout, until it is given up. The core sends more messages than are counted,
// such as answers and gets.
void Simulation::check_retransmissions(const Outcome& outcome) {
  const NetworkCounters& network = outcome.network;
  const uint64_t lost = network.lost_by_dice + network.lost_in_switch + network.lost_by_partition +
                        network.lost_by_length + network.damaged + lost_for_room_;
  const uint64_t uncounted = scenario_.level == Level::core
                                 ? network.carried / 10 + 64 * places_.size() * places_.size()
                                 : 0;
  const uint64_t of_silence =
      std::max(uint64_t{400}, 40 * scenario_.processes[0].peer_timeout_ns / second);
  const uint64_t bound = 4 * (lost + network.delayed) + outcome.messages / 2 + uncounted +
                         64 * record_.streams() + of_silence * scenario_.incidents.size();
  if (outcome.retransmissions > bound)
    record_.add_problem(std::to_string(outcome.retransmissions) + " frames were sent again, " +
                        std::to_string(lost) + " were lost and " + std::to_string(network.delayed) +
                        " delayed");
}

// All messages have been sent and answered. Now no frame may be stored, and no process may continue
// to send frames.
void Simulation::check_rest() {
  const uint64_t end_ns =
      virtual_now_ns + timeouts_of_rest * scenario_.processes[0].peer_timeout_ns;
  while (!events_.empty() && events_.next().at_ns < end_ns) {
    const Event event = events_.take();
    virtual_now_ns = std::max(virtual_now_ns, event.at_ns);
    if (event.kind == EventKind::frame_arrives) deliver(event.index);
    if (event.kind == EventKind::process_runs && event.turn == places_[event.index].turn)
      run_process(event.index);
  }
  record_.check_streams(dead_);
  for (uint32_t i = 0; i < places_.size(); ++i) {
    SimulatedProcess& process = *places_[i].process;
    if (!process.is_running()) continue;
    process.check_rest();
    if (const uint64_t kept = process.transport().frame_memory_used(); kept != 0)
      record_.add_problem("process " + std::to_string(i) + " keeps " + std::to_string(kept) +
                          " bytes of frames for nothing");
  }
}

}  // namespace lintel::simulation
