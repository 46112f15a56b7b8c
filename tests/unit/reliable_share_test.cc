// Frames that are kept for a peer that acknowledges nothing.
#include <gtest/gtest.h>

#include "reliable_test_support.h"

namespace lintel::test {
namespace {

// The silent peer had a large window before.
TEST(ReliableShareTest, ASilentPeerLeavesMemoryForTheOthers) {
  MemoryNetwork network;
  ReliableSettings settings;
  settings.memory_bytes = 128 * 1024;
  MemoryProcess sender(network, {1, 1}, settings);
  MemoryProcess silent(network, {2, 2});
  MemoryProcess other(network, {3, 3});
  const std::vector<MemoryProcess*> all{&sender, &silent, &other};
  Link* const to_silent = sender.connect(silent.id());
  Link* const to_other = sender.connect(other.id());
  widen_window(sender, silent, to_silent, all);
  widen_window(sender, other, to_other, all);
  const std::vector<std::byte> payload = numbered_bytes(1, 1200);
  const std::vector<MemoryProcess*> awake{&sender, &other};
  unsigned taken = 0;
  while (sender.send(to_silent, numbered_put(taken), payload) == SendStatus::sent) {
    ++taken;
    run_for(awake, 1'000);
    ASSERT_LT(taken, 1000u);
  }
  EXPECT_GE(taken, 8u);
  for (unsigned i = 0; i < 8; ++i)
    EXPECT_EQ(sender.send(to_other, numbered_put(i), payload), SendStatus::sent) << i;
  EXPECT_TRUE(run_until(awake, [&] { return other.messages.size() == 8; }));
  // Its own messages go on when it acknowledges.
  EXPECT_TRUE(run_until(all, [&] { return silent.messages.size() == taken; }));
  send_surely(sender, to_silent, all, numbered_put(taken), payload);
}

}  // namespace
}  // namespace lintel::test
