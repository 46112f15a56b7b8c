// Datagrams over the stand-in for libibverbs: bursts, buffers, addresses, sleep, failing queue
// pairs.
#include "verbs/ud_link.h"

#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <chrono>
#include <cstring>
#include <thread>

#include "ud_test_support.h"

namespace lintel::test {
namespace {

class UdLinkTest : public testing::Test {
 protected:
  UdLinkTest() { fake_verbs::reset({.devices = 2}); }
  ~UdLinkTest() override {
    EXPECT_EQ(fake_verbs::violations(), std::vector<std::string>{});
    EXPECT_EQ(fake_verbs::in_use(), fake_verbs::InUse{});
  }

  // Sends frames of these lengths and checks that they arrive unchanged.
  void exchange(UdLink& from, UdLink& to, const Route& route, const std::vector<size_t>& lengths) {
    std::vector<std::vector<std::byte>> bytes;
    for (const size_t length : lengths) bytes.push_back(numbered_bytes(number_++, length));
    ASSERT_EQ(send_frames(from, route.address, bytes), bytes.size());
    const std::vector<ArrivedFrame> arrived = receive_all(to, bytes.size());
    ASSERT_EQ(arrived.size(), bytes.size());
    for (size_t i = 0; i < bytes.size(); ++i) {
      ASSERT_EQ(arrived[i].bytes, bytes[i]) << i;
      EXPECT_EQ(arrived[i].from, arrived[0].from);
    }
  }

 private:
  uint64_t number_ = 0;
};

TEST_F(UdLinkTest, BurstsOfAllSizesArriveInOrderAndIntact) {
  const UdSide first = open_ud(), second = open_ud("fake1");
  const Route route = route_between(*first.link, *second.link);
  EXPECT_EQ(route.mtu, 4096u);
  for (int turn = 0; turn < 20; ++turn) {
    exchange(*first.link, *second.link, route, {1});
    exchange(*first.link, *second.link, route, {188, 189, 4096, 8, 1000});
    exchange(*first.link, *second.link, route, std::vector<size_t>(64, 700));
  }
  const LinkCounters sent = first.link->counters();
  const LinkCounters received = second.link->counters();
  EXPECT_EQ(sent.frames_sent, 20u * 70);
  EXPECT_EQ(received.frames_received, sent.frames_sent);
  EXPECT_EQ(received.bytes_received, sent.bytes_sent);
  EXPECT_EQ(received.frames_malformed, 0u);
}

TEST_F(UdLinkTest, PiecesAreGathered) {
  const UdSide first = open_ud(), second = open_ud();
  const Route route = route_between(*first.link, *second.link);
  for (const size_t length : {30, 3000}) {
    for (const unsigned count : {2u, 3u, 8u}) {
      std::vector<std::byte> bytes = numbered_bytes(length + count, length);
      std::vector<Piece> pieces;
      for (unsigned i = 0; i < count; ++i) {
        const size_t from = length * i / count;
        pieces.push_back({bytes.data() + from, length * (i + 1) / count - from});
      }
      const OutboundFrame frame{&route.address, pieces.data(), count};
      ASSERT_EQ(first.link->send(&frame, 1), 1u);
      EXPECT_EQ(receive_all(*second.link, 1).at(0).bytes, bytes);
    }
  }
}

// Also between two links of one device, and from a link to itself.
TEST_F(UdLinkTest, AnswersGoBackToWhereFramesCameFrom) {
  const UdSide first = open_ud(), second = open_ud("fake1"), third = open_ud("fake1");
  const Route to_second = route_between(*first.link, *second.link);
  ASSERT_EQ(send_frame(*first.link, to_second.address, numbered_bytes(1, 100)), 1u);
  const LinkAddress from = receive_all(*second.link, 1).at(0).from;
  // No address handle for the other device exists yet. Until it does, frames to that device are
  // lost.
  std::vector<ArrivedFrame> back;
  EXPECT_TRUE(wait_until([&] {
    EXPECT_EQ(send_frame(*second.link, from, numbered_bytes(2, 200)), 1u);
    return receive_some(*first.link, back) > 0;
  }));
  EXPECT_EQ(back.at(0).bytes, numbered_bytes(2, 200));
  EXPECT_EQ(back.at(0).from, to_second.address);
  Route adopted;
  EXPECT_TRUE(second.link->adopt(first.link->id(), from, adopted));
  EXPECT_EQ(adopted.address, from);

  const Route to_third = route_between(*second.link, *third.link);
  exchange(*second.link, *third.link, to_third, {1000});
  const Route to_itself{third.link->own_address(), 4096};
  exchange(*third.link, *third.link, to_itself, {1000});
}

TEST_F(UdLinkTest, AnAddressThatNobodyGaveOutIsRefused) {
  const UdSide side = open_ud();
  LinkAddress invented;
  invented.bytes.fill(std::byte{0x5a});
  Route route;
  EXPECT_FALSE(side.link->adopt({1, 2}, invented, route));
  EXPECT_EQ(send_frame(*side.link, invented, numbered_bytes(1, 8)), 1u);
  EXPECT_EQ(side.link->counters().send_errors, 1u);
}

// Frames returned by receive() remain unchanged until the next call, whatever arrives in between.
TEST_F(UdLinkTest, FramesStayUntilTheNextReceive) {
  const UdSide first = open_ud(), second = open_ud("", 64);
  const Route route = route_between(*first.link, *second.link);
  for (unsigned round = 0; round < 10; ++round) {
    std::vector<std::vector<std::byte>> bytes;
    for (uint64_t i = 0; i < 40; ++i) bytes.push_back(numbered_bytes(round * 40 + i, 600));
    ASSERT_EQ(send_frames(*first.link, route.address, bytes), bytes.size());
    InboundFrame frames[PacketLink::largest_burst];
    const unsigned got = second.link->receive(frames, 40);
    ASSERT_EQ(got, 40u);
    std::vector<std::vector<std::byte>> later(60, numbered_bytes(0, 600));
    ASSERT_EQ(send_frames(*first.link, route.address, later), later.size());
    static_cast<void>(second.link->arm());
    for (unsigned i = 0; i < got; ++i)
      ASSERT_EQ(std::memcmp(frames[i].data, bytes[i].data(), 600), 0) << round << " " << i;
    std::vector<ArrivedFrame> rest;
    while (receive_some(*second.link, rest) > 0) {
    }
    EXPECT_GE(rest.size(), 24u);
  }
}

TEST_F(UdLinkTest, AFullQueueTakesNoMore) {
  const UdSide first = open_ud(), second = open_ud("", 1024);
  const Route route = route_between(*first.link, *second.link);
  fake_verbs::hold();
  std::vector<std::vector<std::byte>> bytes;
  for (uint64_t i = 0; i < 300; ++i) bytes.push_back(numbered_bytes(i, 300));
  const unsigned taken = send_frames(*first.link, route.address, bytes);
  EXPECT_EQ(taken, 256u);
  EXPECT_EQ(first.link->counters().send_full, 300u - taken);
  EXPECT_EQ(send_frame(*first.link, route.address, bytes[0]), 0u);
  fake_verbs::release();
  std::vector<std::vector<std::byte>> rest(bytes.begin() + taken, bytes.end());
  EXPECT_EQ(send_frames(*first.link, route.address, rest), rest.size());
  const std::vector<ArrivedFrame> arrived = receive_all(*second.link, bytes.size());
  for (size_t i = 0; i < bytes.size(); ++i) ASSERT_EQ(arrived.at(i).bytes, bytes[i]) << i;
}

// Frames of the reliability layer are not copied after their memory has been registered.
TEST_F(UdLinkTest, OfferedMemoryIsRegisteredAsItIsUsedAndSentFrom) {
  constexpr size_t bytes = 4 * UdMemory::part_bytes;
  void* const memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto* const start = static_cast<std::byte*>(memory);
  {
    const UdSide first = open_ud(), second = open_ud();
    ASSERT_TRUE(first.link->offer_memory(start, bytes));
    EXPECT_FALSE(first.link->offer_memory(start, bytes));
    const Route route = route_between(*first.link, *second.link);
    const uint64_t before = fake_verbs::registered_bytes();
    const auto send_from = [&](size_t offset, size_t length, uint64_t number) {
      const std::vector<std::byte> content = numbered_bytes(number, length);
      std::memcpy(start + offset, content.data(), length);
      const Piece piece{start + offset, length};
      const OutboundFrame frame{&route.address, &piece, 1};
      ASSERT_EQ(first.link->send(&frame, 1), 1u);
      ASSERT_EQ(receive_all(*second.link, 1).at(0).bytes, content);
    };
    send_from(16, 1000, 1);
    EXPECT_TRUE(wait_until(
        [&] { return fake_verbs::registered_bytes() == before + UdMemory::part_bytes; }));
    send_from(2000, 1000, 2);
    // The data extend over two parts.
    const size_t edge = 2 * UdMemory::part_bytes - 300;
    send_from(edge, 1000, 3);
    EXPECT_TRUE(wait_until([&] {
      send_from(edge, 1000, 4);
      return fake_verbs::registered_bytes() == before + 3 * UdMemory::part_bytes;
    }));
    send_from(edge, 1000, 5);
    // The last bytes of the memory.
    send_from(bytes - 1000, 1000, 6);
    // The device reads this memory, not a copy.
    fake_verbs::hold();
    std::memcpy(start + 4000, numbered_bytes(7, 1000).data(), 1000);
    const Piece piece{start + 4000, 1000};
    const OutboundFrame frame{&route.address, &piece, 1};
    ASSERT_EQ(first.link->send(&frame, 1), 1u);
    std::memcpy(start + 4000, numbered_bytes(8, 1000).data(), 1000);
    fake_verbs::release();
    EXPECT_EQ(receive_all(*second.link, 1).at(0).bytes, numbered_bytes(8, 1000));
  }
  munmap(memory, bytes);
}

TEST_F(UdLinkTest, MemoryThatTheDeviceRefusesIsCopied) {
  std::vector<std::byte> memory(2 * UdMemory::part_bytes);
  const UdSide first = open_ud(), second = open_ud();
  ASSERT_TRUE(first.link->offer_memory(memory.data(), memory.size()));
  const Route route = route_between(*first.link, *second.link);
  fake_verbs::fail_call("ibv_reg_mr", ENOMEM, 1, 1000);
  const unsigned before = fake_verbs::calls("ibv_reg_mr");
  for (uint64_t i = 0; i < 20; ++i) {
    const std::vector<std::byte> content = numbered_bytes(i, 1000);
    std::memcpy(memory.data() + 64, content.data(), content.size());
    const Piece piece{memory.data() + 64, content.size()};
    const OutboundFrame frame{&route.address, &piece, 1};
    ASSERT_EQ(first.link->send(&frame, 1), 1u);
    ASSERT_EQ(receive_all(*second.link, 1).at(0).bytes, content);
  }
  EXPECT_TRUE(wait_until([&] { return fake_verbs::calls("ibv_reg_mr") > before; }));
  EXPECT_TRUE(wait_until(
      [&] { return first.link->describe().find("frames copied") != std::string::npos; }));
  EXPECT_EQ(fake_verbs::calls("ibv_reg_mr"), before + 1);  // there is no further attempt
  fake_verbs::fail_call("ibv_reg_mr", 0, 1, 0);
}

TEST_F(UdLinkTest, ASleeperIsWoken) {
  const UdSide first = open_ud(), second = open_ud();
  const Route route = route_between(*first.link, *second.link);
  const auto is_readable = [&] {
    pollfd waited{second.link->descriptor(), POLLIN, 0};
    return poll(&waited, 1, 0) == 1;
  };
  for (int turn = 0; turn < 3; ++turn) {
    ASSERT_TRUE(second.link->arm());
    EXPECT_FALSE(is_readable());
    ASSERT_EQ(send_frame(*first.link, route.address, numbered_bytes(1, 50)), 1u);
    EXPECT_TRUE(wait_until(is_readable));
    second.link->disarm();
    EXPECT_EQ(receive_all(*second.link, 1).size(), 1u);
  }
  // A frame that arrived before the sleep prevents it, and is not lost.
  ASSERT_EQ(send_frame(*first.link, route.address, numbered_bytes(2, 50)), 1u);
  EXPECT_FALSE(second.link->arm());
  EXPECT_FALSE(second.link->arm());
  EXPECT_EQ(receive_all(*second.link, 1).at(0).bytes, numbered_bytes(2, 50));
  EXPECT_TRUE(second.link->arm());
}

// Two processes with two ports each.
class UdRailsTest : public testing::Test {
 protected:
  UdRailsTest() {
    fake_verbs::reset({.devices = 4});
    first_ = open_ud("fake0", 256, {"fake1"});
    second_ = open_ud("fake2", 256, {"fake3"});
  }
  ~UdRailsTest() override {
    first_ = {};
    second_ = {};
    EXPECT_EQ(fake_verbs::violations(), std::vector<std::string>{});
    EXPECT_EQ(fake_verbs::in_use(), fake_verbs::InUse{});
  }

  // The address of frames by a port of the first process to one of the second.
  [[nodiscard]] LinkAddress by(unsigned rail, unsigned port) const {
    return first_.link->rail_address(second_.link->id(), rail,
                                     second_.link->properties().rails[port]);
  }
  // Sends until a frame arrives: a thread makes the address handle.
  [[nodiscard]] ArrivedFrame pass(const LinkAddress& to) const {
    std::vector<ArrivedFrame> arrived;
    EXPECT_TRUE(wait_until([&] {
      send_frame(*first_.link, to, numbered_bytes(7, 500));
      return receive_some(*second_.link, arrived) != 0;
    }));
    while (receive_some(*second_.link, arrived) != 0) continue;
    return arrived.empty() ? ArrivedFrame{} : arrived.back();
  }

  UdSide first_;
  UdSide second_;
};

TEST_F(UdRailsTest, FramesGoByTheRailThatTheirAddressNames) {
  ASSERT_EQ(first_.link->properties().rail_count, 2u);
  for (const unsigned rail : {0u, 1u})
    for (const unsigned port : {0u, 1u}) {
      const uint64_t before = first_.link->counters().rail_bytes[0];
      const ArrivedFrame arrived = pass(by(rail, port));
      EXPECT_EQ(arrived.bytes, numbered_bytes(7, 500));
      EXPECT_EQ(arrived.from.rail(), port);
      EXPECT_EQ(first_.link->counters().rail_bytes[0] > before, rail == 1);
      // An answer.
      Route route;
      EXPECT_TRUE(wait_until([&] {
        send_frame(*second_.link, arrived.from, numbered_bytes(8, 100));
        std::vector<ArrivedFrame> answers;
        return receive_some(*first_.link, answers) != 0 && answers[0].from.rail() == rail;
      }));
      EXPECT_TRUE(second_.link->adopt(first_.link->id(), arrived.from, route));
    }
}

TEST_F(UdRailsTest, APortThatIsDownLosesItsFramesAlone) {
  EXPECT_EQ(pass(by(1, 1)).bytes.size(), 500u);
  fake_verbs::set_port(1, false);
  EXPECT_EQ(send_frame(*first_.link, by(1, 1), numbered_bytes(9, 400)), 1u);
  EXPECT_EQ(pass(by(0, 0)).bytes.size(), 500u);
  std::vector<ArrivedFrame> ignored;
  EXPECT_EQ(receive_some(*second_.link, ignored), 0u);
}

// Frames by other ports do not wait for its repair.
TEST_F(UdRailsTest, APortWhoseQueuePairFailedLosesItsFramesAlone) {
  static_cast<void>(pass(by(1, 1)));
  fake_verbs::raise_queue_pair_event(first_.link->queue_pair_number(1), IBV_EVENT_QP_FATAL);
  EXPECT_TRUE(wait_until([&] {
    static_cast<void>(send_frame(*first_.link, by(1, 1), numbered_bytes(9, 400)));
    return first_.link->counters().send_errors != 0;
  }));
  EXPECT_EQ(send_frame(*first_.link, by(1, 1), numbered_bytes(9, 400)), 1u);
  EXPECT_EQ(first_.link->counters().send_full, 0u);
}

TEST_F(UdRailsTest, ASleeperIsWokenByEachPort) {
  for (const unsigned rail : {0u, 1u}) static_cast<void>(pass(by(rail, rail)));
  const auto is_readable = [&] {
    pollfd waited{second_.link->descriptor(), POLLIN, 0};
    return poll(&waited, 1, 0) == 1;
  };
  for (const unsigned rail : {0u, 1u, 0u, 1u}) {
    ASSERT_TRUE(second_.link->arm());
    EXPECT_FALSE(is_readable());
    ASSERT_EQ(send_frame(*first_.link, by(rail, rail), numbered_bytes(1, 50)), 1u);
    EXPECT_TRUE(wait_until(is_readable));
    second_.link->disarm();
    EXPECT_EQ(receive_all(*second_.link, 1).size(), 1u);
  }
}

TEST_F(UdRailsTest, EachPortIsRepaired) {
  static_cast<void>(pass(by(1, 1)));
  fake_verbs::raise_queue_pair_event(first_.link->queue_pair_number(1), IBV_EVENT_QP_FATAL);
  EXPECT_TRUE(wait_until([&] {
    std::vector<ArrivedFrame> ignored;
    receive_some(*first_.link, ignored);
    return first_.link->repairs() == 1;
  }));
  EXPECT_EQ(pass(by(1, 1)).bytes.size(), 500u);
}

TEST_F(UdRailsTest, APortThatIsDownIsRepairedAfterwards) {
  static_cast<void>(pass(by(1, 1)));
  fake_verbs::set_port(1, false);
  fake_verbs::raise_queue_pair_event(first_.link->queue_pair_number(1), IBV_EVENT_QP_FATAL);
  std::vector<ArrivedFrame> ignored;
  EXPECT_TRUE(wait_until([&] {
    receive_some(*first_.link, ignored);
    static_cast<void>(send_frame(*first_.link, by(1, 1), numbered_bytes(9, 400)));
    return first_.link->counters().send_errors != 0 && first_.link->arm();
  }));
  first_.link->disarm();
  for (unsigned i = 0; i < 1000; ++i) receive_some(*first_.link, ignored);
  EXPECT_EQ(first_.link->repairs(), 0u);
  fake_verbs::set_port(1, true);
  EXPECT_TRUE(wait_until([&] {
    receive_some(*first_.link, ignored);
    return first_.link->repairs() == 1;
  }));
  EXPECT_EQ(pass(by(1, 1)).bytes.size(), 500u);
}

// Parameter: whether the device keeps the completions of a queue pair that is reset.
class UdRepairTest : public testing::TestWithParam<bool> {
 protected:
  UdRepairTest() { fake_verbs::reset({.completions_vanish = GetParam()}); }
};
INSTANTIATE_TEST_SUITE_P(Devices, UdRepairTest, testing::Bool(), [](const auto& info) {
  return info.param ? "completions_vanish" : "completions_stay";
});

// Sends in both directions until frames arrive again.
void expect_works_again(UdLink& first, const Route& to_second, UdLink& second,
                        const Route& to_first) {
  std::vector<ArrivedFrame> at_first, at_second;
  EXPECT_TRUE(wait_until([&] {
    send_frame(first, to_second.address, numbered_bytes(100, 1000));
    send_frame(second, to_first.address, numbered_bytes(101, 1000));
    receive_some(first, at_first);
    receive_some(second, at_second);
    return at_first.size() >= 200 && at_second.size() >= 200;
  }));
  for (const ArrivedFrame& frame : at_first) ASSERT_EQ(frame.bytes, numbered_bytes(101, 1000));
  for (const ArrivedFrame& frame : at_second) ASSERT_EQ(frame.bytes, numbered_bytes(100, 1000));
}

TEST_P(UdRepairTest, AQueuePairThatFailsWhileSendingIsMadeAnew) {
  const UdSide first = open_ud(), second = open_ud();
  const Route to_second = route_between(*first.link, *second.link);
  const Route to_first = route_between(*second.link, *first.link);
  const uint32_t number = first.link->queue_pair_number();
  for (int turn = 0; turn < 3; ++turn) {
    fake_verbs::fail_request(IBV_WC_LOC_QP_OP_ERR, [&](const fake_verbs::Request& request) {
      return request.queue_pair == number;
    });
    send_frame(*first.link, to_second.address, numbered_bytes(1, 1000));
    const auto repairs = static_cast<uint64_t>(turn) + 1;
    EXPECT_TRUE(wait_until([&] {
      std::vector<ArrivedFrame> ignored;
      send_frame(*first.link, to_second.address, numbered_bytes(1, 1000));
      receive_some(*first.link, ignored);
      receive_some(*second.link, ignored);
      return first.link->repairs() == repairs;
    }));
  }
  EXPECT_EQ(first.link->queue_pair_number(), number);
  std::vector<ArrivedFrame> ignored;
  while (receive_some(*second.link, ignored) > 0) {
  }
  expect_works_again(*first.link, to_second, *second.link, to_first);
}

TEST_P(UdRepairTest, ARepairThatFailsIsTriedAgain) {
  const UdSide first = open_ud(), second = open_ud();
  const Route to_second = route_between(*first.link, *second.link);
  const Route to_first = route_between(*second.link, *first.link);
  fake_verbs::fail_call("ibv_modify_qp", EIO, 3, 4);
  fake_verbs::raise_queue_pair_event(second.link->queue_pair_number(), IBV_EVENT_QP_FATAL);
  EXPECT_TRUE(wait_until([&] {
    std::vector<ArrivedFrame> ignored;
    receive_some(*second.link, ignored);
    return second.link->repairs() == 1;
  }));
  expect_works_again(*first.link, to_second, *second.link, to_first);
}

// They are of the time before, and tell nothing about the slots of now.
TEST_P(UdRepairTest, CompletionsThatAreTakenAfterARepair) {
  const UdSide first = open_ud(), second = open_ud();
  const Route to_second = route_between(*first.link, *second.link);
  const Route to_first = route_between(*second.link, *first.link);
  fake_verbs::raise_queue_pair_event(second.link->queue_pair_number(), IBV_EVENT_QP_FATAL);
  std::vector<ArrivedFrame> none;
  // One finds the failure, the other one begins the repair.
  for (int i = 0; i < 2; ++i) receive_some(*second.link, none, 1);
  // The repair waits 100 ms at most for the other completions to be taken.
  std::this_thread::sleep_for(std::chrono::milliseconds(150));
  for (int i = 0; i < 1000; ++i) {
    receive_some(*second.link, none, 1);
    static_cast<void>(second.link->arm());
    second.link->disarm();
  }
  EXPECT_EQ(second.link->repairs(), 1u);
  EXPECT_TRUE(none.empty());
  expect_works_again(*first.link, to_second, *second.link, to_first);
}

// A device may say that it refuses work requests, and not which.
TEST_P(UdRepairTest, ARefusalWithoutTheRequest) {
  const UdSide first = open_ud(), second = open_ud();
  const Route to_second = route_between(*first.link, *second.link);
  const Route to_first = route_between(*second.link, *first.link);
  for (const char* function : {"ibv_post_send", "ibv_post_recv"}) {
    fake_verbs::fail_call(function, EINVAL);
    expect_works_again(*first.link, to_second, *second.link, to_first);
  }
}

TEST(UdOpeningTest, ARefusedRegistrationNamesTheLimitOfLockedMemory) {
  fake_verbs::reset();
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_MEMLOCK, &before), 0);
  rlimit small = before;
  small.rlim_cur = std::min<rlim_t>(before.rlim_max, 512 * 1024);
  ASSERT_EQ(setrlimit(RLIMIT_MEMLOCK, &small), 0);
  std::string reason;
  std::shared_ptr<VerbsDevice> device = VerbsDevice::open({}, reason);
  ASSERT_NE(device, nullptr) << reason;
  fake_verbs::fail_call("ibv_reg_mr", ENOMEM);
  std::unique_ptr<UdLink> link;
  test::with_free_pid([&](uint32_t pid) {
    UdSettings settings;
    settings.id = {test::loopback_nid, pid};
    return UdLink::open({device}, settings, link, reason) != OpenStatus::pid_in_use;
  });
  EXPECT_EQ(link, nullptr);
  for (const char* part : {"RLIMIT_MEMLOCK", "512 KiB", "ulimit -l", "PTL_VERBS_RECEIVE_BUFFERS"})
    EXPECT_NE(reason.find(part), std::string::npos) << part << " is missing in: " << reason;
  ASSERT_EQ(setrlimit(RLIMIT_MEMLOCK, &before), 0);
}

TEST(UdOpeningTest, SmallLimitsOfADeviceAreKept) {
  fake_verbs::reset({.max_qp_wr = 256, .max_cqe = 256, .max_inline_bytes = 0});
  const UdSide first = open_ud("", 4096), second = open_ud("", 4096);
  const Route route = route_between(*first.link, *second.link);
  for (uint64_t i = 0; i < 600; ++i) {
    ASSERT_EQ(send_frame(*first.link, route.address, numbered_bytes(i, 100)), 1u);
    ASSERT_EQ(receive_all(*second.link, 1).at(0).bytes, numbered_bytes(i, 100));
  }
  EXPECT_EQ(fake_verbs::violations(), std::vector<std::string>{});
}

TEST(UdOpeningTest, InfinibandPortsAreToldApartByTheirLids) {
  fake_verbs::reset({.devices = 2, .infiniband = true});
  VerbsPortWish wish;
  std::string reason;
  std::vector<UdSide> sides(2);
  for (unsigned i = 0; i < 2; ++i) {
    wish.device = i == 0 ? "fake0" : "fake1";
    sides[i].device = VerbsDevice::open(wish, reason);
    ASSERT_NE(sides[i].device, nullptr) << reason;
    test::with_free_pid([&](uint32_t pid) {
      UdSettings settings;
      settings.id = {test::loopback_nid, pid};
      return UdLink::open({sides[i].device}, settings, sides[i].link, reason) !=
             OpenStatus::pid_in_use;
    });
    ASSERT_NE(sides[i].link, nullptr) << reason;
  }
  const Route route = route_between(*sides[0].link, *sides[1].link);
  ASSERT_EQ(send_frame(*sides[0].link, route.address, numbered_bytes(1, 1000)), 1u);
  const std::vector<ArrivedFrame> arrived = receive_all(*sides[1].link, 1);
  EXPECT_EQ(arrived.at(0).bytes, numbered_bytes(1, 1000));
  const Route back = route_between(*sides[1].link, *sides[0].link);
  EXPECT_EQ(arrived.at(0).from, back.address);
}

}  // namespace
}  // namespace lintel::test
