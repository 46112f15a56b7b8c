// More gets than a target keeps answers for: the initiator holds the others, and none fails.
#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "support/interface.h"
#include "support/memory.h"
#include "support/objects.h"
#include "support/ranks.h"
#include "support/text.h"

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

// More messages than a target can take: floods with flow control and recovery, unexpected storms.

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

// Collective operations made of counters and triggered operations, as communication libraries build
// them.

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
