// A counter is freed as soon as the event of an operation has been received. The thread that posted
// the event may not have counted the operation yet.
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <span>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "support/interface.h"
#include "support/memory.h"
#include "support/objects.h"
#include "support/ranks.h"
#include "support/text.h"
#include "support/waiting_thread.h"

namespace lintel::test {
namespace {

constexpr ptl_pt_index_t pt_index = 5;
// Short enough that PtlPut sends it and reports the end itself; otherwise a sleeping thread would
// have to poll.
constexpr ptl_size_t length = 8;

// On one processor, a thread woken by an event runs before the thread that posted the event
// continues.
void use_one_processor() {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  must(sched_setaffinity(0, sizeof one, &one));
}

void set(std::atomic<int>& variable, int value) {
  variable = value;
  variable.notify_one();
}

// An interface that sends to itself.
struct Fixture {
  explicit Fixture(Rank& rank)
      : interface(rank, matching_physical),
        initiator_events(interface.handle()),
        target_events(interface.handle()),
        arrived(interface.handle()),
        memory(length) {
    interface.allocate(pt_index, target_events.handle());
    EntrySpec buffer{.start = memory.data(), .length = length, .options = PTL_ME_OP_PUT};
    buffer.options |= PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_COMM_DISABLE;
    interface.append(pt_index, buffer, PTL_OVERFLOW_LIST);
    unexpected =
        Descriptor(interface.handle(), memory, PTL_MD_EVENT_CT_ACK, PTL_EQ_NONE, arrived.handle());
  }
  void put(ptl_handle_md_t descriptor, ptl_ack_req_t ack) const {
    must(PtlPut(descriptor, 0, length, ack, interface.address(0), pt_index, 0, 0, nullptr, 0));
  }
  void leave_unexpected_header() {
    put(unexpected.handle(), PTL_CT_ACK_REQ);
    arrived.expect(++headers);
  }

  const Interface interface;
  const EventQueue initiator_events;
  const EventQueue target_events;
  const Counter arrived;
  std::vector<std::byte> memory;
  Descriptor unexpected;
  ptl_size_t headers = 0;
};

// An operation that ends with one event and one count.
struct Use {
  std::function<void(Fixture&, ptl_handle_ct_t)> prepare;
  std::function<void(Fixture&, ptl_handle_ct_t)> call;
  // In another thread: receives the event, and ends the use of the counter.
  std::function<void(Fixture&)> take_event;
};

void expect_no_late_count(const Use& use) {
  run_ranks(1, {.environment = {{"PTL_SPIN_US", "0"}}}, [&](Rank& rank) {
    use_one_processor();
    Fixture fixture(rank);
    ptl_handle_ct_t counter = PTL_CT_NONE;
    must(PtlCTAlloc(fixture.interface.handle(), &counter));
    constexpr int rounds = 300;
    std::atomic<int> prepared{0};
    std::atomic<int> awaited{0};
    std::atomic<int> freed{0};
    std::atomic<pid_t> thread{0};
    std::thread freeing = start_thread([&] {
      thread = gettid();
      for (int round = 1; round <= rounds; ++round) {
        prepared.wait(round - 1);
        set(awaited, round);
        use.take_event(fixture);
        must(PtlCTFree(counter));
        must(PtlCTAlloc(fixture.interface.handle(), &counter));
        set(freed, round);
      }
    });
    for (int round = 1; round <= rounds; ++round) {
      use.prepare(fixture, counter);
      set(prepared, round);
      awaited.wait(round - 1);
      rank.await_condition("waiting until the thread that frees sleeps",
                           [&] { return is_asleep(thread); });
      use.call(fixture, counter);
      freed.wait(round - 1);
      ptl_ct_event_t value{};
      must(PtlCTGet(counter, &value));
      EXPECT_EQ(value, (ptl_ct_event_t{0, 0})) << "round " << round;
    }
    freeing.join();
  });
}

// spec 3.10.1, 3.14.2
TEST(CounterReleaseTest, OfASendIsCountedBeforeItsCounterIsFreed) {
  Descriptor descriptor;
  expect_no_late_count(
      {.prepare =
           [&](Fixture& fixture, ptl_handle_ct_t counter) {
             descriptor =
                 Descriptor(fixture.interface.handle(), fixture.memory, PTL_MD_EVENT_CT_SEND,
                            fixture.initiator_events.handle(), counter);
           },
       .call = [&](Fixture& fixture,
                   ptl_handle_ct_t) { fixture.put(descriptor.handle(), PTL_NO_ACK_REQ); },
       .take_event =
           [&](Fixture& fixture) {
             fixture.initiator_events.expect(PTL_EVENT_SEND);
             descriptor.release();
           }});
}

// The put reads inaccessible memory: its event reports the failure, and the acknowledgement counts
// it.
// spec 3.10.1, 3.13.3, 3.14.2
TEST(CounterReleaseTest, OfAFailedSendIsCountedBeforeItsCounterIsFreed) {
  const GuardedPages pages(1);
  Descriptor descriptor;
  expect_no_late_count(
      {.prepare =
           [&](Fixture& fixture, ptl_handle_ct_t counter) {
             descriptor =
                 Descriptor(fixture.interface.handle(), std::span(pages.end(), length),
                            PTL_MD_EVENT_CT_ACK, fixture.initiator_events.handle(), counter);
           },
       .call = [&](Fixture& fixture,
                   ptl_handle_ct_t) { fixture.put(descriptor.handle(), PTL_ACK_REQ); },
       .take_event =
           [&](Fixture& fixture) {
             fixture.initiator_events.expect(PTL_EVENT_SEND, PTL_NI_SEGV);
             descriptor.release();
           }});
}

EntrySpec counted_entry(ptl_handle_ct_t counter) {
  return {.options = PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE |
                     PTL_ME_EVENT_CT_OVERFLOW,
          .counter = counter};
}

// spec 3.12.2, 3.14.2
TEST(CounterReleaseTest, OfAClaimedHeaderIsCountedBeforeItsCounterIsFreed) {
  expect_no_late_count(
      {.prepare = [](Fixture& fixture, ptl_handle_ct_t) { fixture.leave_unexpected_header(); },
       .call =
           [](Fixture& fixture, ptl_handle_ct_t counter) {
             fixture.interface.append(pt_index, counted_entry(counter));
           },
       .take_event =
           [](Fixture& fixture) { fixture.target_events.expect(PTL_EVENT_PUT_OVERFLOW); }});
}

// spec 3.12.4, 3.14.2
TEST(CounterReleaseTest, OfASearchIsCountedBeforeItsCounterIsFreed) {
  for (const ptl_search_op_t operation : {PTL_SEARCH_ONLY, PTL_SEARCH_DELETE})
    for (const bool finds : {true, false})
      expect_no_late_count({.prepare =
                                [=](Fixture& fixture, ptl_handle_ct_t) {
                                  const bool is_there =
                                      fixture.headers != 0 && operation == PTL_SEARCH_ONLY;
                                  if (finds && !is_there) fixture.leave_unexpected_header();
                                },
                            .call =
                                [=](Fixture& fixture, ptl_handle_ct_t counter) {
                                  must(fixture.interface.search(pt_index, counted_entry(counter),
                                                                operation, nullptr));
                                },
                            .take_event =
                                [=](Fixture& fixture) {
                                  const auto found = operation == PTL_SEARCH_ONLY
                                                         ? PTL_EVENT_SEARCH
                                                         : PTL_EVENT_PUT_OVERFLOW;
                                  if (finds)
                                    fixture.target_events.expect(found);
                                  else
                                    fixture.target_events.expect(PTL_EVENT_SEARCH, PTL_NI_NO_MATCH);
                                }});
}

}  // namespace
}  // namespace lintel::test
