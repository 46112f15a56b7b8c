// A full file system for shared memory, in a mount namespace of the test.
#include <gtest/gtest.h>

#include "support/interface.h"
#include "support/memory.h"
#include "support/objects.h"
#include "support/own_shared_memory.h"
#include "support/ranks.h"

namespace lintel::test {
namespace {

constexpr ptl_pt_index_t pt_index = 4;

// spec 3.13.3
TEST(FullSharedMemoryTest, OperationsFailUntilThereIsRoom) {
  if (!can_own_shared_memory()) GTEST_SKIP() << no_own_shared_memory;
  RunOptions options;
  options.environment = {{"PTL_TRANSPORT", "local,shm"}, {"PTL_LOG_LEVEL", "error"}};
  run_ranks(2, options, [](Rank& rank) {
    // Room for both segments, but not for the queue between them.
    enter_own_shared_memory(rank, "size=140k");
    std::vector<std::byte> memory(64);
    const Interface interface(rank, matching_physical);
    const EventQueue events(interface.handle());
    const ptl_pt_index_t index = interface.allocate(pt_index, events.handle());
    interface.append(index, {.start = memory.data(),
                             .length = memory.size(),
                             .options = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE});
    rank.barrier();
    if (rank.index() == 0) {
      const EventQueue sent(interface.handle());
      const Descriptor descriptor(interface.handle(), memory, 0, sent.handle());
      const auto put = [&] {
        must(PtlPut(descriptor.handle(), 0, memory.size(), PTL_ACK_REQ, interface.address(1), index,
                    0, 0, nullptr, 0));
      };
      put();
      sent.expect(PTL_EVENT_SEND, PTL_NI_UNDELIVERABLE);
      remount_shared_memory("size=64m");
      fill(memory, 8);
      put();
      sent.expect_all({PTL_EVENT_SEND, PTL_EVENT_ACK});
    }
    rank.barrier();
    if (rank.index() == 1) {
      events.expect(PTL_EVENT_PUT);
      expect_pattern(memory, 8);
      events.expect_silence();
    }
    rank.barrier();
  });
}

}  // namespace
}  // namespace lintel::test
