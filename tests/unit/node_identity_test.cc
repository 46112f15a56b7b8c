// Which address becomes the nid, in network namespaces with interfaces of many kinds. Needs root.
#include "util/node_identity.h"

#include <arpa/inet.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

#include "support/ethernet.h"
#include "udp/udp_address.h"

namespace lintel {
namespace {

bool run(const std::string& command) {
  return std::system(("exec > /dev/null 2>&1\n" + command).c_str()) == 0;
}

// In a namespace of its own; `interfaces` are commands of ip, one a line.
struct Found {
  std::string nid, interface, reason, not_reached, udp;
};

std::string field(std::string& text) {
  const size_t end = text.find('\n');
  std::string first = text.substr(0, end);
  text.erase(0, end == std::string::npos ? end : end + 1);
  return first;
}

class NodeIdentityTest : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "network namespaces need root";
    if (!run("unshare -n ip link add cable type veth peer name end"))
      GTEST_SKIP() << "no ip (iproute2), or no namespaces with veth here";
  }

  static Found find(const std::string& interfaces, const std::string& wanted = "") {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
      const bool ready = unshare(CLONE_NEWNET) == 0 &&
                         run("set -e; ip link set lo up; " + interfaces) && test::await_links();
      std::string text;
      if (ready) {
        const NodeIdentity node = find_udp_host(wanted);
        text = nid_text(node.nid) + "\n" + node.interface + "\n" + node.reason + "\n" +
               why_not_reached(node) + "\n" + udp_address_text(udp_address_of(node, {node.nid, 1}));
      }
      const ssize_t written = write(ends[1], text.data(), text.size());
      _exit(written == static_cast<ssize_t>(text.size()) ? 0 : 1);
    }
    close(ends[1]);
    std::string text(1024, '\0');
    const ssize_t bytes = read(ends[0], text.data(), text.size());
    close(ends[0]);
    waitpid(child, nullptr, 0);
    text.resize(bytes > 0 ? static_cast<size_t>(bytes) : 0);
    EXPECT_NE(text, "") << "cannot make: " << interfaces;
    Found found;
    for (std::string* each :
         {&found.nid, &found.interface, &found.reason, &found.not_reached, &found.udp})
      *each = field(text);
    return found;
  }
};

const std::string docker0 =
    "ip link add docker0 type bridge; ip address add 172.17.0.1/16 dev docker0; "
    "ip link set docker0 up; ";
// A container at the bridge, which so has carrier.
const std::string container =
    "ip link add inside type veth peer name outside; ip link set outside master docker0; "
    "ip link set inside up; ip link set outside up; ";
// Without IPv6, which makes addresses of its own.
const std::string no_ipv6 = "echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6; ";
const std::string cable = no_ipv6 +
                          "ip link add cable type veth peer name end; ip link set cable up; "
                          "ip link set end up; ";

TEST_F(NodeIdentityTest, PrefersWhatLeadsToOtherNodesToABridgeOfContainers) {
  const std::string address = "ip address add 10.77.0.1/24 dev cable; ";
  EXPECT_EQ(find(docker0 + cable + address).nid, "10.77.0.1");
  EXPECT_EQ(find(docker0 + container + cable + address).nid, "10.77.0.1");
  const Found none = find(docker0 + container);
  EXPECT_EQ(none.nid.empty(), false);
  EXPECT_EQ(find(docker0, "docker0").not_reached,
            "is an address of docker0, which leads to no other node");
}

TEST_F(NodeIdentityTest, ABridgeWithAPortToOtherNodesIsAsGoodAsAnyInterface) {
  const Found found = find("ip link add nic type ifb; ip link set nic up; " + docker0 +
                           "ip link set nic master docker0");
  EXPECT_EQ(found.nid, "172.17.0.1") << found.reason;
  EXPECT_EQ(found.not_reached, "");
}

TEST_F(NodeIdentityTest, NeedsCarrier) {
  // The other end of this cable is down.
  const std::string loose =
      "ip link add loose type veth peer name off; ip address add 10.66.0.1/24 dev loose; "
      "ip link set loose up; ip route add default via 10.66.0.2; ";
  const Found found = find(loose + cable + "ip address add 10.77.0.1/24 dev cable; ");
  EXPECT_EQ(found.nid, "10.77.0.1") << found.reason;
  const Found asked_for = find(loose, "loose");
  EXPECT_EQ(asked_for.nid, "10.66.0.1");
  EXPECT_EQ(asked_for.not_reached, "is an address of loose, which has no carrier");
}

TEST_F(NodeIdentityTest, LinkLocalAddressesComeAfterOthers) {
  const std::string local = cable + "ip address add 169.254.3.1/16 dev cable; ";
  EXPECT_EQ(find(local).nid, "169.254.3.1");
  EXPECT_EQ(
      find(local + "ip route add default dev cable; ip link add late type veth peer name far; "
                   "ip address add 10.77.0.1/24 dev late; ip link set late up; ip link set far up")
          .nid,
      "10.77.0.1");
}

TEST_F(NodeIdentityTest, WithoutIpv4TheEndOfAnIpv6AddressIsTheNid) {
  const std::string veth =
      "ip link add cable type veth peer name end; ip link set cable up; ip link set end up; ";
  const Found found = find(docker0 + veth + "ip address add 2001:db8::77:1/64 dev cable nodad; ");
  EXPECT_EQ(found.nid, "0.119.0.1") << found.reason;
  EXPECT_EQ(found.interface, "cable");
  EXPECT_EQ(found.udp, "[2001:db8::77:1]:1025");
  EXPECT_EQ(found.reason,
            "0.119.0.1, the end of 2001:db8::77:1, an address of cable, since none has an IPv4 "
            "address that others could reach");
  EXPECT_EQ(found.not_reached, "");
  // A link-local one differs between hosts as well.
  const Found link_local = find(
      "ip link add cable address 02:00:00:aa:bb:01 type veth peer name end; "
      "echo 1 > /proc/sys/net/ipv6/conf/end/disable_ipv6; ip link set end up; "
      "ip link set cable up");
  EXPECT_EQ(link_local.nid, "254.170.187.1") << link_local.reason;
}

TEST_F(NodeIdentityTest, TheLoopbackIsReachedByNobody) {
  const Found alone = find("");
  EXPECT_EQ(alone.nid, "127.0.0.1");
  EXPECT_EQ(alone.not_reached, "is an address of the loopback, which every node has");
  EXPECT_NE(find("", "lo").not_reached, "");
  EXPECT_NE(find("", "::1").not_reached, "");
}

TEST(NodeIdentity, ChoosesAndExplains) {
  const NodeIdentity any = find_node_identity();
  EXPECT_NE(any.nid, 0u);
  const in_addr address{htonl(any.nid)};
  EXPECT_EQ(any.reason.rfind(inet_ntoa(address), 0), 0u) << any.reason;
}

TEST(NetworkLinks, ABridgeStaysOnTheNodeUnlessAPortLeadsOut) {
  const std::vector<NetworkLink> links = {{1, 0, "eth0", ""},         {2, 3, "eth1", ""},
                                          {3, 0, "br0", "bridge"},    {4, 0, "docker0", "bridge"},
                                          {5, 4, "veth1", "veth"},    {6, 4, "tap0", "tun"},
                                          {7, 0, "virbr0", "bridge"}, {8, 0, "dummy0", "dummy"}};
  for (const char* leads_out : {"eth0", "br0", "veth1", "tap0", "none"})
    EXPECT_FALSE(stays_on_node(links, leads_out)) << leads_out;
  for (const char* stays : {"docker0", "virbr0", "dummy0"})
    EXPECT_TRUE(stays_on_node(links, stays)) << stays;
}

}  // namespace
}  // namespace lintel
