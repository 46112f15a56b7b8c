// The choice of device, port and GID. It is made from descriptions, without a device.
#include "verbs/port_choice.h"

#include <arpa/inet.h>

#include <gtest/gtest.h>

namespace lintel {
namespace {

constexpr uint32_t first_nid = 0xc0a84d01;   // 192.168.77.1
constexpr uint32_t second_nid = 0xc0a84d02;  // 192.168.77.2

ibv_gid gid_of(const char* text) {
  ibv_gid gid{};
  EXPECT_EQ(inet_pton(AF_INET6, text, gid.raw), 1) << text;
  return gid;
}

PortDescription roce_port(const std::string& device, uint8_t number, const std::string& ipv4) {
  PortDescription port;
  port.device = device;
  port.port = number;
  port.is_ethernet = true;
  port.state = IBV_PORT_ACTIVE;
  port.gids = {{0, GidType::roce_v1, gid_of("fe80::1"), 0},
               {1, GidType::roce_v2, gid_of("fe80::1"), 0},
               {2, GidType::roce_v1, gid_of(("::ffff:" + ipv4).c_str()), 0, 120},
               {3, GidType::roce_v2, gid_of(("::ffff:" + ipv4).c_str()), 0, 120}};
  return port;
}

PortDescription infiniband_port(const std::string& device, uint8_t number, uint32_t ipv4) {
  PortDescription port;
  port.device = device;
  port.port = number;
  port.state = IBV_PORT_ACTIVE;
  port.gids = {{0, GidType::infiniband, gid_of("fe80::2:c903:1"), 0}};
  port.ipoib_ipv4 = ipv4;
  return port;
}

uint32_t chosen_gid(const PortDescription& port, int wanted = -1, uint32_t nid = 0) {
  uint32_t row = 1000;
  std::string reason;
  return choose_gid(port, wanted, nid, row, reason) ? port.gids[row].index : 1000 + row;
}

TEST(GidChoiceTest, VersionTwoWithAnIpv4AddressComesFirst) {
  PortDescription port = roce_port("mlx5_0", 1, "192.168.77.1");
  EXPECT_EQ(chosen_gid(port), 3u);
  port.gids.pop_back();
  EXPECT_EQ(chosen_gid(port), 1u);  // version 2 takes precedence over an address
  port.gids.erase(port.gids.begin() + 1);
  EXPECT_EQ(chosen_gid(port), 2u);  // for version 1, the one with an address
}

TEST(GidChoiceTest, LinkLocalAddressesComeAfterOthers) {
  PortDescription port = roce_port("mlx5_0", 1, "192.168.77.1");
  port.gids = {{0, GidType::roce_v2, gid_of("fe80::1"), 0},
               {1, GidType::roce_v2, gid_of("fd00::1"), 0}};
  EXPECT_EQ(chosen_gid(port), 1u);
}

TEST(GidChoiceTest, AmongAddressesTheNidIsPreferred) {
  PortDescription port = roce_port("mlx5_0", 1, "192.168.77.1");
  port.gids.push_back({4, GidType::roce_v2, gid_of("::ffff:192.168.77.2"), 0});
  EXPECT_EQ(chosen_gid(port), 3u);
  EXPECT_EQ(chosen_gid(port, -1, second_nid), 4u);
}

TEST(GidChoiceTest, AnIndexOverrulesTheTypes) {
  const PortDescription port = roce_port("mlx5_0", 1, "192.168.77.1");
  EXPECT_EQ(chosen_gid(port, 0), 0u);
  EXPECT_EQ(chosen_gid(port, 2), 2u);
  uint32_t row = 0;
  std::string reason;
  EXPECT_FALSE(choose_gid(port, 9, 0, row, reason));
  EXPECT_NE(reason.find("PTL_VERBS_GID_INDEX"), std::string::npos) << reason;
}

TEST(GidChoiceTest, EmptyRowsAreNoGids) {
  PortDescription port = roce_port("mlx5_0", 1, "192.168.77.1");
  for (PortGid& row : port.gids) row.gid = {};
  uint32_t row = 0;
  std::string reason;
  EXPECT_FALSE(choose_gid(port, -1, 0, row, reason));
  EXPECT_NE(reason.find("mlx5_0:1 has no GID"), std::string::npos) << reason;
  EXPECT_FALSE(choose_gid(port, 1, 0, row, reason));
}

TEST(GidChoiceTest, RowsThatAddressHandlesCannotNameAreLeftOut) {
  PortDescription port = roce_port("mlx5_0", 1, "192.168.77.1");
  port.gids[3].index = 256;
  EXPECT_EQ(chosen_gid(port), 1u);
}

TEST(GidChoiceTest, InfinibandTakesTheFirst) {
  PortDescription port = infiniband_port("mlx5_0", 1, 0);
  port.gids.push_back({1, GidType::infiniband, gid_of("fe80::3"), 0});
  EXPECT_EQ(chosen_gid(port), 0u);
}

TEST(NidOfPortTest, IsTheAddressOfTheGidOrOfTheInterface) {
  PortDescription port = roce_port("mlx5_0", 1, "192.168.77.1");
  EXPECT_EQ(nid_of(port, 3), first_nid);
  EXPECT_EQ(nid_of(port, 1), 0u);
  port.gids[1].interface_ipv4 = second_nid;
  EXPECT_EQ(nid_of(port, 1), second_nid);
  EXPECT_EQ(nid_of(infiniband_port("mlx5_0", 1, second_nid), 0), second_nid);
}

TEST(PortChoiceTest, TheFirstActivePortIsTaken) {
  std::vector<PortDescription> ports = {roce_port("mlx5_0", 1, "192.168.77.1"),
                                        roce_port("mlx5_1", 1, "192.168.77.2")};
  EXPECT_EQ(choose_port(ports, {}).index, 0u);
  ports[0].state = IBV_PORT_DOWN;
  const PortChoice choice = choose_port(ports, {});
  EXPECT_TRUE(choice.found);
  EXPECT_EQ(choice.index, 1u);
  EXPECT_EQ(choice.nid, second_nid);
  EXPECT_EQ(choice.reason, "the first active port");
}

TEST(PortChoiceTest, ThePortWithTheNidComesBeforeTheFirst) {
  const std::vector<PortDescription> ports = {roce_port("mlx5_0", 1, "192.168.77.1"),
                                              infiniband_port("mlx5_1", 2, second_nid)};
  const PortChoice choice = choose_port(ports, {.nid = second_nid});
  EXPECT_EQ(choice.index, 1u);
  EXPECT_EQ(choose_port(ports, {.nid = 1}).index, 0u);  // no port has this nid: the first one
}

TEST(PortChoiceTest, ANamedDeviceAndPortAreTaken) {
  const std::vector<PortDescription> ports = {infiniband_port("mlx5_0", 1, first_nid),
                                              infiniband_port("mlx5_1", 1, 0),
                                              infiniband_port("mlx5_1", 2, second_nid)};
  EXPECT_EQ(choose_port(ports, {.device = "mlx5_1"}).index, 1u);
  EXPECT_EQ(choose_port(ports, {.device = "mlx5_1", .nid = second_nid}).index, 2u);
  const PortChoice choice = choose_port(ports, {.device = "mlx5_1:2"});
  EXPECT_EQ(choice.index, 2u);
  EXPECT_EQ(choice.reason, "named by PTL_VERBS_DEVICE");
}

TEST(PortChoiceTest, APortWithoutAnAddressCanBeUsed) {
  const PortChoice choice = choose_port({infiniband_port("mlx5_0", 1, 0)}, {});
  EXPECT_TRUE(choice.found);
  EXPECT_EQ(choice.nid, 0u);
}

std::string why_none(const std::vector<PortDescription>& ports, const VerbsPortWish& wish) {
  const PortChoice choice = choose_port(ports, wish);
  EXPECT_FALSE(choice.found);
  return choice.reason;
}

TEST(PortChoiceTest, WhatIsWrongIsSaidWithItsRemedy) {
  EXPECT_EQ(why_none({}, {}), "there is no RDMA device on this node");
  std::vector<PortDescription> ports = {roce_port("mlx5_0", 1, "192.168.77.1")};
  EXPECT_NE(why_none(ports, {.device = "mlx5_7"}).find("there is no such port; there are mlx5_0:1"),
            std::string::npos);
  for (const char* nonsense : {"mlx5_0:", "mlx5_0:0", "mlx5_0:x", "mlx5_0:1x", "mlx5_0:256"})
    EXPECT_NE(why_none(ports, {.device = nonsense}).find("is not a device"), std::string::npos)
        << nonsense;
  ports[0].state = IBV_PORT_DOWN;
  EXPECT_NE(why_none(ports, {}).find("mlx5_0:1 is down; bring its network interface up"),
            std::string::npos);
  std::vector<PortDescription> infiniband = {infiniband_port("mlx5_0", 1, 0)};
  infiniband[0].state = IBV_PORT_INIT;
  EXPECT_NE(why_none(infiniband, {}).find("start a subnet manager"), std::string::npos);
  infiniband[0].fault = "device mlx5_0 cannot be opened (Permission denied)";
  EXPECT_EQ(why_none(infiniband, {}), infiniband[0].fault);
}

TEST(PortChoiceTest, FurtherPortsAreActiveAndOfTheSameKind) {
  std::vector<PortDescription> ports = {
      roce_port("mlx5_0", 1, "192.168.77.1"), infiniband_port("mlx5_1", 1, 0),
      roce_port("mlx5_2", 1, "192.168.78.1"), roce_port("mlx5_2", 2, "192.168.79.1"),
      roce_port("mlx5_3", 1, "192.168.80.1")};
  ports[2].state = IBV_PORT_DOWN;
  using Names = std::vector<std::string>;
  EXPECT_EQ(further_ports(ports, "mlx5_0:1", 4), (Names{"mlx5_2:2", "mlx5_3:1"}));
  EXPECT_EQ(further_ports(ports, "mlx5_3:1", 2), Names{"mlx5_0:1"});
  ports[3].is_near = false;
  EXPECT_EQ(further_ports(ports, "mlx5_0:1", 4), (Names{"mlx5_3:1", "mlx5_2:2"}));
  EXPECT_EQ(further_ports(ports, "mlx5_1:1", 4), Names{});
  EXPECT_EQ(further_ports(ports, "mlx5_0:1", 1), Names{});
}

TEST(PortChoiceTest, ProcessesOfANodeBeginWithNearPortsOfOneNetwork) {
  std::vector<PortDescription> ports = {
      roce_port("mlx5_0", 1, "192.168.77.1"), roce_port("mlx5_1", 1, "192.168.77.2"),
      roce_port("mlx5_2", 1, "192.168.78.1"), roce_port("mlx5_3", 1, "192.168.77.3")};
  const std::string first = "mlx5_0:1";
  EXPECT_EQ(nearest_port(ports, first, 0), first);
  EXPECT_EQ(nearest_port(ports, first, 1), "mlx5_1:1");
  EXPECT_EQ(nearest_port(ports, first, 2), "mlx5_3:1");
  EXPECT_EQ(nearest_port(ports, first, 3), first);
  ports[0].is_near = false;
  EXPECT_EQ(nearest_port(ports, first, 0), "mlx5_1:1");
  ports[1].state = IBV_PORT_DOWN;
  EXPECT_EQ(nearest_port(ports, first, 0), "mlx5_3:1");
  // Other networks are not taken.
  ports[3].is_near = false;
  EXPECT_EQ(nearest_port(ports, first, 0), first);
}

TEST(PortChoiceTest, NetworksAreToldApartByTheirPrefix) {
  const ibv_gid low = gid_of("::ffff:10.0.0.1");
  const ibv_gid high = gid_of("::ffff:10.0.0.129");
  EXPECT_TRUE(shares_network(low, high, 96 + 24));
  EXPECT_FALSE(shares_network(low, high, 96 + 25));
  EXPECT_TRUE(shares_network(low, gid_of("::ffff:10.0.0.126"), 96 + 25));
  EXPECT_TRUE(shares_network(low, gid_of("::ffff:10.0.200.1"), 96 + 16));
  EXPECT_FALSE(shares_network(low, high, 128));
  EXPECT_TRUE(shares_network(gid_of("fe80::1"), gid_of("fe80::2"), 64));
  EXPECT_FALSE(shares_network(gid_of("fe80::1"), gid_of("fe81::1"), 64));
  // A process begins with no port of the other network.
  std::vector<PortDescription> ports = {roce_port("mlx5_0", 1, "10.0.0.1"),
                                        roce_port("mlx5_1", 1, "10.0.0.129")};
  EXPECT_EQ(nearest_port(ports, "mlx5_0:1", 1), "mlx5_1:1");
  for (PortDescription& port : ports) port.gids[3].network_bits = 96 + 25;
  EXPECT_EQ(nearest_port(ports, "mlx5_0:1", 1), "mlx5_0:1");
  ports[0].is_near = false;
  EXPECT_EQ(nearest_port(ports, "mlx5_0:1", 0), "mlx5_0:1");
}

TEST(PortChoiceTest, GidsAreShownWithTheirType) {
  const PortDescription port = roce_port("mlx5_0", 1, "192.168.77.1");
  EXPECT_EQ(gid_text(port.gids[3]), "RoCE v2 GID 3 (::ffff:192.168.77.1)");
  EXPECT_EQ(ipv4_of(port.gids[3].gid), first_nid);
  EXPECT_EQ(ipv4_of(port.gids[0].gid), 0u);
}

}  // namespace
}  // namespace lintel
