// Threads that are cancelled (pthread_cancel). Calls of Portals are not cancellation points.
#include <pthread.h>

#include <gtest/gtest.h>

#include "support/interface.h"
#include "support/memory.h"
#include "support/objects.h"
#include "support/ranks.h"

namespace lintel::test {
namespace {

constexpr ptl_pt_index_t pt_index = 4;
constexpr std::size_t bytes = 100'000;

class CancellationTest : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Transports, CancellationTest, testing::Values("shm", "udp"),
                         [](const auto& info) { return std::string(info.param); });

// Connects, then sends and fetches messages of all lengths.
void communicate(const Rank& rank) {
  const Interface interface(nonmatching_physical, {.iface = PTL_IFACE_DEFAULT});
  const EventQueue events(interface.handle());
  std::vector<std::byte> memory(bytes);
  const Descriptor descriptor(interface.handle(), memory, PTL_MD_EVENT_SEND_DISABLE,
                              events.handle());
  const auto target = rank.published<ptl_process_t>(1, 0);
  for (std::size_t length = 1; length <= bytes; length *= 10) {
    must(PtlPut(descriptor.handle(), 0, length, PTL_ACK_REQ, target, pt_index, 0, 0, nullptr, 0));
    events.expect(PTL_EVENT_ACK);
    must(PtlGet(descriptor.handle(), 0, length, target, pt_index, 0, 0, nullptr));
    events.expect(PTL_EVENT_REPLY);
  }
}

// The cancellation takes effect at a cancellation point after the calls.
// spec 2.9
TEST_P(CancellationTest, ACancelledThreadFinishesItsCalls) {
  const RunOptions options{.environment = {{"PTL_TRANSPORT", std::string("local,") + GetParam()}}};
  run_ranks(2, options, [](Rank& rank) {
    rank.initialise();
    std::vector<std::byte> memory(bytes);
    if (rank.index() == 1) {
      const Interface interface(nonmatching_physical, {});
      ptl_pt_index_t index = 0;
      must(PtlPTAlloc(interface.handle(), 0, PTL_EQ_NONE, pt_index, &index));
      interface.append(pt_index, {.start = memory.data(),
                                  .length = memory.size(),
                                  .options = PTL_ME_OP_PUT | PTL_ME_OP_GET});
      ptl_process_t id{};
      must(PtlGetPhysId(interface.handle(), &id));
      rank.publish(0, id);
      rank.barrier();
      rank.barrier();
      return;
    }
    rank.barrier();
    bool finished = false;
    pthread_t thread{};
    struct Arguments {
      const Rank& rank;
      bool& finished;
    } arguments{rank, finished};
    ASSERT_EQ(pthread_create(
                  &thread, nullptr,
                  [](void* given) -> void* {
                    const auto& [the_rank, is_finished] = *static_cast<Arguments*>(given);
                    pthread_cancel(pthread_self());
                    communicate(the_rank);
                    is_finished = true;
                    pthread_testcancel();
                    return nullptr;
                  },
                  &arguments),
              0);
    void* result = nullptr;
    ASSERT_EQ(pthread_join(thread, &result), 0);
    EXPECT_EQ(result, PTHREAD_CANCELED);
    EXPECT_TRUE(finished);
    communicate(rank);
    rank.barrier();
  });
}

}  // namespace
}  // namespace lintel::test
