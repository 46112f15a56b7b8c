// Headers of Ethernet frames, limits of devices, and the assignment of ports to processes.
#include "dpdk/ethernet_frame.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "dpdk/device_limits.h"
#include "wiring/device_choice.h"

namespace lintel {
namespace {

constexpr MacAddress us{2, 0, 0, 0, 0, 1};
constexpr MacAddress peer{2, 0, 0, 0, 0, 2};

std::vector<std::byte> frame_of(const EthernetHeader& header, size_t bytes) {
  std::vector<std::byte> frame(sizeof header + bytes);
  std::memcpy(frame.data(), &header, sizeof header);
  return frame;
}

EthernetFrame parse(const std::vector<std::byte>& frame) {
  return parse_ethernet_frame(frame.data(), static_cast<uint32_t>(frame.size()), us);
}

TEST(EthernetFrame, WhatIsMadeIsUnderstood) {
  // The frame is longer than its length field: Ethernet pads short frames.
  const auto bytes = frame_of(make_ethernet_header(us, peer, EthernetKind::frame, 32), 44);
  const EthernetFrame frame = parse(bytes);
  EXPECT_TRUE(frame.valid);
  EXPECT_EQ(frame.kind, EthernetKind::frame);
  EXPECT_EQ(frame.from, peer);
  EXPECT_EQ(frame.length, 32u);
  EXPECT_EQ(frame.body, bytes.data() + 16);
  EXPECT_EQ(std::to_integer<int>(bytes[12]), 0x88);
  EXPECT_EQ(std::to_integer<int>(bytes[13]), 0xb5);
}

TEST(EthernetFrame, FramesThatAreNotForUsAreNotTaken) {
  const auto is_valid = [](const EthernetHeader& header, size_t bytes = 100) {
    return parse(frame_of(header, bytes)).valid;
  };
  const EthernetHeader good = make_ethernet_header(us, peer, EthernetKind::frame, 100);
  EXPECT_TRUE(is_valid(good));
  EXPECT_FALSE(is_valid(good, 99));
  EXPECT_FALSE(is_valid(make_ethernet_header(peer, peer, EthernetKind::frame, 100)));
  EXPECT_FALSE(is_valid(make_ethernet_header(us, us, EthernetKind::frame, 100)));
  EXPECT_FALSE(is_valid(make_ethernet_header(us, broadcast_mac, EthernetKind::frame, 100)));
  EXPECT_FALSE(is_valid(make_ethernet_header(us, {}, EthernetKind::frame, 100)));
  EXPECT_FALSE(is_valid(make_ethernet_header(broadcast_mac, peer, EthernetKind::frame, 100)));
  EXPECT_TRUE(is_valid(make_ethernet_header(broadcast_mac, peer, EthernetKind::discovery, 100)));
  EXPECT_FALSE(is_valid(make_ethernet_header(us, peer, static_cast<EthernetKind>(0), 100)));
  EXPECT_FALSE(is_valid(make_ethernet_header(us, peer, static_cast<EthernetKind>(3), 100)));
  EthernetHeader other_type = good;
  other_type.type[1] = 0;
  EXPECT_FALSE(is_valid(other_type));
  for (uint32_t length = 0; length < 16; ++length)
    EXPECT_FALSE(parse_ethernet_frame(frame_of(good, 100).data(), length, us).valid);
}

TEST(DeviceLimits, FollowFromTheArgumentsOfVirtualDevices) {
  const DeviceLimits memif = limits_of_device("net_memif0,role=server,bsize=9216,rsize=9");
  EXPECT_TRUE(memif.known);
  EXPECT_EQ(memif.frame_bytes, 9216u);
  EXPECT_EQ(memif.ring_frames, 512u);
  EXPECT_EQ(limits_of_device("net_memif1").frame_bytes, 2048u);
  const DeviceLimits packet =
      limits_of_device("net_af_packet0,iface=nothere,framesz=4096,framecnt=64");
  EXPECT_EQ(packet.frame_bytes, 4000u);
  EXPECT_EQ(packet.ring_frames, 64u);
  // The loopback interface always exists, and its frames are longer than the slot.
  EXPECT_EQ(limits_of_device("net_af_packet0,iface=lo,framesz=2048").frame_bytes, 1952u);
  EXPECT_FALSE(limits_of_device("0000:3b:02.1").known);
  EXPECT_EQ(device_argument("net_memif0,id=0,socket=a", "socket"), "a");
  EXPECT_EQ(device_argument("net_memif0,id=0,socket=a", "sock"), "");
}

TEST(DeviceLimits, OnlyWhatCopiesSendsFromAnywhere) {
  EXPECT_EQ(frame_memory_of("net_memif0,role=client,bsize=9216"), FrameMemory::anywhere);
  EXPECT_EQ(frame_memory_of("net_memif0,role=client,zero-copy=yes"), FrameMemory::of_dpdk);
  EXPECT_EQ(frame_memory_of("net_af_packet0,iface=eth1"), FrameMemory::anywhere);
  EXPECT_EQ(frame_memory_of("net_virtio_user0,path=/tmp/sock"), FrameMemory::of_dpdk);
  EXPECT_EQ(frame_memory_of("net_vhost0,iface=/tmp/sock"), FrameMemory::registered);
  EXPECT_EQ(frame_memory_of("0000:3b:02.1"), FrameMemory::registered);
}

TEST(DpdkChoice, PortsAreDealtOutByLocalRank) {
  using Ports = std::vector<std::string>;
  const std::string list = " 0000:3b:02.1 ; net_memif0,role=client;";
  EXPECT_EQ(choose_dpdk_port(list, 0, "PMIx").settings.ports, Ports{"0000:3b:02.1"});
  const DpdkChoice second = choose_dpdk_port(list, 1, "PMIx");
  EXPECT_EQ(second.settings.ports, Ports{"net_memif0,role=client"});
  EXPECT_EQ(second.reason, "the port of process 1 of its node (PMIx)");
  const DpdkChoice third = choose_dpdk_port(list, 2, "PMIx");
  EXPECT_EQ(third.settings.ports, Ports{});
  EXPECT_EQ(
      third.reason,
      "PTL_DPDK_PORTS lists 2 ports, counted from 0, and this is process 2 of its node (PMIx)");
  EXPECT_EQ(why_not_dpdk(third), third.reason);
  EXPECT_EQ(why_not_dpdk(choose_dpdk_port(" ; ", 0, "PMIx")), no_dpdk_ports);
}

TEST(DpdkChoice, AProcessMayHaveSeveralPorts) {
  const DpdkChoice choice = choose_dpdk_port("3b:02.1; 3b:02.2 + 5e:02.2", 1, "PMIx");
  EXPECT_EQ(choice.settings.ports, (std::vector<std::string>{"3b:02.2", "5e:02.2"}));
  EXPECT_EQ(choice.reason, "the ports of process 1 of its node (PMIx)");
  EXPECT_EQ(why_not_dpdk(choose_dpdk_port("1+2+3+4+5", 0, "PMIx")),
            "PTL_DPDK_PORTS lists 5 ports for one process, more than 4");
}

}  // namespace
}  // namespace lintel
