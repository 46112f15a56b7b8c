// Running a phase. Set-up path.
#include "fuzz/endpoint.h"

#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "fuzz/checks.h"
#include "fuzz/linearization.h"
#include "support/deadlines.h"
#include "support/text.h"

namespace lintel::fuzz {

namespace {

constexpr ptl_pt_index_t first_portal = 10;
constexpr ptl_pt_index_t fence_portal = 30;
constexpr ptl_pt_index_t room_portal = 31;
constexpr ptl_pt_index_t first_filler = 40;
constexpr ptl_size_t queue_slots = 4096;  // more than a phase has events
constexpr std::byte result_canary{0xa5};
constexpr std::byte overwritten{0x5a};

uint64_t now_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

void* user_pointer(uint64_t number) {
  return reinterpret_cast<void*>(number);  // NOLINT(performance-no-int-to-ptr)
}

bool replies(Kind kind) { return kind != Kind::put && kind != Kind::atomic; }

// The events that a started operation gives its descriptor whatever becomes of it.
uint32_t sure_sends(const Message& m, const Descriptor& d) {
  return m.kind != Kind::get && d.has_queue &&
                 (d.options & (PTL_MD_EVENT_SEND_DISABLE | PTL_MD_EVENT_SUCCESS_DISABLE)) == 0
             ? 1
             : 0;
}
bool end_is_sure(const Message& m, const Descriptor& d) {
  return d.has_queue && (replies(m.kind) || m.ack == PTL_ACK_REQ) &&
         (d.options & PTL_MD_EVENT_SUCCESS_DISABLE) == 0;
}

}  // namespace

Endpoint::Endpoint(Shared& shared, const Shape& shape, int index, ptl_interface_t interface,
                   bool lossy)
    : shared_(shared),
      shape_(shape),
      lossy_(lossy),
      index_(index),
      logical_((shape.seed & 1) != 0),
      entry_memory_(static_cast<std::size_t>(shape.threads) * thread_entry_bytes),
      send_memory_(static_cast<std::size_t>(shape.threads) * thread_send_bytes),
      calls_(static_cast<std::size_t>(shape.threads) + 1) {
  open(objects_[0], true, interface);
  open(objects_[1], false, interface);
  expect_ok(PtlGetUid(objects_[0].interface, &uid_), "PtlGetUid");
  expect_ok(PtlGetPhysId(objects_[0].interface, &shared.processes[static_cast<std::size_t>(index)]),
            "PtlGetPhysId");
}

void Endpoint::expect_ok(int code, const char* call) {
  if (code != PTL_OK) complain(std::string(call) + " returned " + test::return_code_name(code));
}

void Endpoint::complain(const std::string& text) {
  const std::lock_guard guard(problems_mutex_);
  problems_.push_back("endpoint " + std::to_string(index_) + ": " + text);
}

void Endpoint::open(Objects& objects, bool matching, ptl_interface_t interface) {
  ptl_ni_limits_t limits{};
  expect_ok(PtlNIInit(interface,
                      (matching ? PTL_NI_MATCHING : PTL_NI_NO_MATCHING) |
                          (logical_ ? PTL_NI_LOGICAL : PTL_NI_PHYSICAL),
                      PTL_PID_ANY, nullptr, &limits, &objects.interface),
            "PtlNIInit");
  volatile_bytes_ = limits.max_volatile_size;
  if (limits.max_waw_ordered_size != ordered_bytes || limits.max_war_ordered_size != ordered_bytes)
    complain("the ordered sizes are others than the model assumes");
  const auto new_count = [&](ptl_handle_ct_t& count) {
    expect_ok(PtlCTAlloc(objects.interface, &count), "PtlCTAlloc");
  };
  for (Queue& queue : objects.thread_queues)
    expect_ok(PtlEQAlloc(objects.interface, queue_slots, &queue.handle), "PtlEQAlloc");
  for (Queue& queue : objects.portal_queues)
    expect_ok(PtlEQAlloc(objects.interface, queue_slots, &queue.handle), "PtlEQAlloc");
  for (auto& counts : objects.portal_counts)
    for (ptl_handle_ct_t& count : counts) new_count(count);
  for (ptl_handle_ct_t& count : objects.descriptor_counts) new_count(count);
  for (ptl_handle_ct_t& count : objects.trigger_counts) new_count(count);
  bind_counting(objects, objects.fence_count, objects.fence_descriptor);
  bind_counting(objects, objects.plain_count, objects.plain_descriptor);
  for (std::size_t i = 0; i < max_threads; ++i) {
    bind_counting(objects, objects.reused_counts[i], objects.reused_descriptors[i]);
    new_count(objects.probe_counts[i]);
  }
  static_cast<void>(open_sink(objects, fence_portal, 0, PTL_EQ_NONE));
}

void Endpoint::bind_counting(Objects& objects, ptl_handle_ct_t& count,
                             ptl_handle_md_t& descriptor) {
  expect_ok(PtlCTAlloc(objects.interface, &count), "PtlCTAlloc");
  const ptl_md_t md{nullptr, 0, PTL_MD_EVENT_CT_ACK, PTL_EQ_NONE, count};
  expect_ok(PtlMDBind(objects.interface, &md, &descriptor), "PtlMDBind");
}

ptl_handle_any_t Endpoint::open_sink(Objects& objects, ptl_pt_index_t index, unsigned options,
                                     ptl_handle_eq_t queue) {
  ptl_pt_index_t given = 0;
  expect_ok(PtlPTAlloc(objects.interface, options, queue, index, &given), "PtlPTAlloc");
  ptl_me_t me{};
  me.ct_handle = PTL_CT_NONE;
  me.uid = PTL_UID_ANY;
  me.options = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE;
  me.ignore_bits = ~ptl_match_bits_t{0};
  if (logical_) {
    me.match_id.rank = PTL_RANK_ANY;
  } else {
    me.match_id.phys = {PTL_NID_ANY, PTL_PID_ANY};
  }
  const ptl_le_t le{me.start, me.length, me.ct_handle, me.uid, me.options};
  ptl_handle_any_t entry = PTL_INVALID_HANDLE;
  expect_ok(&objects == &objects_[0]
                ? PtlMEAppend(objects.interface, index, &me, PTL_PRIORITY_LIST, nullptr, &entry)
                : PtlLEAppend(objects.interface, index, &le, PTL_PRIORITY_LIST, nullptr, &entry),
            "the append of an entry");
  return entry;
}

void Endpoint::close_sink(Objects& objects, ptl_pt_index_t index, ptl_handle_any_t entry) {
  expect_ok(&objects == &objects_[0] ? PtlMEUnlink(entry) : PtlLEUnlink(entry), "PtlMEUnlink");
  expect_ok(PtlPTFree(objects.interface, index), "PtlPTFree");
}

std::size_t Endpoint::put_to_sink(Objects& objects, ptl_pt_index_t index, std::size_t most) {
  const ptl_process_t self = objects.processes[static_cast<std::size_t>(index_)];
  expect_ok(PtlCTSet(objects.plain_count, {0, 0}), "PtlCTSet");
  for (std::size_t sent = 0; sent < most; ++sent) {
    expect_ok(PtlPut(objects.plain_descriptor, 0, 0, PTL_ACK_REQ, self, index, 0, 0, nullptr, 0),
              "PtlPut");
    ptl_ct_event_t value{};
    expect_ok(PtlCTWait(objects.plain_count, sent + 1, &value), "PtlCTWait");
    if (value.failure != 0) return sent;
  }
  return most;
}

std::size_t Endpoint::measure_room(Objects& objects, const Queue& queue) {
  const ptl_handle_any_t entry = open_sink(objects, room_portal, PTL_PT_FLOWCTRL, queue.handle);
  const std::size_t accepted = put_to_sink(objects, room_portal, 16 * queue_slots);
  std::size_t events = 0;
  ptl_event_t event{};
  for (int code; (code = PtlEQGet(queue.handle, &event)) != PTL_EQ_EMPTY;) {
    expect_ok(code, "PtlEQGet");
    if (event.type == PTL_EVENT_PUT) ++events;
  }
  if (events != accepted || accepted < queue_slots)
    complain("a queue for " + std::to_string(queue_slots) + " events took " +
             std::to_string(accepted) + " messages and had " + std::to_string(events) + " events");
  close_sink(objects, room_portal, entry);
  return accepted;
}

std::vector<std::string> Endpoint::check_room() {
  for (Objects& objects : objects_) {
    for (Queue& queue : objects.portal_queues) {
      const std::size_t room = measure_room(objects, queue);
      if (room != queue.room)
        complain("a queue had room for " + std::to_string(queue.room) + " events, and has for " +
                 std::to_string(room) + " when nothing uses it any more");
    }
  }
  return problems_;
}

void Endpoint::connect() {
  shared_.barrier(shape_.endpoints);
  for (Objects& objects : objects_) {
    const auto count = static_cast<std::size_t>(shape_.endpoints);
    objects.processes.assign(count, ptl_process_t{});
    if (logical_)
      expect_ok(PtlSetMap(objects.interface, count, shared_.processes.data()), "PtlSetMap");
    for (std::size_t i = 0; i < count; ++i) {
      if (logical_) {
        objects.processes[i].rank = static_cast<ptl_rank_t>(i);
      } else {
        objects.processes[i] = shared_.processes[i];
      }
    }
    for (Queue& queue : objects.portal_queues) queue.room = measure_room(objects, queue);
  }
  shared_.barrier(shape_.endpoints);
}

std::size_t Endpoint::slot_of(uint32_t descriptor) const {
  return descriptor - static_cast<std::size_t>(index_ * shape_.threads * descriptors_per_thread);
}

Count Endpoint::read(ptl_handle_ct_t counter) {
  ptl_ct_event_t value{};
  expect_ok(PtlCTGet(counter, &value), "PtlCTGet");
  return {value.success, value.failure};
}

// Memory, portals, descriptors and counters as the phase needs them.
void Endpoint::prepare() {
  Objects& mine = objects();
  for (auto& calls : calls_) calls.clear();
  entries_.assign(program_->entries.size(), {});
  entry_vectors_.assign(program_->entries.size(), {});
  const ptl_ct_event_t zero{};
  for (const Entry& e : program_->entries) {
    if (e.endpoint != index_ || e.is_search) continue;
    for (const Layout::Piece& piece : e.memory.pieces)
      for (uint64_t i = piece.start; i < piece.start + piece.length; ++i)
        entry_memory_[i] = background_at(index_, i);
  }
  for (const Message& m : program_->messages) {
    if (m.endpoint != index_) continue;
    shared_.messages[m.id] = MessageSeen{};
    const Layout& layout = program_->descriptors[m.descriptor].memory;
    layout.for_each(m.source, m.length, [&](uint64_t start, uint64_t bytes, uint64_t done) {
      for (uint64_t i = 0; i < bytes; ++i)
        send_memory_[start + i] =
            m.kind >= Kind::atomic ? m.item[done + i] : payload_at(m.id, done + i);
    });
    layout.for_each(m.result, m.length, [&](uint64_t start, uint64_t bytes, uint64_t) {
      std::memset(send_memory_.data() + start, static_cast<int>(result_canary), bytes);
    });
  }
  for (int i = 0; i < portals; ++i) {
    const Portal& portal = program_->portal(index_, i);
    Queue& queue = mine.portal_queues[static_cast<std::size_t>(i)];
    queue.log.clear();
    ptl_pt_index_t index = 0;
    expect_ok(
        PtlPTAlloc(mine.interface, portal.options, portal.has_queue ? queue.handle : PTL_EQ_NONE,
                   first_portal + static_cast<ptl_pt_index_t>(i), &index),
        "PtlPTAlloc");
    for (const ptl_handle_ct_t count : mine.portal_counts[static_cast<std::size_t>(i)])
      expect_ok(PtlCTSet(count, zero), "PtlCTSet");
    if (!portal.tight) continue;
    const ptl_pt_index_t filler = first_filler + static_cast<ptl_pt_index_t>(i);
    fillers_[static_cast<std::size_t>(i)] = open_sink(mine, filler, 0, queue.handle);
    put_to_sink(mine, filler, queue.room - portal.room);
  }
  for (const ptl_handle_ct_t count : mine.trigger_counts)
    expect_ok(PtlCTSet(count, zero), "PtlCTSet");
  for (Queue& queue : mine.thread_queues) queue.log.clear();
  descriptors_.assign(program_->descriptors.size(), PTL_INVALID_HANDLE);
  descriptor_vectors_.assign(program_->descriptors.size(), {});
  for (uint32_t i = 0; i < program_->descriptors.size(); ++i) {
    const Descriptor& d = program_->descriptors[i];
    if (d.endpoint != index_) continue;
    const ptl_handle_ct_t count = mine.descriptor_counts[slot_of(i)];
    expect_ok(PtlCTSet(count, zero), "PtlCTSet");
    ptl_md_t md{};
    md.start = send_memory_.data() + d.memory.pieces.front().start;
    md.length = d.memory.length();
    if ((d.options & PTL_IOVEC) != 0) {
      descriptor_vectors_[i] = d.memory.vectors(send_memory_.data());
      md.start = descriptor_vectors_[i].data();
      md.length = descriptor_vectors_[i].size();
    }
    md.options = d.options;
    md.eq_handle =
        d.has_queue ? mine.thread_queues[static_cast<std::size_t>(d.thread)].handle : PTL_EQ_NONE;
    md.ct_handle = d.has_counter ? count : PTL_CT_NONE;
    expect_ok(PtlMDBind(mine.interface, &md, &descriptors_[i]), "PtlMDBind");
  }
}

std::vector<std::string> Endpoint::run(uint64_t phase) {
  program_ = std::make_unique<Program>(shape_, phase);
  prepare();
  shared_.barrier(shape_.endpoints);
  std::vector<std::thread> threads;
  for (int i = 0; i < shape_.threads; ++i) threads.emplace_back([this, i] { run_thread(i); });
  for (std::thread& thread : threads) thread.join();
  finish_operations();
  if (problems_.empty()) fence();
  if (!problems_.empty()) return problems_;
  shared_.barrier(shape_.endpoints);
  empty_portals();
  for (int i = 0; i < portals; ++i) check_portal(i);
  shared_.messages_done.fetch_add(program_->messages.size() /
                                  static_cast<std::size_t>(shape_.endpoints));
  if (problems_.empty()) shared_.barrier(shape_.endpoints);
  return problems_;
}

void Endpoint::run_thread(int thread) {
  const std::vector<Step>& steps = program_->steps(index_, thread);
  auto& at = shared_.at_step[static_cast<std::size_t>(index_)][static_cast<std::size_t>(thread)];
  for (uint32_t i = 0; i < steps.size(); ++i) {
    at.store(i, std::memory_order_relaxed);
    take_step(thread, steps[i]);
  }
  at.store(static_cast<uint32_t>(steps.size()), std::memory_order_relaxed);
}

void Endpoint::take_step(int thread, const Step& step) {
  Objects& mine = objects();
  const ptl_handle_ct_t trigger = mine.trigger_counts[static_cast<std::size_t>(thread)];
  for (const uint32_t id : step.starts) shared_.messages[id].call_ns = now_ns();
  switch (step.action) {
    case Action::send:
      send(program_->messages[step.index]);
      break;
    case Action::append:
      append(program_->entries[step.index]);
      break;
    case Action::search:
      search(program_->entries[step.index]);
      break;
    case Action::unlink:
      unlink(thread, program_->entries[step.index]);
      break;
    case Action::disable:
    case Action::enable: {
      CallSeen seen{.made = true, .begin_ns = now_ns()};
      const ptl_pt_index_t index = first_portal + step.index;
      seen.code = step.action == Action::disable ? PtlPTDisable(mine.interface, index)
                                                 : PtlPTEnable(mine.interface, index);
      seen.end_ns = now_ns();
      expect_ok(seen.code, "PtlPTDisable or PtlPTEnable");
      note_call(thread, step.action, step.index, seen);
      break;
    }
    case Action::count:
      expect_ok(PtlCTInc(trigger, {step.amount, 0}), "PtlCTInc");
      break;
    case Action::set:
      expect_ok(PtlCTSet(trigger, {step.amount, 0}), "PtlCTSet");
      break;
    case Action::drain:
      drain(mine.thread_queues[static_cast<std::size_t>(thread)], step.amount, -1);
      for (int i = 0; i < portals; ++i)
        drain(mine.portal_queues[static_cast<std::size_t>(i)], step.amount, i);
      break;
    case Action::poll: {
      // Never reached: waiting for it moves messages.
      unsigned which = 0;
      ptl_ct_event_t value{};
      const ptl_size_t test = PTL_SIZE_MAX;
      PtlCTPoll(&mine.fence_count, &test, 1, 1, &value, &which);
      break;
    }
    case Action::reuse:
      reuse_counter(thread, step);
      break;
    case Action::begin_bundle:
      expect_ok(PtlStartBundle(mine.interface), "PtlStartBundle");
      break;
    case Action::end_bundle:
      expect_ok(PtlEndBundle(mine.interface), "PtlEndBundle");
      break;
  }
}

// A counter that others have moved is set back. What is posted then waits for what is counted then,
// whoever still looks at the value of before (spec 3.14.8, 3.16).
void Endpoint::reuse_counter(int thread, const Step& step) {
  Objects& mine = objects();
  const auto slot = static_cast<std::size_t>(thread);
  const ptl_handle_ct_t count = mine.reused_counts[slot];
  const ptl_handle_ct_t probe = mine.probe_counts[slot];
  ptl_ct_event_t value{};
  const auto put_and_wait = [&](ptl_handle_ct_t counter, ptl_size_t test) {
    expect_ok(PtlPut(mine.reused_descriptors[slot], 0, 0, PTL_CT_ACK_REQ,
                     mine.processes[step.index], fence_portal, 0, 0, nullptr, 0),
              "PtlPut");
    expect_ok(PtlCTWait(counter, test, &value), "PtlCTWait");
  };
  put_and_wait(count, 1);
  expect_ok(PtlCTSet(count, {0, 0}), "PtlCTSet");
  expect_ok(PtlTriggeredCTInc(probe, {1, 0}, count, 1), "PtlTriggeredCTInc");
  if (step.amount != 0) {
    put_and_wait(probe, ++mine.probes[slot]);
    expect_ok(PtlCTSet(count, {0, 0}), "PtlCTSet");
  } else {
    sched_yield();
    expect_ok(PtlCTCancelTriggered(count), "PtlCTCancelTriggered");
  }
  if (read(probe).success != mine.probes[slot])
    complain("a triggered operation fired although its counter was below its threshold");
}

void Endpoint::send(const Message& m) {
  MessageSeen& seen = shared_.messages[m.id];
  if (!m.triggered) seen.call_ns = now_ns();
  expect_ok(start(m), "the call that starts a message");
  const Descriptor& d = program_->descriptors[m.descriptor];
  if ((d.options & PTL_MD_VOLATILE) == 0 || m.triggered || m.kind == Kind::get ||
      m.length > volatile_bytes_)
    return;
  // The data have been taken (spec 3.10.1, PTL_MD_VOLATILE).
  d.memory.for_each(m.source, m.length, [&](uint64_t first, uint64_t bytes, uint64_t) {
    std::memset(send_memory_.data() + first, static_cast<int>(overwritten), bytes);
  });
}

int Endpoint::start(const Message& m) {
  const Objects& mine = objects();
  const ptl_handle_md_t md = descriptors_[m.descriptor];
  const ptl_process_t target = mine.processes[static_cast<std::size_t>(m.target)];
  const ptl_pt_index_t index = first_portal + static_cast<ptl_pt_index_t>(m.portal);
  const ptl_match_bits_t bits = (uint64_t{m.id} + 1) << tag_bits | m.tag;
  void* const user = user_pointer(uint64_t{m.id} + 1);
  const ptl_hdr_data_t data = uint64_t{m.id} + 1;
  const ptl_handle_ct_t trigger = mine.trigger_counts[static_cast<std::size_t>(m.thread)];
  switch (m.kind) {
    case Kind::put:
      return m.triggered ? PtlTriggeredPut(md, m.source, m.length, m.ack, target, index, bits,
                                           m.remote_offset, user, data, trigger, m.threshold)
                         : PtlPut(md, m.source, m.length, m.ack, target, index, bits,
                                  m.remote_offset, user, data);
    case Kind::get:
      return m.triggered
                 ? PtlTriggeredGet(md, m.result, m.length, target, index, bits, m.remote_offset,
                                   user, trigger, m.threshold)
                 : PtlGet(md, m.result, m.length, target, index, bits, m.remote_offset, user);
    case Kind::atomic:
      return m.triggered ? PtlTriggeredAtomic(md, m.source, m.length, m.ack, target, index, bits,
                                              m.remote_offset, user, data, m.operation, m.datatype,
                                              trigger, m.threshold)
                         : PtlAtomic(md, m.source, m.length, m.ack, target, index, bits,
                                     m.remote_offset, user, data, m.operation, m.datatype);
    case Kind::fetch_atomic:
      return m.triggered ? PtlTriggeredFetchAtomic(md, m.result, md, m.source, m.length, target,
                                                   index, bits, m.remote_offset, user, data,
                                                   m.operation, m.datatype, trigger, m.threshold)
                         : PtlFetchAtomic(md, m.result, md, m.source, m.length, target, index, bits,
                                          m.remote_offset, user, data, m.operation, m.datatype);
    case Kind::swap:
      return m.triggered
                 ? PtlTriggeredSwap(md, m.result, md, m.source, m.length, target, index, bits,
                                    m.remote_offset, user, data, m.operand.data(), m.operation,
                                    m.datatype, trigger, m.threshold)
                 : PtlSwap(md, m.result, md, m.source, m.length, target, index, bits,
                           m.remote_offset, user, data, m.operand.data(), m.operation, m.datatype);
  }
  return PTL_FAIL;
}

ptl_me_t Endpoint::match_entry(const Entry& e) {
  Objects& mine = objects();
  ptl_me_t me{};
  me.length = e.memory.length();
  if (!e.memory.pieces.empty()) me.start = entry_memory_.data() + e.memory.pieces.front().start;
  if (e.has(PTL_IOVEC)) {
    entry_vectors_[e.id] = e.memory.vectors(entry_memory_.data());
    me.start = entry_vectors_[e.id].data();
    me.length = entry_vectors_[e.id].size();
  }
  me.ct_handle = e.counter < 0 ? PTL_CT_NONE
                               : mine.portal_counts[static_cast<std::size_t>(e.portal)]
                                                   [static_cast<std::size_t>(e.counter)];
  me.uid = e.foreign ? uid_ + 1 : PTL_UID_ANY;
  me.options = e.options;
  me.match_bits = e.tag;
  me.ignore_bits = ~ptl_match_bits_t{0} << tag_bits | e.ignored_tags;
  me.min_free = e.min_free;
  if (e.source >= 0) {
    me.match_id = mine.processes[static_cast<std::size_t>(e.source)];
  } else if (logical_) {
    me.match_id.rank = PTL_RANK_ANY;
  } else {
    me.match_id.phys = {PTL_NID_ANY, PTL_PID_ANY};
  }
  return me;
}

void Endpoint::append(const Entry& e) {
  EntryCalls& calls = entries_[e.id];
  const ptl_me_t me = match_entry(e);
  const ptl_le_t le{me.start, me.length, me.ct_handle, me.uid, me.options};
  const ptl_pt_index_t index = first_portal + static_cast<ptl_pt_index_t>(e.portal);
  void* const user = user_pointer(entry_user_base + e.id);
  CallSeen seen{.made = true, .begin_ns = now_ns()};
  seen.code = program_->matching
                  ? PtlMEAppend(objects().interface, index, &me, e.list, user, &calls.handle)
                  : PtlLEAppend(objects().interface, index, &le, e.list, user, &calls.handle);
  seen.end_ns = now_ns();
  expect_ok(seen.code, "the append of an entry");
  calls.append = seen;
  note_call(e.thread, Action::append, e.id, seen);
}

void Endpoint::search(const Entry& e) {
  const ptl_me_t me = match_entry(e);
  const ptl_le_t le{me.start, me.length, me.ct_handle, me.uid, me.options};
  const ptl_pt_index_t index = first_portal + static_cast<ptl_pt_index_t>(e.portal);
  void* const user = user_pointer(entry_user_base + e.id);
  CallSeen seen{.made = true, .begin_ns = now_ns()};
  seen.code = program_->matching ? PtlMESearch(objects().interface, index, &me, e.search, user)
                                 : PtlLESearch(objects().interface, index, &le, e.search, user);
  seen.end_ns = now_ns();
  expect_ok(seen.code, "the search of unexpected headers");
  note_call(e.thread, Action::search, e.id, seen);
}

void Endpoint::unlink(int thread, const Entry& e) {
  EntryCalls& calls = entries_[e.id];
  if (calls.handle == PTL_INVALID_HANDLE) return;
  CallSeen seen{.made = true, .begin_ns = now_ns()};
  seen.code = program_->matching ? PtlMEUnlink(calls.handle) : PtlLEUnlink(calls.handle);
  seen.end_ns = now_ns();
  if (seen.code == PTL_OK) calls.handle = PTL_INVALID_HANDLE;
  note_call(thread, Action::unlink, e.id, seen);
}

// After calls that end something, whatever is to come must be in the queue.
void Endpoint::note_call(int thread, Action action, uint32_t id, const CallSeen& seen) {
  PortalCall call{{action, id, nullptr, seen.begin_ns, seen.end_ns}, seen};
  const int portal = action == Action::disable || action == Action::enable
                         ? static_cast<int>(id)
                         : program_->entries[id].portal;
  call.seen.log_end = SIZE_MAX;
  if ((action == Action::unlink || action == Action::disable) &&
      !program_->portal(index_, portal).tight) {
    Queue& queue = objects().portal_queues[static_cast<std::size_t>(portal)];
    drain(queue, SIZE_MAX, portal);
    const std::lock_guard guard(queue.mutex);
    call.seen.log_end = queue.log.size();
  }
  calls_[static_cast<std::size_t>(thread)].push_back(call);
}

// Takes events. Under a lock, so that the log has the order of the queue.
std::size_t Endpoint::drain(Queue& queue, std::size_t most, int portal) {
  const std::lock_guard guard(queue.mutex);
  std::size_t taken = 0;
  for (; taken < most; ++taken) {
    Taken next{};
    const int code = PtlEQGet(queue.handle, &next.event);
    if (code == PTL_EQ_EMPTY) break;
    expect_ok(code, "PtlEQGet");
    next.taken_ns = now_ns();
    if (portal >= 0 && next.event.pt_index >= first_filler) continue;
    queue.log.push_back(next);
    if (portal < 0) {
      note_initiator_event(next);
    } else {
      note_target_event(portal, next);
    }
  }
  return taken;
}

void Endpoint::note_initiator_event(const Taken& taken) {
  const ptl_event_t& event = taken.event;
  const uint64_t number = user_number(event);
  if (number == 0 || number > program_->messages.size() ||
      program_->messages[number - 1].endpoint != index_) {
    complain("event of no message: " + test::describe(event));
    return;
  }
  const Message& m = program_->messages[number - 1];
  const Layout& layout = program_->descriptors[m.descriptor].memory;
  MessageSeen& seen = shared_.messages[m.id];
  if (event.type == PTL_EVENT_SEND) {
    ++seen.sends;
    seen.send = event;
    if (event.ni_fail_type != PTL_NI_OK || event.mlength != m.length)
      complain("PTL_EVENT_SEND: " + test::describe(event));
  } else if (event.type == (replies(m.kind) ? PTL_EVENT_REPLY : PTL_EVENT_ACK)) {
    ++seen.ends;
    seen.end = event;
    seen.ended_ns = taken.taken_ns;
    if (replies(m.kind) && event.ni_fail_type == PTL_NI_OK && event.mlength <= m.length)
      seen.result_hash =
          hash_of(layout, m.result, event.mlength, [&](uint64_t at) { return send_memory_[at]; });
  } else {
    complain("event of another kind: " + test::describe(event));
    return;
  }
  // The buffer may be used again (spec 3.13.2).
  if (m.kind != Kind::get)
    layout.for_each(m.source, m.length, [&](uint64_t start, uint64_t bytes, uint64_t) {
      std::memset(send_memory_.data() + start, static_cast<int>(overwritten), bytes);
    });
}

// The data of a put are there when its event is (spec 2.5, 3.13.1). Checked where nothing else may
// change them.
void Endpoint::note_target_event(int portal, const Taken& taken) {
  const ptl_event_t& event = taken.event;
  if ((event.type != PTL_EVENT_PUT && event.type != PTL_EVENT_PUT_OVERFLOW) || event.mlength == 0 ||
      event.hdr_data == 0 || event.hdr_data > program_->messages.size())
    return;
  const auto id = static_cast<uint32_t>(event.hdr_data - 1);
  const auto at =
      static_cast<uint64_t>(static_cast<std::byte*>(event.start) - entry_memory_.data());
  for (const Entry& e : program_->entries) {
    if (e.endpoint != index_ || e.portal != portal || !e.has(PTL_ME_MANAGE_LOCAL | PTL_ME_USE_ONCE))
      continue;
    uint64_t offset = 0;
    for (const Layout::Piece& piece : e.memory.pieces) {
      if (at - piece.start < piece.length) {
        offset += at - piece.start;
        uint64_t wrong = 0;
        e.memory.for_each(offset, event.mlength,
                          [&](uint64_t start, uint64_t bytes, uint64_t done) {
                            for (uint64_t i = 0; i < bytes; ++i)
                              wrong += entry_memory_[start + i] != payload_at(id, done + i) ? 1 : 0;
                          });
        if (wrong != 0)
          complain(std::to_string(wrong) + " bytes of message " + std::to_string(id) +
                   " are not in place when its event is: " + test::describe(event));
        return;
      }
      offset += piece.length;
    }
  }
}

// What of the own operations has not ended; empty: all have.
std::string Endpoint::unfinished() {
  std::vector<Count> expected(descriptors_.size());
  std::vector<bool> known(descriptors_.size(), true);
  for (const Message& m : program_->messages) {
    if (m.endpoint != index_ || !m.starts) continue;
    const Descriptor& d = program_->descriptors[m.descriptor];
    const MessageSeen& seen = shared_.messages[m.id];
    if (seen.sends < sure_sends(m, d))
      return "message " + std::to_string(m.id) + " has no PTL_EVENT_SEND";
    if (end_is_sure(m, d) && seen.ends == 0)
      return "message " + std::to_string(m.id) + " has no PTL_EVENT_ACK or PTL_EVENT_REPLY";
    if (!d.has_counter) continue;
    const bool bytes = (d.options & PTL_MD_EVENT_CT_BYTES) != 0;
    Count& count = expected[m.descriptor];
    if (m.kind != Kind::get && (d.options & PTL_MD_EVENT_CT_SEND) != 0)
      count.success += bytes ? m.length : 1;
    const unsigned option = replies(m.kind) ? PTL_MD_EVENT_CT_REPLY : PTL_MD_EVENT_CT_ACK;
    if ((!replies(m.kind) && m.ack == PTL_NO_ACK_REQ) || (d.options & option) == 0) continue;
    if (!bytes) {
      ++count.success;
    } else if (seen.end.ni_fail_type == PTL_NI_OK) {
      count.success += seen.end.mlength;
    } else {
      ++count.failure;
    }
  }
  for (uint32_t i = 0; i < descriptors_.size(); ++i) {
    const Descriptor& d = program_->descriptors[i];
    if (d.endpoint != index_ || !d.has_counter) continue;
    const Count is = read(objects().descriptor_counts[slot_of(i)]);
    const bool bytes = (d.options & PTL_MD_EVENT_CT_BYTES) != 0;
    const bool there = bytes ? is == expected[i]
                             : is.success + is.failure == expected[i].success + expected[i].failure;
    if (!there)
      return "the counter of descriptor " + std::to_string(i) + " is " +
             std::to_string(is.success) + "/" + std::to_string(is.failure) + " instead of " +
             std::to_string(expected[i].success) + "/" + std::to_string(expected[i].failure);
  }
  return "";
}

// All operations end (spec 3.13.3); then nothing holds the descriptors any more.
void Endpoint::finish_operations() {
  Objects& mine = objects();
  for (int i = 0; i < shape_.threads; ++i)
    expect_ok(PtlCTCancelTriggered(mine.trigger_counts[static_cast<std::size_t>(i)]),
              "PtlCTCancelTriggered");
  const auto deadline = std::chrono::steady_clock::now() + test::wait_deadline;
  const auto wait_until = [&](const char* what, auto&& done) {
    for (;;) {
      for (Queue& queue : mine.thread_queues) drain(queue, SIZE_MAX, -1);
      const std::string missing = done();
      if (missing.empty()) return;
      if (shared_.failed.load() != 0) throw OtherFailed{};
      if (std::chrono::steady_clock::now() > deadline) {
        complain(std::string(what) + missing);
        return;
      }
      ptl_ct_event_t value{};
      const ptl_size_t test = PTL_SIZE_MAX;
      unsigned which = 0;
      PtlCTPoll(&mine.fence_count, &test, 1, 1, &value, &which);
    }
  };
  wait_until("an operation does not end: ", [&] { return unfinished(); });
  for (uint32_t i = 0; i < descriptors_.size(); ++i) {
    if (descriptors_[i] == PTL_INVALID_HANDLE) continue;
    wait_until("PtlMDRelease: ", [&]() -> std::string {
      const int code = PtlMDRelease(descriptors_[i]);
      return code == PTL_OK
                 ? ""
                 : "descriptor " + std::to_string(i) + ": " + test::return_code_name(code);
    });
    shared_.descriptor_counts[i] = read(mine.descriptor_counts[slot_of(i)]);
  }
  for (const Message& m : program_->messages) {
    if (m.endpoint != index_) continue;
    const Descriptor& d = program_->descriptors[m.descriptor];
    MessageSeen& seen = shared_.messages[m.id];
    const uint32_t sends = m.starts ? sure_sends(m, d) : 0;
    if (seen.sends != sends || seen.ends > (m.starts ? 1u : 0u))
      complain("message " + std::to_string(m.id) + (m.starts ? "" : ", which never started,") +
               " has " + std::to_string(seen.sends) + " PTL_EVENT_SEND and " +
               std::to_string(seen.ends) + " PTL_EVENT_ACK or PTL_EVENT_REPLY");
    if (m.kind < Kind::fetch_atomic) continue;
    d.memory.for_each(m.result, m.length, [&](uint64_t start, uint64_t bytes, uint64_t done) {
      std::memcpy(seen.result + done, send_memory_.data() + start, bytes);
    });
  }
}

// What was sent before has been dealt with when a message behind it has.
void Endpoint::fence() {
  Objects& mine = objects();
  for (const ptl_process_t& process : mine.processes) {
    expect_ok(
        PtlPut(mine.fence_descriptor, 0, 0, PTL_ACK_REQ, process, fence_portal, 0, 0, nullptr, 0),
        "PtlPut");
    ++mine.fences;
  }
  const auto deadline = std::chrono::steady_clock::now() + test::wait_deadline;
  for (;;) {
    ptl_ct_event_t value{};
    unsigned which = 0;
    if (PtlCTPoll(&mine.fence_count, &mine.fences, 1, 20, &value, &which) == PTL_OK) {
      if (value.failure != 0) complain("a message to a portal that is always there failed");
      return;
    }
    if (shared_.failed.load() != 0) throw OtherFailed{};
    if (std::chrono::steady_clock::now() > deadline)
      return complain("a message is not acknowledged");
  }
}

// Nothing arrives any more: what is left is taken out, and the portals are given back.
void Endpoint::empty_portals() {
  Objects& mine = objects();
  const int last = shape_.threads;
  for (int i = 0; i < portals; ++i) {
    drain(mine.portal_queues[static_cast<std::size_t>(i)], SIZE_MAX, i);
    Entry search_all = program_->entries[program_->last_search(index_, i)];
    search_all.thread = last;
    search(search_all);
  }
  for (const Entry& e : program_->entries)
    if (e.endpoint == index_ && !e.is_search) unlink(last, e);
  for (int i = 0; i < portals; ++i) {
    drain(mine.portal_queues[static_cast<std::size_t>(i)], SIZE_MAX, i);
    expect_ok(PtlPTFree(mine.interface, first_portal + static_cast<ptl_pt_index_t>(i)),
              "PtlPTFree");
    if (program_->portal(index_, i).tight)
      close_sink(mine, first_filler + static_cast<ptl_pt_index_t>(i),
                 fillers_[static_cast<std::size_t>(i)]);
  }
}

void Endpoint::check_portal(int portal) {
  Objects& mine = objects();
  PortalHistory history;
  history.program = program_.get();
  history.endpoint = index_;
  history.portal = portal;
  history.pt_index = first_portal + static_cast<uint32_t>(portal);
  history.log = &mine.portal_queues[static_cast<std::size_t>(portal)].log;
  history.messages = shared_.messages;
  history.descriptor_counts = shared_.descriptor_counts;
  history.memory = entry_memory_.data();
  history.processes = mine.processes;
  history.uid = uid_;
  for (std::size_t i = 0; i < portal_counters; ++i)
    history.counts[i] = read(mine.portal_counts[static_cast<std::size_t>(portal)][i]);
  // Calls of each thread here and messages of each thread anywhere, in order; triggered ones apart.
  for (std::vector<PortalCall>& calls : calls_) {
    std::vector<Element> sequence;
    for (PortalCall& call : calls) {
      call.element.call = &call.seen;
      const bool of_portal =
          call.element.action == Action::disable || call.element.action == Action::enable
              ? static_cast<int>(call.element.id) == portal
              : program_->entries[call.element.id].portal == portal;
      if (of_portal) sequence.push_back(call.element);
    }
    history.sequences.push_back(std::move(sequence));
  }
  std::vector<std::string> problems;
  {
    const Model names(history, problems);
    for (int endpoint = 0; endpoint < shape_.endpoints; ++endpoint) {
      for (int thread = 0; thread < shape_.threads; ++thread) {
        std::vector<Element> direct;
        std::vector<Element> triggered;
        for (const Step& step : program_->steps(endpoint, thread)) {
          const auto add = [&](uint32_t id, std::vector<Element>& to) {
            const Message& m = program_->messages[id];
            if (m.target != index_ || m.portal != portal) return;
            const unsigned options = program_->descriptors[m.descriptor].options;
            Element element{Action::send,
                            id,
                            nullptr,
                            shared_.messages[id].call_ns,
                            names.completed_ns(id),
                            lossy_ && (options & PTL_MD_UNRELIABLE) != 0};
            if ((options & (PTL_MD_UNRELIABLE | PTL_MD_UNORDERED)) != 0) {
              history.sequences.push_back({element});
            } else {
              to.push_back(element);
            }
          };
          if (step.action == Action::send && !program_->messages[step.index].triggered)
            add(step.index, direct);
          for (const uint32_t id : step.starts) add(id, triggered);
        }
        history.sequences.push_back(std::move(direct));
        history.sequences.push_back(std::move(triggered));
      }
    }
  }
  problems.clear();
  const Model model(history, problems);
  Linearization linearization(history, model);
  const Verdict verdict = linearization.find();
  shared_.portals_checked.fetch_add(1);
  if (verdict == Verdict::undecided) shared_.portals_undecided.fetch_add(1);
  if (verdict == Verdict::contradicted)
    problems.push_back("no order of its operations explains what was seen; " +
                       linearization.explanation());
  check_order_of_events(history, problems);
  if (verdict == Verdict::explained)
    check_releases(history, model, linearization.state(), problems);
  for (const std::string& problem : problems)
    complain("portal " + std::to_string(portal) +
             (program_->matching ? " (matching" : " (not matching") + ", options " +
             std::to_string(program_->portal(index_, portal).options) + "): " + problem);
}

}  // namespace lintel::fuzz
