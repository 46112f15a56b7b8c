// Event queues, counters and memory descriptors of the tests. Set-up path.
#include "support/objects.h"

#include <chrono>
#include <sstream>
#include <thread>

#include <gtest/gtest.h>

#include "support/device_view.h"
#include "support/text.h"

namespace lintel::test {

namespace {

using Clock = std::chrono::steady_clock;

constexpr ptl_time_t slice_ms = 100;  // until the next check whether another rank has failed

void complain(Place place, const std::string& text) {
  ADD_FAILURE_AT(place.file_name(), static_cast<int>(place.line())) << text;
}

}  // namespace

EventQueue::EventQueue(ptl_handle_ni_t interface, ptl_size_t count, Place place) {
  must(PtlEQAlloc(interface, count, &handle_), place);
}

ptl_event_t EventQueue::next(Place place) const {
  const auto deadline = Clock::now() + wait_deadline;
  ptl_event_t event{};
  for (;;) {
    Rank::current().at("waiting for an event", place);
    unsigned which = 0;
    const int code = PtlEQPoll(&handle_, 1, slice_ms, &event, &which);
    event.start = view_of(event.start);
    if (code == PTL_OK) return event;
    if (code != PTL_EQ_EMPTY) {
      complain(place, "expected an event, got " + return_code_name(code) +
                          (code == PTL_EQ_DROPPED ? " with " + describe(event) : ""));
    }
    if (Clock::now() > deadline) complain(place, "no event came");
  }
}

ptl_event_t EventQueue::expect(ptl_event_kind_t kind, ptl_ni_fail_t result, Place place) const {
  const ptl_event_t event = next(place);
  if (event.type != kind || event.ni_fail_type != result) {
    complain(place,
             "expected " + event_name(kind) + " " + fail_name(result) + ", got " + describe(event));
  }
  return event;
}

std::vector<ptl_event_t> EventQueue::expect_all(std::initializer_list<ptl_event_kind_t> kinds,
                                                Place place) const {
  std::vector<ptl_event_t> events(kinds.size());
  std::vector<bool> found(kinds.size());
  for (std::size_t n = 0; n < kinds.size(); ++n) {
    const ptl_event_t event = next(place);
    std::size_t slot = 0;
    while (slot < kinds.size() && (found[slot] || kinds.begin()[slot] != event.type)) ++slot;
    if (slot == kinds.size()) {
      std::string wanted;
      for (std::size_t i = 0; i < kinds.size(); ++i) {
        if (!found[i]) wanted.append(" ").append(event_name(kinds.begin()[i]));
      }
      complain(place, "expected one of" + wanted + ", got " + describe(event));
    }
    events[slot] = event;
    found[slot] = true;
  }
  return events;
}

ptl_event_t EventQueue::skip_to(ptl_event_kind_t kind, Place place) const {
  for (;;) {
    const ptl_event_t event = next(place);
    if (event.type == kind) return event;
  }
}

void EventQueue::expect_empty(Place place) const {
  ptl_event_t event{};
  const int code = PtlEQGet(handle_, &event);
  if (code != PTL_EQ_EMPTY) {
    complain(place,
             "expected PTL_EQ_EMPTY, got " + return_code_name(code) + " and " + describe(event));
  }
}

void EventQueue::expect_silence(Place place) const {
  ptl_event_t event{};
  unsigned which = 0;
  const int code =
      PtlEQPoll(&handle_, 1, static_cast<ptl_time_t>(quiet_time.count()), &event, &which);
  if (code != PTL_EQ_EMPTY) {
    complain(place, "expected that nothing happens, got " + return_code_name(code) + " and " +
                        describe(event));
  }
}

std::size_t EventQueue::drain() const {
  std::size_t count = 0;
  ptl_event_t event{};
  while (PtlEQGet(handle_, &event) != PTL_EQ_EMPTY) ++count;
  return count;
}

void EventQueue::free(Place place) {
  must(PtlEQFree(handle_), place);
  handle_ = PTL_EQ_NONE;
}

Counter::Counter(ptl_handle_ni_t interface, Place place) {
  must(PtlCTAlloc(interface, &handle_), place);
}

ptl_ct_event_t Counter::value(Place place) const {
  ptl_ct_event_t value{};
  must(PtlCTGet(handle_, &value), place);
  return value;
}

void Counter::expect(ptl_size_t success, ptl_size_t failure, Place place) const {
  const ptl_ct_event_t wanted{success, failure};
  const auto deadline = Clock::now() + wait_deadline;
  while (!(value(place) == wanted)) {
    Rank::current().at("waiting for the value of a counter", place);
    if (Clock::now() > deadline) {
      std::ostringstream text;
      text << "a counter should have become " << wanted << " and is " << value(place);
      complain(place, text.str());
    }
    std::this_thread::yield();
  }
}

void Counter::expect_steady(ptl_size_t success, ptl_size_t failure, Place place) const {
  expect(success, failure, place);
  const auto end = Clock::now() + quiet_time;
  while (Clock::now() < end) {
    if (!(value(place) == ptl_ct_event_t{success, failure})) {
      std::ostringstream text;
      text << "a counter should have stayed " << ptl_ct_event_t{success, failure} << " and is "
           << value(place);
      complain(place, text.str());
    }
    std::this_thread::sleep_for(Milliseconds(1));
  }
}

void Counter::add(ptl_size_t success, Place place) const {
  must(PtlCTInc(handle_, {success, 0}), place);
}

void Counter::set(ptl_size_t success, ptl_size_t failure, Place place) const {
  must(PtlCTSet(handle_, {success, failure}), place);
}

void Counter::free(Place place) {
  must(PtlCTFree(handle_), place);
  handle_ = PTL_CT_NONE;
}

Descriptor::Descriptor(ptl_handle_ni_t interface, const ptl_md_t& md, Place place) {
  ptl_md_t named = md;
  if ((md.options & PTL_IOVEC) != 0)
    name_devices(static_cast<const ptl_iovec_t*>(md.start), md.length);
  else
    named.start = behind_view(md.start);
  must(PtlMDBind(interface, &named, &handle_), place);
}

Descriptor::Descriptor(ptl_handle_ni_t interface, std::span<std::byte> memory, unsigned options,
                       ptl_handle_eq_t events, ptl_handle_ct_t counter, Place place)
    : Descriptor(interface, ptl_md_t{memory.data(), memory.size(), options, events, counter},
                 place) {}

void Descriptor::release(Place place) {
  must(PtlMDRelease(handle_), place);
  handle_ = PTL_INVALID_HANDLE;
}

}  // namespace lintel::test
