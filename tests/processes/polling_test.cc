// Programs that ask for events again and again, as MPI libraries do, in place of waiting: they give
// the processor to others, or those whose answer they need would come after a whole time slice.
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "support/interface.h"
#include "support/memory.h"
#include "support/objects.h"
#include "support/ranks.h"

namespace {
thread_local uint64_t yields = 0;  // of the calling thread
}

// Stands in front of the C library's.
extern "C" int sched_yield() noexcept {
  ++yields;
  return static_cast<int>(syscall(SYS_sched_yield));
}

namespace lintel::test {
namespace {

using Poll = int (*)(ptl_handle_eq_t events, ptl_event_t* event);

int by_get(ptl_handle_eq_t events, ptl_event_t* event) { return PtlEQGet(events, event); }

int by_poll(ptl_handle_eq_t events, ptl_event_t* event) {
  unsigned which = 0;
  return PtlEQPoll(&events, 1, 0, event, &which);
}

class PollingTest : public testing::TestWithParam<Poll> {};
INSTANTIATE_TEST_SUITE_P(Calls, PollingTest, testing::Values(by_get, by_poll), [](const auto& info) {
  return info.param == by_get ? "PtlEQGet" : "PtlEQPoll";
});

// spec 1.6, 3.13.7, 3.13.9
TEST_P(PollingTest, ALoopLetsOthersHaveTheProcessor) {
  run_ranks(1, [poll = GetParam()](Rank& rank) {
    const Interface interface(rank, matching_physical);
    const EventQueue events(interface.handle());
    const uint64_t before = yields;
    ptl_event_t event{};
    const auto deadline = std::chrono::steady_clock::now() + wait_deadline;
    while (yields == before && std::chrono::steady_clock::now() < deadline)
      for (int i = 0; i < 1000; ++i) ASSERT_EQ(poll(events.handle(), &event), PTL_EQ_EMPTY);
    EXPECT_GT(yields, before);
  });
}

// spec 1.6, 3.13.7, 3.13.9
TEST_P(PollingTest, ALookNowAndThenKeepsTheProcessor) {
  run_ranks(1, [poll = GetParam()](Rank& rank) {
    const Interface interface(rank, matching_physical);
    const EventQueue events(interface.handle());
    const uint64_t before = yields;
    ptl_event_t event{};
    for (int i = 0; i < 1000; ++i) {
      ASSERT_EQ(poll(events.handle(), &event), PTL_EQ_EMPTY);
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
    EXPECT_EQ(yields, before);
  });
}

}  // namespace
}  // namespace lintel::test
