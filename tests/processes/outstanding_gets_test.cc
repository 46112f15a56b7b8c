// More gets than a target keeps answers for: the initiator holds the others, and none fails.
#include <vector>

#include <gtest/gtest.h>

#include "support/interface.h"
#include "support/memory.h"
#include "support/objects.h"
#include "support/ranks.h"

namespace lintel::test {
namespace {

constexpr ptl_pt_index_t pt_index = 4;

class OutstandingGetsTest : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Transports, OutstandingGetsTest, testing::Values("shm", "udp"),
                         [](const auto& info) { return std::string(info.param); });

// spec 2.9, 3.15.3
// Both hold gets at the same time, so that each has to answer while its own wait. The puts behind
// them arrive in their order.
TEST_P(OutstandingGetsTest, AllEndAndTheOrderIsKept) {
  RunOptions options;
  options.environment = {{"PTL_TRANSPORT", std::string("local,") + GetParam()}};
  run_ranks(2, options, [](Rank& rank) {
    constexpr unsigned gets = 12'000;
    constexpr unsigned puts = 4;
    constexpr size_t length = 1000;
    const Interface interface(rank, matching_physical);
    const EventQueue events(interface.handle(), 64);
    ptl_pt_index_t index = 0;
    must(PtlPTAlloc(interface.handle(), 0, events.handle(), pt_index, &index));
    std::vector<std::byte> memory(length);
    fill(memory, static_cast<uint32_t>(rank.index()));
    interface.append(
        pt_index, {.start = memory.data(),
                   .length = length,
                   .options = PTL_ME_OP_GET | PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_LINK_DISABLE,
                   .match_bits = 1});
    std::vector<std::byte> written(8);
    interface.append(pt_index, {.start = written.data(),
                                .length = written.size(),
                                .options = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE,
                                .match_bits = 2});
    const int other = 1 - rank.index();
    std::vector<std::byte> received(gets * length);
    const Counter replies(interface.handle());
    const Descriptor into(interface.handle(), received, PTL_MD_EVENT_CT_REPLY, PTL_EQ_NONE,
                          replies.handle());
    std::vector<std::byte> word(8);
    const Descriptor from(interface.handle(), word);
    rank.barrier();
    for (unsigned i = 0; i < gets; ++i)
      must(PtlGet(into.handle(), i * length, length, interface.address(other), pt_index, 1, 0,
                  nullptr));
    for (unsigned i = 0; i < puts; ++i)
      must(PtlPut(from.handle(), 0, word.size(), PTL_NO_ACK_REQ, interface.address(other), pt_index,
                  2, 0, nullptr, i));
    for (unsigned i = 0; i < puts; ++i) EXPECT_EQ(events.expect(PTL_EVENT_PUT).hdr_data, i);
    replies.expect(gets);
    for (unsigned i = 0; i < gets; i += 999)
      expect_pattern({received.data() + i * length, length}, static_cast<uint32_t>(other));
    rank.barrier();
  });
}

}  // namespace
}  // namespace lintel::test
