// Which network interfaces UDP uses beside the first one, and with which of a peer each is paired.
#include "udp/udp_rails.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include <gtest/gtest.h>

#include "reliable/rail_pairs.h"
#include "support/ethernet.h"
#include "udp_test_support.h"
#include "util/near_processors.h"

namespace lintel::test {
namespace {

TEST(UdpRailsTest, NearIsWhatSharesAProcessor) {
  EXPECT_TRUE(shares_processor("0-3,8", {8, 9}));
  EXPECT_TRUE(shares_processor("0-3,8", {2}));
  EXPECT_FALSE(shares_processor("0-3,8", {4, 5, 6, 7, 9}));
  EXPECT_TRUE(shares_processor("", {4})) << "nothing is known";
  EXPECT_TRUE(shares_processor("0-3", {}));
}

TEST(UdpRailsTest, DistancesAreThoseOfTheTreeOfPciDevices) {
  namespace fs = std::filesystem;
  char name[] = "/tmp/lintel-pci-XXXXXX";
  ASSERT_NE(mkdtemp(name), nullptr);
  const fs::path top = name;
  const auto device = [&](const std::string& path, const char* node) {
    fs::create_directories(top / "devices" / path);
    std::ofstream(top / "devices" / path / "numa_node") << node << '\n';
    fs::create_directory_symlink(top / "devices" / path, top / fs::path(path).filename());
  };
  device("pci0000:3a/0000:3a:00.0/0000:3b:00.0", "0");
  device("pci0000:3a/0000:3a:00.0/0000:3b:00.1", "0");
  device("pci0000:3a/0000:3a:01.0/0000:3c:00.0", "0");
  device("pci0000:5d/0000:5d:00.0/0000:5e:00.0", "0");
  device("pci0000:ae/0000:ae:00.0/0000:af:00.0", "1");
  device("pci0000:d7/0000:d7:00.0/0000:d8:00.0", "-1");
  device("pci0000:e7/0000:e7:00.0/0000:e8:00.0", "-1");
  const auto distance = [&](const char* one, const char* other) {
    return pci_distance(top / one, top / other);
  };
  EXPECT_EQ(distance("0000:3b:00.0", "0000:3b:00.1"), PciDistance::bridge);
  EXPECT_EQ(distance("0000:3b:00.0", "0000:3c:00.0"), PciDistance::root);
  EXPECT_EQ(distance("0000:3b:00.0", "0000:5e:00.0"), PciDistance::numa_node);
  EXPECT_EQ(distance("0000:3b:00.0", "0000:af:00.0"), PciDistance::far);
  EXPECT_EQ(distance("0000:d8:00.0", "0000:e8:00.0"), PciDistance::far);
  EXPECT_EQ(distance("0000:3b:00.0", "0000:ff:00.0"), PciDistance::far) << "there is none";
  EXPECT_EQ(pci_directory("0000:3B:00.0"), "/sys/bus/pci/devices/0000:3b:00.0");
  fs::remove_all(top);
}

bool add_interface(const std::string& name, const std::string& address, const std::string& mtu) {
  return run_command("ip link add " + name + " type veth peer name far-" + name) &&
         run_command("ip link set " + name + " up mtu " + mtu) &&
         run_command("ip address add " + address + "/24 dev " + name);
}

RailAddress rail_at(const char* address) {
  RailAddress rail;
  const IpAddress bytes = ip_address_of({}, ntohl(inet_addr(address)));
  std::copy(bytes.begin(), bytes.end(), rail.bytes.begin());
  return rail;
}

// All but that of the nid.
std::vector<std::string> names_of(const UdpRails& rails) {
  std::vector<std::string> names;
  for (const UdpRail& rail : rails.ports)
    if (rail.index != 0) names.push_back(rail.interface);
  return names;
}

void expect_choice(const NodeIdentity& host) {
  using Names = std::vector<std::string>;
  const UdpRails all = find_udp_rails(host, "auto", {});
  EXPECT_EQ(names_of(all), (Names{"second", "third"}));
  EXPECT_NE(all.reason.find("narrow has an MTU of 1300"), std::string::npos) << all.reason;
  EXPECT_TRUE(find_udp_rails(host, "", {}).ports.empty());
  EXPECT_TRUE(find_udp_rails(host, "1", {}).ports.empty());
  EXPECT_EQ(names_of(find_udp_rails(host, "2", {})), (Names{"second"}));
  EXPECT_EQ(names_of(find_udp_rails(host, "first,third", {})), (Names{"third"}));
  for (const char* wanted : {"", "auto", "1", "4", "first,third"})
    EXPECT_TRUE(is_rail_choice(wanted));
  for (const char* wanted : {"0", "5", "fourth", "first,fourth"})
    EXPECT_FALSE(is_rail_choice(wanted)) << wanted;
}

// Process 1 of the node begins with the second interface, and process 2 with the third one.
void expect_spreading(const NodeIdentity& host) {
  using Names = std::vector<std::string>;
  const auto rails_of = [&](const char* wanted, uint32_t rank) {
    return find_udp_rails(host, wanted, {rank, "the test"});
  };
  EXPECT_EQ(names_of(rails_of("auto", 1)), (Names{"second", "third"}));
  EXPECT_EQ(rails_of("auto", 1).first_place, 2u);
  EXPECT_EQ(names_of(rails_of("auto", 2)), (Names{"third", "second"}));
  EXPECT_EQ(rails_of("auto", 2).first_place, 1u);
  EXPECT_EQ(rails_of("auto", 3).first_place, 0u);
  const UdpRails one = rails_of("1", 1);
  EXPECT_EQ(names_of(one), (Names{"second"}));
  EXPECT_EQ(one.used, 1u);
  EXPECT_EQ(one.first_place, 1u);
  EXPECT_NE(one.reason.find("second first, as this is process 1 of its node (the test)"),
            std::string::npos)
      << one.reason;
}

std::vector<std::string> pairs_with(const UdpLink& link, ProcessId peer,
                                    const std::vector<const char*>& addresses) {
  std::vector<RailAddress> told;
  for (const char* address : addresses) told.push_back(rail_at(address));
  const RailPairs pairs =
      pair_rails(link, peer, told, udp_address_of(find_udp_host("first"), peer));
  std::vector<std::string> texts;
  for (unsigned i = 0; i < pairs.count; ++i) {
    const unsigned rail = pairs.to[i].rail();
    EXPECT_EQ(pairs.ports[pairs.port[i]], pairs.to[i].without_rail());
    texts.push_back((rail == UdpSocket::plain_rail ? "first" : std::to_string(rail)) + " to " +
                    udp_address_text(pairs.to[i]));
  }
  return texts;
}

void expect_pairs(const UdpLink& link) {
  using Pairs = std::vector<std::string>;
  const ProcessId peer{0x0a4f0002, 7};
  EXPECT_EQ(pairs_with(link, peer, {"10.79.0.2", "10.81.0.2", "10.99.0.2", "10.80.0.2"}),
            (Pairs{"first to 10.79.0.2:1031", "1 to 10.80.0.2:1031", "2 to 10.81.0.2:1031"}));
  EXPECT_EQ(pairs_with(link, {0x0a500002, 7}, {"10.80.0.2", "10.79.0.2", "10.81.0.2"}),
            (Pairs{"first to 10.79.0.2:1031", "1 to 10.80.0.2:1031", "2 to 10.81.0.2:1031"}))
      << "its first port is in the network of the second one here";
  EXPECT_EQ(pairs_with(link, {0x0a4f0001, 8}, {"10.79.0.1", "10.80.0.1", "10.81.0.1"}), Pairs{})
      << "of this node";
  EXPECT_EQ(pairs_with(link, peer, {"10.79.0.2", "10.81.0.2", "10.99.0.2"}),
            (Pairs{"first to 10.79.0.2:1031", "1 to 10.99.0.2:1031", "2 to 10.81.0.2:1031"}))
      << "of another network, behind a router: it goes with the rail that is left";
}

// A peer calls, and is called, before it has told its rails.
void expect_calls(UdpLink& link) {
  const NodeIdentity host = find_udp_host("first");
  const ProcessId peer{0x0a4f0002, 7};
  LinkAddress ways[most_ways];
  ASSERT_EQ(link.ways_to(peer, {}, ways), 5u);
  EXPECT_EQ(ways[0].without_rail(), udp_address_of(host, peer));
  EXPECT_EQ(ways[1].without_rail(), ways[0].without_rail());
  EXPECT_EQ(ways[1].rail(), 1u);
  EXPECT_EQ(udp_address_text(ways[4]), "10.81.0.2:1031");
  EXPECT_EQ(ways[4].rail(), 2u);
  Route route;
  const LinkAddress third = ways[4].without_rail();
  EXPECT_TRUE(link.adopt(peer, third, route));
  EXPECT_EQ(route.address, third);
  EXPECT_EQ(route.mtu, 1372u) << "what the first rail takes";
  EXPECT_FALSE(link.adopt({peer.nid, 8}, third, route)) << "the port is that of another process";
  EXPECT_FALSE(link.adopt({host.nid, 7}, third, route)) << "of this node";
  EXPECT_FALSE(link.adopt({0, 7}, third, route));
}

TEST(UdpRailsTest, InterfacesOfTheSameNetworkArePaired) {
  bool possible = false;
  std::thread([&] {
    possible = unshare(CLONE_NEWNET) == 0 && add_interface("first", "10.79.0.1", "1400") &&
               add_interface("second", "10.80.0.1", "1400") &&
               add_interface("third", "10.81.0.1", "1500") &&
               add_interface("narrow", "10.82.0.1", "1300");
    if (!possible) return;
    UdpSettings settings;
    settings.host = find_udp_host("first");
    settings.pid = 7;
    expect_choice(settings.host);
    expect_spreading(settings.host);
    settings.rails = find_udp_rails(settings.host, "auto", {});
    std::unique_ptr<UdpLink> link;
    std::string reason;
    ASSERT_EQ(UdpLink::open(settings, link, reason), OpenStatus::opened) << reason;
    expect_pairs(*link);
    expect_calls(*link);
  }).join();
  if (!possible) GTEST_SKIP() << "a network of its own needs root, and the command ip (iproute2)";
}

}  // namespace
}  // namespace lintel::test
