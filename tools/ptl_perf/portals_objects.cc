// Owners of Portals objects. Set-up path.
// SPDX-License-Identifier: BSD-3-Clause
#include "ptl_perf/portals_objects.h"

#include <chrono>
#include <string>
#include <thread>

namespace lintel::perf {
namespace {

template <class Unlink>
int unlink_within_a_second(Unlink unlink) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  int code = unlink();
  while (code == PTL_IN_USE && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::yield();
    code = unlink();
  }
  return code;
}

}  // namespace

int unlink_list_entry(ptl_handle_any_t entry) {
  return unlink_within_a_second([entry] { return PtlLEUnlink(entry); });
}

int unlink_match_entry(ptl_handle_any_t entry) {
  return unlink_within_a_second([entry] { return PtlMEUnlink(entry); });
}

EventQueue allocate_event_queue(ptl_handle_ni_t interface, ptl_size_t events) {
  ptl_handle_eq_t handle = PTL_INVALID_HANDLE;
  require(PtlEQAlloc(interface, events, &handle), "PtlEQAlloc");
  return EventQueue(handle);
}

Counter allocate_counter(ptl_handle_ni_t interface) {
  ptl_handle_ct_t handle = PTL_INVALID_HANDLE;
  require(PtlCTAlloc(interface, &handle), "PtlCTAlloc");
  return Counter(handle);
}

MemoryDescriptor bind_memory(ptl_handle_ni_t interface, const ptl_md_t& descriptor) {
  ptl_handle_md_t handle = PTL_INVALID_HANDLE;
  require(PtlMDBind(interface, &descriptor, &handle), "PtlMDBind");
  return MemoryDescriptor(handle);
}

PortalEntry::PortalEntry(ptl_handle_ni_t interface, unsigned options, ptl_handle_eq_t queue,
                         ptl_pt_index_t index)
    : interface_(interface), index_(index) {
  // Both ends of a pair must know the index, hence no PTL_PT_ANY.
  require(PtlPTAlloc(interface, options, queue, index, &index_), "PtlPTAlloc");
  if (index_ != index) {
    PtlPTFree(interface_, index_);
    throw Failure(ExitCode::failed, "PtlPTAlloc gave index " + std::to_string(index_) + " where " +
                                        std::to_string(index) + " was requested");
  }
}

PortalEntry::~PortalEntry() { PtlPTFree(interface_, index_); }

}  // namespace lintel::perf
