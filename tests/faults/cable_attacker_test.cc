// An attacker on the cable between two hosts, which are network namespaces here. The attacker
// forwards packets and sends variants of recorded ones: repeated, changed, spliced, in floods, and
// with valid checks. Needs root.
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <portals4_lintel.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include "reliable/frame.h"
#include "support/ethernet.h"
#include "support/hosts_exchange.h"
#include "support/ranks.h"

namespace lintel::test {
namespace {

using Packet = std::vector<unsigned char>;

// Offsets in a packet with Ethernet, IPv4 without options, and UDP headers.
constexpr size_t udp_at = 14 + 20;
constexpr size_t payload_at = udp_at + 8;
constexpr size_t most_kept = 20'000;

void enter(const std::string& name) {
  const int fd = open(("/run/netns/" + name).c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(setns(fd, CLONE_NEWNET), 0);
  close(fd);
}

// forgery: only replaces data that are written, which is the hardest attack for a user to notice.
enum class Attacks { forgery, all };

class Attacker {
 public:
  Attacker(const std::string& host, Attacks attacks) : attacks_(attacks) {
    enter(host);
    sockets_[0] = listen_on("left");
    sockets_[1] = listen_on("right");
  }
  [[noreturn]] void work() {
    pollfd waiting[2] = {{sockets_[0], POLLIN, 0}, {sockets_[1], POLLIN, 0}};
    Packet buffer(1 << 16);
    for (;;) {
      static_cast<void>(::poll(waiting, 2, -1));
      for (int from = 0; from < 2; ++from) {
        if ((waiting[from].revents & POLLIN) == 0) continue;
        sockaddr_ll source{};
        socklen_t length = sizeof source;
        const ssize_t bytes = recvfrom(sockets_[from], buffer.data(), buffer.size(), 0,
                                       reinterpret_cast<sockaddr*>(&source), &length);
        if (bytes <= 0 || source.sll_pkttype == PACKET_OUTGOING) continue;
        pass(Packet(buffer.begin(), buffer.begin() + bytes), 1 - from);
      }
    }
  }

 private:
  struct Seen {
    Packet packet;
    int to;
  };

  static int listen_on(const char* port) {
    const int fd = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL));
    EXPECT_GE(fd, 0);
    sockaddr_ll address{};
    address.sll_family = AF_PACKET;
    address.sll_protocol = htons(ETH_P_ALL);
    address.sll_ifindex = static_cast<int>(if_nametoindex(port));
    EXPECT_EQ(bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    const int large = 16 << 20;
    setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &large, sizeof large);
    return fd;
  }
  static bool is_udp(const Packet& packet) {
    return packet.size() > payload_at && packet[12] == 8 && packet[13] == 0 && packet[23] == 17;
  }

  void send(Packet& packet, int to) {
    // Removes the UDP checksum: the sender may have left its computation to the device.
    if (is_udp(packet)) packet[udp_at + 6] = packet[udp_at + 7] = 0;
    static_cast<void>(::send(sockets_[to], packet.data(), packet.size(), MSG_DONTWAIT));
  }
  void pass(Packet packet, int to) {
    if (!is_udp(packet)) return send(packet, to);
    note_number(packet, to);
    if (random_() % (attacks_ == Attacks::forgery ? 4 : 16) == 0) forge(packet, to);
    if (attacks_ == Attacks::forgery) return send(packet, to);
    if (seen_.size() < most_kept) seen_.push_back({packet, to});
    if (random_() % 64 == 0) {  // overtaken by the next one
      std::swap(held_, packet);
      std::swap(held_to_, to);
      if (packet.empty()) return;
    }
    send(packet, to);
    attack();
    // Sends a flood now and then.
    if (random_() % 1024 == 0)
      for (int i = 0; i < 500; ++i) attack();
  }
  // Records the number of the connection for each side, from the handshake.
  void note_number(const Packet& packet, int to) {
    if (packet.size() < payload_at + sizeof(FrameHeader) + sizeof(HandshakeBody)) return;
    const FrameHeader header = header_of(packet);
    if (header.type == FrameType::connect || header.type == FrameType::accept)
      std::memcpy(&numbers_[1 - to], packet.data() + payload_at + sizeof header,
                  sizeof numbers_[0]);
  }
  // Sends a forged copy of a long data frame before the genuine one: another last byte, and the
  // valid check of an unsealed frame.
  void forge(Packet packet, int to) {
    if (packet.size() < payload_at + message_frame_overhead + 512) return;
    FrameHeader header = header_of(packet);
    if (header.type != FrameType::data) return;
    packet.back() ^= 1;
    const size_t body_at = payload_at + sizeof header;
    const uint32_t seed = connection_seed(numbers_[to], numbers_[1 - to]);
    header.check =
        finish_check(body_check(seed, packet.data() + body_at, packet.size() - body_at), header);
    std::memcpy(packet.data() + payload_at, &header, sizeof header);
    send(packet, to);
  }
  static FrameHeader header_of(const Packet& packet) {
    FrameHeader header;
    std::memcpy(&header, packet.data() + payload_at, sizeof header);
    return header;
  }
  void attack() {
    const Seen& seen = seen_[random_() % seen_.size()];
    Packet packet = seen.packet;
    const size_t bytes = packet.size() - payload_at;
    switch (random_() % 4) {
      case 0:
        break;
      case 1:
        packet[payload_at + random_() % bytes] ^= static_cast<unsigned char>(1 + random_() % 255);
        break;
      case 2: {  // the body of another packet, up to the shorter length
        const Packet& other = seen_[random_() % seen_.size()].packet;
        const size_t header = payload_at + 32;
        for (size_t i = header; i < std::min(packet.size(), other.size()); ++i)
          packet[i] = other[i];
        break;
      }
      default:  // a reset, or another type, for this connection
        if (bytes > 6) packet[payload_at + 5] = static_cast<unsigned char>(1 + random_() % 11);
        break;
    }
    send(packet, seen.to);
  }

  const Attacks attacks_;
  int sockets_[2] = {-1, -1};
  uint64_t numbers_[2] = {};
  std::mt19937_64 random_{7};
  std::vector<Seen> seen_;
  Packet held_;
  int held_to_ = 0;
};

// Two hosts and the attacker's host between them; removed with this object.
class AttackedHosts {
 public:
  explicit AttackedHosts(Attacks attacks) {
    ready_ = true;
    for (const char* which : {"a", "b", "m"})
      ready_ = ready_ && run_command("ip netns add " + name(which));
    ready_ = ready_ && cable("a", "left", "10.78.0.1") && cable("b", "right", "10.78.0.2");
    if (!ready_) return;
    attacker_ = fork();
    if (attacker_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      Attacker(name("m"), attacks).work();
    }
  }
  AttackedHosts(const AttackedHosts&) = delete;
  ~AttackedHosts() {
    if (attacker_ > 0) {
      kill(attacker_, SIGKILL);
      waitpid(attacker_, nullptr, 0);
    }
    for (const char* which : {"a", "b", "m"})
      static_cast<void>(run_command("ip netns del " + name(which)));
  }
  [[nodiscard]] bool ready() const { return ready_; }
  void enter_host(int index) const { enter(name(index == 0 ? "a" : "b")); }

 private:
  [[nodiscard]] std::string name(const char* which) const {
    return "lintel-attack-" + std::to_string(owner_) + which;
  }
  // Makes a cable to the attacker's host. Packets are not merged, as on a real cable.
  [[nodiscard]] bool cable(const char* which, const char* port, const char* address) const {
    const std::string here = "ip -n " + name(which) + " ";
    const std::string middle = "ip -n " + name("m") + " ";
    return run_command(here + "link add cable gso_max_segs 1 type veth peer name " + port +
                       " netns " + name("m")) &&
           run_command(here + "link set cable up") && run_command(here + "link set lo up") &&
           run_command(middle + "link set " + port + " up promisc on") &&
           run_command(here + "address add " + address + "/24 dev cable");
  }

  const pid_t owner_ = getpid();
  pid_t attacker_ = -1;
  bool ready_ = false;
};

class CableAttackerTest : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "network namespaces need root";
    if (!run_command("ip -V")) GTEST_SKIP() << "the command ip (iproute2) is not installed";
  }
  static void run(Attacks attacks, const std::string& security,
                  const std::function<void(Rank&)>& body) {
    const AttackedHosts hosts(attacks);
    if (!hosts.ready())
      GTEST_SKIP() << "this kernel or container does not permit namespaces with veth";
    const RunOptions options{
        .environment = {{"PTL_JOB_KEY", "a secret that is long enough not to be stretched"},
                        {"PTL_NETWORK_SECURITY", security}},
        .deadline = 2 * test_deadline};
    run_ranks(2, options, [&](Rank& rank) {
      hosts.enter_host(rank.index());
      body(rank);
    });
  }
  static void exchange(Rank& rank) { put_all_to_all(rank, 0x0a4e0001, 0x0a4e0002); }
};

class SealedCableAttackerTest : public CableAttackerTest,
                                public testing::WithParamInterface<const char*> {};

INSTANTIATE_TEST_SUITE_P(Security, SealedCableAttackerTest,
                         testing::Values("authenticated", "encrypted"),
                         [](const auto& tested) { return std::string(tested.param); });

// spec 3.15.2
TEST_P(SealedCableAttackerTest, GetsNothingButDelay) {
  run(Attacks::all, GetParam(), [](Rank& rank) {
    // Only its counters are used: it stays open longer than the interface that carries the
    // messages.
    const Interface observer(rank, nonmatching_physical);
    exchange(rank);
    EXPECT_GT(observer.status(PTL_SR_LINTEL_FRAMES_DROPPED), 50) << "there was no attack";
    EXPECT_EQ(observer.status(PTL_SR_LINTEL_PEERS_FAILED), 0);
    rank.barrier();
  });
}

// Checks the test above: a successful attack is detected there.
// spec 3.15.2
TEST_F(CableAttackerTest, HeWritesIntoFramesThatAreNotSealed) {
  run(Attacks::forgery, "off", [](Rank& rank) {
    testing::TestPartResultArray failures;
    {
      const testing::ScopedFakeTestPartResultReporter reporter(
          testing::ScopedFakeTestPartResultReporter::INTERCEPT_ALL_THREADS, &failures);
      exchange(rank);
    }
    EXPECT_GT(failures.size(), 0) << "no forged byte was detected";
  });
}

}  // namespace
}  // namespace lintel::test
