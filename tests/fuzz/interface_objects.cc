// Set-up path.
#include "fuzz/interface_objects.h"

namespace lintel::fuzz {

namespace {
constexpr ptl_pt_index_t room_portal = 31;
constexpr ptl_size_t queue_slots = 4096;  // more than a phase has events
}  // namespace

InterfaceObjects::InterfaceObjects(bool matching, bool logical, ptl_interface_t interface,
                                   int index, Problems& problems)
    : matching_(matching), logical_(logical), index_(index), problems_(problems) {
  ptl_ni_limits_t limits{};
  problems_.expect_ok(PtlNIInit(interface,
                                (matching ? PTL_NI_MATCHING : PTL_NI_NO_MATCHING) |
                                    (logical ? PTL_NI_LOGICAL : PTL_NI_PHYSICAL),
                                PTL_PID_ANY, nullptr, &limits, &handle_),
                      "PtlNIInit");
  max_volatile_size_ = limits.max_volatile_size;
  if (limits.max_waw_ordered_size != ordered_bytes || limits.max_war_ordered_size != ordered_bytes)
    problems_.add("the ordered sizes are others than the model assumes");
  const auto new_queue = [&](Queue& queue) {
    problems_.expect_ok(PtlEQAlloc(handle_, queue_slots, &queue.handle), "PtlEQAlloc");
  };
  for (Queue& queue : thread_queues_) new_queue(queue);
  for (Queue& queue : portal_queues_) new_queue(queue);
  for (ptl_handle_ct_t& count : portal_counts_) count = new_count();
  for (ptl_handle_ct_t& count : descriptor_counts_) count = new_count();
  for (ptl_handle_ct_t& count : trigger_counts_) count = new_count();
  for (ptl_handle_ct_t& count : probes_) count = new_count();
  for (CountingDescriptor& descriptor : reused_) descriptor = bind_counting();
  fence_ = bind_counting();
  plain_ = bind_counting();
  static_cast<void>(open_sink(fence_portal, 0, PTL_EQ_NONE));
}

ptl_handle_ct_t InterfaceObjects::new_count() {
  ptl_handle_ct_t count = PTL_CT_NONE;
  problems_.expect_ok(PtlCTAlloc(handle_, &count), "PtlCTAlloc");
  return count;
}

CountingDescriptor InterfaceObjects::bind_counting() {
  CountingDescriptor descriptor{new_count(), PTL_INVALID_HANDLE};
  const ptl_md_t md{nullptr, 0, PTL_MD_EVENT_CT_ACK, PTL_EQ_NONE, descriptor.count};
  problems_.expect_ok(PtlMDBind(handle_, &md, &descriptor.handle), "PtlMDBind");
  return descriptor;
}

ptl_handle_any_t InterfaceObjects::open_sink(ptl_pt_index_t index, unsigned options,
                                             ptl_handle_eq_t queue) {
  ptl_pt_index_t given = 0;
  problems_.expect_ok(PtlPTAlloc(handle_, options, queue, index, &given), "PtlPTAlloc");
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
  problems_.expect_ok(matching_
                          ? PtlMEAppend(handle_, index, &me, PTL_PRIORITY_LIST, nullptr, &entry)
                          : PtlLEAppend(handle_, index, &le, PTL_PRIORITY_LIST, nullptr, &entry),
                      "the append of an entry");
  return entry;
}

void InterfaceObjects::close_sink(ptl_pt_index_t index, ptl_handle_any_t entry) {
  problems_.expect_ok(matching_ ? PtlMEUnlink(entry) : PtlLEUnlink(entry), "PtlMEUnlink");
  problems_.expect_ok(PtlPTFree(handle_, index), "PtlPTFree");
}

std::size_t InterfaceObjects::put_to_sink(ptl_pt_index_t index, std::size_t most) {
  problems_.expect_ok(PtlCTSet(plain_.count, {0, 0}), "PtlCTSet");
  for (std::size_t sent = 0; sent < most; ++sent) {
    problems_.expect_ok(
        PtlPut(plain_.handle, 0, 0, PTL_ACK_REQ, process(index_), index, 0, 0, nullptr, 0),
        "PtlPut");
    ptl_ct_event_t value{};
    problems_.expect_ok(PtlCTWait(plain_.count, sent + 1, &value), "PtlCTWait");
    if (value.failure != 0) return sent;
  }
  return most;
}

std::size_t InterfaceObjects::measure_room(const Queue& queue) {
  const ptl_handle_any_t entry = open_sink(room_portal, PTL_PT_FLOWCTRL, queue.handle);
  const std::size_t accepted = put_to_sink(room_portal, 16 * queue_slots);
  std::size_t events = 0;
  ptl_event_t event{};
  for (int code; (code = PtlEQGet(queue.handle, &event)) != PTL_EQ_EMPTY;) {
    problems_.expect_ok(code, "PtlEQGet");
    if (event.type == PTL_EVENT_PUT) ++events;
  }
  if (events != accepted || accepted < queue_slots)
    problems_.add("a queue for " + std::to_string(queue_slots) + " events took " +
                  std::to_string(accepted) + " messages and had " + std::to_string(events) +
                  " events");
  close_sink(room_portal, entry);
  return accepted;
}

void InterfaceObjects::check_room() {
  for (Queue& queue : portal_queues_) {
    const std::size_t room = measure_room(queue);
    if (room != queue.room)
      problems_.add("a queue had room for " + std::to_string(queue.room) + " events, and has for " +
                    std::to_string(room) + " when nothing uses it any more");
  }
}

void InterfaceObjects::connect(const ptl_process_t* physical, int endpoints) {
  processes_.assign(physical, physical + endpoints);
  if (logical_) {
    problems_.expect_ok(PtlSetMap(handle_, processes_.size(), physical), "PtlSetMap");
    for (std::size_t i = 0; i < processes_.size(); ++i) {
      processes_[i] = ptl_process_t{};
      processes_[i].rank = static_cast<ptl_rank_t>(i);
    }
  }
  for (Queue& queue : portal_queues_) queue.room = measure_room(queue);
}

void InterfaceObjects::fill_queue(int index, const Portal& portal) {
  const Queue& queue = portal_queue(index);
  const ptl_pt_index_t filler = first_filler + static_cast<ptl_pt_index_t>(index);
  fillers_[static_cast<std::size_t>(index)] = open_sink(filler, 0, queue.handle);
  put_to_sink(filler, queue.room - portal.room);
}

void InterfaceObjects::empty_queue(int index) {
  close_sink(first_filler + static_cast<ptl_pt_index_t>(index),
             fillers_[static_cast<std::size_t>(index)]);
}

// Waits for a count that never comes: during the wait, messages make progress.
void InterfaceObjects::poll() const {
  ptl_ct_event_t value{};
  const ptl_size_t test = PTL_SIZE_MAX;
  unsigned which = 0;
  PtlCTPoll(&fence_.count, &test, 1, 1, &value, &which);
}

Count InterfaceObjects::read(ptl_handle_ct_t counter) {
  ptl_ct_event_t value{};
  problems_.expect_ok(PtlCTGet(counter, &value), "PtlCTGet");
  return {value.success, value.failure};
}

}  // namespace lintel::fuzz
