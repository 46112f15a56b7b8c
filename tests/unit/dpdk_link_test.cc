// The link over Ethernet ports: payloads sent without a copy, and payloads whose memory is gone.
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/ethernet.h"
#include "support/memory.h"
#include "support/rank.h"
#include "support/ranks.h"
#include "util/config.h"
#include "util/guarded_memory.h"
#include "wiring/device_choice.h"

namespace lintel::test {
namespace {

class EthernetLinkTest : public testing::TestWithParam<Ethernet> {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_ethernet(GetParam()); !why.empty()) GTEST_SKIP() << why;
    prepare_ethernet(GetParam());
  }
};

std::string ethernet_name(const testing::TestParamInfo<Ethernet>& info) {
  return info.param == Ethernet::memif ? "memif" : "af_packet";
}
INSTANTIATE_TEST_SUITE_P(Ethernets, EthernetLinkTest,
                         testing::Values(Ethernet::memif, Ethernet::af_packet), ethernet_name);

constexpr size_t header_bytes = 32;
constexpr uint32_t nid = 0x0a4e0001;
constexpr int received_flag = 0;
constexpr int done_flag = 1;

// A frame begins with a number, and both pieces contain patterns derived from it.
struct TestFrame {
  uint32_t number = 0;
  std::byte header[header_bytes];
  Piece pieces[2];
  OutboundFrame frame{};

  void make(uint32_t n, const LinkAddress* to, std::span<std::byte> payload) {
    number = n;
    fill(std::span(header).subspan(sizeof number), n);
    std::memcpy(header, &number, sizeof number);
    pieces[0] = {header, header_bytes};
    pieces[1] = {payload.data(), payload.size()};
    frame = {to, pieces, payload.empty() ? 1u : 2u};
  }
};

// Rank 0 or 1 with its port, its link, and the route to the other rank.
class LinkedRank {
 public:
  LinkedRank(Rank& rank, Ethernet ethernet) : rank_(rank) {
    join_ethernet(rank.index(), ethernet);
    setenv("PTL_MODULE_PATH", LINTEL_MODULE_DIRECTORY, 1);
    config_reload();
    install_fault_handler();
    std::string reason;
    const ProcessId id{nid, 10 + static_cast<uint32_t>(rank.index())};
    if (open_dpdk_link(configured_dpdk(), id, link_, reason) != OpenStatus::opened)
      rank.fail(reason);
    const ProcessId peer{nid, 11 - static_cast<uint32_t>(rank.index())};
    rank.await_condition("looking for the peer", [&] {
      poll();
      return link_->resolve(peer, route_, nullptr) == ResolveStatus::resolved;
    });
    rank.raise(done_flag);
    rank.await_condition("looked for by the peer", [&] {
      poll();
      return rank_.flag(1 - rank_.index(), done_flag) != 0;
    });
  }

  [[nodiscard]] PacketLink& link() { return *link_; }
  [[nodiscard]] const Route& route() const { return route_; }

  // Receives frames, compares their contents with the pattern, and records their numbers.
  void poll() {
    InboundFrame frames[PacketLink::largest_burst];
    const unsigned count = link_->receive(frames, PacketLink::largest_burst);
    for (unsigned i = 0; i < count; ++i) {
      const std::span<const std::byte> bytes(frames[i].data, frames[i].length);
      ASSERT_GE(bytes.size(), header_bytes);
      uint32_t number = 0;
      std::memcpy(&number, bytes.data(), sizeof number);
      expect_pattern(bytes.subspan(sizeof number, header_bytes - sizeof number), number);
      expect_pattern(bytes.subspan(header_bytes), number);
      lengths_[number] = static_cast<uint32_t>(bytes.size() - header_bytes);
    }
  }

  [[nodiscard]] bool has(uint32_t number) const { return lengths_.count(number) != 0; }
  [[nodiscard]] const std::map<uint32_t, uint32_t>& lengths() const { return lengths_; }

  // Repeats send() until all frames are accepted: ports pause now and then, and queues get full.
  void send(std::vector<TestFrame>& frames) {
    std::vector<OutboundFrame> outbound;
    for (const TestFrame& frame : frames) outbound.push_back(frame.frame);
    size_t taken = 0;
    rank_.await_condition("sending", [&] {
      taken += link_->send(outbound.data() + taken, static_cast<unsigned>(outbound.size() - taken));
      poll();
      return taken == outbound.size();
    });
  }

 private:
  Rank& rank_;
  std::unique_ptr<PacketLink> link_;
  Route route_;
  std::map<uint32_t, uint32_t> lengths_;
};

// The part of rank 1: publishes the number of frames received without gaps, until rank 0 has
// finished.
void receive_all(Rank& rank, LinkedRank& self) {
  uint64_t complete = 0;
  rank.await_condition("receiving", [&] {
    self.poll();
    while (self.has(static_cast<uint32_t>(complete))) ++complete;
    if (complete != rank.flag(1, received_flag)) rank.raise(received_flag, complete);
    return rank.flag(0, done_flag) == 2;
  });
}

// The lengths are near those at which the method of sending changes. Addresses are odd, and bursts
// have many sizes. The memory is overwritten as soon as the link has accepted the frames.
TEST_P(EthernetLinkTest, PayloadsAreSentFromWhereTheyAre) {
  run_ranks(2, {}, [&](Rank& rank) {
    LinkedRank self(rank, GetParam());
    EXPECT_TRUE(self.link().properties().sends_from_anywhere);
    const uint32_t longest = self.route().mtu - header_bytes;
    const std::vector<uint32_t> lengths = {longest, 1,    255,  256,     257, 0,
                                           2048,    4096, 8192, longest, 33,  longest - 1};
    const std::vector<size_t> bursts = {1, 2, 31, 32, 33, 64, 5};
    if (rank.index() == 1) {
      receive_all(rank, self);
      for (const auto& [number, length] : self.lengths())
        EXPECT_EQ(length, lengths[number % lengths.size()]) << number;
      return;
    }
    constexpr size_t room = 10'000;
    std::vector<std::byte> memory(PacketLink::largest_burst * room);
    uint32_t next = 0;
    for (int round = 0; round < 20; ++round) {
      const size_t burst = bursts[static_cast<size_t>(round) % bursts.size()];
      const uint32_t first = next;
      next += static_cast<uint32_t>(burst);
      // The kernel may lose frames.
      uint64_t tries = 0;
      rank.await_condition("waiting for the burst", [&] {
        self.poll();
        if (rank.flag(1, received_flag) >= next) return true;
        if (tries++ % 10'000 != 0) return false;
        std::vector<TestFrame> frames(burst);
        for (uint32_t i = 0; i < burst; ++i) {
          const uint32_t number = first + i;
          const std::span<std::byte> payload(memory.data() + i * room + number % 61,
                                             lengths[number % lengths.size()]);
          fill(payload, number);
          frames[i].make(number, &self.route().address, payload);
        }
        self.send(frames);
        std::fill(memory.begin(), memory.end(), std::byte{0xee});
        return false;
      });
    }
    EXPECT_EQ(self.link().counters().send_errors, 0u);
    rank.raise(done_flag, 2);
  });
}

// A payload in inaccessible memory is lost. Frames before and after it are not. It is sent when its
// memory is accessible again.
TEST_P(EthernetLinkTest, PayloadsThatAreGoneAreLost) {
  run_ranks(2, {}, [&](Rank& rank) {
    LinkedRank self(rank, GetParam());
    if (rank.index() == 1) {
      receive_all(rank, self);
      return;
    }
    constexpr uint32_t payload_bytes = 8192;
    constexpr uint32_t count = 40;
    std::vector<std::unique_ptr<GuardedPages>> memory;
    for (uint32_t i = 0; i < count; ++i) {
      memory.push_back(std::make_unique<GuardedPages>(payload_bytes / GuardedPages::page_bytes));
      fill(memory.back()->accessible(), i);
    }
    std::vector<TestFrame> frames(count);
    const auto make = [&] {
      for (uint32_t i = 0; i < count; ++i)
        frames[i].make(i, &self.route().address, memory[i]->accessible());
    };
    // Inaccessible: all, the first page, or the last page of the payload; at the start of a burst,
    // in a row, at its end.
    const std::vector<uint32_t> gone = {0, 7, 8, 9, 31, 32, 39};
    const auto protect = [&](int protection) {
      for (const uint32_t number : gone) {
        std::byte* const start = memory[number]->accessible().data();
        const size_t page = GuardedPages::page_bytes;
        const size_t from = number % 3 == 1 ? page : 0;
        const size_t to = number % 3 == 2 ? page : 2 * page;
        ASSERT_EQ(mprotect(start + from, to - from, protection), 0);
      }
    };
    make();
    protect(PROT_NONE);
    self.send(frames);
    EXPECT_EQ(self.link().counters().send_errors, gone.size());
    protect(PROT_READ | PROT_WRITE);
    uint64_t tries = 0;
    rank.await_condition("waiting for all", [&] {
      self.poll();
      if (rank.flag(1, received_flag) >= count) return true;
      if (tries++ % 10'000 == 0) self.send(frames);
      return false;
    });
    EXPECT_EQ(self.link().counters().send_errors, gone.size());
    rank.raise(done_flag, 2);
  });
}

}  // namespace
}  // namespace lintel::test
