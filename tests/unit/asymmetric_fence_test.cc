// Announcing a sleep and ringing the doorbell: no message is missed by a sleeping thread.
#include "util/asymmetric_fence.h"

#include <atomic>
#include <thread>

#include <gtest/gtest.h>

#include "support/deadlines.h"
#include "util/doorbell.h"

namespace lintel::test {
namespace {

// If a sleeping thread misses a message, it sleeps until the deadline.
TEST(AsymmetricFenceTest, NoMessageIsSleptThrough) {
  register_asymmetric_fence();
  constexpr uint32_t messages = 40'000;
  Doorbell doorbell;
  alignas(64) std::atomic<uint32_t> sent{0};
  alignas(64) std::atomic<uint32_t> received{0};
  uint32_t slept_through = 0;
  std::thread sleeper([&] {
    const int64_t deadline_ns = std::chrono::nanoseconds(wait_deadline).count();
    for (uint32_t seen_messages = 0; seen_messages < messages;) {
      const uint32_t seen = doorbell.announce_sleep();
      if (sent.load(std::memory_order_relaxed) == seen_messages) {
        doorbell.sleep(seen, deadline_ns);
        if (sent.load() != seen_messages && doorbell.rings.load() == seen) ++slept_through;
      }
      seen_messages = sent.load();
      received.store(seen_messages);
    }
  });
  for (uint32_t i = 1; i <= messages; ++i) {
    sent.store(i, std::memory_order_relaxed);
    doorbell.ring_if_sleeping();
    // For every second message, the receiver is about to sleep, or asleep, when the next message
    // comes.
    if (i % 2 == 0)
      while (received.load() != i) {
      }
  }
  sleeper.join();
  EXPECT_EQ(slept_through, 0u);
}

}  // namespace
}  // namespace lintel::test
