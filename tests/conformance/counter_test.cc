// Counting events: values, setting, incrementing, waiting.
#include <thread>

#include <gtest/gtest.h>

#include "support/interface.h"
#include "support/objects.h"
#include "support/ranks.h"
#include "support/text.h"
#include "support/waiting_thread.h"

namespace lintel::test {
namespace {

void with_interface(const std::function<void(Rank&, const Interface&)>& body) {
  run_ranks(1, [&](Rank& rank) {
    const Interface interface(rank, matching_physical);
    body(rank, interface);
  });
}

// spec 3.14.2, 3.14.5, 3.14.8, 3.14.9
TEST(CounterTest, StartsAtZeroAndTakesWhatIsSetAndAdded) {
  with_interface([](Rank&, const Interface& interface) {
    const Counter counter(interface.handle());
    EXPECT_EQ(counter.value(), (ptl_ct_event_t{0, 0}));
    must(PtlCTInc(counter.handle(), {5, 0}));
    must(PtlCTInc(counter.handle(), {0, 2}));
    counter.expect(5, 2);
    must(PtlCTSet(counter.handle(), {100, 7}));
    counter.expect(100, 7);
    must(PtlCTInc(counter.handle(), {0, 0}));
    counter.expect(100, 7);
    must(PtlCTSet(counter.handle(), {0, 0}));
    counter.expect(0, 0);
  });
}

// spec 3.14, 3.14.9
TEST(CounterTest, ArithmeticIsModulo) {
  with_interface([](Rank&, const Interface& interface) {
    const Counter counter(interface.handle());
    counter.set(5, 5);
    must(PtlCTInc(counter.handle(), {PTL_SIZE_MAX, 0}));
    counter.expect(4, 5);
    must(PtlCTInc(counter.handle(), {0, PTL_SIZE_MAX - 1}));
    counter.expect(4, 3);
    counter.set(PTL_SIZE_MAX, 0);
    must(PtlCTInc(counter.handle(), {1, 0}));
    counter.expect(0, 0);
    counter.set(PTL_SIZE_MAX, PTL_SIZE_MAX);
    counter.expect(PTL_SIZE_MAX, PTL_SIZE_MAX);
  });
}

// spec 3.14.6
TEST(CounterTest, WaitReturnsAtOnceWhenTheTestIsReached) {
  with_interface([](Rank&, const Interface& interface) {
    const Counter counter(interface.handle());
    counter.set(10);
    for (const ptl_size_t test : {0u, 9u, 10u}) {
      ptl_ct_event_t value{};
      must(PtlCTWait(counter.handle(), test, &value));
      EXPECT_EQ(value, (ptl_ct_event_t{10, 0}));
    }
  });
}

// spec 3.14.6
TEST(CounterTest, WaitReturnsWhenAFailureIsCounted) {
  with_interface([](Rank&, const Interface& interface) {
    const Counter counter(interface.handle());
    counter.set(1, 1);
    ptl_ct_event_t value{};
    must(PtlCTWait(counter.handle(), 1000, &value));
    EXPECT_EQ(value, (ptl_ct_event_t{1, 1}));
    counter.set(0, 0);
    WaitingThread waiter([&] {
      ptl_ct_event_t seen{};
      must(PtlCTWait(counter.handle(), 1000, &seen));
      EXPECT_EQ(seen.failure, 4u);
    });
    waiter.await_sleep();
    must(PtlCTInc(counter.handle(), {0, 4}));
    waiter.join();
  });
}

// spec 3.14.6
TEST(CounterTest, AllWaitersOfATestAreWoken) {
  with_interface([](Rank&, const Interface& interface) {
    const Counter counter(interface.handle());
    std::vector<std::thread> waiters;
    for (ptl_size_t i = 0; i < 8; ++i) {
      waiters.push_back(start_thread([&, i] {
        const ptl_size_t test = 50 + i / 4 * 50;
        ptl_ct_event_t value{};
        must(PtlCTWait(counter.handle(), test, &value));
        EXPECT_GE(value.success, test);
      }));
    }
    for (int i = 0; i < 100; ++i) counter.add(1);
    for (std::thread& waiter : waiters) waiter.join();
  });
}

// spec 3.14.9, 2.9
TEST(CounterTest, IncrementsFromSeveralThreadsAreNotLost) {
  with_interface([](Rank&, const Interface& interface) {
    constexpr ptl_size_t each = 20000;
    const Counter counter(interface.handle());
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.push_back(start_thread([&, t] {
        for (ptl_size_t i = 0; i < each; ++i)
          must(PtlCTInc(counter.handle(), t == 3 ? ptl_ct_event_t{0, 1} : ptl_ct_event_t{1, 0}));
      }));
    }
    for (std::thread& thread : threads) thread.join();
    counter.expect(3 * each, each);
  });
}

// spec 3.14.3, 3.14.2
TEST(CounterTest, AFreedHandleIsInvalidAndTheNextCounterIsFresh) {
  with_interface([](Rank&, const Interface& interface) {
    for (int i = 0; i < 100; ++i) {
      Counter counter(interface.handle());
      EXPECT_EQ(counter.value(), (ptl_ct_event_t{0, 0}));
      counter.set(9, 9);
      const ptl_handle_ct_t stale = counter.handle();
      counter.free();
      ptl_ct_event_t value{};
      EXPECT_EQ(PTL_ARG_INVALID, PtlCTGet(stale, &value));
      EXPECT_EQ(PTL_ARG_INVALID, PtlCTInc(stale, {1, 0}));
      EXPECT_EQ(PTL_ARG_INVALID, PtlCTFree(stale));
    }
  });
}

}  // namespace
}  // namespace lintel::test
