// Networks that lose and reorder frames, and frames from strangers: UDP, Ethernet or RDMA between
// processes, without shared memory.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <portals4_lintel.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <optional>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "support/ethernet.h"
#include "support/hosts_exchange.h"
#include "support/interface.h"
#include "support/memory.h"
#include "support/objects.h"
#include "support/random_stream.h"
#include "support/ranks.h"
#include "support/rdma.h"
#include "support/text.h"

namespace lintel::test {
namespace {

constexpr ptl_pt_index_t pt_index = 4;

RunOptions over_udp(std::vector<std::pair<std::string, std::string>> more = {},
                    Milliseconds deadline = 2 * test_deadline) {
  more.emplace_back("PTL_TRANSPORT", "udp");
  more.emplace_back("PTL_PEER_TIMEOUT_MS", "3000");
  return {.environment = std::move(more), .deadline = deadline};
}

enum class Net { udp, memif, af_packet, verbs, verbs_ud };

class Network : public testing::TestWithParam<Net> {
 protected:
  void run(int count, RunOptions options, const std::function<void(Rank&)>& body) {
    const std::optional<Ethernet> ethernet = ethernet_of(GetParam());
    const bool over_rdma = GetParam() == Net::verbs || GetParam() == Net::verbs_ud;
    if (ethernet) {
      if (const std::string why = why_no_ethernet(*ethernet); !why.empty()) GTEST_SKIP() << why;
      prepare_ethernet(*ethernet);
    }
    if (over_rdma)
      if (const std::string why = why_no_rdma(); !why.empty()) GTEST_SKIP() << why;
    if (over_rdma) options.environment.emplace_back("PTL_PEER_TIMEOUT_MS", rdma_timeout_ms());
    run_ranks(count, options, [&](Rank& rank) {
      if (ethernet) join_ethernet(rank.index(), *ethernet);
      if (over_rdma)
        join_rdma(rank.index(), GetParam() == Net::verbs ? Rdma::connected : Rdma::datagrams);
      body(rank);
    });
  }
  static std::optional<Ethernet> ethernet_of(Net net) {
    if (net == Net::memif) return Ethernet::memif;
    if (net == Net::af_packet) return Ethernet::af_packet;
    return std::nullopt;
  }
};

std::string network_name(const testing::TestParamInfo<Net>& info) {
  static constexpr const char* names[] = {"udp", "dpdk_memif", "dpdk_af_packet", "verbs",
                                          "verbs_ud"};
  return names[static_cast<int>(info.param)];
}
INSTANTIATE_TEST_SUITE_P(Networks, Network,
                         testing::Values(Net::udp, Net::memif, Net::af_packet, Net::verbs,
                                         Net::verbs_ud),
                         network_name);

// The target overwrites its memory as soon as the event permits this, while frames of the data may
// still be retransmitted.
// spec 3.13.1
TEST_P(Network, TheMemoryOfAGetIsReadNoMoreOnceItsEventIsThere) {
  constexpr uint32_t rounds = 40;
  const RunOptions options =
      over_udp({{"PTL_FAULTS", "drop=0.1,reorder=0.05,seed=5"}, {"PTL_UDP_FRAME_BYTES", "8972"}},
               2 * test_deadline);
  run(2, options, [&](Rank& rank) {
    std::vector<std::byte> memory(256 * 1024);
    const Interface interface(rank, matching_physical);
    const EventQueue events(interface.handle(), 64);
    if (rank.index() == 1) {
      fill(memory, 0);
      accept_puts(interface, pt_index, memory, events.handle(), PTL_ME_OP_GET);
    }
    rank.barrier();
    for (uint32_t round = 0; round < rounds; ++round) {
      if (rank.index() == 0) {
        const Descriptor descriptor(interface.handle(), memory, 0, events.handle());
        must(PtlGet(descriptor.handle(), 0, memory.size(), interface.address(1), pt_index, 0, 0,
                    nullptr));
        EXPECT_EQ(events.expect(PTL_EVENT_REPLY).mlength, memory.size());
        expect_pattern(memory, round);
      } else {
        EXPECT_EQ(events.expect(PTL_EVENT_GET).mlength, memory.size());
        fill(memory, round + 1);
      }
      rank.barrier();
    }
    if (rank.index() == 1 && GetParam() == Net::udp) {
      EXPECT_GT(interface.status(PTL_SR_LINTEL_RETRANSMISSIONS), 0);
    }
    rank.barrier();
  });
}

// The target polls only after the get and the close message of the initiator have arrived.
// spec 3.5.2, 3.13.3
TEST_P(Network, AGetWhoseInitiatorHasLeftLeavesNothingInUse) {
  run(2, over_udp({{"PTL_PROGRESS", "caller"}}), [&](Rank& rank) {
    std::vector<std::byte> memory(64 * 1024);
    Interface interface(rank, matching_physical);
    const EventQueue events(interface.handle(), 8);
    if (rank.index() == 0) {
      const Descriptor descriptor(interface.handle(), memory, 0, events.handle());
      const auto get = [&](ptl_size_t length) {
        must(PtlGet(descriptor.handle(), 0, length, interface.address(1), pt_index, 0, 0, nullptr));
      };
      rank.barrier();
      get(8);
      events.expect(PTL_EVENT_REPLY);
      rank.barrier();
      get(memory.size());
      interface.close();
      rank.barrier();
    } else {
      interface.allocate(pt_index, events.handle());
      const ptl_handle_any_t entry =
          interface.append(pt_index, {.start = memory.data(),
                                      .length = memory.size(),
                                      .options = PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE});
      rank.barrier();
      EXPECT_EQ(events.expect(PTL_EVENT_GET).mlength, 8u);
      rank.barrier();
      rank.barrier();
      // The get has ended, successfully or with a failure.
      EXPECT_EQ(events.next().type, PTL_EVENT_GET);
      EXPECT_EQ(interface.unlink(entry), PTL_OK);
    }
    rank.barrier();
  });
}

// A socket outside Portals that sends to the port of a process.
class Stranger {
 public:
  explicit Stranger(ptl_process_t target) : socket_(socket(AF_INET, SOCK_DGRAM, 0)) {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(target.phys.nid);
    address_.sin_port = htons(static_cast<uint16_t>(target.phys.pid + 1024));
    EXPECT_GE(socket_, 0);
  }
  Stranger(const Stranger&) = delete;
  ~Stranger() { close(socket_); }
  void send(const std::vector<unsigned char>& bytes) const {
    sendto(socket_, bytes.data(), bytes.size(), 0, reinterpret_cast<const sockaddr*>(&address_),
           sizeof address_);
  }

 private:
  int socket_;
  sockaddr_in address_{};
};

// Two ranks exchange messages. A third one floods the port of one of them with random bytes, some
// of which look like frames.
// spec 3.3.7
TEST(UdpNetwork, AFloodOfNonsenseAtAnOpenPortIsCountedAndDoesNoHarm) {
  // Three ranks may share two processors, and then each round takes one or two time slices.
  const uint64_t rounds = long_tests() ? 200'000 : 5'000;
  const Milliseconds deadline = long_tests() ? Milliseconds{240'000} : 2 * test_deadline;
  run_ranks(3, over_udp({}, deadline), [&](Rank& rank) {
    std::vector<std::byte> memory(64 * 1024);
    const Interface interface(rank, matching_physical);
    const EventQueue events(interface.handle(), 1024);
    if (rank.index() == 1) {
      fill(memory, 1);
      accept_puts(interface, pt_index, std::span(memory).first(4096), events.handle(),
                  PTL_ME_EVENT_COMM_DISABLE);
    }
    rank.barrier();
    if (rank.index() == 0) {
      const Descriptor descriptor(interface.handle(), memory, PTL_MD_EVENT_SEND_DISABLE,
                                  events.handle());
      for (uint64_t i = 0; i < rounds; ++i) {
        fill(std::span(memory).first(4096), static_cast<uint32_t>(i));
        must(PtlPut(descriptor.handle(), 0, 4096, PTL_ACK_REQ, interface.address(1), pt_index, 0, 0,
                    nullptr, 0));
        EXPECT_EQ(events.expect(PTL_EVENT_ACK).mlength, 4096u);
      }
      rank.raise(0);
    } else if (rank.index() == 2) {
      const Stranger stranger(interface.physical_id(1));
      std::mt19937 dice(5);
      std::vector<unsigned char> frame;
      while (rank.flag(0, 0) == 0) {
        frame.resize(dice() % (dice() % 8 == 0 ? 2000 : 200));
        for (unsigned char& byte : frame) byte = static_cast<unsigned char>(dice());
        if (frame.size() > 8 && dice() % 2 == 0) {
          frame[4] = 2;                                        // the version
          frame[5] = static_cast<unsigned char>(dice() % 13);  // a type
          frame[6] = static_cast<unsigned char>(dice() % 8);   // flags
        }
        stranger.send(frame);
      }
    }
    rank.barrier();
    if (rank.index() == 1) {
      EXPECT_GT(interface.status(PTL_SR_LINTEL_FRAMES_DROPPED), 100);
      EXPECT_EQ(interface.status(PTL_SR_DROP_COUNT), 0);
      // No memory was written except by the peer.
      expect_pattern(std::span(memory).subspan(4096), 1, 4096);
    }
    rank.barrier();
  });
}

// spec 3.10.1: lost or not, the initiator does not wait, and what arrives is whole.
TEST_P(Network, UnreliablePutsArriveOrAreLostButNeverHalf) {
  run(2, over_udp({{"PTL_FAULTS", "drop=0.2,seed=9"}}), [&](Rank& rank) {
    std::vector<std::byte> memory(1024);
    const Interface interface(rank, matching_physical);
    const EventQueue events(interface.handle(), 4096);
    if (rank.index() == 1) accept_puts(interface, pt_index, memory, events.handle());
    rank.barrier();
    constexpr uint64_t count = 1000;
    if (rank.index() == 0) {
      fill(memory, 5);
      const Descriptor reliable(interface.handle(), memory, 0, events.handle());
      must(PtlPut(reliable.handle(), 0, 8, PTL_ACK_REQ, interface.address(1), pt_index, 0, 0,
                  nullptr, 0));
      events.expect_all({PTL_EVENT_SEND, PTL_EVENT_ACK});
      const Descriptor unreliable(interface.handle(), memory, PTL_MD_UNRELIABLE, events.handle());
      for (uint64_t i = 0; i < count; ++i) {
        must(PtlPut(unreliable.handle(), 0, 1000, PTL_NO_ACK_REQ, interface.address(1), pt_index, i,
                    0, nullptr, 0));
        events.expect(PTL_EVENT_SEND);
      }
      EXPECT_GE(interface.status(PTL_SR_LINTEL_UNRELIABLE_SENT), int64_t{count} / 2);
      must(PtlPut(reliable.handle(), 0, 8, PTL_ACK_REQ, interface.address(1), pt_index,
                  ~uint64_t{0}, 0, nullptr, 0));
      events.expect_all({PTL_EVENT_SEND, PTL_EVENT_ACK});
    } else {
      EXPECT_EQ(events.expect(PTL_EVENT_PUT).mlength, 8u);
      uint64_t arrived = 0;
      for (;;) {
        const ptl_event_t event = events.expect(PTL_EVENT_PUT);
        if (event.match_bits == ~uint64_t{0}) break;
        EXPECT_EQ(event.mlength, 1000u);
        ++arrived;
      }
      EXPECT_LT(arrived, count);
      // A slow receiver loses more than what is dropped on purpose.
      EXPECT_GT(arrived, count / 10);
      expect_pattern(std::span(memory).first(1000), 5);
    }
    rank.barrier();
  });
}

}  // namespace
}  // namespace lintel::test
