// perf_instructions_puts: short puts, one after the other, from a process to itself or to a second
// process, for perf/instructions. Sees what every client sees, the shared library.
#include <portals4.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "options.h"

namespace {

constexpr ptl_size_t payload_bytes = 8;
// A put of this size to the own process goes through a lane, like one to another process of the
// node. Shorter ones are delivered by PtlPut itself.
constexpr ptl_size_t lane_payload_bytes = 72;
constexpr ptl_match_bits_t match_bits = 17;

// The code of a return code goes out with the call: nothing here is expected to fail.
void check(int code, const char* call) {
  if (code == PTL_OK) return;
  std::fprintf(stderr, "perf_instructions_puts: %s: return code %d\n", call, code);
  std::exit(EXIT_FAILURE);
}

void check_event(const ptl_event_t& event, ptl_event_kind_t kind) {
  if (event.type == kind && event.ni_fail_type == PTL_NI_OK) return;
  std::fprintf(stderr, "perf_instructions_puts: event %d with failure %d in place of event %d\n",
               event.type, event.ni_fail_type, kind);
  std::exit(EXIT_FAILURE);
}

// One interface of this process, with a memory descriptor and one entry that takes every put. Puts
// go to the process itself unless another one is named.
class Endpoint {
 public:
  explicit Endpoint(bool matching, ptl_size_t bytes = payload_bytes)
      : matching_(matching), bytes_(bytes) {
    check(PtlInit(), "PtlInit");
    check(PtlNIInit(PTL_IFACE_DEFAULT,
                    (matching ? PTL_NI_MATCHING : PTL_NI_NO_MATCHING) | PTL_NI_PHYSICAL,
                    PTL_PID_ANY, nullptr, nullptr, &ni_),
          "PtlNIInit");
    check(PtlGetPhysId(ni_, &peer_), "PtlGetPhysId");
  }
  ~Endpoint() { PtlFini(); }
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  // Address of this process until another one is named.
  [[nodiscard]] ptl_process_t peer() const { return peer_; }
  void set_peer(ptl_process_t peer) { peer_ = peer; }

  [[nodiscard]] ptl_handle_eq_t new_queue() const {
    ptl_handle_eq_t queue;
    check(PtlEQAlloc(ni_, 64, &queue), "PtlEQAlloc");
    return queue;
  }
  [[nodiscard]] ptl_handle_ct_t new_counter() const {
    ptl_handle_ct_t counter;
    check(PtlCTAlloc(ni_, &counter), "PtlCTAlloc");
    return counter;
  }
  void bind(unsigned options, ptl_handle_eq_t queue, ptl_handle_ct_t counter) {
    const ptl_md_t memory{source_, bytes_, options, queue, counter};
    check(PtlMDBind(ni_, &memory, &md_), "PtlMDBind");
  }
  void open_portal(ptl_handle_eq_t queue) {
    check(PtlPTAlloc(ni_, 0, queue, PTL_PT_ANY, &index_), "PtlPTAlloc");
  }
  // `counter`: counts what the entry receives; PTL_CT_NONE: the queue of the portal gets full
  // events.
  void append(ptl_handle_ct_t counter, unsigned more_options = 0) {
    const unsigned counts =
        more_options |
        (counter == PTL_CT_NONE ? 0 : PTL_LE_EVENT_CT_COMM | PTL_LE_EVENT_COMM_DISABLE);
    if (matching_) {
      ptl_me_t entry{};
      entry.start = target_;
      entry.length = bytes_;
      entry.ct_handle = counter;
      entry.uid = PTL_UID_ANY;
      entry.options = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE | counts;
      entry.match_id = peer_;
      entry.match_bits = match_bits;
      ptl_handle_me_t handle;
      check(PtlMEAppend(ni_, index_, &entry, PTL_PRIORITY_LIST, nullptr, &handle), "PtlMEAppend");
    } else {
      ptl_le_t entry{};
      entry.start = target_;
      entry.length = bytes_;
      entry.ct_handle = counter;
      entry.uid = PTL_UID_ANY;
      entry.options = PTL_LE_OP_PUT | PTL_LE_EVENT_LINK_DISABLE | counts;
      ptl_handle_le_t handle;
      check(PtlLEAppend(ni_, index_, &entry, PTL_PRIORITY_LIST, nullptr, &handle), "PtlLEAppend");
    }
  }
  void put(ptl_ack_req_t acknowledgement) const {
    check(PtlPut(md_, 0, bytes_, acknowledgement, peer_, index_, match_bits, 0, nullptr, 0),
          "PtlPut");
  }

 private:
  bool matching_;
  ptl_size_t bytes_;
  ptl_handle_ni_t ni_ = PTL_INVALID_HANDLE;
  ptl_process_t peer_{};
  ptl_pt_index_t index_ = 0;
  ptl_handle_md_t md_ = PTL_INVALID_HANDLE;
  alignas(64) unsigned char source_[lane_payload_bytes] = {};
  alignas(64) unsigned char target_[lane_payload_bytes] = {};
};

void wait_event(ptl_handle_eq_t queue, ptl_event_kind_t kind) {
  ptl_event_t event;
  check(PtlEQWait(queue, &event), "PtlEQWait");
  check_event(event, kind);
}

void wait_count(ptl_handle_ct_t counter, uint64_t count) {
  ptl_ct_event_t value;
  check(PtlCTWait(counter, count, &value), "PtlCTWait");
  if (value.failure != 0) check(PTL_FAIL, "a put");
}

void exchange_counted(uint64_t messages, ptl_size_t bytes) {
  Endpoint loopback(true, bytes);
  const ptl_handle_ct_t acknowledged = loopback.new_counter();
  const ptl_handle_eq_t arrived = loopback.new_queue();
  loopback.bind(PTL_MD_EVENT_CT_ACK, PTL_EQ_NONE, acknowledged);
  loopback.open_portal(arrived);
  loopback.append(PTL_CT_NONE);
  for (uint64_t i = 1; i <= messages; ++i) {
    loopback.put(PTL_CT_ACK_REQ);
    wait_event(arrived, PTL_EVENT_PUT);
    wait_count(acknowledged, i);
  }
}

void counted_acknowledgement(uint64_t messages) { exchange_counted(messages, payload_bytes); }
void through_a_lane(uint64_t messages) { exchange_counted(messages, lane_payload_bytes); }

void counters_only(uint64_t messages) {
  Endpoint loopback(false);
  const ptl_handle_ct_t acknowledged = loopback.new_counter();
  const ptl_handle_ct_t arrived = loopback.new_counter();
  loopback.bind(PTL_MD_EVENT_CT_ACK, PTL_EQ_NONE, acknowledged);
  loopback.open_portal(PTL_EQ_NONE);
  loopback.append(arrived);
  for (uint64_t i = 1; i <= messages; ++i) {
    loopback.put(PTL_CT_ACK_REQ);
    wait_count(arrived, i);
    wait_count(acknowledged, i);
  }
}

void exchange_with_events(uint64_t messages, ptl_size_t bytes) {
  Endpoint loopback(true, bytes);
  const ptl_handle_eq_t events = loopback.new_queue();
  loopback.bind(0, events, PTL_CT_NONE);
  loopback.open_portal(events);
  loopback.append(PTL_CT_NONE);
  for (uint64_t i = 1; i <= messages; ++i) {
    loopback.put(PTL_ACK_REQ);
    // SEND and PUT in either order, then ACK.
    unsigned seen = 0;
    while (seen != (1u << PTL_EVENT_SEND | 1u << PTL_EVENT_PUT | 1u << PTL_EVENT_ACK)) {
      ptl_event_t event;
      check(PtlEQWait(events, &event), "PtlEQWait");
      if (event.ni_fail_type != PTL_NI_OK) check(PTL_FAIL, "a put");
      seen |= 1u << event.type;
    }
  }
}

void full_events(uint64_t messages) { exchange_with_events(messages, payload_bytes); }
void events_through_a_lane(uint64_t messages) {
  exchange_with_events(messages, lane_payload_bytes);
}

// Two processes of the node. One of them runs at a time, so that no poll is idle.
class Turns {
 public:
  Turns() {
    check(socketpair(AF_UNIX, SOCK_STREAM, 0, ends_) == 0 ? PTL_OK : PTL_FAIL, "socketpair");
    child_ = fork();
    if (child_ == 0) std::swap(ends_[0], ends_[1]);
    close(ends_[1]);
  }
  ~Turns() {
    if (child_ != 0) waitpid(child_, nullptr, 0);
  }
  Turns(const Turns&) = delete;
  Turns& operator=(const Turns&) = delete;

  [[nodiscard]] bool is_target() const { return child_ == 0; }
  [[nodiscard]] ptl_process_t exchange(ptl_process_t own) const {
    ptl_process_t other;
    const bool whole = write(ends_[0], &own, sizeof own) == sizeof own &&
                       read(ends_[0], &other, sizeof other) == sizeof other;
    check(whole ? PTL_OK : PTL_FAIL, "exchange of addresses");
    return other;
  }
  void give() const { check(write(ends_[0], "", 1) == 1 ? PTL_OK : PTL_FAIL, "write"); }
  void take() const {
    char turn;
    check(read(ends_[0], &turn, 1) == 1 ? PTL_OK : PTL_FAIL, "read");
  }

 private:
  int ends_[2];
  pid_t child_;
};

struct Handles {
  ptl_handle_eq_t queue;
  ptl_handle_ct_t counter;
};
// What one end does in one exchange. `number` counts from 1.
using Step = void (*)(Endpoint& end, const Handles& handles, uint64_t number);

}  // namespace

// The only part that is counted.
extern "C" [[gnu::noinline]] void perf_instructions_step(Step step, Endpoint& end,
                                                         const Handles& handles, uint64_t number) {
  step(end, handles, number);
}

namespace {

struct PairRow {
  bool matching;
  bool initiator_counts;  // otherwise the initiator gets full events
  bool target_counts;
  Step prepare;  // of the target; nullptr: one entry takes all
  Step put;
  Step receive;
  Step complete;  // of the initiator; nullptr: nothing, and only the target is counted
};

void exchange_between_two(const PairRow& row, uint64_t messages) {
  const Turns turns;
  Endpoint end(row.matching);
  end.set_peer(turns.exchange(end.peer()));
  const bool counts = turns.is_target() ? row.target_counts : row.initiator_counts;
  const Handles handles{counts ? PTL_EQ_NONE : end.new_queue(),
                        counts ? end.new_counter() : PTL_CT_NONE};
  end.open_portal(turns.is_target() ? handles.queue : PTL_EQ_NONE);
  if (turns.is_target()) {
    if (row.prepare == nullptr) end.append(handles.counter);
    for (uint64_t i = 1; i <= messages; ++i) {
      if (row.prepare != nullptr) perf_instructions_step(row.prepare, end, handles, i);
      turns.give();
      turns.take();
      perf_instructions_step(row.receive, end, handles, i);
    }
    turns.give();
    turns.take();  // the peer has finished
    return;
  }
  end.bind(counts ? PTL_MD_EVENT_CT_ACK : 0, handles.queue, handles.counter);
  for (uint64_t i = 1; i <= messages; ++i) {
    turns.take();
    if (i != 1 && row.complete != nullptr)
      perf_instructions_step(row.complete, end, handles, i - 1);
    if (row.complete != nullptr)
      perf_instructions_step(row.put, end, handles, i);
    else
      row.put(end, handles, i);
    turns.give();
  }
  turns.take();
  if (row.complete != nullptr) perf_instructions_step(row.complete, end, handles, messages);
  turns.give();
}

void put_counted(Endpoint& end, const Handles&, uint64_t) { end.put(PTL_CT_ACK_REQ); }
void put_with_events(Endpoint& end, const Handles& handles, uint64_t) {
  end.put(PTL_ACK_REQ);
  wait_event(handles.queue, PTL_EVENT_SEND);
}
void put_only(Endpoint& end, const Handles&, uint64_t) { end.put(PTL_NO_ACK_REQ); }
void wait_put(Endpoint&, const Handles& handles, uint64_t) {
  wait_event(handles.queue, PTL_EVENT_PUT);
}
void wait_ack(Endpoint&, const Handles& handles, uint64_t) {
  wait_event(handles.queue, PTL_EVENT_ACK);
}
void wait_number(Endpoint&, const Handles& handles, uint64_t number) {
  wait_count(handles.counter, number);
}
void append_once(Endpoint& end, const Handles&, uint64_t) {
  end.append(PTL_CT_NONE, PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE);
}
void get_put(Endpoint&, const Handles& handles, uint64_t) {
  ptl_event_t event;
  int code;
  while ((code = PtlEQGet(handles.queue, &event)) == PTL_EQ_EMPTY) {
  }
  check(code, "PtlEQGet");
  check_event(event, PTL_EVENT_PUT);
}

void pair_counted(uint64_t messages) {
  exchange_between_two({true, true, false, nullptr, put_counted, wait_put, wait_number}, messages);
}
void pair_events(uint64_t messages) {
  exchange_between_two({true, false, false, nullptr, put_with_events, wait_put, wait_ack},
                       messages);
}
void pair_counters(uint64_t messages) {
  exchange_between_two({false, true, true, nullptr, put_counted, wait_number, wait_number},
                       messages);
}
void used_once(uint64_t messages) {
  exchange_between_two({true, true, false, append_once, put_only, get_put, nullptr}, messages);
}

}  // namespace

int main(int argc, char** argv) {
  using Row = lintel::instructions::Row;
  constexpr Row rows[] = {{"counted", counted_acknowledgement},
                          {"lane", through_a_lane},
                          {"counters", counters_only},
                          {"events", full_events},
                          {"lane_events", events_through_a_lane},
                          {"pair", pair_counted},
                          {"pair_counters", pair_counters},
                          {"pair_events", pair_events},
                          {"use_once", used_once}};
  return lintel::instructions::run(argc, argv, rows);
}
