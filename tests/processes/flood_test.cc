// More messages than a target can take: floods with flow control and recovery, unexpected storms.
#include <algorithm>

#include <gtest/gtest.h>

#include "support/interface.h"
#include "support/memory.h"
#include "support/objects.h"
#include "support/ranks.h"
#include "support/text.h"

namespace lintel::test {
namespace {

constexpr ptl_pt_index_t pt_index = 4;

// Flags of a sender.
constexpr int refused_flag = 0;
constexpr int done_flag = 1;

class FloodTest : public testing::TestWithParam<InterfaceKind> {};
INSTANTIATE_TEST_SUITE_P(Kinds, FloodTest, testing::ValuesIn(all_interface_kinds),
                         [](const auto& info) { return info.param.name(); });

// A sender of the flood: repeats refused messages until all have been accepted, and keeps their
// order. hdr_data contains the sender and the number of the message.
void send_until_taken(Rank& rank, const Interface& interface, uint64_t messages, uint64_t window) {
  std::vector<std::byte> payload(64);
  fill(payload, static_cast<uint32_t>(rank.index()));
  const EventQueue events(interface.handle(), 4 * window);
  const Descriptor descriptor(interface.handle(), payload, PTL_MD_EVENT_SEND_DISABLE,
                              events.handle());
  uint64_t taken = 0;
  while (taken < messages) {
    const uint64_t burst = std::min(window, messages - taken);
    for (uint64_t i = taken; i < taken + burst; ++i) {
      must(PtlPut(descriptor.handle(), 0, payload.size(), PTL_ACK_REQ, interface.address(0),
                  pt_index, 0, 0, tag(i), static_cast<uint64_t>(rank.index()) << 32u | i));
    }
    // Only the messages before the first refused one count. Later messages that were accepted are
    // sent again, and the receiver recognises them by their number.
    uint64_t first_refused = taken + burst;
    for (uint64_t n = 0; n < burst; ++n) {
      const ptl_event_t event = events.next();
      EXPECT_EQ(event.type, PTL_EVENT_ACK);
      if (event.ni_fail_type == PTL_NI_OK) continue;
      EXPECT_EQ(fail_name(event.ni_fail_type), "PTL_NI_PT_DISABLED");
      rank.raise(refused_flag);
      first_refused = std::min<uint64_t>(first_refused, tag_of(event.user_ptr));
    }
    taken = first_refused;
  }
}

// spec 2.8
TEST_P(FloodTest, FlowControlRefusesAndNothingIsLostInTheEnd) {
  run_ranks(4, [&](Rank& rank) {
    constexpr uint64_t messages = 2000;
    const Interface interface(rank, GetParam());
    const auto senders = static_cast<uint64_t>(rank.count()) - 1;
    if (rank.index() == 0) {
      const EventQueue events(interface.handle(), 64);
      ptl_pt_index_t index = 0;
      must(PtlPTAlloc(interface.handle(), PTL_PT_FLOWCTRL, events.handle(), pt_index, &index));
      std::vector<std::byte> memory(64);
      interface.append(pt_index, {.start = memory.data(),
                                  .length = memory.size(),
                                  .options = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE});
      rank.barrier();
      std::vector<std::vector<bool>> seen(senders + 1, std::vector<bool>(messages));
      uint64_t distinct = 0;
      uint64_t disabled = 0;
      // No event is removed until the queue has overflowed.
      rank.await_condition("waiting for a message to be refused", [&] {
        for (int sender = 1; sender < rank.count(); ++sender) {
          if (rank.flag(sender, refused_flag) != 0) return true;
        }
        return false;
      });
      while (distinct < senders * messages) {
        const ptl_event_t event = events.next();
        if (event.type == PTL_EVENT_PT_DISABLED) {
          ++disabled;
          must(PtlPTEnable(interface.handle(), pt_index));
          continue;
        }
        EXPECT_EQ(event.type, PTL_EVENT_PUT);
        EXPECT_EQ(event.mlength, 64u);
        auto cell = seen.at(event.hdr_data >> 32u).begin() +
                    static_cast<std::ptrdiff_t>(event.hdr_data & 0xffffffffu);
        distinct += *cell ? 0 : 1;
        *cell = true;
      }
      EXPECT_GT(disabled, 0u);
      // Senders may still repeat messages that were accepted before.
      rank.await_condition("waiting for the senders to finish", [&] {
        ptl_event_t event{};
        while (PtlEQGet(events.handle(), &event) == PTL_OK) {
          if (event.type == PTL_EVENT_PT_DISABLED) must(PtlPTEnable(interface.handle(), pt_index));
        }
        for (int sender = 1; sender < rank.count(); ++sender) {
          if (rank.flag(sender, done_flag) == 0) return false;
        }
        return true;
      });
      EXPECT_EQ(interface.status(PTL_SR_PERMISSION_VIOLATIONS), 0);
    } else {
      rank.barrier();
      send_until_taken(rank, interface, messages, 500);
      rank.raise(done_flag);
    }
    rank.barrier();
  });
}

}  // namespace
}  // namespace lintel::test
