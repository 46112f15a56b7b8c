// Long accesses to memory by several ports: parts go by each, what one does not do goes by another,
// and no byte is missing or written after the end.
#include "verbs/striped_accesses.h"

#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <filesystem>
#include <random>
#include <thread>

#include "support/ranks.h"
#include "unit/test_memory_kind.h"
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
    if (before_access) before_access();
    const Piece local{this->local == nullptr ? own.data() : this->local, own.size()};
    const bool started =
        target.transport
            ->remote_access(*target.last_link, writes, &local, 1, told.data(), count, 77)
            .status == RemoteStatus::started;
    if (!started) initiator.transport->withdraw(link, exposure.number, false);
    return started;
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
    if (status == RemoteStatus::done && local == nullptr) {
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
  std::byte* local = nullptr;  // memory of a device in the place of `own`
  std::vector<Piece> parts;
  std::vector<RemoteMemory> told;
  Exposure exposure{};
  std::function<void()> before_access;
};

// Two processes with queue pairs by several ports.
struct RailPair {
  explicit RailPair(const std::function<void(VerbsSettings&)>& one,
                    const std::function<void(VerbsSettings&)>& two, unsigned rails = 1)
      : owner(std::make_unique<VerbsProcess>(one)), from(*owner), to(two), stream(from, to) {
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
  // Begins an access when a queue pair by the first port is there again. Messages ask for it.
  bool begin(Operation& operation) {
    return run_until({&from, &to}, [&] {
      if (operation.begin()) return true;
      fake_verbs::release();
      stream.send_one();
      stream.check();
      return false;
    });
  }
  // Ports that were slow lately get no chunks. After a second without transfers all count the same.
  static void forget_rates() { std::this_thread::sleep_for(std::chrono::milliseconds(1050)); }
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

  std::unique_ptr<VerbsProcess> owner;
  VerbsProcess& from;
  VerbsProcess to;
  Stream stream;
};

TEST_F(StripedAccessesTest, ChunksGoByEachPort) {
  for (const bool windows : {true, false}) {
    start({.devices = 6, .windows = windows});
    RailPair pair(ports(0, 2), ports(2, 2));
    for (const bool write : {false, true})
      for (const unsigned pieces : {1u, 3u}) {
        RailPair::forget_rates();
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
    for (const unsigned nth : {0u, 3u}) {
      SCOPED_TRACE(nth);
      start({.devices = 6, .windows = windows});
      RailPair pair(ports(0, 2), ports(2, 2));
      const auto numbers = further_queue_pairs();
      RailPair::forget_rates();
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

// The cable of the further port is cut while chunks are under way by it. A process gives up the
// queue pairs of its own port at once. Writes may still arrive until the queue pair of the other
// end is gone, so that they are not repeated before.
TEST_P(StripedFaultsTest, APortThatIsDown) {
  RailPair pair(ports(0, 2), ports(2, 2));
  for (unsigned round = 0; round < 4; ++round) {
    const unsigned device = round % 2 == 0 ? 1 : 3;
    RailPair::forget_rates();
    Operation operation(pair.from, pair.to, pair.stream.link(), GetParam());
    operation.before_access = [] { fake_verbs::hold(); };
    ASSERT_TRUE(operation.begin());
    fake_verbs::set_port(device, false);
    fake_verbs::release();
    const uint64_t repeated = pair.statistic("chunks repeated");
    const bool ends_at_once = device == 3 && !GetParam();
    EXPECT_EQ(run_until(
                  {&pair.to}, [&] { return operation.has_ended(); },
                  ends_at_once ? wait_deadline : std::chrono::milliseconds(50)),
              ends_at_once);
    fake_verbs::expire_retries();
    EXPECT_EQ(run_until(
                  {&pair.to}, [&] { return operation.has_ended(); },
                  GetParam() ? std::chrono::milliseconds(200) : wait_deadline),
              !GetParam());
    EXPECT_EQ(operation.end(), RemoteStatus::done);
    EXPECT_GT(pair.statistic("chunks repeated"), repeated);
    fake_verbs::set_port(device, true);
    EXPECT_TRUE(pair.use(1));
  }
  EXPECT_EQ(pair.from.failed + pair.to.failed, 0u);
}

// Nothing is announced by a further port that is down. All goes by the first.
TEST_P(StripedFaultsTest, APortThatWasDownBefore) {
  RailPair pair(ports(0, 2), ports(2, 2));
  for (const unsigned device : {1u, 3u}) {
    fake_verbs::set_port(device, false);
    for (unsigned i = 0; i < 3; ++i) {
      const uint64_t before = pair.bytes_by(1);
      Operation operation(pair.from, pair.to, pair.stream.link(), GetParam());
      ASSERT_TRUE(operation.begin());
      EXPECT_EQ(operation.end(), RemoteStatus::done);
      EXPECT_EQ(pair.bytes_by(1), before);
    }
    fake_verbs::expire_retries();
    fake_verbs::set_port(device, true);
    EXPECT_TRUE(pair.use(1));
  }
}

TEST_P(StripedFaultsTest, AccessesOfAPeerThatIsGoneEndBefore) {
  RailPair pair(ports(0, 2), ports(2, 2));
  std::vector<std::unique_ptr<Operation>> operations;
  operations.push_back(
      std::make_unique<Operation>(pair.from, pair.to, pair.stream.link(), GetParam()));
  operations[0]->before_access = [] { fake_verbs::hold(); };
  ASSERT_TRUE(operations[0]->begin());
  pair.owner.reset();
  fake_verbs::release();
  ASSERT_TRUE(run_until({&pair.to}, [&] {
    fake_verbs::expire_retries();
    EXPECT_LE(pair.to.failed, pair.to.ended.size());
    return pair.to.failed != 0;
  }));
  ASSERT_EQ(pair.to.ended.size(), 1u);
  EXPECT_NE(pair.to.ended[0].result.status, RemoteStatus::done);
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

// All kinds of faults in random order, while several accesses are under way in both directions.
class StripedChaosTest : public StripedAccessesTest,
                         public testing::WithParamInterface<unsigned> {};
INSTANTIATE_TEST_SUITE_P(Seeds, StripedChaosTest, testing::Range(0u, 10u),
                         testing::PrintToStringParamName());

TEST_P(StripedChaosTest, EachAccessEndsOnceAndWhatIsDoneIsComplete) {
  const unsigned seed = GetParam();
  std::mt19937 dice(seed);
  start({.devices = 6, .windows = seed % 2 == 0, .completions_vanish = seed % 4 < 2});
  RailPair pair(ports(0, 3), ports(3, 3), 2);
  unsigned done = 0;
  const unsigned rounds = long_tests() ? 300 : 12;
  for (unsigned round = 0; round < rounds; ++round) {
    Operation operation(pair.from, pair.to, pair.stream.link(), dice() % 2 == 0,
                        StripedAccesses::least_bytes + dice() % 3'000'000, 1 + dice() % 5);
    if (dice() % 2 == 0) operation.before_access = [] { fake_verbs::hold(); };
    ASSERT_TRUE(pair.begin(operation));
    const auto numbers = fake_verbs::queue_pairs(IBV_QPT_RC);
    const unsigned device = dice() % 6;
    switch (dice() % 6) {
      case 0:
        fake_verbs::fail_request(static_cast<ibv_wc_status>(1 + dice() % 10),
                                 [left = dice() % 8](const auto& request) mutable {
                                   return request.type == IBV_QPT_RC && left-- == 0;
                                 });
        break;
      case 1:
        if (!numbers.empty())
          fake_verbs::raise_queue_pair_event(numbers[dice() % numbers.size()], IBV_EVENT_QP_FATAL);
        break;
      case 2:
        fake_verbs::fail_call("ibv_post_send", ENOMEM, 1 + dice() % 5, 1 + dice() % 3);
        break;
      case 3:
        if (device % 3 != 0) fake_verbs::set_port(device, false);
        break;
      case 4:
        static_cast<void>(fake_verbs::let_pass(dice() % 10));
        break;
      default:
        fake_verbs::fail_call("ibv_create_qp", ENOMEM);
    }
    fake_verbs::release();
    ASSERT_TRUE(run_until({&pair.from, &pair.to}, [&] {
      if (dice() % 100 == 0) fake_verbs::expire_retries();
      return operation.has_ended();
    }));
    fake_verbs::expire_retries();
    fake_verbs::set_port(device, true);
    if (operation.end() == RemoteStatus::done) ++done;
    ASSERT_TRUE(pair.stream.pass(dice() % 300));
  }
  EXPECT_GT(done, rounds / 4);
  EXPECT_EQ(pair.from.failed + pair.to.failed, 0u);
}

// The nid is the same for all processes of the node.
TEST_F(StripedAccessesTest, ProcessesBeginWithDifferentPortsUnlessOneIsNamed) {
  start({.devices = 3});
  std::string reason;
  VerbsPortWish wish;
  wish.most_ports = 4;
  const auto names = [&] {
    std::string all;
    for (const auto& device : VerbsDevice::open_all(wish, reason)) {
      EXPECT_TRUE(device->is_one_of_several);
      all.append(all.empty() ? "" : "+").append(device->name());
    }
    return all;
  };
  EXPECT_EQ(names(), "fake0:1+fake1:1+fake2:1");
  // The network of the loopback interface is 127.0.0.0/8, after 96 bits of a GID that maps IPv4.
  EXPECT_EQ(VerbsDevice::open_all(wish, reason)[2]->network_bits, 96 + 8);
  wish.local_rank = 1;
  EXPECT_EQ(names(), "fake1:1+fake0:1+fake2:1");
  EXPECT_EQ(VerbsDevice::open_all(wish, reason)[0]->nid, loopback_nid);
  wish.nid = loopback_nid + 2;
  EXPECT_EQ(names(), "fake2:1+fake0:1+fake1:1");
}

// The directories of two ports of the second process, in the place of sysfs.
void show_pci_devices() {
  namespace fs = std::filesystem;
  ASSERT_EQ(unshare(CLONE_NEWNS), 0);
  ASSERT_EQ(mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr), 0);
  for (const char* place : {"/sys/class", "/sys/bus"})
    ASSERT_EQ(mount("tmpfs", place, "tmpfs", 0, nullptr), 0);
  const fs::path roots = "/sys/class/roots";
  const fs::path ports[] = {roots / "pci0000:3a/0000:3b:00.0", roots / "pci0000:ae/0000:af:00.0"};
  fs::create_directories("/sys/bus/pci/devices");
  for (unsigned i = 0; i < 2; ++i) {
    const fs::path accelerator = ports[i].parent_path() / ("0000:0" + std::to_string(i) + ":00.0");
    const fs::path port = "/sys/class/infiniband/fake" + std::to_string(2 + i);
    fs::create_directories(ports[i]);
    fs::create_directories(accelerator);
    fs::create_directories(port);
    fs::create_directory_symlink(ports[i], port / "device");
    fs::create_directory_symlink(accelerator, "/sys/bus/pci/devices" / accelerator.filename());
  }
}

// Memory of a device goes by the port that is near to it, whichever of two that is.
TEST_F(StripedAccessesTest, MemoryOfADeviceGoesByTheNearPort) {
  if (geteuid() != 0) GTEST_SKIP() << "mounting needs root";
  run_ranks(1, {}, [](Rank&) {
    show_pci_devices();
    TestMemoryKind& kind = TestMemoryKind::in_use();
    kind.lends = true;
    for (const bool write : {false, true})
      for (const unsigned near : {0u, 1u}) {
        start({.devices = 4, .dmabuf = true});
        RailPair pair(ports(0, 2), ports(2, 2));
        kind.pci = near == 0 ? "0000:00:00.0" : "0000:01:00.0";
        std::byte* const own = kind.allocate(long_bytes);
        const uint64_t before = pair.bytes_by(1);
        Operation operation(pair.from, pair.to, pair.stream.link(), write);
        operation.local = own;
        ASSERT_TRUE(operation.begin());
        ASSERT_EQ(operation.end(), RemoteStatus::done);
        EXPECT_EQ(pair.bytes_by(1) - before, near == 1 ? long_bytes : 0u) << write;
        kind.free(own);
      }
  });
}

// ---- parts

MemoryNotice notice_of(unsigned count, uint32_t channel) {
  MemoryNotice notice{MemoryNotice::current_version, static_cast<uint16_t>(count), 0, {}};
  for (unsigned i = 0; i < count; ++i)
    notice.keys[i] = {100 + i, exposure_key(i, channel, 200 + i)};
  return notice;
}
bool take(NoticedKeys& keys, const MemoryNotice& notice, uint32_t channel,
          uint32_t bytes = sizeof(MemoryNotice)) {
  return keys.take(reinterpret_cast<const std::byte*>(&notice), bytes, channel);
}

TEST(NoticedKeysTest, KeysAreReplaced) {
  NoticedKeys keys;
  ASSERT_TRUE(take(keys, notice_of(3, 7), 7));
  RemoteMemory ranges[] = {{0, 1, 102}, {0, 1, 100}};
  ASSERT_TRUE(keys.translate(ranges, 2));
  EXPECT_EQ(ranges[0].key, exposure_key(2, 7, 202));
  EXPECT_EQ(ranges[1].key, exposure_key(0, 7, 200));
  RemoteMemory unknown{0, 1, 103};
  EXPECT_FALSE(keys.translate(&unknown, 1));
  keys.clear();
  RemoteMemory known{0, 1, 102};
  EXPECT_FALSE(keys.translate(&known, 1));
}

TEST(NoticedKeysTest, TheLastNoticeOfAKeyHoldsAndOldOnesAreForgotten) {
  NoticedKeys keys;
  ASSERT_TRUE(take(keys, notice_of(1, 7), 7));
  MemoryNotice notice = notice_of(1, 7);
  notice.keys[0].here = exposure_key(5, 7, 9);
  ASSERT_TRUE(take(keys, notice, 7));
  RemoteMemory range{0, 1, 100};
  ASSERT_TRUE(keys.translate(&range, 1));
  EXPECT_EQ(range.key, exposure_key(5, 7, 9));
  for (uint64_t i = 0; i < 64; ++i) {
    notice.keys[0].first = 1000 + i;
    ASSERT_TRUE(take(keys, notice, 7));
  }
  range.key = 100;
  EXPECT_FALSE(keys.translate(&range, 1));
}

TEST(NoticedKeysTest, WhatCannotBeANoticeIsRefused) {
  NoticedKeys keys;
  EXPECT_FALSE(take(keys, notice_of(1, 7), 7, sizeof(MemoryNotice) - 1));
  EXPECT_FALSE(take(keys, notice_of(1, 7), 7, 0));
  EXPECT_FALSE(take(keys, notice_of(1, 7), 8));
  EXPECT_FALSE(take(keys, notice_of(0, 7), 7));
  MemoryNotice notice = notice_of(4, 7);
  notice.count = 5;
  EXPECT_FALSE(take(keys, notice, 7));
  notice = notice_of(2, 7);
  notice.version = 2;
  EXPECT_FALSE(take(keys, notice, 7));
  notice = notice_of(2, 7);
  notice.zero = 1;
  EXPECT_FALSE(take(keys, notice, 7));
  notice = notice_of(2, 7);
  notice.keys[1].first = 0;
  EXPECT_FALSE(take(keys, notice, 7));
  RemoteMemory range{0, 1, 100};
  EXPECT_FALSE(keys.translate(&range, 1));
}

TEST(PortRateTest, IsMeasuredWhileThereIsSomethingToDoAndForgottenAfterASecond) {
  constexpr uint64_t start = 5'000'000'000;
  PortRate rate;
  EXPECT_EQ(rate.rate(start), 0u);
  rate.begin(1 << 20, start);
  rate.begin(1 << 20, start);
  EXPECT_EQ(rate.outstanding(), 2u << 20);
  rate.end(1 << 20, true, start + 100'000);
  const uint64_t measured = rate.rate(start + 100'000);
  EXPECT_NEAR(static_cast<double>(measured), 1024.0 * (1 << 20) / 100'000, 1);
  // A pause does not count.
  rate.end(1 << 20, true, start + 200'000);
  rate.begin(1 << 20, start + 500'000'000);
  rate.end(1 << 20, true, start + 500'100'000);
  EXPECT_EQ(rate.rate(start + 500'100'000), measured);
  EXPECT_EQ(rate.outstanding(), 0u);
  // What failed does not count.
  rate.begin(1 << 20, start + 600'000'000);
  rate.end(1 << 20, false, start + 900'000'000);
  EXPECT_EQ(rate.rate(start + 900'000'000), measured);
  EXPECT_EQ(rate.rate(start + 1'600'000'000), 0u);
}

}  // namespace
}  // namespace lintel::test
