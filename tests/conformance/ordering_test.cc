// Order of matching between two processes, and of data within the ordered sizes.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include <gtest/gtest.h>

#include "operations.h"
#include "portals4_lintel.h"

namespace lintel::test {
namespace {

class OrderingTest : public testing::TestWithParam<PairKind> {};
INSTANTIATE_TEST_SUITE_P(Paths, OrderingTest, testing::ValuesIn(all_pairs()), pair_name);

// spec 2.7, 2.7.2
TEST_P(OrderingTest, MessagesOfAllSizesMatchInTheOrderSent) {
  run_pair(GetParam(), [](Pair& pair) {
    constexpr std::size_t count = 3000;
    constexpr ptl_size_t sizes[] = {8, 0, 8, 64, 8, 700, 8, 5000, 8, 8, 40000, 16, 130000, 1};
    const ptl_size_t largest = 130000;
    TargetSide target(pair, {.bytes = largest, .events = count});
    InitiatorSide initiator(pair, {.bytes = largest, .options = PTL_MD_EVENT_SUCCESS_DISABLE});
    pair.on_target([&] {
      for (std::size_t i = 0; i < count; ++i) {
        target.append(target.entry(PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE),
                      PTL_PRIORITY_LIST, tag(i));
      }
    });
    pair.on_initiator([&] {
      std::mt19937 random(2);
      for (std::size_t i = 0; i < count; ++i) {
        initiator.put(
            {.length = sizes[random() % std::size(sizes)], .ack = PTL_NO_ACK_REQ, .hdr_data = i});
      }
      initiator.fence();
    });
    pair.on_target([&] {
      // The n-th message matched the n-th entry. Long messages may end later than their successors.
      std::vector<bool> seen(count);
      for (std::size_t i = 0; i < count; ++i) {
        const ptl_event_t event = target.events.expect(PTL_EVENT_PUT);
        EXPECT_EQ(tag_of(event.user_ptr), event.hdr_data);
        EXPECT_FALSE(seen.at(event.hdr_data));
        seen[event.hdr_data] = true;
      }
    });
  });
}

// Hints of a portal table entry: its messages need no order, all its list entries are used once, or
// they may truncate. The results do not change.
// spec 2.7, 3.7.1
TEST_P(OrderingTest, HintsOfThePortalChangeNothing) {
  run_pair(GetParam(), [](Pair& pair) {
    constexpr std::size_t count = 50;
    TargetSide target(
        pair, {.pt_options = PTL_PT_MATCH_UNORDERED | PTL_PT_ONLY_USE_ONCE | PTL_PT_ONLY_TRUNCATE});
    InitiatorSide initiator(pair);
    pair.on_target([&] {
      for (std::size_t i = 0; i < count; ++i)
        target.append(target.entry(PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE),
                      PTL_PRIORITY_LIST, tag(i));
      target.append(target.entry(PTL_ME_OP_PUT), PTL_PRIORITY_LIST, tag(count));
    });
    pair.on_initiator([&] {
      for (std::size_t i = 0; i < count + 2; ++i) initiator.put_and_wait({.length = 8});
    });
    pair.on_target([&] {
      for (std::size_t i = 0; i < count + 2; ++i)
        EXPECT_EQ(tag_of(target.events.expect(PTL_EVENT_PUT).user_ptr), std::min(i, count));
    });
  });
}

// spec 2.7, 2.7.4
TEST_P(OrderingTest, OperationsOfAllKindsMatchInTheOrderSent) {
  run_pair(GetParam(), [](Pair& pair) {
    constexpr std::size_t count = 1000;
    TargetSide target(pair, {.events = count});
    InitiatorSide initiator(pair, {.options = PTL_MD_EVENT_SUCCESS_DISABLE});
    std::mt19937 random(4);  // the same in both processes
    std::vector<Operation> operations;
    for (std::size_t i = 0; i < count; ++i) operations.push_back(all_operations[random() % 5]);
    pair.on_target([&] {
      for (std::size_t i = 0; i < count; ++i) {
        target.append(target.entry(PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_USE_ONCE |
                                   PTL_ME_EVENT_UNLINK_DISABLE),
                      PTL_PRIORITY_LIST, tag(i));
      }
    });
    pair.on_initiator([&] {
      for (const Operation operation : operations)
        start(initiator, operation, {.length = 16, .ack = PTL_NO_ACK_REQ});
      initiator.fence();
    });
    pair.on_target([&] {
      for (std::size_t i = 0; i < count; ++i) {
        const ptl_event_t event = target.events.next();
        EXPECT_EQ(event_name(event.type), event_name(target_event(operations[i]))) << i;
        EXPECT_EQ(event.user_ptr, tag(i));
      }
    });
  });
}

// spec 2.7.1, 3.6.1
TEST_P(OrderingTest, ShortWritesLandInOrder) {
  run_pair(GetParam(), [](Pair& pair) {
    const ptl_size_t size = std::min<ptl_size_t>(pair.limits().max_waw_ordered_size, 4096);
    ASSERT_GE(size, 64u);
    TargetSide target(pair, {.bytes = size});
    InitiatorSide initiator(
        pair, {.bytes = size, .options = PTL_MD_EVENT_SUCCESS_DISABLE | PTL_MD_VOLATILE});
    const ptl_size_t length = std::min(size, pair.limits().max_volatile_size);
    pair.on_target([&] { target.append(PTL_ME_OP_PUT | PTL_ME_EVENT_COMM_DISABLE); });
    for (uint32_t round = 1; round <= 20; ++round) {
      pair.on_initiator([&] {
        for (uint32_t i = 0; i < 50; ++i) {
          fill(initiator.source.memory.first(length), round * 100 + i);
          initiator.put({.length = length, .ack = PTL_NO_ACK_REQ});
        }
        initiator.fence();
      });
      pair.on_target([&] { expect_pattern(target.memory.first(length), round * 100 + 49); });
    }
  });
}

// spec 2.7.1
TEST_P(OrderingTest, AGetSeesThePutBeforeIt) {
  run_pair(GetParam(), [](Pair& pair) {
    const ptl_size_t size = std::min<ptl_size_t>(pair.limits().max_waw_ordered_size, 64);
    TargetSide target(pair);
    InitiatorSide initiator(pair,
                            {.options = PTL_MD_EVENT_SUCCESS_DISABLE | PTL_MD_EVENT_CT_REPLY});
    pair.on_target(
        [&] { target.append(PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_COMM_DISABLE); });
    pair.on_initiator([&] {
      for (uint32_t i = 1; i <= 500; ++i) {
        fill(initiator.source.memory.first(size), i);
        initiator.put({.length = size, .ack = PTL_NO_ACK_REQ});
        initiator.get({.length = size});
        initiator.result.counter.expect(i);
        expect_pattern(initiator.result.memory.first(size), i);
      }
    });
  });
}

// spec 2.7.1
TEST_P(OrderingTest, APutDoesNotOvertakeTheGetBeforeIt) {
  run_pair(GetParam(), [](Pair& pair) {
    const ptl_size_t size = std::min<ptl_size_t>(pair.limits().max_war_ordered_size, 64);
    TargetSide target(pair);
    InitiatorSide initiator(pair,
                            {.options = PTL_MD_EVENT_SUCCESS_DISABLE | PTL_MD_EVENT_CT_REPLY});
    pair.on_target([&] {
      fill(target.memory.first(size), 0);
      target.append(PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_COMM_DISABLE);
    });
    pair.on_initiator([&] {
      for (uint32_t i = 1; i <= 500; ++i) {
        fill(initiator.source.memory.first(size), i);
        initiator.get({.length = size});
        initiator.put({.length = size, .ack = PTL_NO_ACK_REQ});
        initiator.result.counter.expect(i);
        expect_pattern(initiator.result.memory.first(size), i - 1);
        initiator.fence();
      }
    });
  });
}

// spec 2.7.1, 3.15.4
TEST_P(OrderingTest, AtomicsAndPutsKeepTheirOrder) {
  run_pair(GetParam(), [](Pair& pair) {
    TargetSide target(pair);
    InitiatorSide initiator(pair, {.options = PTL_MD_EVENT_SUCCESS_DISABLE | PTL_MD_VOLATILE});
    pair.on_target([&] { target.append(PTL_ME_OP_PUT | PTL_ME_EVENT_COMM_DISABLE); });
    pair.on_initiator([&] {
      const auto send = [&](int64_t value, bool add) {
        std::memcpy(initiator.source.memory.data(), &value, 8);
        start(initiator, add ? Operation::atomic : Operation::put,
              {.length = 8, .ack = PTL_NO_ACK_REQ});
      };
      for (int64_t i = 0; i < 300; ++i) {
        send(1000 * i, false);
        send(3, true);
        send(4, true);
      }
      initiator.fence();
    });
    pair.on_target([&] {
      int64_t value = 0;
      std::memcpy(&value, target.memory.data(), 8);
      EXPECT_EQ(value, 299 * 1000 + 7);
    });
  });
}

// spec 2.7.1, 3.6.1
TEST_P(OrderingTest, TotalDataOrderingWritesAMessageBeforeTheNext) {
  run_pair(GetParam(), [](Pair& pair) {
    ASSERT_NE(pair.limits().features & PTL_TOTAL_DATA_ORDERING, 0u);
    constexpr uint64_t count = 20000;
    TargetSide target(pair);
    InitiatorSide initiator(pair, {.options = PTL_MD_EVENT_SUCCESS_DISABLE | PTL_MD_VOLATILE});
    pair.on_target([&] { target.append(PTL_ME_OP_PUT | PTL_ME_EVENT_COMM_DISABLE); });
    // Each message is written at 0 first, then at 64. A reader that reads 64 first never finds an
    // older value at 0.
    std::thread observer;
    if (pair.is_target()) {
      observer = start_thread([&] {
        const std::atomic_ref<uint64_t> first(*reinterpret_cast<uint64_t*>(target.memory.data()));
        const std::atomic_ref<uint64_t> second(
            *reinterpret_cast<uint64_t*>(target.memory.data() + 64));
        const auto give_up = std::chrono::steady_clock::now() + wait_deadline;
        uint64_t seen = 0;
        while (seen < count && std::chrono::steady_clock::now() < give_up) {
          seen = second.load();
          EXPECT_GE(first.load(), seen);
        }
        EXPECT_EQ(seen, count);
      });
    }
    if (pair.is_initiator()) {
      for (uint64_t i = 1; i <= count; ++i) {
        std::memcpy(initiator.source.memory.data(), &i, 8);
        initiator.put({.length = 8, .ack = PTL_NO_ACK_REQ});
        initiator.put({.length = 8, .remote_offset = 64, .ack = PTL_NO_ACK_REQ});
      }
      initiator.fence();
    }
    if (observer.joinable()) observer.join();
    pair.barrier();
  });
}

// PtlStartBundle and PtlEndBundle: no message may be lost, and all are sent by the end of the
// bundle.

class BundleTest : public testing::TestWithParam<PairKind> {};
INSTANTIATE_TEST_SUITE_P(Paths, BundleTest, testing::ValuesIn(all_pairs()), pair_name);

// spec 3.17, 3.17.1, 3.17.2
TEST_P(BundleTest, EverythingStartedInsideArrives) {
  run_pair(GetParam(), [](Pair& pair) {
    constexpr uint64_t count = 400;
    TargetSide target(pair, {.events = 5 * count});
    InitiatorSide initiator(pair, {.options = PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_REPLY |
                                              PTL_MD_EVENT_SUCCESS_DISABLE});
    pair.on_target([&] { target.append(PTL_ME_OP_PUT | PTL_ME_OP_GET); });
    pair.on_initiator([&] {
      must(PtlStartBundle(pair.ni()));
      for (uint64_t i = 0; i < count; ++i) {
        for (const Operation operation : all_operations)
          start(initiator, operation, {.length = 8, .hdr_data = i});
      }
      must(PtlEndBundle(pair.ni()));
      initiator.source.counter.expect(2 * count);
      initiator.result.counter.expect(3 * count);
    });
    pair.on_target([&] {
      for (uint64_t i = 0; i < count; ++i) {
        for (const Operation operation : all_operations)
          target.events.expect(target_event(operation));
      }
    });
  });
}

// spec 3.17.1, 3.17.2
TEST_P(BundleTest, BundlesNestAndAnInnerEndSendsWhatWasDeferred) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target([&] { target.append(PTL_ME_OP_PUT); });
    pair.on_initiator([&] {
      must(PtlStartBundle(pair.ni()));
      must(PtlStartBundle(pair.ni()));
      initiator.put({.length = 8});
      must(PtlEndBundle(pair.ni()));
      initiator.expect_send_and_ack();  // still inside the outer bundle
      initiator.put({.length = 8});
      must(PtlEndBundle(pair.ni()));
      initiator.expect_send_and_ack();
      initiator.put_and_wait({.length = 8});
    });
  });
}

// spec 3.17.1
TEST_P(BundleTest, ConcernsOneInterfaceOnly) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    InterfaceKind other_kind = pair.interface().kind();
    other_kind.matching = !other_kind.matching;
    Interface other(other_kind, {});
    other.exchange(pair.rank());
    pair.on_target([&] { target.append(PTL_ME_OP_PUT); });
    pair.on_initiator([&] {
      must(PtlStartBundle(other.handle()));
      initiator.put_and_wait({.length = 8});
      must(PtlEndBundle(other.handle()));
    });
  });
}

// spec 3.17, 3.16
TEST_P(BundleTest, TriggeredOperationsFireInsideABundle) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target([&] { target.append(PTL_ME_OP_PUT); });
    pair.on_initiator([&] {
      const Counter trigger(pair.ni());
      must(PtlStartBundle(pair.ni()));
      must(PtlTriggeredPut(initiator.source.descriptor.handle(), 0, 8, PTL_ACK_REQ,
                           pair.target_id(), default_pt_index, 0, 0, nullptr, 0, trigger.handle(),
                           1));
      trigger.add(1);
      must(PtlEndBundle(pair.ni()));
      initiator.expect_send_and_ack();
    });
  });
}

}  // namespace
}  // namespace lintel::test
