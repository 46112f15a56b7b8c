// Event queues used by one thread: contents, overflow, flow control, wrap, reuse.
#include "core/events/event_queue.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <deque>
#include <random>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "support/deadlines.h"

namespace lintel {
namespace {

[[nodiscard]] ptl_event_t numbered(uint64_t number) {
  ptl_event_t event{};
  event.hdr_data = number;
  event.match_bits = ~number;
  return event;
}

class EventQueueTest : public testing::Test {
 protected:
  void expect_next(uint64_t number, GetStatus status = GetStatus::ok) {
    ptl_event_t event{};
    ASSERT_EQ(queue.get(&event), status);
    ASSERT_EQ(event.hdr_data, number);
    ASSERT_EQ(event.match_bits, ~number);
  }
  void expect_empty() {
    ptl_event_t event{};
    EXPECT_EQ(queue.get(&event), GetStatus::empty);
  }
  void fill(uint64_t first, uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) queue.post(numbered(first + i));
  }

  WaitGate gate;
  EventQueue queue;
};

TEST_F(EventQueueTest, AnAwaitedEventOfAnEmptyQueueTakesNoSlot) {
  ASSERT_TRUE(queue.open(4, 0, &gate));
  ptl_event_t event{};
  queue.await(&event);
  queue.post_in_round([] { return numbered(7); });
  EXPECT_FALSE(queue.is_awaited());
  EXPECT_TRUE(queue.end_await()) << "the event has to be reported";
  EXPECT_EQ(event.hdr_data, 7u);
  expect_empty();
  queue.post_in_round([] { return numbered(8); });
  expect_next(8);
  int data = 0;
  queue.await(&event);
  queue.post_in_round([&data] {
    return InitiatorEvent{PTL_EVENT_ACK, &data, 3, 4, PTL_OVERFLOW_LIST, PTL_NI_SEGV};
  });
  EXPECT_EQ(event.type, PTL_EVENT_ACK);
  EXPECT_EQ(event.user_ptr, &data);
  EXPECT_EQ(event.mlength, 3u);
  EXPECT_EQ(event.remote_offset, 4u);
  EXPECT_EQ(event.ptl_list, PTL_OVERFLOW_LIST);
  EXPECT_EQ(event.ni_fail_type, PTL_NI_SEGV);
}

TEST_F(EventQueueTest, AnAwaitedEventDoesNotOvertake) {
  ASSERT_TRUE(queue.open(4, 0, &gate));
  ptl_event_t event{};
  queue.await(&event);
  queue.post(numbered(1));
  queue.post_in_round([] { return numbered(2); });
  EXPECT_TRUE(queue.is_awaited());
  expect_next(1);
  expect_next(2);
  ASSERT_TRUE(queue.try_reserve());
  queue.post_in_round([] { return numbered(3); }, true);
  expect_next(3);
  EXPECT_FALSE(queue.end_await());
}

TEST_F(EventQueueTest, EveryFieldArrives) {
  ASSERT_TRUE(queue.open(4, 0, &gate));
  int memory = 0;
  ptl_event_t event;
  event.start = &memory;
  event.user_ptr = &event;
  event.hdr_data = 0x1111111111111111;
  event.match_bits = 0x2222222222222222;
  event.rlength = 0x3333333333333333;
  event.mlength = 0x4444444444444444;
  event.remote_offset = 0x5555555555555555;
  event.initiator.phys = {0x66666666, 0x77777777};
  event.uid = 0x88888888;
  event.pt_index = 0x99999999;
  event.type = PTL_EVENT_AUTO_FREE;
  event.ptl_list = PTL_OVERFLOW_LIST;
  event.ni_fail_type = PTL_NI_SEGV;
  event.atomic_operation = PTL_MSWAP;
  event.atomic_type = PTL_LONG_DOUBLE_COMPLEX;
  queue.post(event);
  ptl_event_t got;
  ASSERT_EQ(queue.get(&got), GetStatus::ok);
  EXPECT_EQ(got.start, event.start);
  EXPECT_EQ(got.user_ptr, event.user_ptr);
  EXPECT_EQ(got.hdr_data, event.hdr_data);
  EXPECT_EQ(got.match_bits, event.match_bits);
  EXPECT_EQ(got.rlength, event.rlength);
  EXPECT_EQ(got.mlength, event.mlength);
  EXPECT_EQ(got.remote_offset, event.remote_offset);
  EXPECT_EQ(got.initiator.phys.nid, event.initiator.phys.nid);
  EXPECT_EQ(got.initiator.phys.pid, event.initiator.phys.pid);
  EXPECT_EQ(got.uid, event.uid);
  EXPECT_EQ(got.pt_index, event.pt_index);
  EXPECT_EQ(got.type, event.type);
  EXPECT_EQ(got.ptl_list, event.ptl_list);
  EXPECT_EQ(got.ni_fail_type, event.ni_fail_type);
  EXPECT_EQ(got.atomic_operation, event.atomic_operation);
  EXPECT_EQ(got.atomic_type, event.atomic_type);
}

// Their slots held other events before. spec 3.13.4
TEST_F(EventQueueTest, EventsOfAnInitiatorLeaveOtherFieldsAlone) {
  ASSERT_TRUE(queue.open(4, 0, &gate));
  fill(0, queue.capacity());
  for (uint64_t i = 0; i < queue.capacity(); ++i) expect_next(i);
  for (const ptl_event_kind_t type : {PTL_EVENT_SEND, PTL_EVENT_ACK, PTL_EVENT_REPLY}) {
    int object = 0;
    queue.post(
        {type, &object, 0x1111111111111111, 0x2222222222222222, PTL_OVERFLOW_LIST, PTL_NI_DROPPED});
    ptl_event_t got;
    std::memset(static_cast<void*>(&got), 0x5a, sizeof got);
    ptl_event_t expected = got;
    expected.type = type;
    expected.user_ptr = &object;
    expected.mlength = 0x1111111111111111;
    expected.remote_offset = 0x2222222222222222;
    expected.ptl_list = PTL_OVERFLOW_LIST;
    expected.ni_fail_type = PTL_NI_DROPPED;
    expected.atomic_operation = PTL_MIN;
    ASSERT_EQ(queue.get(&got), GetStatus::ok);
    EXPECT_EQ(std::memcmp(&got, &expected, sizeof got), 0) << "event type " << type;
  }
}

TEST_F(EventQueueTest, HoldsAsManyAsAskedFor) {
  for (const uint64_t count : {0u, 1u, 2u, 3u, 64u, 65u, 1000u}) {
    for (const unsigned slots : {0u, 1u, 5u}) {
      ASSERT_TRUE(queue.open(count, slots, &gate));
      EXPECT_GE(queue.capacity(), count + slots);
      EXPECT_LE(queue.capacity(), 2 * (count + slots) + 1);
      for (int lap = 0; lap < 3; ++lap) {
        expect_empty();
        fill(1, queue.capacity());
        for (uint64_t i = 1; i <= queue.capacity(); ++i) expect_next(i);
      }
      expect_empty();
    }
  }
}

TEST_F(EventQueueTest, AbsurdSizesAreRefused) {
  EXPECT_FALSE(queue.open(PTL_SIZE_MAX, 0, &gate));
  EXPECT_FALSE(queue.open(PTL_SIZE_MAX, UINT32_MAX, &gate));
  EXPECT_FALSE(queue.open(uint64_t{1} << 62, 3, &gate));
  EXPECT_TRUE(queue.open(1, 0, &gate));
}

TEST_F(EventQueueTest, OldestEventsAreOverwrittenAndReportedOnce) {
  ASSERT_TRUE(queue.open(8, 0, &gate));
  ASSERT_EQ(queue.capacity(), 8u);
  fill(0, 9);
  expect_next(1, GetStatus::dropped);
  expect_next(2);
  fill(9, 3);  // 3..11: one too many
  expect_next(4, GetStatus::dropped);
  for (uint64_t i = 5; i < 12; ++i) expect_next(i);
  expect_empty();
  fill(12, 1000);
  expect_next(1004, GetStatus::dropped);
  for (uint64_t i = 1005; i < 1012; ++i) expect_next(i);
  expect_empty();
  fill(1012, 8);  // exactly full
  expect_next(1012);
}

// Random operations compared with a model, across the wrap of positions.
TEST_F(EventQueueTest, AgreesWithModelAcrossWrapOfPositions) {
  constexpr uint64_t positions = uint64_t{1} << 46;
  std::mt19937 random(7);
  for (const uint64_t before_wrap : {0u, 1u, 5u, 17u, 300u, 2000u}) {
    ASSERT_TRUE(queue.open(16, 0, &gate));
    queue.start_at(positions - before_wrap);
    expect_empty();
    std::deque<uint64_t> model;
    bool lost = false;
    uint64_t number = 0;
    for (int step = 0; step < 5000; ++step) {
      if (random() % 100 < (step / 500 % 2 == 0 ? 55u : 45u)) {
        queue.post(numbered(++number));
        model.push_back(number);
        if (model.size() > 16) {
          model.pop_front();
          lost = true;
        }
      } else if (model.empty()) {
        expect_empty();
      } else if (random() % 2 == 0) {
        const unsigned most = 1 + random() % 5;
        ptl_event_t events[5];
        unsigned count = 0;
        const GetStatus status = queue.try_get_several(events, most, count);
        ASSERT_EQ(status, lost ? GetStatus::contended : GetStatus::ok);
        ASSERT_EQ(count, lost ? 0 : std::min<size_t>(most, model.size()));
        for (unsigned i = 0; i < count; ++i) {
          ASSERT_EQ(events[i].hdr_data, model.front());
          model.pop_front();
        }
      } else {
        expect_next(model.front(), lost ? GetStatus::dropped : GetStatus::ok);
        model.pop_front();
        lost = false;
      }
    }
  }
}

TEST_F(EventQueueTest, ReservationsAreNeverOverwritten) {
  ASSERT_TRUE(queue.open(6, 2, &gate));
  ASSERT_EQ(queue.capacity(), 8u);
  queue.add_flow_control_slot();
  queue.add_flow_control_slot();
  uint64_t reserved = 0;
  while (queue.try_reserve()) ++reserved;
  EXPECT_EQ(reserved, 6u);
  queue.cancel_reservation();
  EXPECT_TRUE(queue.try_reserve());
  EXPECT_FALSE(queue.try_reserve());
  for (uint64_t i = 0; i < 6; ++i) queue.post(numbered(i), true);
  EXPECT_FALSE(queue.try_reserve());
  // Both portal table entries are disabled: the reserved slots are for their events.
  queue.post(numbered(6));
  queue.post(numbered(7));
  for (uint64_t i = 0; i < 8; ++i) expect_next(i);
  expect_empty();
  for (uint64_t i = 0; i < 6; ++i) EXPECT_TRUE(queue.try_reserve());
  EXPECT_FALSE(queue.try_reserve());
}

TEST_F(EventQueueTest, RoomForReservationsFollowsEventsAndSlots) {
  ASSERT_TRUE(queue.open(3, 1, &gate));
  queue.add_flow_control_slot();
  fill(0, 2);
  EXPECT_TRUE(queue.try_reserve());
  EXPECT_FALSE(queue.try_reserve());
  expect_next(0);
  EXPECT_TRUE(queue.try_reserve());
  queue.post(numbered(2), true);
  queue.post(numbered(3), true);
  EXPECT_FALSE(queue.try_reserve());
  queue.remove_flow_control_slot();
  EXPECT_TRUE(queue.try_reserve());
  EXPECT_FALSE(queue.try_reserve());
  queue.cancel_reservation();
  // Unreserved posts may overflow. Then reservations are refused until the events have been read.
  fill(4, 10);
  EXPECT_FALSE(queue.try_reserve());
  ptl_event_t event;
  EXPECT_EQ(queue.get(&event), GetStatus::dropped);
  EXPECT_TRUE(queue.try_reserve());
  EXPECT_FALSE(queue.try_reserve());
}

TEST_F(EventQueueTest, AFullQueueHoldsOneEventInItsFlowControlSlot) {
  ASSERT_TRUE(queue.open(3, 1, &gate));
  queue.add_flow_control_slot();
  uint64_t last = 0;
  // With free slots, each is posted.
  queue.post_into_own_slot(numbered(1), last);
  queue.post_into_own_slot(numbered(2), last);
  fill(3, 1);
  // Three of four slots are used: the last one is for one event of this kind.
  queue.post_into_own_slot(numbered(4), last);
  queue.post_into_own_slot(numbered(5), last);
  for (const uint64_t number : {1, 2}) expect_next(number);
  fill(6, 1);
  queue.post_into_own_slot(numbered(7), last);
  for (const uint64_t number : {3, 4, 6}) expect_next(number);
  expect_empty();
  // After that event has been read, the next one is posted.
  fill(8, 3);
  queue.post_into_own_slot(numbered(11), last);
  queue.post_into_own_slot(numbered(12), last);
  for (const uint64_t number : {8, 9, 10, 11}) expect_next(number);
  expect_empty();
  // After that event has been overwritten, the next one is posted.
  fill(13, 3);
  queue.post_into_own_slot(numbered(16), last);
  fill(17, 4);
  queue.post_into_own_slot(numbered(21), last);
  expect_next(18, GetStatus::dropped);
  for (const uint64_t number : {19, 20, 21}) expect_next(number);
  expect_empty();
}

TEST_F(EventQueueTest, ResetForgetsEverything) {
  ASSERT_TRUE(queue.open(5, 3, &gate));
  const uint64_t capacity = queue.capacity();
  queue.add_flow_control_slot();
  EXPECT_TRUE(queue.try_reserve());
  fill(0, 20);
  queue.reset();
  expect_empty();
  ASSERT_TRUE(queue.open(5, 3, &gate));
  EXPECT_EQ(queue.capacity(), capacity);
  expect_empty();
  for (uint64_t i = 0; i < capacity; ++i) ASSERT_TRUE(queue.try_reserve()) << i;
  for (uint64_t i = 0; i < capacity; ++i) queue.post(numbered(i), true);
  for (uint64_t i = 0; i < capacity; ++i) expect_next(i);
  expect_empty();
}

TEST_F(EventQueueTest, EveryPostWakesWaiters) {
  ASSERT_TRUE(queue.open(4, 1, &gate));
  ASSERT_TRUE(queue.try_reserve());
  const auto wakes = [this](auto change) {
    const uint32_t seen = gate.prepare();
    change();
    const uint32_t now = gate.prepare();
    gate.finish();
    gate.finish();
    return now != seen;
  };
  EXPECT_TRUE(wakes([this] { queue.post(numbered(1)); }));
  EXPECT_TRUE(wakes([this] { queue.post(numbered(2), true); }));
  ptl_event_t event;
  EXPECT_FALSE(wakes([&] { EXPECT_EQ(queue.get(&event), GetStatus::ok); }));
}

// Event queues with several writers and readers at the same time (spec 2.9, 3.13.5, 3.13.7).

constexpr unsigned writer_count = 4;
constexpr unsigned reader_count = 4;
// A writer stops after stress_time, but not before least_events_per_writer events.
constexpr uint64_t events_per_writer = 100000 / test::slowdown;
constexpr uint64_t least_events_per_writer = 500;

// Every field depends on writer and number, so that a mixture of two events is detected.
[[nodiscard]] ptl_event_t make_event(unsigned writer, uint64_t number) {
  ptl_event_t event{};
  const uint64_t tag = number * writer_count + writer;
  event.start = reinterpret_cast<void*>(tag);
  event.user_ptr = reinterpret_cast<void*>(tag + 1);
  event.hdr_data = tag + 2;
  event.match_bits = tag + 3;
  event.rlength = tag + 4;
  event.mlength = tag + 5;
  event.remote_offset = tag + 6;
  event.initiator.phys = {static_cast<uint32_t>(tag), static_cast<uint32_t>(tag) + 1};
  event.uid = static_cast<uint32_t>(tag) + 2;
  event.pt_index = static_cast<uint32_t>(tag) + 3;
  return event;
}

[[nodiscard]] bool is_whole(const ptl_event_t& event) {
  const auto tag = reinterpret_cast<uint64_t>(event.start);
  const auto low = static_cast<uint32_t>(tag);
  return reinterpret_cast<uint64_t>(event.user_ptr) == tag + 1 && event.hdr_data == tag + 2 &&
         event.match_bits == tag + 3 && event.rlength == tag + 4 && event.mlength == tag + 5 &&
         event.remote_offset == tag + 6 && event.initiator.phys.nid == low &&
         event.initiator.phys.pid == low + 1 && event.uid == low + 2 && event.pt_index == low + 3;
}

struct Received {
  unsigned writer;
  uint64_t number;
  bool dropped_before;
};

class EventQueueThreadsTest : public testing::Test {
 protected:
  void SetUp() override { deadline_ = std::chrono::steady_clock::now() + test::test_deadline; }

  // Reads until all writers have finished and the queue is empty.
  std::vector<Received> read() {
    std::vector<Received> received;
    const auto take = [&](const ptl_event_t& event, GetStatus status) {
      if (!is_whole(event)) garbage_.fetch_add(1);
      const auto tag = reinterpret_cast<uint64_t>(event.start);
      received.push_back({static_cast<unsigned>(tag % writer_count), tag / writer_count,
                          status == GetStatus::dropped});
    };
    ptl_event_t event;
    for (unsigned look = 0; std::chrono::steady_clock::now() < deadline_; ++look) {
      const bool last_look = writers_done_.load() == writer_count;
      if (look % 2 == 0) {
        ptl_event_t several[3];
        unsigned count = 0;
        if (queue.try_get_several(several, 3, count) == GetStatus::ok) {
          for (unsigned i = 0; i < count; ++i) take(several[i], GetStatus::ok);
          continue;
        }
      }
      const GetStatus status = queue.get(&event);
      if (status == GetStatus::empty) {
        if (last_look) break;
        std::this_thread::yield();
        continue;
      }
      take(event, status);
    }
    return received;
  }

  // Every writer calls `post(event)` for each of its events.
  template <typename Post>
  std::vector<std::vector<Received>> run(unsigned readers, Post post) {
    std::vector<std::vector<Received>> received(readers);
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < readers; ++i)
      threads.emplace_back([this, &received, i] { received[i] = read(); });
    for (unsigned writer = 0; writer < writer_count; ++writer) {
      threads.emplace_back([this, writer, post] {
        const auto end = std::chrono::steady_clock::now() + test::stress_time;
        uint64_t number = 0;
        while (number < events_per_writer &&
               (number < least_events_per_writer || std::chrono::steady_clock::now() < end))
          post(make_event(writer, number++));
        written_.fetch_add(number);
        writers_done_.fetch_add(1);
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(garbage_, 0u);
    return received;
  }

  // Each reader received the events of each writer in order, and no event was received twice.
  // Returns the number of events received.
  static uint64_t check_order(const std::vector<std::vector<Received>>& received) {
    std::vector<std::vector<bool>> seen(writer_count, std::vector<bool>(events_per_writer));
    uint64_t total = 0;
    for (const std::vector<Received>& of_reader : received) {
      std::vector<int64_t> last(writer_count, -1);
      for (const Received& event : of_reader) {
        EXPECT_LT(last[event.writer], static_cast<int64_t>(event.number));
        last[event.writer] = static_cast<int64_t>(event.number);
        EXPECT_FALSE(seen[event.writer][event.number]) << "twice";
        seen[event.writer][event.number] = true;
        ++total;
      }
    }
    return total;
  }
  static uint64_t count_dropped(const std::vector<std::vector<Received>>& received) {
    uint64_t reports = 0;
    for (const std::vector<Received>& of_reader : received) {
      for (const Received& event : of_reader) reports += event.dropped_before ? 1 : 0;
    }
    return reports;
  }

  // Number of events posted by run().
  [[nodiscard]] uint64_t written() const { return written_.load(); }

  WaitGate gate;
  EventQueue queue;

 private:
  std::atomic<unsigned> writers_done_{0};
  std::atomic<uint64_t> garbage_{0};
  std::atomic<uint64_t> written_{0};
  std::chrono::steady_clock::time_point deadline_;
};

// A small ring that never overflows, since writers reserve their slots. Slots are reused all the
// time.
TEST_F(EventQueueThreadsTest, ReservedEventsAllArriveThroughASmallRing) {
  ASSERT_TRUE(queue.open(16, 0, &gate));
  queue.start_at((uint64_t{1} << 46) - writer_count * least_events_per_writer / 2);
  const auto received = run(reader_count, [this](const ptl_event_t& event) {
    while (!queue.try_reserve()) std::this_thread::yield();
    queue.post(event, true);
  });
  EXPECT_EQ(check_order(received), written());
  EXPECT_EQ(count_dropped(received), 0u);
  uint64_t room = 0;
  while (queue.try_reserve()) ++room;
  EXPECT_EQ(room, queue.capacity()) << "a reservation leaked";
}

TEST_F(EventQueueThreadsTest, OverflowKeepsOrderAndReportsEveryGap) {
  ASSERT_TRUE(queue.open(64, 0, &gate));
  queue.start_at((uint64_t{1} << 46) - 1000);
  // A single reader receives all events in order. If events between two others were lost, a loss
  // was reported.
  const auto received = run(1, [this](const ptl_event_t& event) { queue.post(event); });
  const uint64_t total = check_order(received);
  EXPECT_LE(total, written());
  EXPECT_GE(total, 1u);
  const uint64_t reports = count_dropped(received);
  EXPECT_LE(reports, written() - total) << "a report without a loss";
  EXPECT_EQ(reports == 0, total == written());
  // Missing events of a writer show as a gap between two of its events. There must be a report
  // within the gap.
  std::vector<int64_t> last(writer_count, -1);
  std::vector<bool> told(writer_count, false);
  for (const Received& event : received[0]) {
    if (event.dropped_before) told.assign(writer_count, true);
    if (static_cast<int64_t>(event.number) != last[event.writer] + 1) {
      ASSERT_TRUE(told[event.writer]) << "lost without a report";
    }
    last[event.writer] = static_cast<int64_t>(event.number);
    told[event.writer] = false;
  }
}

// Another thread posts and reads events while this one tests for free slots.
TEST_F(EventQueueThreadsTest, AQueueThatIsNeverFullRefusesNoReservation) {
  ASSERT_TRUE(queue.open(64, 0, &gate));
  std::atomic<bool> over{false};
  std::thread other([&] {
    ptl_event_t event;
    for (uint64_t number = 0; !over; ++number) {
      queue.post(make_event(0, number));
      EXPECT_EQ(queue.get(&event), GetStatus::ok);
    }
  });
  uint64_t refused = 0;
  for (uint64_t round = 0; round < 20 * events_per_writer; ++round) {
    if (queue.try_reserve())
      queue.cancel_reservation();
    else
      ++refused;
  }
  over = true;
  other.join();
  EXPECT_EQ(refused, 0u);
}

}  // namespace
}  // namespace lintel
