// Collective operations made of counters and triggered operations, as communication libraries build
// them.
#include <gtest/gtest.h>

#include "support/interface.h"
#include "support/memory.h"
#include "support/objects.h"
#include "support/ranks.h"

namespace lintel::test {
namespace {

constexpr ptl_pt_index_t pt_index = 3;

// An entry of length zero that counts the messages of one round.
class Arrivals {
 public:
  Arrivals(const Interface& interface, ptl_match_bits_t round) : counter_(interface.handle()) {
    entry_ = interface.append(
        pt_index, {.options = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_COMM_DISABLE |
                              PTL_ME_EVENT_LINK_DISABLE,
                   .counter = counter_.handle(),
                   .match_bits = round});
  }
  [[nodiscard]] ptl_handle_ct_t counter() const { return counter_.handle(); }

  // Frees the counter as soon as the count is reached. Other threads may still execute operations
  // that the count triggered.
  void expect_and_free(ptl_size_t count) {
    ptl_ct_event_t value{};
    must(PtlCTWait(counter_.handle(), count, &value));
    EXPECT_EQ(value.failure, 0u);
    counter_.free();
    int code = PTL_IN_USE;
    while (code == PTL_IN_USE) code = PtlMEUnlink(entry_);
    EXPECT_EQ(code, PTL_OK);
  }

 private:
  Counter counter_;
  ptl_handle_me_t entry_ = PTL_INVALID_HANDLE;
};

// Each rank sends to rank 0, and the last message triggers the answers to all. Rank 0 frees the
// counter as soon as it has counted the last message. No answer may be lost.
void gather(Rank& rank, int rounds) {
  const Interface interface(rank, matching_physical);
  ptl_pt_index_t index = 0;
  must(PtlPTAlloc(interface.handle(), 0, PTL_EQ_NONE, pt_index, &index));
  const Descriptor nothing(interface.handle(), std::span<std::byte>{});
  for (int round = 0; round < rounds; ++round) {
    const auto bits = static_cast<ptl_match_bits_t>(round);
    Arrivals arrivals(interface, bits);
    const auto others = static_cast<ptl_size_t>(rank.count() - 1);
    if (rank.index() == 0)
      for (int other = 1; other < rank.count(); ++other)
        must(PtlTriggeredPut(nothing.handle(), 0, 0, PTL_NO_ACK_REQ, interface.address(other),
                             pt_index, bits, 0, nullptr, 0, arrivals.counter(), others));
    rank.barrier();
    if (rank.index() != 0)
      must(PtlPut(nothing.handle(), 0, 0, PTL_NO_ACK_REQ, interface.address(0), pt_index, bits, 0,
                  nullptr, 0));
    arrivals.expect_and_free(rank.index() == 0 ? others : 1);
  }
  rank.barrier();
}

class GatherTest : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Progress, GatherTest, testing::Values("auto", "thread", "caller"),
                         [](const auto& info) { return std::string(info.param); });

// spec 3.14.3, 3.16
TEST_P(GatherTest, WhatACountHasTriggeredOutlivesItsCounter) {
  // Threads that poll all the time slow down all processes on a machine with few processors.
  const bool few = std::string(GetParam()) == "thread" || machine_slowdown() > 1;
  const int rounds = few ? 40 : 300;
  run_ranks(3, {.environment = {{"PTL_PROGRESS", GetParam()}}},
            [rounds](Rank& rank) { gather(rank, rounds); });
}

}  // namespace
}  // namespace lintel::test
