#include "simulation/scenario.h"

#include <algorithm>

#include "simulation/virtual_time.h"

namespace lintel::simulation {

namespace {

constexpr uint32_t most_processes = 5;
constexpr uint64_t most_messages = 120;  // of a flow
// Several times the duration of the longest incident and its consequences. The core sends more
// bytes.
constexpr uint64_t limit_ns = 300 * second;
constexpr uint64_t core_limit_ns = 3000 * second;
constexpr uint64_t timeouts_of_limit = 30;

#ifdef LINTEL_HAS_CRYPTO
constexpr NetworkSecurity securities[] = {NetworkSecurity::off, NetworkSecurity::authenticated,
                                          NetworkSecurity::encrypted};
#else
constexpr NetworkSecurity securities[] = {NetworkSecurity::off};
#endif

uint64_t timeout_of(const Scenario& scenario) noexcept {
  return scenario.processes[0].peer_timeout_ns;
}

NetworkShape make_network(Dice& dice) {
  static constexpr uint64_t latencies_ns[] = {500, 2'000, 10'000, 50'000, 1'000'000, 20'000'000};
  static constexpr double rates[] = {0.0125, 0.125, 1.25, 12.5, 50};
  static constexpr uint64_t buffers[] = {32 << 10, 256 << 10, 4 << 20};
  NetworkShape shape;
  shape.latency_ns = dice.one_of(latencies_ns);
  shape.bytes_per_ns = dice.one_of(rates);
  shape.buffer_bytes = dice.one_of(buffers);
  return shape;
}

constexpr uint32_t mtus[] = {512, 1472, 1472, 4096, 9000};

// What all processes of a job have in common.
ProcessShape common_shape(Dice& dice) {
  static constexpr uint64_t timeouts_ns[] = {3 * second, 3 * second, 10 * second, 10 * second,
                                             120 * second};
  ProcessShape shape;
  shape.peer_timeout_ns = dice.one_of(timeouts_ns);
  shape.security = dice.one_of(securities);
  // Of some connections an epoch ends, and the low half of counters wraps, after a hundred frames.
  shape.key_epoch_bits = dice.happens(0.5) ? 14 : 22;
  shape.first_counter = dice.happens(0.5) ? 1 : (uint64_t{1} << 32) - 100;
  return shape;
}

ProcessShape make_process(Dice& dice, const ProcessShape& common) {
  static constexpr uint64_t capacities[] = {16 << 10, 64 << 10, 256 << 10, 4 << 20};
  static constexpr uint64_t memories[] = {1 << 20, 4 << 20, 32 << 20};
  static constexpr uint32_t sequences[] = {1, 1, UINT32_MAX - 20, 0x7fffffe0};
  ProcessShape shape = common;
  shape.link.mtu = dice.one_of(mtus);
  shape.link.capacity_bytes = dice.one_of(capacities);
  shape.link.sends_from_anywhere = dice.happens(0.5);
  shape.link.longest_pause_ns = 100 * millisecond;
  shape.memory_bytes = dice.one_of(memories);
  shape.first_sequence = dice.one_of(sequences);
  shape.most_connections = 64;
  shape.poll_ns = dice.between(500, 20'000);
  shape.messages_per_poll = static_cast<unsigned>(dice.between(1, 8));
  shape.link.has_slots = dice.happens(0.3);
  shape.link.refuses_long = dice.happens(0.3);
  return shape;
}

Trouble make_trouble(Dice& dice, const NetworkShape& network) {
  Trouble trouble;
  if (dice.happens(0.5)) trouble.drop = 0.1 * static_cast<double>(dice.below(100)) / 100;
  if (dice.happens(0.2)) trouble.drop *= 2;
  if (dice.happens(0.3)) trouble.duplicate = 0.2;
  if (dice.happens(0.3)) trouble.delay = 0.3;
  if (dice.happens(0.3)) trouble.damage = 0.05;
  trouble.longest_delay_ns = dice.below(8 * network.latency_ns + 1);
  return trouble;
}

uint32_t message_bytes(Dice& dice) {
  switch (dice.below(4)) {
    case 0:
      return 0;
    case 1:
      return static_cast<uint32_t>(dice.below(64));
    case 2:
      return static_cast<uint32_t>(dice.below(1500));
    default:
      return static_cast<uint32_t>(dice.below(ReliableTransport::max_eager_bytes + 1));
  }
}

std::vector<OutgoingMessage> make_messages(Dice& dice) {
  std::vector<OutgoingMessage> messages;
  const uint64_t count = dice.between(1, most_messages);
  while (messages.size() < count) {
    if (dice.happens(0.05)) {
      const uint64_t parts = dice.between(1, 30);
      for (uint64_t part = 1; part <= parts; ++part)
        messages.push_back({longest_payload, MessageKind::data, part == parts, false});
    } else {
      messages.push_back({message_bytes(dice), MessageKind::put, true, dice.happens(0.3)});
    }
  }
  return messages;
}

Incident make_incident(Dice& dice, const Scenario& scenario) {
  static constexpr IncidentKind kinds[] = {
      IncidentKind::cut_one_way, IncidentKind::cut_both_ways, IncidentKind::isolate,
      IncidentKind::stop,        IncidentKind::slow_down,     IncidentKind::fill_link,
      IncidentKind::restart,     IncidentKind::leave,         IncidentKind::die,
      IncidentKind::jump,        IncidentKind::worsen,        IncidentKind::narrow,
      IncidentKind::suspend,     IncidentKind::take_nothing};
  // The longest are outages that only a long time-out survives.
  const uint64_t longest_ns = std::max(15 * second, timeout_of(scenario) / 2);
  const uint64_t durations[] = {millisecond, 20 * millisecond, 200 * millisecond, 2 * second,
                                longest_ns};
  const auto processes = static_cast<uint32_t>(scenario.processes.size());
  Incident incident;
  incident.kind = dice.one_of(kinds);
  incident.at_ns = dice.below(dice.one_of({2 * millisecond, 50 * millisecond, second}));
  incident.duration_ns = 1 + dice.below(dice.one_of(durations));
  incident.process = static_cast<uint32_t>(dice.below(processes));
  incident.other =
      (incident.process + 1 + static_cast<uint32_t>(dice.below(processes - 1))) % processes;
  incident.mtu = dice.one_of(mtus);
  // A switch or a tunnel that takes only shorter frames than the links, for good.
  if (incident.kind == IncidentKind::narrow && dice.happens(0.5))
    incident.duration_ns = scenario.limit_ns;
  return incident;
}

// Several rails, whose rates differ, and which are cut at times. Dice of their own leave the rest
// of the scenarios of a seed as it is.
void add_rails(Scenario& scenario) {
  Dice dice(~scenario.seed);
  if (!dice.happens(0.4)) return;
  static constexpr double rates[] = {1, 1, 3, 0.33, 10, 0.1};
  scenario.network.rails = static_cast<unsigned>(dice.between(2, most_rails));
  for (unsigned i = 1; i < scenario.network.rails; ++i)
    scenario.network.rail_rates[i] = dice.one_of(rates);
  const uint64_t cuts = dice.below(4);
  for (uint64_t i = 0; i < cuts; ++i) {
    Incident incident;
    incident.kind = IncidentKind::cut_rail;
    incident.rail = static_cast<uint32_t>(dice.below(scenario.network.rails));
    incident.at_ns = dice.below(dice.one_of({2 * millisecond, 50 * millisecond, second}));
    incident.duration_ns = 1 + dice.below(dice.one_of({20 * millisecond, second, 10 * second}));
    scenario.incidents.push_back(incident);
  }
}

}  // namespace

const char* name_of(IncidentKind kind) noexcept {
  switch (kind) {
    case IncidentKind::cut_one_way:
      return "cut one way";
    case IncidentKind::cut_both_ways:
      return "cut both ways";
    case IncidentKind::isolate:
      return "isolate";
    case IncidentKind::stop:
      return "stop";
    case IncidentKind::suspend:
      return "suspend";
    case IncidentKind::slow_down:
      return "slow down";
    case IncidentKind::fill_link:
      return "fill link";
    case IncidentKind::restart:
      return "restart";
    case IncidentKind::leave:
      return "leave";
    case IncidentKind::die:
      return "die";
    case IncidentKind::jump:
      return "jump";
    case IncidentKind::worsen:
      return "worsen";
    case IncidentKind::narrow:
      return "narrow";
    case IncidentKind::cut_rail:
      return "cut rail";
    case IncidentKind::take_nothing:
      return "take nothing";
  }
  return "";
}

uint64_t Scenario::stagger_ns(uint32_t process) const noexcept {
  return process * timeout_of(*this) / 64;
}

bool Scenario::cuts_all_rails() const noexcept {
  unsigned cut = 0;
  for (const Incident& incident : incidents)
    if (incident.kind == IncidentKind::cut_rail) cut |= 1u << incident.rail;
  return cut + 1 == 1u << network.rails;
}

bool Scenario::is_severe(const Incident& incident) const noexcept {
  switch (incident.kind) {
    case IncidentKind::restart:
    case IncidentKind::leave:
    case IncidentKind::die:
      return true;
    case IncidentKind::slow_down:
    case IncidentKind::narrow:  // shorter frames arrive
      return false;
    case IncidentKind::cut_rail:
      return cuts_all_rails() && incident.duration_ns > timeout_of(*this) / 4;
    // Nobody is silent while somebody waits.
    case IncidentKind::jump:
    case IncidentKind::suspend:
      return false;
    default:
      // Frames lost before and after the incident, and other incidents, make the silence longer.
      return incident.duration_ns > timeout_of(*this) / (incidents.size() == 1 ? 2 : 4);
  }
}

Scenario make_scenario(uint64_t seed, Level level) {
  Dice dice(seed);
  Scenario scenario;
  scenario.seed = seed;
  scenario.level = level;
  scenario.network = make_network(dice);
  const auto processes = static_cast<uint32_t>(dice.between(2, most_processes));
  const ProcessShape common = common_shape(dice);
  for (uint32_t i = 0; i < processes; ++i) scenario.processes.push_back(make_process(dice, common));
  for (uint32_t from = 0; from < processes; ++from) {
    for (uint32_t to = 0; to < processes; ++to) {
      if (from == to) continue;
      scenario.trouble.push_back({from, to, make_trouble(dice, scenario.network)});
      if (dice.happens(0.6)) scenario.flows.push_back({from, to, make_messages(dice)});
    }
  }
  scenario.limit_ns = std::max(level == Level::core ? core_limit_ns : limit_ns,
                               timeouts_of_limit * common.peer_timeout_ns);
  const uint64_t incidents = dice.happens(0.3) ? 0 : dice.between(1, 4);
  for (uint64_t i = 0; i < incidents; ++i)
    scenario.incidents.push_back(make_incident(dice, scenario));
  add_rails(scenario);
  std::sort(scenario.incidents.begin(), scenario.incidents.end(),
            [](const Incident& a, const Incident& b) { return a.at_ns < b.at_ns; });
  scenario.has_device = level == Level::core && dice.happens(0.5);
  if (dice.happens(0.3)) scenario.failing_copies = 0.002;
  return scenario;
}

}  // namespace lintel::simulation
