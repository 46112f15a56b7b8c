// PTL_MD_VOLATILE while more puts wait than a pool of copies would hold (spec 3.10.1).
#include <portals4.h>

#include <cstring>

#include <gtest/gtest.h>

#include "bare_target_support.h"

namespace lintel {
namespace {

using test::must;

class VolatileBuffersTest : public test::BareTargetTest {};

TEST_F(VolatileBuffersTest, EveryPutThatWaitsHasItsCopy) {
  // On a busy machine, calls that send messages from a long queue take long.
  const uint64_t puts = test::long_tests() ? 70'000 : 2'500;
  uint64_t memory = 0;
  const ptl_md_t description{&memory, sizeof memory, PTL_MD_VOLATILE, PTL_EQ_NONE, PTL_CT_NONE};
  ptl_handle_md_t md{};
  must(PtlMDBind(ni_, &description, &md));
  for (; memory < puts; ++memory)
    must(PtlPut(md, 0, sizeof memory, PTL_NO_ACK_REQ, target(), 0, 0, 0, nullptr, 0));
  ASSERT_GT(peer().queue_counts.length.load(), puts / 2);
  const auto& messages = received(puts);
  ASSERT_EQ(messages.size(), puts);
  for (uint64_t i = 0; i < puts && !HasFailure(); ++i) {
    uint64_t value = 0;
    std::memcpy(&value, messages[i].payload.data(), sizeof value);
    EXPECT_EQ(value, i);
  }
}

}  // namespace
}  // namespace lintel
