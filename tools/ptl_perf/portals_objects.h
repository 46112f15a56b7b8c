// Owners of Portals objects. Set-up path.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <portals4.h>

#include <utility>

#include "ptl_perf/errors.h"

namespace lintel::perf {

/** Owns a handle and gives it back with `Release`. */
template <int (*Release)(ptl_handle_any_t)>
class Owned {
 public:
  Owned() = default;
  explicit Owned(ptl_handle_any_t handle) : handle_(handle) {}
  ~Owned() { reset(); }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  Owned(Owned&& other) noexcept : handle_(std::exchange(other.handle_, PTL_INVALID_HANDLE)) {}
  Owned& operator=(Owned&& other) noexcept {
    if (this != &other) {
      reset();
      handle_ = std::exchange(other.handle_, PTL_INVALID_HANDLE);
    }
    return *this;
  }

  ptl_handle_any_t get() const { return handle_; }
  explicit operator bool() const { return handle_ != PTL_INVALID_HANDLE; }

  void reset() {
    if (handle_ != PTL_INVALID_HANDLE) Release(handle_);
    handle_ = PTL_INVALID_HANDLE;
  }

 private:
  ptl_handle_any_t handle_ = PTL_INVALID_HANDLE;
};

/** Unlinks an entry; waits for a bounded time while operations on it are under way
 *  (PTL_IN_USE, spec 3.11.3 and 3.12.3). */
int unlink_list_entry(ptl_handle_any_t entry);
int unlink_match_entry(ptl_handle_any_t entry);

using EventQueue = Owned<PtlEQFree>;
using Counter = Owned<PtlCTFree>;
using MemoryDescriptor = Owned<PtlMDRelease>;
using ListEntry = Owned<unlink_list_entry>;
using MatchEntry = Owned<unlink_match_entry>;

EventQueue allocate_event_queue(ptl_handle_ni_t interface, ptl_size_t events);
Counter allocate_counter(ptl_handle_ni_t interface);
MemoryDescriptor bind_memory(ptl_handle_ni_t interface, const ptl_md_t& descriptor);

/** An allocated portal table entry. */
class PortalEntry {
 public:
  PortalEntry(ptl_handle_ni_t interface, unsigned options, ptl_handle_eq_t queue,
              ptl_pt_index_t index);
  ~PortalEntry();
  PortalEntry(const PortalEntry&) = delete;
  PortalEntry& operator=(const PortalEntry&) = delete;

  ptl_pt_index_t index() const { return index_; }

 private:
  ptl_handle_ni_t interface_;
  ptl_pt_index_t index_;
};

}  // namespace lintel::perf
