// Event queues, counters and memory descriptors that wait with a deadline. They exist until they
// are freed explicitly or their interface closes, so they outlive what refers to them.
#pragma once

#include <portals4.h>

#include <cstddef>
#include <initializer_list>
#include <span>
#include <vector>

#include "support/rank.h"

namespace lintel::test {

class EventQueue {
 public:
  EventQueue() = default;
  explicit EventQueue(ptl_handle_ni_t interface, ptl_size_t count = 256,
                      Place place = Place::current());

  [[nodiscard]] ptl_handle_eq_t handle() const noexcept { return handle_; }

  // The next event of any kind; no event may have been dropped before it.
  ptl_event_t next(Place place = Place::current()) const;
  // The next event, which must be of this kind and report this result.
  ptl_event_t expect(ptl_event_kind_t kind, ptl_ni_fail_t result = PTL_NI_OK,
                     Place place = Place::current()) const;
  // The next events, which must be of these kinds in any order; returned in the order of `kinds`.
  std::vector<ptl_event_t> expect_all(std::initializer_list<ptl_event_kind_t> kinds,
                                      Place place = Place::current()) const;
  // Skips all events before the next one of this kind.
  ptl_event_t skip_to(ptl_event_kind_t kind, Place place = Place::current()) const;
  // The queue is empty now and stays empty for quiet_time.
  void expect_empty(Place place = Place::current()) const;
  void expect_silence(Place place = Place::current()) const;
  // Removes all events without checking them; returns how many there were.
  std::size_t drain() const;

  void free(Place place = Place::current());

 private:
  ptl_handle_eq_t handle_ = PTL_EQ_NONE;
};

class Counter {
 public:
  Counter() = default;
  explicit Counter(ptl_handle_ni_t interface, Place place = Place::current());

  [[nodiscard]] ptl_handle_ct_t handle() const noexcept { return handle_; }
  [[nodiscard]] ptl_ct_event_t value(Place place = Place::current()) const;
  // Waits until the counter has exactly this value.
  void expect(ptl_size_t success, ptl_size_t failure = 0, Place place = Place::current()) const;
  // The counter has this value now and keeps it for quiet_time.
  void expect_steady(ptl_size_t success, ptl_size_t failure = 0,
                     Place place = Place::current()) const;
  void add(ptl_size_t success, Place place = Place::current()) const;
  void set(ptl_size_t success, ptl_size_t failure = 0, Place place = Place::current()) const;
  void free(Place place = Place::current());

 private:
  ptl_handle_ct_t handle_ = PTL_CT_NONE;
};

class Descriptor {
 public:
  Descriptor() = default;
  Descriptor(ptl_handle_ni_t interface, const ptl_md_t& md, Place place = Place::current());
  Descriptor(ptl_handle_ni_t interface, std::span<std::byte> memory, unsigned options = 0,
             ptl_handle_eq_t events = PTL_EQ_NONE, ptl_handle_ct_t counter = PTL_CT_NONE,
             Place place = Place::current());

  [[nodiscard]] ptl_handle_md_t handle() const noexcept { return handle_; }
  void release(Place place = Place::current());

 private:
  ptl_handle_md_t handle_ = PTL_INVALID_HANDLE;
};

}  // namespace lintel::test
