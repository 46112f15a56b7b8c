// Finding the address of a process, over the loopback: processes that exist, do not exist yet, are
// gone, or send invalid data.
#include "verbs/resolver.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <memory>

#include <gtest/gtest.h>

#include "loopback_test_support.h"
#include "util/clock.h"
#include "util/crc32c.h"
#include "util/node_identity.h"
#include "verbs/resolver_record.h"

namespace lintel::test {
namespace {

constexpr uint64_t timeout_ns = 20'000'000'000;

// The queue pair number determines the address of a process.
class Side final : public Resolver::Client {
 public:
  ~Side() {
    resolver.stop();
    close(events_);
  }

  void open(uint32_t nid = test::loopback_nid, uint64_t patience_ns = timeout_ns) {
    test::with_free_pid([&](uint32_t pid) { return claim({nid, pid}) != OpenStatus::pid_in_use; });
    start(patience_ns);
  }
  OpenStatus claim(ProcessId wanted) {
    id = wanted;
    return resolver.claim(wanted, reason);
  }
  void start(uint64_t patience_ns = timeout_ns) {
    UdDestination own;
    own.gid.raw[15] = 1;
    own.is_roce = true;
    own.queue_pair = id.pid;
    own.q_key = 1;
    own.mtu = 4096;
    ASSERT_TRUE(resolver.start(own, *this, patience_ns, reason)) << reason;
  }
  // Repeats resolve() until there is an answer.
  ResolveStatus ask(ProcessId peer) {
    ResolveStatus status = ResolveStatus::pending;
    reason.clear();
    EXPECT_TRUE(wait_until([&] {
      status = resolver.resolve(peer, route, &reason);
      return status != ResolveStatus::pending;
    }));
    return status;
  }
  uint32_t found() const {
    uint32_t queue_pair = 0;
    std::memcpy(&queue_pair, route.address.bytes.data(), sizeof queue_pair);
    return queue_pair;
  }

  bool make_route(const UdDestination& destination, Route& to, std::string& why) override {
    if (!can_make_routes) {
      why = "no address handle";
      return false;
    }
    std::memcpy(to.address.bytes.data(), &destination.queue_pair, sizeof destination.queue_pair);
    to.mtu = destination.mtu;
    return true;
  }
  void work() noexcept override { worked.fetch_add(1); }
  int event_descriptor() const noexcept override { return events_; }
  void handle_events() noexcept override {
    uint64_t count = 0;
    if (read(events_, &count, sizeof count) == sizeof count) handled.fetch_add(count);
  }
  void raise_event() {
    const uint64_t one = 1;
    EXPECT_EQ(write(events_, &one, sizeof one), ssize_t{sizeof one});
  }

  ProcessId id{};
  Route route;
  std::string reason;
  std::atomic<bool> can_make_routes{true};
  std::atomic<unsigned> worked{0};
  std::atomic<uint64_t> handled{0};

 private:
  int events_ = eventfd(0, EFD_NONBLOCK);

 public:
  Resolver resolver;
};

// A process that listens at a port of this library and sends arbitrary answers.
class Impostor {
 public:
  explicit Impostor(std::vector<std::byte> answer) : answer_(std::move(answer)) {
    test::with_free_pid([&](uint32_t pid) {
      listener_ = socket(AF_INET, SOCK_STREAM, 0);
      sockaddr_in address{};
      address.sin_family = AF_INET;
      address.sin_addr.s_addr = htonl(test::loopback_nid);
      address.sin_port = htons(port_of_pid(pid));
      id = {test::loopback_nid, pid};
      if (bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
          listen(listener_, 4) == 0)
        return true;
      close(listener_);
      return false;
    });
    thread_ = std::thread([this] {
      for (;;) {
        const int asker = accept(listener_, nullptr, nullptr);
        if (asker < 0) return;
        EXPECT_EQ(send(asker, answer_.data(), answer_.size(), MSG_NOSIGNAL),
                  static_cast<ssize_t>(answer_.size()));
        close(asker);
      }
    });
  }
  ~Impostor() {
    shutdown(listener_, SHUT_RDWR);
    thread_.join();
    close(listener_);
  }
  Impostor(const Impostor&) = delete;
  Impostor& operator=(const Impostor&) = delete;

  ProcessId id{};

 private:
  std::vector<std::byte> answer_;
  int listener_ = -1;
  std::thread thread_;
};

TEST(ResolverTest, ProcessesFindEachOther) {
  Side first, second;
  first.open();
  second.open();
  EXPECT_EQ(first.resolver.resolve(second.id, first.route, nullptr), ResolveStatus::pending);
  ASSERT_EQ(first.ask(second.id), ResolveStatus::resolved) << first.reason;
  EXPECT_EQ(first.found(), second.id.pid);
  EXPECT_EQ(first.route.mtu, 4096u);
  ASSERT_EQ(second.ask(first.id), ResolveStatus::resolved) << second.reason;
  EXPECT_EQ(second.found(), first.id.pid);
}

TEST(ResolverTest, ManyAreAskedAtOnce) {
  constexpr unsigned count = 100;  // more than are looked up at a time
  Side asker;
  asker.open();
  std::vector<std::unique_ptr<Side>> others;
  for (unsigned i = 0; i < count; ++i) {
    others.push_back(std::make_unique<Side>());
    others.back()->open();
  }
  for (const auto& other : others)
    EXPECT_EQ(asker.resolver.resolve(other->id, asker.route, nullptr), ResolveStatus::pending);
  for (const auto& other : others) {
    ASSERT_EQ(asker.ask(other->id), ResolveStatus::resolved) << asker.reason;
    EXPECT_EQ(asker.found(), other->id.pid);
  }
}

TEST(ResolverTest, APidBelongsToOne) {
  Side first, second;
  first.open();
  EXPECT_EQ(second.claim(first.id), OpenStatus::pid_in_use);
  first.resolver.stop();
}

TEST(ResolverTest, NobodyThereIsReportedAndAskedAgainLater) {
  Side asker, other;
  asker.open();
  test::with_free_pid([&](uint32_t pid) {
    return other.claim({test::loopback_nid, pid}) == OpenStatus::opened;
  });
  const ProcessId gone = other.id;
  Side late;
  {
    // When it is destroyed, its port is closed.
    Side brief;
    test::with_free_pid([&](uint32_t pid) {
      return brief.claim({test::loopback_nid, pid}) == OpenStatus::opened;
    });
    late.id = brief.id;
  }
  EXPECT_EQ(asker.ask(late.id), ResolveStatus::unreachable);
  EXPECT_NE(asker.reason.find("no process listens there"), std::string::npos) << asker.reason;
  EXPECT_NE(asker.reason.find("127.0.0.1"), std::string::npos) << asker.reason;
  ASSERT_EQ(late.claim(late.id), OpenStatus::opened) << late.reason;
  late.start();
  EXPECT_EQ(asker.ask(late.id), ResolveStatus::resolved) << asker.reason;
  // While a process has the port but is not ready, look-ups remain pending.
  EXPECT_EQ(asker.resolver.resolve(gone, asker.route, nullptr), ResolveStatus::pending);
  other.start();
  EXPECT_EQ(asker.ask(gone), ResolveStatus::resolved) << asker.reason;
}

// A failed and abandoned look-up of a peer does not affect its successor.
TEST(ResolverTest, ASuccessorIsFoundAlthoughItsPredecessorWasGone) {
  Side asker, successor;
  asker.open();
  ProcessId nobody{};
  {
    Side first, second;
    for (Side* side : {&first, &second})
      test::with_free_pid([&](uint32_t pid) {
        return side->claim({test::loopback_nid, pid}) == OpenStatus::opened;
      });
    successor.id = first.id;
    nobody = second.id;
  }
  bool refused = false;
  EXPECT_EQ(asker.resolver.resolve(successor.id, asker.route, nullptr, &refused),
            ResolveStatus::pending);
  // This look-up starts later, so its answer comes later.
  EXPECT_EQ(asker.ask(nobody), ResolveStatus::unreachable);
  ASSERT_EQ(successor.claim(successor.id), OpenStatus::opened) << successor.reason;
  successor.start();
  EXPECT_EQ(asker.ask(successor.id), ResolveStatus::resolved) << asker.reason;
}

TEST(ResolverTest, ANodeThatDoesNotAnswerIsGivenUp) {
  Side asker, mute;
  asker.open(test::loopback_nid, 50'000'000);
  test::with_free_pid([&](uint32_t pid) {
    return mute.claim({test::loopback_nid, pid}) == OpenStatus::opened;
  });
  EXPECT_EQ(asker.ask(mute.id), ResolveStatus::unreachable);
  EXPECT_NE(asker.reason.find("does not answer"), std::string::npos) << asker.reason;
}

TEST(ResolverTest, NonsenseIsNotBelieved) {
  Side asker;
  asker.open();
  const Impostor talkative(test::numbered_bytes(1, 64));
  EXPECT_EQ(asker.ask(talkative.id), ResolveStatus::unreachable);
  EXPECT_NE(asker.reason.find("not a process of this library"), std::string::npos) << asker.reason;
  const Impostor terse(test::numbered_bytes(2, 63));
  EXPECT_EQ(asker.ask(terse.id), ResolveStatus::unreachable);
}

TEST(ResolverTest, AddressesOfNobodyAreNotAsked) {
  Side asker;
  asker.open();
  for (const ProcessId nobody : {ProcessId{0, 1}, ProcessId{0xe0000001, 1},
                                 ProcessId{0xffffffff, 1}, ProcessId{test::loopback_nid, 0xffff}}) {
    EXPECT_EQ(asker.resolver.resolve(nobody, asker.route, &asker.reason),
              ResolveStatus::unreachable);
    EXPECT_FALSE(asker.reason.empty());
  }
}

TEST(ResolverTest, AnAddressThatIsNotOfThisNodeCannotBeTaken) {
  Side side;
  EXPECT_EQ(side.claim({0xc0000201, 20000}),
            OpenStatus::failed);  // 192.0.2.1, reserved for documentation
  EXPECT_NE(side.reason.find("PTL_NID"), std::string::npos) << side.reason;
}

TEST(ResolverTest, WhatTheDeviceRefusesIsTold) {
  Side first, second;
  first.open();
  second.open();
  first.can_make_routes = false;
  EXPECT_EQ(first.ask(second.id), ResolveStatus::unreachable);
  EXPECT_EQ(first.reason, "no address handle");
}

TEST(ResolverTest, TheThreadDoesTheWorkOfItsClient) {
  Side side;
  side.open();
  side.resolver.wake();
  EXPECT_TRUE(wait_until([&] { return side.worked.load() > 0; }));
  side.raise_event();
  EXPECT_TRUE(wait_until([&] { return side.handled.load() == 1; }));
}

// Records exchanged by processes: invalid contents are rejected.

constexpr ProcessId somebody{0xc0a84d01, 17};

UdDestination roce_destination() {
  UdDestination destination;
  destination.gid.raw[15] = 1;
  destination.is_roce = true;
  destination.queue_pair = 0x123456;
  destination.q_key = 0x1234567;
  destination.mtu = 4096;
  return destination;
}

UdDestination infiniband_destination() {
  UdDestination destination = roce_destination();
  destination.is_roce = false;
  destination.lid = 7;
  return destination;
}

// The error found in a record after `change`, whose check is then corrected; empty if there is
// none.
std::string judged(const UdDestination& from,
                   const std::function<void(ResolverRecord&)>& change = {}) {
  ResolverRecord record = make_record(somebody, from);
  if (change) {
    change(record);
    record.check = crc32c(~0u, &record, offsetof(ResolverRecord, check));
  }
  UdDestination to;
  const char* const wrong = read_record(record, somebody, from.is_roce, to);
  return wrong == nullptr ? "" : wrong;
}

TEST(ResolverRecordTest, CarriesWhereDatagramsGo) {
  for (const UdDestination& from : {roce_destination(), infiniband_destination()}) {
    UdDestination to;
    ASSERT_EQ(read_record(make_record(somebody, from), somebody, from.is_roce, to), nullptr);
    EXPECT_EQ(std::memcmp(&to.gid, &from.gid, sizeof to.gid), 0);
    EXPECT_EQ(to.lid, from.lid);
    EXPECT_EQ(to.is_roce, from.is_roce);
    EXPECT_EQ(to.queue_pair, from.queue_pair);
    EXPECT_EQ(to.q_key, from.q_key);
    EXPECT_EQ(to.mtu, from.mtu);
  }
}

TEST(ResolverRecordTest, EveryDamagedBitIsNoticed) {
  const ResolverRecord whole = make_record(somebody, roce_destination());
  for (size_t bit = 0; bit < sizeof whole * 8; ++bit) {
    ResolverRecord record = whole;
    reinterpret_cast<unsigned char*>(&record)[bit / 8] ^= static_cast<unsigned char>(1u << bit % 8);
    UdDestination to;
    EXPECT_NE(read_record(record, somebody, true, to), nullptr) << bit;
  }
}

TEST(ResolverRecordTest, WhatCannotBeIsRefusedAlthoughItsCheckIsGood) {
  const UdDestination roce = roce_destination();
  EXPECT_EQ(judged(roce, [](ResolverRecord&) {}), "");
  EXPECT_NE(judged(roce, [](ResolverRecord& r) { ++r.version; }).find("another version"),
            std::string::npos);
  EXPECT_NE(judged(roce, [](ResolverRecord& r) { ++r.pid; }).find("another process"),
            std::string::npos);
  EXPECT_NE(judged(roce, [](ResolverRecord& r) { ++r.nid; }), "");
  EXPECT_NE(judged(roce, [](ResolverRecord& r) { r.queue_pair = 1; }), "");
  EXPECT_NE(judged(roce, [](ResolverRecord& r) { r.queue_pair = 1u << 24; }), "");
  EXPECT_NE(judged(roce, [](ResolverRecord& r) { r.q_key = 1u << 31; }), "");
  EXPECT_NE(judged(roce, [](ResolverRecord& r) { r.mtu = 511; }), "");
  EXPECT_NE(judged(roce, [](ResolverRecord& r) { r.mtu = 65537; }), "");
  EXPECT_NE(judged(roce, [](ResolverRecord& r) { std::memset(r.gid, 0, sizeof r.gid); }), "");
  const UdDestination infiniband = infiniband_destination();
  EXPECT_NE(judged(infiniband, [](ResolverRecord& r) { r.lid = 0; }), "");
  EXPECT_NE(judged(infiniband, [](ResolverRecord& r) { r.lid = 0xc000; }), "");
}

TEST(ResolverRecordTest, NetworksOfTheOtherKindCannotBeReached) {
  UdDestination to;
  const char* wrong =
      read_record(make_record(somebody, infiniband_destination()), somebody, true, to);
  EXPECT_STREQ(wrong, "its device is on InfiniBand and ours on Ethernet");
  wrong = read_record(make_record(somebody, roce_destination()), somebody, false, to);
  EXPECT_STREQ(wrong, "its device is on Ethernet and ours on InfiniBand");
}

}  // namespace
}  // namespace lintel::test
