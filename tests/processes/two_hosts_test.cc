// Two hosts: network namespaces with a cable between them. Within a host messages go through shared
// memory, between the hosts over UDP, without any configuration. Needs root.
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "support/interface.h"
#include "support/memory.h"
#include "support/objects.h"
#include "support/ranks.h"
#include "support/text.h"

namespace lintel::test {
namespace {

constexpr ptl_pt_index_t pt_index = 4;

bool run_command(const std::string& command) {
  return std::system((command + " > /dev/null 2>&1").c_str()) == 0;
}

// A pair of namespaces, joined by a veth pair; gone with this object.
class TwoHosts {
 public:
  TwoHosts() : name_("lintel-test-" + std::to_string(getpid())) {
    const std::string a = host(0);
    const std::string b = host(1);
    ready_ = run_command("ip netns add " + a) && run_command("ip netns add " + b) &&
             run_command("ip -n " + a + " link add cable type veth peer name cable netns " + b) &&
             configure(a, "10.77.0.1") && configure(b, "10.77.0.2");
  }
  TwoHosts(const TwoHosts&) = delete;
  ~TwoHosts() {
    run_command("ip netns del " + host(0));
    run_command("ip netns del " + host(1));
  }
  [[nodiscard]] bool ready() const { return ready_; }
  // Moves this process, which must have one thread, to a host.
  void enter(int index) const {
    const int fd = open(("/run/netns/" + host(index)).c_str(), O_RDONLY | O_CLOEXEC);
    ASSERT_GE(fd, 0);
    ASSERT_EQ(setns(fd, CLONE_NEWNET), 0);
    close(fd);
  }

 private:
  [[nodiscard]] std::string host(int index) const { return name_ + (index == 0 ? "-a" : "-b"); }
  static bool configure(const std::string& host, const std::string& address) {
    const std::string ip = "ip -n " + host + " ";
    return run_command(ip + "link set lo up") && run_command(ip + "link set cable up") &&
           run_command(ip + "address add " + address + "/24 dev cable");
  }
  std::string name_;
  bool ready_ = false;
};

// Bytes that a network interface of this namespace has received.
uint64_t received_bytes(const std::string& interface) {
  std::ifstream table("/proc/self/net/dev");
  std::string line;
  while (std::getline(table, line)) {
    const size_t colon = line.find(interface + ":");
    if (colon == std::string::npos) continue;
    std::istringstream fields(line.substr(colon + interface.size() + 1));
    uint64_t bytes = 0;
    fields >> bytes;
    return bytes;
  }
  return 0;
}

// spec 3.15.2
TEST(TwoHostsTest, SharedMemoryWithinAndUdpBetween) {
  if (geteuid() != 0) GTEST_SKIP() << "network namespaces need root";
  if (!run_command("ip -V")) GTEST_SKIP() << "the command ip (iproute2) is not installed";
  const TwoHosts hosts;
  if (!hosts.ready()) GTEST_SKIP() << "this kernel or container does not permit namespaces with veth";
  constexpr int ranks = 4;  // 0 and 1 on the first host, 2 and 3 on the second
  run_ranks(ranks, {.environment = {}, .deadline = 2 * test_deadline}, [&](Rank& rank) {
    hosts.enter(rank.index() / 2);
    constexpr std::size_t largest = 1 << 20;
    std::vector<std::byte> source(largest);
    std::vector<std::byte> target(largest * ranks);
    fill(source, static_cast<uint32_t>(rank.index()));
    const Interface interface(rank, matching_logical);
    const EventQueue arrivals(interface.handle(), 4096);
    const EventQueue events(interface.handle(), 4096);
    ptl_pt_index_t index = 0;
    must(PtlPTAlloc(interface.handle(), 0, arrivals.handle(), pt_index, &index));
    interface.append(pt_index, {.start = target.data(),
                                .length = target.size(),
                                .options = PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE});
    rank.barrier();
    EXPECT_EQ(interface.physical_id(0).phys.nid, 0x0a4d0001u);
    EXPECT_EQ(interface.physical_id(3).phys.nid, 0x0a4d0002u);
    const Descriptor descriptor(interface.handle(), source, PTL_MD_EVENT_SEND_DISABLE,
                                events.handle());
    const ptl_size_t sizes[] = {0, 8, 1000, 5000, 100'000, largest};
    for (const ptl_size_t size : sizes) {
      for (int to = 0; to < ranks; ++to)
        must(PtlPut(descriptor.handle(), 0, size, PTL_ACK_REQ, interface.address(to), pt_index, 0,
                    largest * static_cast<ptl_size_t>(rank.index()), nullptr, 0));
      for (int to = 0; to < ranks; ++to) EXPECT_EQ(events.expect(PTL_EVENT_ACK).mlength, size);
    }
    for (std::size_t i = 0; i < std::size(sizes) * ranks; ++i) arrivals.expect(PTL_EVENT_PUT);
    for (int from = 0; from < ranks; ++from)
      expect_pattern(std::span(target).subspan(largest * static_cast<std::size_t>(from), largest),
                     static_cast<uint32_t>(from));
    rank.barrier();
    // What comes from the other host passed the cable; what comes from this one passed no network.
    EXPECT_GT(received_bytes("cable"), 4 * largest);
    EXPECT_LT(received_bytes("lo"), largest / 16);
    rank.barrier();
  });
}

}  // namespace
}  // namespace lintel::test
