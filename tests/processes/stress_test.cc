// A mixture: many threads, operations of all kinds and sizes, more processes than processors.
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include <gtest/gtest.h>

#include "support/interface.h"
#include "support/memory.h"
#include "support/objects.h"
#include "support/ranks.h"
#include "support/text.h"

namespace lintel::test {
namespace {

constexpr ptl_pt_index_t pt_index = 4;

class StressTest : public testing::TestWithParam<InterfaceKind> {};
INSTANTIATE_TEST_SUITE_P(Kinds, StressTest, testing::ValuesIn(all_interface_kinds),
                         [](const auto& info) { return info.param.name(); });

constexpr std::size_t readable_bytes = 300'000;

// The work of one thread: random operations on random ranks, each verified. It reads memory that
// never changes, and writes to a place that only this thread uses.
void work(const Interface& interface, Rank& rank, unsigned thread, int operations) {
  std::mt19937 random(static_cast<uint32_t>(rank.index()) * 97 + thread);
  std::vector<std::byte> buffer(readable_bytes);
  const EventQueue events(interface.handle(), 64);
  Descriptor descriptor(interface.handle(), buffer, PTL_MD_EVENT_SEND_DISABLE, events.handle());
  const auto slot = static_cast<ptl_size_t>(rank.index()) * 4 + thread;
  const ptl_size_t own_place = readable_bytes + 4096 * slot;
  uint64_t added = 0;
  for (int i = 0; i < operations; ++i) {
    const int to = static_cast<int>(random() % static_cast<unsigned>(rank.count()));
    const ptl_process_t target = interface.address(to);
    switch (random() % 4) {
      case 0: {
        const ptl_size_t length = random() % (random() % 8 == 0 ? readable_bytes : 2000) + 1;
        const ptl_size_t offset = random() % (readable_bytes - length + 1);
        must(PtlGet(descriptor.handle(), 0, length, target, pt_index, 0, offset, nullptr));
        EXPECT_EQ(events.expect(PTL_EVENT_REPLY).mlength, length);
        expect_pattern(std::span(buffer).first(length), static_cast<uint32_t>(to), offset);
        break;
      }
      case 1: {
        const ptl_size_t length = random() % 2000 + 1;
        const uint32_t seed = static_cast<uint32_t>(random());
        fill(std::span(buffer).first(length), seed);
        must(PtlPut(descriptor.handle(), 0, length, PTL_ACK_REQ, target, pt_index, 0, own_place + 8,
                    nullptr, 0));
        EXPECT_EQ(events.expect(PTL_EVENT_ACK).mlength, length);
        must(
            PtlGet(descriptor.handle(), 2048, length, target, pt_index, 0, own_place + 8, nullptr));
        events.expect(PTL_EVENT_REPLY);
        expect_pattern(std::span(buffer).subspan(2048, length), seed);
        break;
      }
      case 2: {
        const uint64_t one = 1;
        std::memcpy(buffer.data(), &one, 8);
        must(PtlFetchAtomic(descriptor.handle(), 64, descriptor.handle(), 0, 8,
                            interface.address(rank.index()), pt_index, 0, own_place, nullptr, 0,
                            PTL_SUM, PTL_UINT64_T));
        events.expect(PTL_EVENT_REPLY);
        uint64_t before = 0;
        std::memcpy(&before, buffer.data() + 64, 8);
        EXPECT_EQ(before, added++);
        break;
      }
      default: {
        const std::size_t burst = random() % 32;
        for (std::size_t n = 0; n < burst; ++n) {
          must(PtlPut(descriptor.handle(), 0, 8 * n, PTL_ACK_REQ, target, pt_index, 0,
                      own_place + 8, nullptr, 0));
        }
        for (std::size_t n = 0; n < burst; ++n) events.expect(PTL_EVENT_ACK);
      }
    }
  }
  descriptor.release();
}

// A barrier for processes that may make progress only within calls: it keeps calling.
void call_until_all_are_done(Rank& rank, const Interface& interface) {
  constexpr int done_flag = 0;
  rank.raise(done_flag);
  const EventQueue idle(interface.handle(), 1);
  const ptl_handle_eq_t queue = idle.handle();
  const auto all_done = [&] {
    for (int other = 0; other < rank.count(); ++other) {
      if (rank.flag(other, done_flag) == 0) return false;
    }
    return true;
  };
  while (!all_done()) {  // bounded by the deadline of the test
    rank.at("waiting for the other ranks to finish their work", Place::current());
    ptl_event_t event{};
    unsigned which = 0;
    EXPECT_EQ(PTL_EQ_EMPTY, PtlEQPoll(&queue, 1, 1, &event, &which));
  }
}

void run_stress(InterfaceKind kind, const RunOptions& options, int ranks, unsigned threads,
                int operations) {
  run_ranks(ranks, options, [&](Rank& rank) {
    std::vector<std::byte> memory(readable_bytes + 4096 * 4 * static_cast<std::size_t>(ranks));
    fill(std::span(memory).first(readable_bytes), static_cast<uint32_t>(rank.index()));
    const Interface interface(rank, kind);
    interface.allocate(pt_index);
    interface.append(pt_index,
                     {.start = memory.data(),
                      .length = memory.size(),
                      .options = PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE});
    rank.barrier();
    std::vector<std::thread> workers;
    for (unsigned t = 1; t < threads; ++t)
      workers.push_back(start_thread([&, t] { work(interface, rank, t, operations); }));
    work(interface, rank, 0, operations);
    for (std::thread& worker : workers) worker.join();
    call_until_all_are_done(rank, interface);
    EXPECT_EQ(interface.status(PTL_SR_DROP_COUNT), 0);
    rank.barrier();
  });
}

// spec 2.9, 3.15.2, 3.15.3, 3.15.6
TEST_P(StressTest, ThreadsOfSeveralProcessesDoEverything) { run_stress(GetParam(), {}, 3, 3, 250); }

// spec 2.9, 3.15.2, 3.15.3
TEST_P(StressTest, TheSameWithoutDirectAccess) {
  run_stress(GetParam(), {.environment = {{"PTL_SHM_CMA", "0"}}}, 3, 2, 250);
}

class ProgressModeTest : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Modes, ProgressModeTest, testing::Values("auto", "thread", "caller"),
                         [](const auto& info) { return std::string(info.param); });

// spec 1.6, 2.9
TEST_P(ProgressModeTest, EveryWayToMakeProgressWorks) {
  run_stress(matching_physical, {.environment = {{"PTL_PROGRESS", GetParam()}}}, 3, 2, 200);
}

// Half round-trip times of pairs of ranks that all wait at the same time.
void ping_pong(Rank& rank, const Interface& interface, int rounds) {
  const EventQueue events(interface.handle());
  interface.allocate(pt_index, events.handle());
  interface.append(pt_index, {.options = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE});
  const Descriptor nothing(interface.handle(), std::span<std::byte>{});
  const ptl_process_t partner = interface.address(rank.index() ^ 1);
  const auto send = [&] {
    must(PtlPut(nothing.handle(), 0, 0, PTL_NO_ACK_REQ, partner, pt_index, 0, 0, nullptr, 0));
  };
  rank.barrier();
  for (int i = 0; i < rounds; ++i) {
    ptl_event_t event{};
    if (rank.index() % 2 == 0) send();
    must(PtlEQWait(events.handle(), &event));
    EXPECT_EQ(event.type, PTL_EVENT_PUT);
    if (rank.index() % 2 == 1) send();
  }
  rank.barrier();
}

// spec 1.6, 3.13.8
TEST(OversubscriptionTest, EightWaitingProcessesDoNotStandInEachOthersWay) {
  run_ranks(8, [](Rank& rank) {
    // Under emulation, eight processes share two slow processors, and the devices may be emulated
    // as well.
    const int rounds = machine_slowdown() > 1 ? 200 : 2000;
    const Interface interface(rank, matching_physical);
    const auto start = std::chrono::steady_clock::now();
    ping_pong(rank, interface, rounds);
    const auto taken =
        std::chrono::duration_cast<Milliseconds>(std::chrono::steady_clock::now() - start);
    // The bound detects a collapse, which costs milliseconds a round. Speed is measured elsewhere.
    EXPECT_LT(taken.count(), 8000 * slowdown * machine_slowdown())
        << rounds << " round trips of four pairs";
  });
}

}  // namespace
}  // namespace lintel::test
