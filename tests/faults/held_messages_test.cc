// PTL_LINTEL_PT_HOLD: deaths while messages are held.
#include <portals4_lintel.h>

#include <gtest/gtest.h>

#include "support/interface.h"
#include "support/objects.h"
#include "support/ranks.h"

namespace lintel::test {
namespace {

constexpr ptl_pt_index_t holding = 4;
constexpr ptl_pt_index_t open = 5;
constexpr uint64_t short_puts = 40;

struct Path {
  const char* transport;
  InterfaceKind kind;
};
class HeldMessagesFaultTest : public testing::TestWithParam<Path> {};
std::vector<Path> paths() {
  std::vector<Path> all;
  for (const char* const transport : {"shm", "udp"})
    for (const InterfaceKind kind : all_interface_kinds) all.push_back({transport, kind});
  return all;
}
INSTANTIATE_TEST_SUITE_P(Paths, HeldMessagesFaultTest, testing::ValuesIn(paths()),
                         [](const auto& info) {
                           return info.param.transport + ("_" + info.param.kind.name());
                         });

// A process with an entry that holds messages, and one that takes everything.
struct Process {
  Process(Rank& rank, InterfaceKind kind)
      : memory(1u << 17u), interface(rank, kind), events(interface.handle(), 4096) {
    ptl_pt_index_t index = 0;
    must(PtlPTAlloc(interface.handle(), PTL_LINTEL_PT_HOLD, events.handle(), holding, &index));
    must(PtlPTAlloc(interface.handle(), 0, PTL_EQ_NONE, open, &index));
    append(open);
    source = Descriptor(interface.handle(), memory, 0, events.handle());
  }
  void append(ptl_pt_index_t index) {
    interface.append(index, {.start = memory.data(),
                             .length = memory.size(),
                             .options = PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE});
  }
  void put(int to, uint64_t number, ptl_size_t length, ptl_ack_req_t ack) const {
    must(PtlPut(source.handle(), 0, length, ack, interface.address(to), holding, 0, 0, nullptr,
                number));
  }
  // Returns when the other process has what was sent to it, and has stopped this one.
  void await_stop(int by) const {
    must(PtlGet(source.handle(), 0, 8, interface.address(by), open, 0, 0, nullptr));
    EXPECT_EQ(events.skip_to(PTL_EVENT_REPLY).ni_fail_type, PTL_NI_OK);
  }
  std::vector<std::byte> memory;
  Interface interface;
  EventQueue events;
  Descriptor source;
};

RunOptions options_of(const Path& path) {
  return {.environment = {{"PTL_TRANSPORT", path.transport}, {"PTL_PEER_TIMEOUT_MS", "2000"}},
          .deadline = 2 * test_deadline};
}

// Short messages of a process that has died are delivered. A long one and a get are not.
// spec 3.13.3
TEST_P(HeldMessagesFaultTest, TheInitiatorDies) {
  run_ranks(3, options_of(GetParam()), [&](Rank& rank) {
    Process process(rank, GetParam().kind);
    rank.barrier();
    if (rank.index() == 1) {
      for (uint64_t i = 0; i < short_puts; ++i) {
        process.put(0, i, i % 2 == 0 ? 8 : 4000, i % 3 == 0 ? PTL_ACK_REQ : PTL_NO_ACK_REQ);
        if (i == 10) process.put(0, 1000, process.memory.size(), PTL_ACK_REQ);
        if (i == 20)
          must(PtlGet(process.source.handle(), 0, 8, process.interface.address(0), holding, 0, 0,
                      nullptr));
        if (i == 30) process.await_stop(0);
      }
      rank.raise(0);
      rank.await_condition("its end", [] { return false; });
    }
    if (rank.index() == 2) {
      rank.await(0, 1);
      process.put(0, 2000, 8, PTL_ACK_REQ);
      EXPECT_EQ(process.events.skip_to(PTL_EVENT_ACK).ni_fail_type, PTL_NI_OK);
    }
    if (rank.index() == 0) {
      rank.await(1, 0);
      rank.kill(1);
      must(PtlPut(process.source.handle(), 0, 8, PTL_ACK_REQ, process.interface.address(1), open, 0,
                  0, nullptr, 0));
      while (process.events.next().ni_fail_type == PTL_NI_OK) {  // its death was noticed
      }
      // What it put after it was stopped has stayed with it.
      ptl_sr_value_t held = 0;
      must(PtlNIStatus(process.interface.handle(), static_cast<ptl_sr_index_t>(PTL_SR_LINTEL_HELD),
                       &held));
      ASSERT_GE(held, 1);
      process.append(holding);
      rank.raise(1);
      uint64_t next = 0;
      constexpr uint64_t others = 2;  // the long message and the get, if they came
      for (bool other = false; !other || next + others < static_cast<uint64_t>(held);) {
        const ptl_event_t event = process.events.expect(PTL_EVENT_PUT);
        if (event.hdr_data == 2000) {
          other = true;
        } else {
          EXPECT_EQ(event.hdr_data, next++);
        }
      }
    }
    rank.barrier();
  });
}

// spec 3.13.3
TEST_P(HeldMessagesFaultTest, TheTargetDies) {
  run_ranks(2, options_of(GetParam()), [&](Rank& rank) {
    Process process(rank, GetParam().kind);
    rank.barrier();
    if (rank.index() == 1) rank.await_condition("its end", [] { return false; });
    process.put(1, 0, 8, PTL_ACK_REQ);
    process.await_stop(1);
    constexpr int more = 100;
    for (int i = 0; i < more; ++i) process.put(1, 0, i % 2 == 0 ? 8 : 100'000, PTL_ACK_REQ);
    rank.kill(1);
    // The one that was sent ends with an acknowledgment, those that were not with their sends.
    for (int ends = 0; ends < more + 1; ++ends) {
      const ptl_event_t event = process.events.next();
      EXPECT_EQ(event.ni_fail_type, PTL_NI_UNDELIVERABLE);
      EXPECT_EQ(event.type, ends == more ? PTL_EVENT_ACK : PTL_EVENT_SEND);
    }
    process.events.expect_empty();
    rank.barrier();
  });
}

}  // namespace
}  // namespace lintel::test
