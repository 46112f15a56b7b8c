// Event queues with several writers and readers at the same time (spec 2.9, 3.13.5, 3.13.7).
#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "core/events/event_queue.h"
#include "support/deadlines.h"

namespace lintel {
namespace {

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
    ptl_event_t event;
    while (std::chrono::steady_clock::now() < deadline_) {
      const bool last_look = writers_done_.load() == writer_count;
      const GetStatus status = queue.get(&event);
      if (status == GetStatus::empty) {
        if (last_look) break;
        std::this_thread::yield();
        continue;
      }
      if (!is_whole(event)) garbage_.fetch_add(1);
      const auto tag = reinterpret_cast<uint64_t>(event.start);
      received.push_back({static_cast<unsigned>(tag % writer_count), tag / writer_count,
                          status == GetStatus::dropped});
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
