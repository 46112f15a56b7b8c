// Event queues: reading, waiting, overflow, sharing among threads.
#include <algorithm>
#include <atomic>
#include <optional>
#include <thread>

#include <gtest/gtest.h>

#include "operations.h"
#include "portals4_lintel.h"
#include "support/waiting_thread.h"

namespace lintel::test {
namespace {

class EventQueueTest : public testing::TestWithParam<PairKind> {};
INSTANTIATE_TEST_SUITE_P(Paths, EventQueueTest, testing::ValuesIn(one_pair_per_path()), pair_name);

// A target that accepts everything without events of its own.
void with_sink(const PairKind& kind, const std::function<void(Pair&, InitiatorSide&)>& body) {
  run_pair(kind, [&](Pair& pair) {
    TargetSide sink(pair);
    InitiatorSide initiator(pair);
    pair.on_target([&] { sink.append(sink.entry(PTL_ME_OP_PUT | PTL_ME_EVENT_COMM_DISABLE)); });
    pair.on_initiator([&] { body(pair, initiator); });
  });
}

// spec 3.13.7
TEST_P(EventQueueTest, GetTakesEventsInOrderAndThenSaysEmpty) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target([&] {
      target.append(PTL_ME_OP_PUT);
      target.events.expect_empty();
    });
    pair.on_initiator([&] {
      for (uint64_t i = 0; i < 10; ++i) initiator.put_and_wait({.length = 8, .hdr_data = i});
    });
    pair.on_target([&] {
      for (uint64_t i = 0; i < 10; ++i) {
        ptl_event_t event{};
        must(PtlEQGet(target.events.handle(), &event));
        EXPECT_EQ(event.hdr_data, i);
      }
      target.events.expect_empty();
      target.events.expect_empty();
    });
  });
}

// spec 3.13.7 (PtlLintelEQGetMany)
TEST_P(EventQueueTest, GetManyTakesAllThereAreInOrder) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    constexpr unsigned most = 7;
    ptl_event_t events[most];
    unsigned count = most;
    pair.on_target([&] {
      target.append(PTL_ME_OP_PUT);
      const ptl_handle_eq_t queue = target.events.handle();
      EXPECT_EQ(PTL_EQ_EMPTY, PtlLintelEQGetMany(queue, events, most, &count));
      EXPECT_EQ(count, 0u);
      EXPECT_EQ(PTL_ARG_INVALID, PtlLintelEQGetMany(queue, events, 0, &count));
      EXPECT_EQ(PTL_ARG_INVALID, PtlLintelEQGetMany(queue, nullptr, most, &count));
      EXPECT_EQ(PTL_ARG_INVALID, PtlLintelEQGetMany(queue, events, most, nullptr));
      EXPECT_EQ(PTL_ARG_INVALID, PtlLintelEQGetMany(PTL_INVALID_HANDLE, events, most, &count));
    });
    pair.on_initiator([&] {
      for (uint64_t i = 0; i < 20; ++i) initiator.put_and_wait({.length = 8, .hdr_data = i});
    });
    pair.on_target([&] {
      uint64_t next = 0;
      while (next < 20) {
        must(PtlLintelEQGetMany(target.events.handle(), events, most, &count));
        ASSERT_LE(count, most);
        for (unsigned i = 0; i < count; ++i) {
          EXPECT_EQ(events[i].hdr_data, next++);
          EXPECT_EQ(events[i].type, PTL_EVENT_PUT);
        }
      }
      target.events.expect_empty();
    });
  });
}

// spec 3.13.8
TEST_P(EventQueueTest, WaitBlocksUntilAnEventComes) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target([&] { target.append(PTL_ME_OP_PUT); });
    std::optional<WaitingThread> waiter;
    std::atomic<bool> returned = false;
    if (pair.is_target()) {
      waiter.emplace([&] {
        ptl_event_t event{};
        EXPECT_EQ(PTL_OK, PtlEQWait(target.events.handle(), &event));
        returned = true;
        EXPECT_EQ(event.type, PTL_EVENT_PUT);
        EXPECT_EQ(event.hdr_data, 4u);
      });
      waiter->await_sleep();
      EXPECT_FALSE(returned);
    }
    pair.barrier();
    pair.on_initiator([&] { initiator.put_and_wait({.length = 8, .hdr_data = 4}); });
    if (waiter) waiter->join();
  });
}

// spec 3.13.5, 3.13.7, 3.13.8, 3.13.9
TEST_P(EventQueueTest, OverflowOverwritesOldEventsAndSaysSo) {
  for (int function = 0; function < 4; ++function) {
    run_pair(GetParam(), [function](Pair& pair) {
      constexpr uint64_t count = 5000;
      constexpr uint64_t requested = 8;
      TargetSide target(pair, {.events = requested});
      InitiatorSide initiator(pair, {.options = PTL_MD_EVENT_SUCCESS_DISABLE});
      pair.on_target([&] { target.append(PTL_ME_OP_PUT); });
      pair.on_initiator([&] {
        for (uint64_t i = 1; i <= count; ++i)
          initiator.put({.length = 8, .ack = PTL_NO_ACK_REQ, .hdr_data = i});
        initiator.fence();
      });
      pair.on_target([&] {
        const ptl_handle_eq_t queue = target.events.handle();
        const auto next = [&](ptl_event_t& event) {
          unsigned which = 0;
          if (function == 0) return PtlEQGet(queue, &event);
          if (function == 1) return PtlEQPoll(&queue, 1, 0, &event, &which);
          if (function == 2) return PtlLintelEQGetMany(queue, &event, 1, &which);
          return PtlEQWait(queue, &event);
        };
        // The newest events are returned in order. A gap is reported once, and only a gap is.
        uint64_t last = 0;
        uint64_t returned = 0;
        uint64_t gaps = 0;
        while (last < count) {
          ptl_event_t event{};
          const int code = next(event);
          ASSERT_TRUE(code == PTL_OK || code == PTL_EQ_DROPPED) << return_code_name(code);
          ASSERT_GT(event.hdr_data, last);
          EXPECT_EQ(code == PTL_EQ_DROPPED, event.hdr_data != last + 1) << event.hdr_data;
          gaps += code == PTL_EQ_DROPPED ? 1 : 0;
          last = event.hdr_data;
          ++returned;
        }
        EXPECT_GE(returned, requested);
        EXPECT_GE(gaps, 1u) << "an event queue of 8 held " << returned << " events";
        ptl_event_t event{};
        EXPECT_EQ(PTL_EQ_EMPTY, PtlEQGet(queue, &event));
      });
    });
  }
}

// spec 3.13.5
TEST_P(EventQueueTest, HoldsAtLeastTheNumberRequested) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target([&] { target.append(PTL_ME_OP_PUT | PTL_ME_EVENT_COMM_DISABLE); });
    pair.on_initiator([&] {
      for (const ptl_size_t size : {1u, 2u, 3u, 7u, 100u, 5000u}) {
        const EventQueue events(pair.ni(), size);
        Descriptor descriptor(pair.ni(), initiator.source.memory, 0, events.handle());
        for (uintptr_t i = 0; i < size; ++i) {
          must(PtlPut(descriptor.handle(), 0, 8, PTL_NO_ACK_REQ, pair.target_id(), default_pt_index,
                      0, 0, tag(i), 0));
        }
        initiator.fence();
        std::vector<bool> seen(size);
        for (uintptr_t i = 0; i < size; ++i)
          seen.at(tag_of(events.expect(PTL_EVENT_SEND).user_ptr)) = true;
        EXPECT_EQ(std::ranges::count(seen, true), static_cast<std::ptrdiff_t>(size));
      }
    });
  });
}

// spec 3.13, 3.13.8, 2.9
TEST_P(EventQueueTest, EachEventGoesToExactlyOneOfSeveralThreads) {
  run_pair(GetParam(), [](Pair& pair) {
    constexpr uint64_t count = 4000;
    constexpr int threads = 4;
    TargetSide target(pair, {.events = count + threads});
    InitiatorSide initiator(pair, {.options = PTL_MD_EVENT_SUCCESS_DISABLE});
    pair.on_target([&] { target.append(PTL_ME_OP_PUT); });
    std::vector<std::atomic<int>> seen(count + 1);
    std::vector<std::thread> consumers;
    if (pair.is_target()) {
      for (int t = 0; t < threads; ++t) {
        consumers.push_back(start_thread([&, t] {
          const ptl_handle_eq_t queue = target.events.handle();
          for (;;) {
            ptl_event_t event{};
            unsigned which = 0;
            int code = PTL_EQ_EMPTY;
            while (code == PTL_EQ_EMPTY) {
              if (t % 3 == 0) code = PtlEQWait(queue, &event);
              if (t % 3 == 1) code = PtlEQPoll(&queue, 1, 50, &event, &which);
              if (t % 3 == 2) code = PtlEQGet(queue, &event);
              if (code == PTL_EQ_EMPTY) std::this_thread::yield();
            }
            EXPECT_EQ(code, PTL_OK);
            if (event.hdr_data == 0) return;  // one such message for each thread
            ++seen.at(event.hdr_data);
          }
        }));
      }
    }
    pair.on_initiator([&] {
      for (uint64_t i = 1; i <= count; ++i)
        initiator.put({.length = 8, .ack = PTL_NO_ACK_REQ, .hdr_data = i});
      for (int t = 0; t < threads; ++t) initiator.put({.length = 8, .ack = PTL_NO_ACK_REQ});
    });
    for (std::thread& consumer : consumers) consumer.join();
    if (pair.is_target()) {
      for (uint64_t i = 1; i <= count; ++i) EXPECT_EQ(seen[i], 1) << i;
    }
    pair.barrier();
  });
}

// spec 3.13.4
TEST_P(EventQueueTest, EventsAreCopiesThatTheQueueDoesNotChange) {
  with_sink(GetParam(), [](Pair&, InitiatorSide& initiator) {
    initiator.put({.length = 8, .ack = PTL_NO_ACK_REQ, .user_ptr = tag(1)});
    const ptl_event_t first = initiator.source.events.expect(PTL_EVENT_SEND);
    for (uintptr_t i = 2; i < 1000; ++i) {
      initiator.put({.length = 8, .ack = PTL_NO_ACK_REQ, .user_ptr = tag(i)});
      initiator.source.events.expect(PTL_EVENT_SEND);
    }
    EXPECT_EQ(first.user_ptr, tag(1));
    EXPECT_EQ(first.type, PTL_EVENT_SEND);
  });
}

}  // namespace
}  // namespace lintel::test
