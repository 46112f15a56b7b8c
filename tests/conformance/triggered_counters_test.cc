// Triggered increments and sets of counters: order, chains, lowered counters, cancelling, limits.
#include <thread>

#include <gtest/gtest.h>

#include "support/interface.h"
#include "support/objects.h"
#include "support/ranks.h"
#include "support/text.h"

namespace lintel::test {
namespace {

void with_interface(const std::function<void(const Interface&)>& body) {
  run_ranks(1, [&](Rank& rank) {
    const Interface interface(rank, nonmatching_physical);
    body(interface);
  });
}

constexpr ptl_ct_event_t one{1, 0};

// spec 3.16.6, 3.16.7
TEST(TriggeredCountersTest, FireWhenTheThresholdIsReached) {
  with_interface([](const Interface& interface) {
    const Counter trigger(interface.handle());
    const Counter counter(interface.handle());
    must(PtlTriggeredCTInc(counter.handle(), {7, 0}, trigger.handle(), 2));
    must(PtlTriggeredCTInc(counter.handle(), {0, 3}, trigger.handle(), 3));
    must(PtlTriggeredCTSet(counter.handle(), {100, 50}, trigger.handle(), 4));
    trigger.add(1);
    counter.expect_steady(0, 0);
    trigger.add(1);
    counter.expect_steady(7, 0);
    trigger.add(1);
    counter.expect_steady(7, 3);
    trigger.add(1);
    counter.expect_steady(100, 50);
    trigger.add(1);
    counter.expect_steady(100, 50);
  });
}

// spec 3.16
TEST(TriggeredCountersTest, FireAtOnceWhenTheThresholdIsReachedAlready) {
  with_interface([](const Interface& interface) {
    const Counter trigger(interface.handle());
    const Counter counter(interface.handle());
    trigger.set(10);
    must(PtlTriggeredCTInc(counter.handle(), one, trigger.handle(), 0));
    must(PtlTriggeredCTInc(counter.handle(), one, trigger.handle(), 10));
    counter.expect_steady(2);
    must(PtlTriggeredCTSet(counter.handle(), {40, 0}, trigger.handle(), 9));
    counter.expect_steady(40);
    must(PtlTriggeredCTInc(counter.handle(), one, trigger.handle(), 11));
    counter.expect_steady(40);
  });
}

// spec 3.16
TEST(TriggeredCountersTest, FireInOrderOfThresholdEvenInOneLargeStep) {
  with_interface([](const Interface& interface) {
    const Counter trigger(interface.handle());
    const Counter counter(interface.handle());
    // Posted in falling order of thresholds; the last one to be triggered determines the value.
    for (ptl_size_t threshold = 50; threshold > 0; --threshold) {
      must(PtlTriggeredCTSet(counter.handle(), {1000 + threshold, 0}, trigger.handle(), threshold));
    }
    trigger.add(30);
    counter.expect_steady(1030);
    trigger.add(100);
    counter.expect_steady(1050);
  });
}

// spec 3.16
TEST(TriggeredCountersTest, EqualThresholdsFireInOrderOfPosting) {
  with_interface([](const Interface& interface) {
    const Counter trigger(interface.handle());
    const Counter counter(interface.handle());
    for (ptl_size_t i = 1; i <= 100; ++i)
      must(PtlTriggeredCTSet(counter.handle(), {i, 0}, trigger.handle(), 5));
    trigger.add(5);
    counter.expect_steady(100);
    // A set between increments also shows the order: 1 and 2 are overwritten by 10, then 3 is
    // added.
    must(PtlTriggeredCTInc(counter.handle(), {1, 0}, trigger.handle(), 6));
    must(PtlTriggeredCTInc(counter.handle(), {2, 0}, trigger.handle(), 6));
    must(PtlTriggeredCTSet(counter.handle(), {10, 0}, trigger.handle(), 6));
    must(PtlTriggeredCTInc(counter.handle(), {3, 0}, trigger.handle(), 6));
    trigger.add(1);
    counter.expect_steady(13);
  });
}

// spec 3.16, 3.16.7
TEST(TriggeredCountersTest, ACounterMayLowerItself) {
  with_interface([](const Interface& interface) {
    const Counter trigger(interface.handle());
    const Counter counter(interface.handle());
    must(PtlTriggeredCTSet(trigger.handle(), {0, 0}, trigger.handle(), 3));
    must(PtlTriggeredCTInc(counter.handle(), {1, 0}, trigger.handle(),
                           3));  // reached at once with it
    must(PtlTriggeredCTInc(counter.handle(), {10, 0}, trigger.handle(), 4));
    trigger.add(3);
    trigger.expect_steady(0);
    counter.expect_steady(1);
    trigger.add(3);  // 3 of 4, from zero
    counter.expect_steady(1);
    trigger.add(1);
    counter.expect_steady(11);
  });
}

// spec 3.16, 3.16.7
TEST(TriggeredCountersTest, AnotherCounterMayLowerIt) {
  with_interface([](const Interface& interface) {
    const Counter resetter(interface.handle());
    const Counter trigger(interface.handle());
    const Counter counter(interface.handle());
    must(PtlTriggeredCTSet(trigger.handle(), {2, 0}, resetter.handle(), 1));
    must(PtlTriggeredCTInc(counter.handle(), one, trigger.handle(), 10));
    trigger.add(9);
    resetter.add(1);
    trigger.expect(2);
    trigger.add(7);
    counter.expect_steady(0);
    trigger.add(1);
    counter.expect_steady(1);
  });
}

// spec 3.16.6
TEST(TriggeredCountersTest, AChainThroughManyCountersRunsToItsEnd) {
  with_interface([](const Interface& interface) {
    constexpr std::size_t length = 100'000;
    ASSERT_GE(interface.limits().max_cts, static_cast<int>(length) + 1);
    ASSERT_GE(interface.limits().max_triggered_ops, static_cast<int>(length));
    std::vector<Counter> counters;
    counters.reserve(length + 1);
    for (std::size_t i = 0; i <= length; ++i) counters.emplace_back(interface.handle());
    for (std::size_t i = 0; i < length; ++i)
      must(PtlTriggeredCTInc(counters[i + 1].handle(), one, counters[i].handle(), 1));
    counters.front().add(1);
    counters.back().expect_steady(1);
    counters[length / 2].expect(1);
  });
}

// spec 3.16.6
TEST(TriggeredCountersTest, AChainThroughOneCounterRunsToItsEnd) {
  with_interface([](const Interface& interface) {
    constexpr ptl_size_t length = 100'000;
    const Counter counter(interface.handle());
    for (ptl_size_t i = length; i > 0; --i)
      must(PtlTriggeredCTInc(counter.handle(), one, counter.handle(), i));
    counter.expect_steady(0);
    counter.add(1);
    counter.expect_steady(length + 1);
  });
}

// spec 3.16.6
TEST(TriggeredCountersTest, TwoCountersMayDriveEachOther) {
  with_interface([](const Interface& interface) {
    constexpr ptl_size_t length = 50'000;
    const Counter left(interface.handle());
    const Counter right(interface.handle());
    for (ptl_size_t i = 1; i <= length; ++i) {
      must(PtlTriggeredCTInc(right.handle(), one, left.handle(), i));
      must(PtlTriggeredCTInc(left.handle(), one, right.handle(), i));
    }
    left.add(1);
    right.expect_steady(length);
    left.expect_steady(length + 1);
  });
}

// spec 3.14.4
TEST(TriggeredCountersTest, CancelledOperationsNeverFire) {
  with_interface([](const Interface& interface) {
    const Counter trigger(interface.handle());
    const Counter other(interface.handle());
    const Counter counter(interface.handle());
    trigger.add(1);
    for (ptl_size_t threshold = 2; threshold < 50; ++threshold)
      must(PtlTriggeredCTInc(counter.handle(), one, trigger.handle(), threshold));
    must(PtlTriggeredCTInc(counter.handle(), {100, 0}, other.handle(), 1));
    must(PtlCTCancelTriggered(trigger.handle()));
    trigger.expect(1);  // all other state is left alone
    trigger.add(100);
    counter.expect_steady(0);
    other.add(1);
    counter.expect_steady(100);
    must(PtlTriggeredCTInc(counter.handle(), one, trigger.handle(), 200));  // usable again
    trigger.set(200);
    counter.expect_steady(101);
    must(PtlCTCancelTriggered(trigger.handle()));  // nothing to cancel
  });
}

// spec 3.14.3
TEST(TriggeredCountersTest, FreeingTheTriggerDeletesWhatWaitsForIt) {
  with_interface([](const Interface& interface) {
    const Counter counter(interface.handle());
    for (int i = 0; i < 100; ++i) {
      Counter trigger(interface.handle());
      for (ptl_size_t threshold = 1; threshold < 20; ++threshold)
        must(PtlTriggeredCTInc(counter.handle(), one, trigger.handle(), threshold));
      trigger.free();
      const Counter successor(interface.handle());  // perhaps in the same place
      successor.add(100);
    }
    counter.expect_steady(0);
  });
}

// spec 3.16, 3.14.3
TEST(TriggeredCountersTest, AnOperationOnAFreedCounterDoesNoHarm) {
  with_interface([](const Interface& interface) {
    const Counter trigger(interface.handle());
    Counter gone(interface.handle());
    const Counter counter(interface.handle());
    must(PtlTriggeredCTInc(gone.handle(), one, trigger.handle(), 1));
    must(PtlTriggeredCTInc(counter.handle(), one, trigger.handle(), 1));
    gone.free();
    const Counter successor(interface.handle());
    trigger.add(1);
    counter.expect_steady(1);
    successor.expect(0);
  });
}

// spec 3.6.1, 3.16.6, 3.16.7, 3.14.3, 3.14.4
TEST(TriggeredCountersTest, TheLimitIsEnforcedAndRoomComesBack) {
  run_ranks(1, [](Rank& rank) {
    ptl_ni_limits_t desired{};
    desired.max_triggered_ops = 50;
    const Interface interface(rank, nonmatching_physical, {.desired = &desired});
    const int room = interface.limits().max_triggered_ops;
    ASSERT_GE(room, 50);
    ASSERT_LE(room, 1'100'000) << "a desired limit of 50 has been ignored";
    Counter trigger(interface.handle());
    const Counter counter(interface.handle());
    const auto fill_up = [&] {
      for (int i = 0; i < room; ++i)
        must(PtlTriggeredCTInc(counter.handle(), one, trigger.handle(), 10));
      EXPECT_EQ(PTL_NO_SPACE, PtlTriggeredCTInc(counter.handle(), one, trigger.handle(), 10));
      EXPECT_EQ(PTL_NO_SPACE, PtlTriggeredCTSet(counter.handle(), one, trigger.handle(), 10));
    };
    fill_up();
    must(PtlCTCancelTriggered(trigger.handle()));
    fill_up();
    trigger.set(10);
    counter.expect_steady(static_cast<ptl_size_t>(room));
    trigger.set(0);
    fill_up();
    trigger.free();
    trigger = Counter(interface.handle());
    fill_up();
  });
}

// spec 3.16, 2.9
TEST(TriggeredCountersTest, PostingAndIncrementingAtOnceLosesNothing) {
  with_interface([](const Interface& interface) {
    constexpr ptl_size_t count = 20'000;
    const Counter trigger(interface.handle());
    const Counter counter(interface.handle());
    std::vector<std::thread> threads;
    for (ptl_size_t t = 0; t < 2; ++t) {
      threads.push_back(start_thread([&, t] {
        for (ptl_size_t i = t; i < count; i += 2)
          must(PtlTriggeredCTInc(counter.handle(), one, trigger.handle(), i + 1));
      }));
      threads.push_back(start_thread([&] {
        for (ptl_size_t i = 0; i < count / 2; ++i) trigger.add(1);
      }));
    }
    for (std::thread& thread : threads) thread.join();
    trigger.expect(count);
    counter.expect_steady(count);
  });
}

}  // namespace
}  // namespace lintel::test
