// perf_instructions_puts: short puts from a process to itself, one after the other, for
// perf/instructions. Sees what every client sees, the shared library.
#include <portals4.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

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

// One interface of this process, with a memory descriptor and one entry that takes every put.
class Loopback {
 public:
  explicit Loopback(bool matching, ptl_size_t bytes = payload_bytes)
      : matching_(matching), bytes_(bytes) {
    check(PtlInit(), "PtlInit");
    check(PtlNIInit(PTL_IFACE_DEFAULT,
                    (matching ? PTL_NI_MATCHING : PTL_NI_NO_MATCHING) | PTL_NI_PHYSICAL,
                    PTL_PID_ANY, nullptr, nullptr, &ni_),
          "PtlNIInit");
    check(PtlGetPhysId(ni_, &self_), "PtlGetPhysId");
  }
  ~Loopback() { PtlFini(); }
  Loopback(const Loopback&) = delete;
  Loopback& operator=(const Loopback&) = delete;

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
  // `counter`: counts what the entry receives; PTL_CT_NONE: `queue` gets full events.
  void append(ptl_handle_eq_t queue, ptl_handle_ct_t counter) {
    check(PtlPTAlloc(ni_, 0, queue, PTL_PT_ANY, &index_), "PtlPTAlloc");
    const unsigned counts =
        counter == PTL_CT_NONE ? 0 : PTL_LE_EVENT_CT_COMM | PTL_LE_EVENT_COMM_DISABLE;
    if (matching_) {
      ptl_me_t entry{};
      entry.start = target_;
      entry.length = bytes_;
      entry.ct_handle = counter;
      entry.uid = PTL_UID_ANY;
      entry.options = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE | counts;
      entry.match_id = self_;
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
    check(PtlPut(md_, 0, bytes_, acknowledgement, self_, index_, match_bits, 0, nullptr, 0),
          "PtlPut");
  }

 private:
  bool matching_;
  ptl_size_t bytes_;
  ptl_handle_ni_t ni_ = PTL_INVALID_HANDLE;
  ptl_process_t self_{};
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
  Loopback loopback(true, bytes);
  const ptl_handle_ct_t acknowledged = loopback.new_counter();
  const ptl_handle_eq_t arrived = loopback.new_queue();
  loopback.bind(PTL_MD_EVENT_CT_ACK, PTL_EQ_NONE, acknowledged);
  loopback.append(arrived, PTL_CT_NONE);
  for (uint64_t i = 1; i <= messages; ++i) {
    loopback.put(PTL_CT_ACK_REQ);
    wait_event(arrived, PTL_EVENT_PUT);
    wait_count(acknowledged, i);
  }
}

void counted_acknowledgement(uint64_t messages) { exchange_counted(messages, payload_bytes); }
void through_a_lane(uint64_t messages) { exchange_counted(messages, lane_payload_bytes); }

void counters_only(uint64_t messages) {
  Loopback loopback(false);
  const ptl_handle_ct_t acknowledged = loopback.new_counter();
  const ptl_handle_ct_t arrived = loopback.new_counter();
  loopback.bind(PTL_MD_EVENT_CT_ACK, PTL_EQ_NONE, acknowledged);
  loopback.append(PTL_EQ_NONE, arrived);
  for (uint64_t i = 1; i <= messages; ++i) {
    loopback.put(PTL_CT_ACK_REQ);
    wait_count(arrived, i);
    wait_count(acknowledged, i);
  }
}

void exchange_with_events(uint64_t messages, ptl_size_t bytes) {
  Loopback loopback(true, bytes);
  const ptl_handle_eq_t events = loopback.new_queue();
  loopback.bind(0, events, PTL_CT_NONE);
  loopback.append(events, PTL_CT_NONE);
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

}  // namespace

int main(int argc, char** argv) {
  using Row = lintel::instructions::Row;
  constexpr Row rows[] = {{"counted", counted_acknowledgement},
                          {"lane", through_a_lane},
                          {"counters", counters_only},
                          {"events", full_events},
                          {"lane_events", events_through_a_lane}};
  return lintel::instructions::run(argc, argv, rows);
}
