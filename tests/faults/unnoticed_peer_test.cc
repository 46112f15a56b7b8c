// A peer of the node dies while no thread of the initiator waits in Portals: the operations end in
// seconds all the same, whoever polls, however rarely.
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "support/interface.h"
#include "support/memory.h"
#include "support/objects.h"
#include "support/ranks.h"
#include "support/waiting_thread.h"

namespace lintel::test {
namespace {

using Clock = std::chrono::steady_clock;

constexpr ptl_pt_index_t pt_index = 4;
constexpr ptl_size_t operations = 10;

// docs/configuration.md: "within a node at most 2 s".
const Milliseconds limit{2000 * slowdown * machine_slowdown()};

// What the initiator does until its operations have ended, again and again.
struct Occupation {
  const char* name;
  const char* progress;  // PTL_PROGRESS
  std::function<void(const Counter&, const EventQueue&)> look;
  std::chrono::microseconds pause;
};

void get_count(const Counter& counter, const EventQueue&) { static_cast<void>(counter.value()); }

void get_event(const Counter&, const EventQueue& events) {
  ptl_event_t event;
  EXPECT_EQ(PtlEQGet(events.handle(), &event), PTL_EQ_EMPTY);
}

// Returns at once when one operation has failed.
void poll_count(const Counter& counter, const EventQueue&) {
  const ptl_handle_ct_t handle = counter.handle();
  const ptl_size_t unreachable = PTL_SIZE_MAX;
  ptl_ct_event_t value{};
  unsigned which = 0;
  static_cast<void>(PtlCTPoll(&handle, &unreachable, 1, 0, &value, &which));
}

void wait_for_count(const Counter& counter, const EventQueue&) {
  ptl_ct_event_t value{};
  if (counter.value().failure != 0) must(PtlCTWait(counter.handle(), PTL_SIZE_MAX, &value));
}

const Occupation occupations[] = {
    {"sleeps", "auto", nullptr, std::chrono::milliseconds(10)},
    {"gets_counts", "auto", get_count, std::chrono::microseconds(100)},
    {"gets_counts_slowly", "auto", get_count, std::chrono::milliseconds(30)},
    {"gets_events", "auto", get_event, std::chrono::microseconds(100)},
    {"polls_counts", "auto", poll_count, std::chrono::microseconds(100)},
    {"thread_sleeps", "thread", nullptr, std::chrono::milliseconds(10)},
    {"caller_gets_counts", "caller", get_count, std::chrono::microseconds(100)},
    {"caller_gets_counts_slowly", "caller", get_count, std::chrono::milliseconds(30)},
    {"caller_gets_events", "caller", get_event, std::chrono::milliseconds(1)},
    {"caller_polls_counts", "caller", poll_count, std::chrono::milliseconds(1)},
    {"caller_waits_for_counts", "caller", wait_for_count, std::chrono::milliseconds(1)},
};

class UnnoticedPeerTest : public testing::TestWithParam<Occupation> {};
INSTANTIATE_TEST_SUITE_P(Occupations, UnnoticedPeerTest, testing::ValuesIn(occupations),
                         [](const auto& info) { return std::string(info.param.name); });

// Rank 1 accepts a message and stops.
void serve_one(Rank& rank, const Interface& interface, std::span<std::byte> memory) {
  const EventQueue arrivals(interface.handle());
  interface.allocate(pt_index, arrivals.handle());
  interface.append(pt_index, {.start = memory.data(),
                              .length = memory.size(),
                              .options = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE});
  rank.publish(0, getpid());
  rank.barrier();
  arrivals.expect(PTL_EVENT_PUT);
  rank.barrier();
  std::this_thread::sleep_for(test_deadline);  // to be killed
}

// spec 3.13.3, 1.6, 1.7
TEST_P(UnnoticedPeerTest, ItsOperationsEndWhateverTheInitiatorDoes) {
  const Occupation& occupation = GetParam();
  run_ranks(2, {.environment = {{"PTL_PROGRESS", occupation.progress}}}, [&](Rank& rank) {
    std::vector<std::byte> memory(60'000);
    const Interface interface(rank, nonmatching_physical);
    if (rank.index() == 1) return serve_one(rank, interface, memory);
    rank.barrier();
    const Counter ends(interface.handle());
    const EventQueue events(interface.handle());
    const Descriptor descriptor(interface.handle(), memory,
                                PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_SEND_DISABLE, PTL_EQ_NONE,
                                ends.handle());
    const auto put = [&](ptl_size_t bytes) {
      must(PtlPut(descriptor.handle(), 0, bytes, PTL_CT_ACK_REQ, interface.address(1), pt_index, 0,
                  0, nullptr, 0));
    };
    put(8);
    ends.expect(1);
    rank.barrier();
    // Nothing is outstanding, so the progress thread goes to sleep.
    const auto other = rank.published<pid_t>(1, 0);
    must(::kill(other, SIGSTOP) == 0 ? PTL_OK : PTL_FAIL);
    rank.await_condition("waiting until the other rank has stopped",
                         [&] { return is_stopped(other); });
    std::this_thread::sleep_for(quiet_time);
    for (ptl_size_t i = 0; i < operations; ++i) put(i % 3 != 0 ? 8 : memory.size());
    rank.kill(1);
    const auto killed = Clock::now();
    const auto ended = [&] {
      ptl_ct_event_t value{};
      must(PtlCTGet(ends.handle(), &value));
      return value.success + value.failure == 1 + operations;
    };
    if (occupation.look == nullptr) {
      std::this_thread::sleep_for(limit);
      EXPECT_TRUE(ended()) << ends.value().failure << " operations have ended";
      return;
    }
    uint64_t looks = 0;
    for (bool over = false; !over;) {
      occupation.look(ends, events);
      std::this_thread::sleep_for(occupation.pause);
      over = ++looks % 16 == 0 && ended();
      ASSERT_LT(Clock::now() - killed, limit) << ends.value().failure << " operations have ended";
    }
  });
}

}  // namespace
}  // namespace lintel::test
