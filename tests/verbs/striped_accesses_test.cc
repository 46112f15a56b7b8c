// Long accesses to memory by several ports: parts go by each, what one does not do goes by another,
// and no byte is missing or written after the end.
#include "verbs/striped_accesses.h"

#include <random>

#include "verbs_test_support.h"

namespace lintel::test {
namespace {

constexpr size_t long_bytes = size_t{8} << 20;

class StripedAccessesTest : public test::VerbsTest {
 protected:
  void SetUp() override { start({.devices = 6}); }

  // A process with so many ports from that device on.
  static std::function<void(VerbsSettings&)> ports(unsigned first, unsigned count) {
    return [=](VerbsSettings& settings) {
      settings.port.device = "fake" + std::to_string(first);
      for (unsigned i = 1; i < count; ++i)
        settings.port.further.push_back("fake" + std::to_string(first + i));
      settings.reliable.peer_timeout_ns = 20'000'000'000 * slowdown;
    };
  }
};

// An operation: the initiator exposes memory, the target accesses it.
struct Operation {
  Operation(VerbsProcess& from, VerbsProcess& to, Link& link, bool write, size_t bytes = long_bytes,
            unsigned pieces = 1)
      : initiator(from),
        target(to),
        link(link),
        writes(write),
        exposed(bytes_of(1, bytes)),
        own(bytes_of(2, bytes)) {
    for (unsigned i = 0; i < pieces; ++i) {
      const size_t begin = bytes * i / pieces;
      parts.push_back({exposed.data() + begin, bytes * (i + 1) / pieces - begin});
    }
  }
  // Returns whether the access has started.
  bool begin() {
    told.resize(parts.size());
    const auto count = static_cast<unsigned>(parts.size());
    exposure = tell_of(initiator, target, link, parts.data(), count, writes, told.data());
    if (exposure.status != SendStatus::sent || exposure.count != count) return false;
    target.ended.clear();
    const Piece local{own.data(), own.size()};
    return target.transport
               ->remote_access(*target.last_link, writes, &local, 1, told.data(), count, 77)
               .status == RemoteStatus::started;
  }
  [[nodiscard]] bool has_ended() const { return !target.ended.empty(); }
  // The status that was reported.
  RemoteStatus end() {
    EXPECT_TRUE(run_until({&initiator, &target}, [&] { return has_ended(); }));
    if (!has_ended()) return RemoteStatus::busy;
    EXPECT_EQ(target.ended.size(), 1u);
    EXPECT_EQ(target.ended[0].token, 77u);
    const RemoteStatus status = target.ended[0].result.status;
    EXPECT_EQ(target.ended[0].result.bytes, status == RemoteStatus::done ? own.size() : 0);
    target.transport->end_access(*target.last_link, told.data(),
                                 static_cast<unsigned>(told.size()));
    const size_t arrived = initiator.arrived.size();
    EXPECT_TRUE(run_until({&initiator, &target}, [&] {
      return target.send(*target.last_link, 0, {}) == SendStatus::sent;
    }));
    EXPECT_TRUE(
        run_until({&initiator, &target}, [&] { return initiator.arrived.size() > arrived; }));
    initiator.arrived.clear();
    initiator.transport->withdraw(link, exposure.number, false);
    if (status == RemoteStatus::done) {
      EXPECT_EQ(exposed, own);
      EXPECT_EQ(own, bytes_of(writes ? 2 : 1, own.size()));
    }
    return status;
  }

  VerbsProcess& initiator;
  VerbsProcess& target;
  Link& link;
  bool writes;
  std::vector<std::byte> exposed;
  std::vector<std::byte> own;
  std::vector<Piece> parts;
  std::vector<RemoteMemory> told;
  Exposure exposure{};
};

// Two processes with queue pairs by several ports.
struct RailPair {
  explicit RailPair(const std::function<void(VerbsSettings&)>& one,
                    const std::function<void(VerbsSettings&)>& two, unsigned rails = 1)
      : from(one), to(two), stream(from, to) {
    EXPECT_TRUE(stream.pass(200));
    // The first long transfer makes them.
    EXPECT_EQ(fake_verbs::queue_pairs(IBV_QPT_RC).size(), 2u);
    EXPECT_TRUE(use(rails));
    EXPECT_EQ(fake_verbs::queue_pairs(IBV_QPT_RC).size(), 2u + 2 * rails);
  }
  // Transfers until chunks have gone by all rails. False: they have not, after the deadline.
  bool use(unsigned rails) {
    const auto end = std::chrono::steady_clock::now() + wait_deadline;
    uint64_t before[4];
    for (unsigned i = 1; i <= rails; ++i) before[i] = bytes_by(i);
    while (std::chrono::steady_clock::now() < end) {
      Operation operation(from, to, stream.link(), false);
      EXPECT_TRUE(operation.begin());
      operation.end();
      bool used = true;
      for (unsigned i = 1; i <= rails; ++i) used &= bytes_by(i) > before[i];
      if (used) return true;
    }
    return false;
  }
  uint64_t statistic(const std::string& name) const {
    for (const Statistic& one : to.transport->statistics())
      if (one.name == name) return one.value;
    ADD_FAILURE() << "no statistic " << name;
    return 0;
  }
  // Bytes that the target has accessed by a rail.
  uint64_t bytes_by(unsigned rail) const {
    return statistic("remote access bytes by rail " + std::to_string(rail));
  }

  VerbsProcess from;
  VerbsProcess to;
  Stream stream;
};

TEST_F(StripedAccessesTest, ChunksGoByEachPort) {
  for (const bool windows : {true, false}) {
    start({.devices = 6, .windows = windows});
    RailPair pair(ports(0, 2), ports(2, 2));
    for (const bool write : {false, true})
      for (const unsigned pieces : {1u, 3u}) {
        const uint64_t before = pair.bytes_by(1);
        Operation operation(pair.from, pair.to, pair.stream.link(), write, long_bytes + 4321,
                            pieces);
        ASSERT_TRUE(operation.begin());
        ASSERT_EQ(operation.end(), RemoteStatus::done);
        const uint64_t bytes = pair.bytes_by(1) - before;
        EXPECT_GE(bytes, StripedAccesses::chunk_bytes) << write << pieces;
        EXPECT_LE(bytes, long_bytes) << write << pieces;
      }
    ASSERT_TRUE(pair.stream.pass(100));
    EXPECT_EQ(pair.statistic("chunks repeated"), 0u);
  }
}

TEST_F(StripedAccessesTest, ThreePortsOfEither) {
  for (const bool turned : {false, true}) {
    start({.devices = 6});
    RailPair pair(ports(turned ? 3 : 0, 3), ports(turned ? 0 : 3, 3), 2);
    ASSERT_TRUE(pair.stream.pass(100));
  }
}

// The pairs are as many as the process with fewer ports has.
TEST_F(StripedAccessesTest, PortsOfDifferentNumber) {
  for (const bool turned : {false, true}) {
    start({.devices = 6});
    RailPair pair(ports(0, turned ? 2 : 3), ports(3, turned ? 3 : 2));
  }
}

TEST_F(StripedAccessesTest, APeerWithOnePortGetsNone) {
  for (const bool turned : {false, true}) {
    start({.devices = 6});
    RailPair pair(ports(0, turned ? 2 : 1), ports(3, turned ? 1 : 2), 0);
    for (unsigned i = 0; i < 5; ++i) {
      Operation operation(pair.from, pair.to, pair.stream.link(), i % 2 == 0);
      ASSERT_TRUE(operation.begin());
      EXPECT_EQ(operation.end(), RemoteStatus::done);
    }
    EXPECT_EQ(fake_verbs::queue_pairs(IBV_QPT_RC).size(), 2u);
  }
}

TEST_F(StripedAccessesTest, ShortAccessesMakeNoFurtherQueuePairs) {
  VerbsProcess from(ports(0, 2)), to(ports(2, 2));
  Stream stream(from, to);
  ASSERT_TRUE(stream.pass(200));
  for (unsigned i = 0; i < 5; ++i) {
    Operation operation(from, to, stream.link(), i % 2 == 0, StripedAccesses::least_bytes - 1);
    ASSERT_TRUE(operation.begin());
    EXPECT_EQ(operation.end(), RemoteStatus::done);
  }
  EXPECT_EQ(fake_verbs::queue_pairs(IBV_QPT_RC).size(), 2u);
}

// Numbers of the queue pairs of the rail; those of messages were made before.
std::vector<uint32_t> further_queue_pairs() {
  auto numbers = fake_verbs::queue_pairs(IBV_QPT_RC);
  std::sort(numbers.begin(), numbers.end());
  return {numbers.begin() + 2, numbers.end()};
}
bool is_access(const fake_verbs::Request& request) {
  return request.opcode == IBV_WR_RDMA_READ || request.opcode == IBV_WR_RDMA_WRITE;
}

// Parameter: whether the target writes.
class StripedFaultsTest : public StripedAccessesTest, public testing::WithParamInterface<bool> {};
INSTANTIATE_TEST_SUITE_P(Directions, StripedFaultsTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "writes" : "reads"; });

TEST_P(StripedFaultsTest, WhatAFurtherPortDoesNotDoGoesByTheFirst) {
  for (const bool windows : {true, false})
    for (unsigned nth = 0; nth < 4; ++nth) {
      SCOPED_TRACE(nth);
      start({.devices = 6, .windows = windows});
      RailPair pair(ports(0, 2), ports(2, 2));
      const auto numbers = further_queue_pairs();
      fake_verbs::fail_request(IBV_WC_RETRY_EXC_ERR, [=, left = nth](const auto& request) mutable {
        return is_access(request) &&
               (request.queue_pair == numbers[0] || request.queue_pair == numbers[1]) &&
               left-- == 0;
      });
      Operation operation(pair.from, pair.to, pair.stream.link(), GetParam());
      ASSERT_TRUE(operation.begin());
      EXPECT_EQ(operation.end(), RemoteStatus::done);
      EXPECT_GE(pair.statistic("chunks repeated"), 1u);
      ASSERT_TRUE(pair.stream.pass(100));
      // A queue pair by that port is made again.
      EXPECT_TRUE(pair.use(1));
      EXPECT_EQ(pair.from.failed + pair.to.failed, 0u);
    }
}

// The cable of the further port is cut, and joined again.
TEST_P(StripedFaultsTest, APortThatIsDown) {
  RailPair pair(ports(0, 2), ports(2, 2));
  for (unsigned round = 0; round < 3; ++round) {
    const unsigned device = round % 2 == 0 ? 1 : 3;
    Operation operation(pair.from, pair.to, pair.stream.link(), GetParam());
    fake_verbs::set_port(device, false);
    ASSERT_TRUE(operation.begin());
    bool expired = false;
    ASSERT_TRUE(run_until({&pair.from, &pair.to}, [&] {
      if (!expired) fake_verbs::expire_retries();
      expired = true;
      return operation.has_ended();
    }));
    EXPECT_EQ(operation.end(), RemoteStatus::done);
    fake_verbs::set_port(device, true);
    EXPECT_TRUE(pair.use(1));
  }
  EXPECT_EQ(pair.from.failed + pair.to.failed, 0u);
}

// Then the data travel in messages.
TEST_P(StripedFaultsTest, WhenTheFirstPortFailsTheAccessIsUnsupported) {
  RailPair pair(ports(0, 2), ports(2, 2));
  const auto further = further_queue_pairs();
  fake_verbs::fail_request(IBV_WC_RETRY_EXC_ERR, [=](const auto& request) {
    return is_access(request) && request.queue_pair < further[0];
  });
  Operation operation(pair.from, pair.to, pair.stream.link(), GetParam());
  ASSERT_TRUE(operation.begin());
  EXPECT_EQ(operation.end(), RemoteStatus::unsupported);
  ASSERT_TRUE(pair.stream.pass(300));
  EXPECT_TRUE(pair.use(1));
}

}  // namespace
}  // namespace lintel::test
