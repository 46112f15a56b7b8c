// PtlEQPoll and PtlCTPoll: timeouts, order, several queues and counters.
#include <atomic>
#include <chrono>
#include <optional>

#include <gtest/gtest.h>

#include "operations.h"
#include "support/waiting_thread.h"

namespace lintel::test {
namespace {

using Clock = std::chrono::steady_clock;

class PollTest : public testing::TestWithParam<PairKind> {};
INSTANTIATE_TEST_SUITE_P(Paths, PollTest, testing::ValuesIn(one_pair_per_path()), pair_name);

// Fails unless `call` takes about as long as `wanted`; on a loaded machine it may take longer.
void expect_duration(Milliseconds wanted, const std::function<void()>& call) {
  const auto start = Clock::now();
  call();
  const auto taken = std::chrono::duration_cast<Milliseconds>(Clock::now() - start);
  EXPECT_GE(taken.count(), wanted.count() - 1);
  EXPECT_LT(taken.count(), wanted.count() + 2000 * slowdown * machine_slowdown());
}

// spec 3.13.9
TEST_P(PollTest, EventTimeoutIsInMilliseconds) {
  run_pair(GetParam(), [](Pair& pair) {
    pair.on_initiator([&] {
      const EventQueue first(pair.ni());
      const EventQueue second(pair.ni());
      const ptl_handle_eq_t queues[] = {first.handle(), second.handle()};
      for (const ptl_time_t timeout : {0u, 1u, 30u, 150u}) {
        expect_duration(Milliseconds(timeout), [&] {
          ptl_event_t event{};
          unsigned which = 77;
          EXPECT_EQ(PTL_EQ_EMPTY, PtlEQPoll(queues, 2, timeout, &event, &which));
        });
      }
    });
  });
}

// spec 3.14.7
TEST_P(PollTest, CounterTimeoutIsInMilliseconds) {
  run_pair(GetParam(), [](Pair& pair) {
    pair.on_initiator([&] {
      const Counter first(pair.ni());
      const Counter second(pair.ni());
      const ptl_handle_ct_t counters[] = {first.handle(), second.handle()};
      const ptl_size_t tests[] = {1, 1};
      for (const ptl_time_t timeout : {0u, 1u, 30u, 150u}) {
        expect_duration(Milliseconds(timeout), [&] {
          ptl_ct_event_t value{};
          unsigned which = 77;
          EXPECT_EQ(PTL_CT_NONE_REACHED, PtlCTPoll(counters, tests, 2, timeout, &value, &which));
        });
      }
    });
  });
}

// spec 3.13.9
TEST_P(PollTest, TheFirstQueueWithAnEventIsServed) {
  run_pair(GetParam(), [](Pair& pair) {
    InitiatorSide initiator(pair);
    TargetSide sink(pair);
    pair.on_target([&] { sink.append(sink.entry(PTL_ME_OP_PUT | PTL_ME_EVENT_COMM_DISABLE)); });
    pair.on_initiator([&] {
      std::vector<EventQueue> queues;
      std::vector<ptl_handle_eq_t> handles;
      std::vector<Descriptor> descriptors;
      for (int i = 0; i < 5; ++i) {
        queues.emplace_back(pair.ni());
        handles.push_back(queues.back().handle());
        descriptors.emplace_back(pair.ni(), initiator.source.memory, 0, handles.back());
      }
      // Two events each in queues 3, 1, 4.
      for (const std::size_t i : {3u, 1u, 4u}) {
        for (int n = 0; n < 2; ++n) {
          must(PtlPut(descriptors[i].handle(), 0, 8, PTL_NO_ACK_REQ, pair.target_id(),
                      default_pt_index, 0, 0, tag(i), 0));
        }
      }
      initiator.fence();
      for (const unsigned expected : {1u, 1u, 3u, 3u, 4u, 4u}) {
        ptl_event_t event{};
        unsigned which = 77;
        // PTL_EVENT_SEND is local, so it has been posted by now.
        EXPECT_EQ(PTL_OK, PtlEQPoll(handles.data(), 5, 0, &event, &which));
        EXPECT_EQ(which, expected);
        EXPECT_EQ(event.user_ptr, tag(expected));
      }
      ptl_event_t event{};
      unsigned which = 0;
      EXPECT_EQ(PTL_EQ_EMPTY, PtlEQPoll(handles.data(), 5, 0, &event, &which));
    });
  });
}

// spec 3.14.7
TEST_P(PollTest, TheFirstCounterThatReachedItsTestIsReported) {
  run_pair(GetParam(), [](Pair& pair) {
    pair.on_initiator([&] {
      std::vector<Counter> counters;
      std::vector<ptl_handle_ct_t> handles;
      for (ptl_size_t i = 0; i < 5; ++i) {
        counters.emplace_back(pair.ni());
        handles.push_back(counters.back().handle());
        counters.back().add(10 * i);
      }
      ptl_ct_event_t value{};
      unsigned which = 77;
      const ptl_size_t tests[] = {1, 11, 20, 30, 40};
      EXPECT_EQ(PTL_OK, PtlCTPoll(handles.data(), tests, 5, 0, &value, &which));
      EXPECT_EQ(which, 2u);
      EXPECT_EQ(value, (ptl_ct_event_t{20, 0}));
      // A failure ends the wait, whatever the test value is.
      counters[1].set(10, 3);
      EXPECT_EQ(PTL_OK, PtlCTPoll(handles.data(), tests, 5, PTL_TIME_FOREVER, &value, &which));
      EXPECT_EQ(which, 1u);
      EXPECT_EQ(value, (ptl_ct_event_t{10, 3}));
      const ptl_size_t impossible[] = {1, PTL_SIZE_MAX, 21, 31, 41};
      counters[1].set(10, 0);
      EXPECT_EQ(PTL_CT_NONE_REACHED, PtlCTPoll(handles.data(), impossible, 5, 0, &value, &which));
    });
  });
}

// spec 3.13.9, 3.6
TEST_P(PollTest, QueuesOfDifferentLogicalInterfacesMayBeMixed) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target([&] { target.append(PTL_ME_OP_PUT); });
    InterfaceKind kind = pair.interface().kind();
    kind.matching = !kind.matching;
    const Interface other(kind, {});
    const EventQueue idle(other.handle());
    pair.on_initiator([&] { initiator.put_and_wait({.length = 8}); });
    pair.on_target([&] {
      const ptl_handle_eq_t queues[] = {idle.handle(), target.events.handle()};
      ptl_event_t event{};
      unsigned which = 77;
      EXPECT_EQ(PTL_OK, PtlEQPoll(queues, 2, PTL_TIME_FOREVER, &event, &which));
      EXPECT_EQ(which, 1u);
      EXPECT_EQ(event.type, PTL_EVENT_PUT);
      const Counter there(other.handle());
      const Counter here(pair.ni());
      const ptl_handle_ct_t counters[] = {there.handle(), here.handle()};
      const ptl_size_t tests[] = {1, 1};
      here.add(1);
      ptl_ct_event_t value{};
      EXPECT_EQ(PTL_OK, PtlCTPoll(counters, tests, 2, PTL_TIME_FOREVER, &value, &which));
      EXPECT_EQ(which, 1u);
    });
  });
}

// spec 3.13.9
TEST_P(PollTest, WakesForAnEventThatComesWhileItWaits) {
  run_pair(GetParam(), [](Pair& pair) {
    TargetSide target(pair);
    TargetSide second(pair, {.pt_index = 6});
    InitiatorSide initiator(pair);
    pair.on_target([&] {
      target.append(PTL_ME_OP_PUT);
      second.append(second.entry(PTL_ME_OP_PUT));
    });
    std::optional<WaitingThread> waiter;
    std::atomic<int> returned = 0;
    if (pair.is_target()) {
      waiter.emplace([&] {
        const ptl_handle_eq_t queues[] = {target.events.handle(), second.events.handle()};
        for (const unsigned expected : {1u, 0u}) {
          ptl_event_t event{};
          unsigned which = 77;
          EXPECT_EQ(PTL_OK, PtlEQPoll(queues, 2, PTL_TIME_FOREVER, &event, &which));
          EXPECT_EQ(which, expected);
          ++returned;
        }
      });
    }
    for (int round = 0; round < 2; ++round) {
      pair.on_target([&] {
        pair.rank().await_condition("waiting for the event before",
                                    [&] { return returned == round; });
        waiter->await_sleep();
      });
      pair.on_initiator(
          [&] { initiator.put_and_wait({.length = 8, .pt_index = round == 0 ? 6u : 5u}); });
    }
    if (waiter) waiter->join();
  });
}

// spec 3.14.7, 3.14.6
TEST_P(PollTest, CounterPollWakesForAMessage) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target([&] {
      target.append(PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM, {.counter = target.counter.handle()});
    });
    std::optional<WaitingThread> waiter;
    if (pair.is_target()) {
      waiter.emplace([&] {
        const Counter idle(pair.ni());
        const ptl_handle_ct_t counters[] = {idle.handle(), target.counter.handle()};
        const ptl_size_t tests[] = {1, 3};
        ptl_ct_event_t value{};
        unsigned which = 77;
        EXPECT_EQ(PTL_OK, PtlCTPoll(counters, tests, 2, PTL_TIME_FOREVER, &value, &which));
        EXPECT_EQ(which, 1u);
        EXPECT_EQ(value, (ptl_ct_event_t{3, 0}));
      });
    }
    for (int i = 0; i < 3; ++i) {
      pair.on_target([&] { waiter->await_sleep(); });
      pair.on_initiator([&] { initiator.put_and_wait({.length = 8}); });
    }
    if (waiter) waiter->join();
  });
}

}  // namespace
}  // namespace lintel::test
