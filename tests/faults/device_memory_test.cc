// Memory of devices whose owner frees it or dies, and what others of the node still map of it. Over
// the stand-in for a driver.
#include <portals4.h>

#include <functional>
#include <vector>

#include <gtest/gtest.h>

#include "support/accelerator.h"
#include "support/interface.h"
#include "support/memory.h"
#include "support/objects.h"
#include "support/ranks.h"

namespace lintel::test {
namespace {

constexpr ptl_pt_index_t pt_index = 4;
constexpr std::size_t bytes = 8u << 20u;

// A buffer of a device in each rank, as the memory of an entry and of a descriptor.
class Exposed {
 public:
  explicit Exposed(Rank& rank)
      : accelerator(Accelerator::load("cuda")),
        buffer(accelerator, bytes),
        interface(rank, matching_physical),
        events(interface.handle()) {
    interface.allocate(pt_index, events.handle());
    interface.append(pt_index,
                     {.start = buffer.data(),
                      .length = bytes,
                      .options = PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE});
    descriptor = Descriptor(interface.handle(), {buffer.data(), bytes}, 0, events.handle());
    rank.barrier();
  }
  void put(int rank, std::size_t length = bytes) const {
    must(PtlPut(descriptor.handle(), 0, length, PTL_ACK_REQ, interface.address(rank), pt_index, 0,
                0, nullptr, 0));
  }
  void get(int rank, std::size_t length = bytes) const {
    must(PtlGet(descriptor.handle(), 0, length, interface.address(rank), pt_index, 0, 0, nullptr));
  }
  // The result of the operation whose events come next.
  [[nodiscard]] ptl_ni_fail_t end() const {
    ptl_event_t event = events.next();
    if (event.type == PTL_EVENT_SEND && event.ni_fail_type == PTL_NI_OK) event = events.next();
    return event.ni_fail_type;
  }
  // Messages from the device to itself still arrive. Those of a dead peer may end meanwhile.
  void expect_to_work(Rank& rank) const {
    put(rank.index());
    for (;;) {
      const ptl_event_t event = events.next();
      EXPECT_TRUE(event.ni_fail_type == PTL_NI_OK ||
                  (event.type != PTL_EVENT_ACK && event.ni_fail_type == PTL_NI_UNDELIVERABLE));
      if (event.type == PTL_EVENT_ACK) return;
    }
  }

  Accelerator& accelerator;
  DeviceBuffer buffer;
  Interface interface;
  EventQueue events;
  Descriptor descriptor;
};

// The longest delay of a copy lets peers die while copies are under way.
const RunOptions slow_copies{
    .environment = {{"PTL_PEER_TIMEOUT_MS", "2000"}, {"FAKE_DEVICE_DELAY_US", "200000"}},
    .deadline = 2 * test_deadline};

// The mapping of another process' memory may lie where the entry's memory was.
// spec 3.12.1
TEST(DeviceMemoryFaultTest, NothingArrivesInFreedMemory) {
  run_ranks(2, [](Rank& rank) {
    Exposed exposed(rank);
    exposed.buffer.fill(7);
    rank.barrier();
    if (rank.index() == 1) exposed.buffer.release();
    rank.barrier();
    for (const std::size_t length : {std::size_t{8}, bytes}) {
      if (rank.index() == 0) {
        exposed.put(1, length);
        EXPECT_EQ(exposed.end(), PTL_NI_SEGV);
        exposed.get(1, length);
        EXPECT_EQ(exposed.end(), PTL_NI_SEGV);
      } else {
        exposed.events.expect(PTL_EVENT_PUT, PTL_NI_SEGV);
        exposed.events.expect(PTL_EVENT_GET, PTL_NI_SEGV);
      }
      rank.barrier();
    }
    if (rank.index() == 0) {
      exposed.expect_to_work(rank);
      EXPECT_EQ(exposed.buffer.contents(), std::vector<uint8_t>(bytes, 7));
    }
    rank.barrier();
  });
}

// spec 3.13.3
TEST(DeviceMemoryFaultTest, AnInitiatorThatDiesLeavesNothingMapped) {
  run_ranks(2, slow_copies, [](Rank& rank) {
    const Exposed exposed(rank);
    rank.barrier();
    if (rank.index() == 1) {
      exposed.put(0);
      exposed.get(0);
      rank.raise(0);
      rank.await(0, 1);  // to be killed
      return;
    }
    rank.await(1, 0);
    rank.kill(1);
    exposed.expect_to_work(rank);
    rank.await_condition("the end of mappings",
                         [&] { return exposed.accelerator.count("imports") == 0; });
  });
}

// spec 3.13.3
TEST(DeviceMemoryFaultTest, MessagesToATargetThatDiesEnd) {
  run_ranks(2, slow_copies, [](Rank& rank) {
    const Exposed exposed(rank);
    rank.barrier();
    if (rank.index() == 1) {
      rank.await(0, 1);  // to be killed
      return;
    }
    exposed.put(1);
    exposed.get(1);
    rank.kill(1);
    for (int i = 0; i < 2; ++i) EXPECT_EQ(exposed.end(), PTL_NI_UNDELIVERABLE);
    exposed.expect_to_work(rank);
  });
}

// A mapping keeps the memory of the device in use after its owner has freed it.
// spec 3.13.3
TEST(DeviceMemoryFaultTest, FreedMemoryIsMappedNoLonger) {
  run_ranks(2, {.environment = {{"PTL_TRANSPORT", "local,shm"}}}, [](Rank& rank) {
    Exposed exposed(rank);
    DeviceBuffer freed(exposed.accelerator, bytes);
    const auto imports = [&] { return exposed.accelerator.count("imports"); };
    const auto poll_until = [&](const std::function<bool()>& condition) {
      rank.await_condition("the end of a mapping", [&] {
        ptl_event_t event;
        unsigned which = 0;
        const ptl_handle_eq_t queue = exposed.events.handle();
        EXPECT_NE(PtlEQPoll(&queue, 1, 1, &event, &which), PTL_FAIL);
        return condition();
      });
    };
    if (rank.index() == 1) {
      const Descriptor second(exposed.interface.handle(), {freed.data(), bytes}, 0,
                              exposed.events.handle());
      exposed.put(0);
      EXPECT_EQ(exposed.end(), PTL_NI_OK);
      must(PtlPut(second.handle(), 0, bytes, PTL_ACK_REQ, exposed.interface.address(0), pt_index, 0,
                  0, nullptr, 0));
      EXPECT_EQ(exposed.end(), PTL_NI_OK);
    }
    rank.barrier();
    if (rank.index() == 0) {
      exposed.events.expect(PTL_EVENT_PUT);
      exposed.events.expect(PTL_EVENT_PUT);
      EXPECT_EQ(imports(), 2u);
    }
    rank.barrier();
    if (rank.index() == 1) {
      freed.release();
      poll_until([&] { return rank.flag(0, 0) != 0; });
    } else {
      poll_until([&] { return imports() < 2; });
      EXPECT_EQ(imports(), 1u);  // that of memory which is still there
      rank.raise(0);
    }
    rank.barrier();
  });
}

// The owner's own fault: the message may be complete, and harms nobody.
// spec 3.10.1
TEST(DeviceMemoryFaultTest, MemoryFreedDuringItsMessage) {
  run_ranks(2, slow_copies, [](Rank& rank) {
    Exposed exposed(rank);
    if (rank.index() == 1) {
      exposed.put(0);
      exposed.buffer.release();
      const ptl_ni_fail_t fail = exposed.end();
      EXPECT_TRUE(fail == PTL_NI_OK || fail == PTL_NI_SEGV);
    } else {
      static_cast<void>(exposed.events.next());
      exposed.expect_to_work(rank);
    }
    rank.barrier();
  });
}

}  // namespace
}  // namespace lintel::test
