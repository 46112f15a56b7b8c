// The transport over RDMA devices without faults. Messages change from datagrams to queue pairs,
// and memory is read and written, with devices of all kinds.
#include <sys/mman.h>

#include "verbs_test_support.h"

namespace lintel::test {
namespace {

class VerbsTransportTest : public test::VerbsTest {
 protected:
  // Returns when messages use queue pairs.
  static void connect(VerbsProcess& from, VerbsProcess& to, Stream& stream) {
    ASSERT_TRUE(run_until({&from, &to}, [&] {
      if (fake_verbs::done(IBV_WR_SEND_WITH_IMM) != 0 &&
          fake_verbs::queue_pairs(IBV_QPT_RC).size() == 2) {
        bool ready = true;
        for (const uint32_t number : fake_verbs::queue_pairs(IBV_QPT_RC))
          ready = ready && fake_verbs::state_of(number) == IBV_QPS_RTS;
        if (ready && stream.sent() > 100) return true;
      }
      stream.send_one();
      stream.check();
      return false;
    }));
    ASSERT_TRUE(stream.pass(50));
  }

  // The target reads from, or writes to, memory exposed by the initiator.
  static void transfer(VerbsProcess& initiator, VerbsProcess& target, Link& link, bool write,
                       size_t bytes, size_t pieces = 1) {
    std::vector<std::byte> exposed = test::bytes_of(1, bytes);
    std::vector<std::byte> own = test::bytes_of(2, bytes);
    std::vector<Piece> parts;
    for (size_t i = 0; i < pieces; ++i) {
      const size_t begin = bytes * i / pieces;
      parts.push_back({exposed.data() + begin, bytes * (i + 1) / pieces - begin});
    }
    RemoteMemory told[16];
    const Exposure exposure = test::tell_of(initiator, target, link, parts.data(),
                                            static_cast<unsigned>(pieces), write, told);
    ASSERT_EQ(exposure.status, SendStatus::sent);
    ASSERT_EQ(exposure.count, pieces);

    target.ended.clear();
    const Piece local{own.data(), bytes};
    // The payload is transferred directly between the two buffers; no processor copies it. In
    // addition there may be 8 bytes per read that prove its completion.
    auto straight = std::make_shared<std::atomic<uint64_t>>(0);
    auto elsewhere = std::make_shared<std::atomic<uint64_t>>(0);
    fake_verbs::fail_request(IBV_WC_GENERAL_ERR, [=, first = own.data(),
                                                  last = own.data() + bytes](const auto& request) {
      if (request.opcode != IBV_WR_RDMA_READ && request.opcode != IBV_WR_RDMA_WRITE) return false;
      if (request.pieces.empty()) *straight += request.bytes;  // inline
      for (const ibv_sge& piece : request.pieces) {
        const auto* const at = reinterpret_cast<const std::byte*>(piece.addr);
        (at >= first && at + piece.length <= last ? *straight : *elsewhere) += piece.length;
      }
      return false;
    });
    ASSERT_NE(target.last_link, nullptr);
    const RemoteResult result = target.transport->remote_access(
        *target.last_link, write, &local, 1, told, static_cast<unsigned>(pieces), 77);
    ASSERT_EQ(result.status, RemoteStatus::started);
    ASSERT_TRUE(run_until({&initiator, &target}, [&] { return !target.ended.empty(); }));
    EXPECT_EQ(target.ended[0].token, 77u);
    EXPECT_EQ(target.ended[0].result.status, RemoteStatus::done);
    EXPECT_EQ(target.ended[0].result.bytes, bytes);
    EXPECT_EQ(exposed, own);
    EXPECT_EQ(own, test::bytes_of(write ? 2 : 1, bytes));
    EXPECT_GE(straight->load(), bytes);
    EXPECT_LE(straight->load(), bytes + 8 * pieces);
    EXPECT_EQ(elsewhere->load(), 0u);
    const unsigned by_owner = fake_verbs::done(IBV_WR_LOCAL_INV);
    target.transport->end_access(*target.last_link, told, static_cast<unsigned>(pieces));
    // The answer that reports the end of the access.
    const size_t arrived = initiator.arrived.size();
    ASSERT_EQ(target.send(*target.last_link, 0, {}), SendStatus::sent);
    ASSERT_TRUE(
        run_until({&initiator, &target}, [&] { return initiator.arrived.size() > arrived; }));
    initiator.arrived.pop_back();
    initiator.transport->withdraw(link, exposure.number, false);
    EXPECT_EQ(fake_verbs::done(IBV_WR_LOCAL_INV), by_owner);
  }
};

// Tiny messages are inline, few of them request a completion, and messages that were held together
// are posted in one call.
TEST_F(VerbsTransportTest, TinyMessagesAreInlineChainedAndSeldomSignalled) {
  VerbsProcess from, to;
  Stream stream(from, to);
  connect(from, to, stream);
  struct Counts {
    std::atomic<unsigned> all{0}, inlined{0}, signalled{0}, chained{0};
  };
  auto counts = std::make_shared<Counts>();
  fake_verbs::fail_request(IBV_WC_GENERAL_ERR, [counts](const auto& request) {
    if (request.type != IBV_QPT_RC) return false;
    ++counts->all;
    if ((request.flags & IBV_SEND_INLINE) != 0) ++counts->inlined;
    if ((request.flags & IBV_SEND_SIGNALED) != 0) ++counts->signalled;
    if (request.chained) ++counts->chained;
    return false;
  });
  constexpr unsigned together = 4;
  constexpr unsigned rounds = 50;
  for (unsigned round = 0; round < rounds; ++round) {
    const size_t goal = to.arrived.size() + together;
    from.transport->cork(stream.link());
    for (unsigned i = 0; i < together; ++i)
      ASSERT_EQ(from.send(stream.link(), i, {}), SendStatus::sent);
    from.transport->uncork(stream.link());
    ASSERT_TRUE(run_until({&from, &to}, [&] { return to.arrived.size() == goal; }));
  }
  EXPECT_GE(counts->all, rounds * together);
  EXPECT_GE(counts->inlined, rounds * together);
  EXPECT_GE(counts->chained, rounds * (together - 1));
  EXPECT_LT(counts->signalled, counts->all / 4);
}

TEST_F(VerbsTransportTest, RemoteMemory) {
  VerbsProcess from, to;
  Stream stream(from, to);
  connect(from, to, stream);
  for (const size_t bytes : {size_t{1}, size_t{5000}, size_t{1} << 20})
    for (const bool write : {false, true})
      for (const size_t pieces : {size_t{1}, size_t{7}})
        if (pieces <= bytes) transfer(from, to, stream.link(), write, bytes, pieces);
  ASSERT_TRUE(stream.pass(200));
}

// Memory that was withdrawn or never exposed cannot be accessed.
TEST_F(VerbsTransportTest, RemoteMemoryEndsWithItsOperation) {
  VerbsProcess from, to;
  Stream stream(from, to);
  connect(from, to, stream);
  std::vector<std::byte> exposed(8192);
  std::vector<std::byte> own(8192);
  const Piece part{exposed.data(), 4096};
  RemoteMemory told{};
  const Exposure exposure = test::tell_of(from, to, stream.link(), &part, 1, true, &told);
  ASSERT_EQ(exposure.count, 1u);
  from.transport->withdraw(stream.link(), exposure.number, false);
  ASSERT_TRUE(stream.pass(100));
  const Piece local{own.data(), 4096};
  ASSERT_EQ(to.transport->remote_access(*to.last_link, true, &local, 1, &told, 1, 1).status,
            RemoteStatus::started);
  ASSERT_TRUE(run_until({&from, &to}, [&] { return !to.ended.empty(); }));
  EXPECT_NE(to.ended[0].result.status, RemoteStatus::done);
  // The queue pairs failed because of this; nothing else did.
  ASSERT_TRUE(stream.pass(300));
}

// Each operation has a registration of its own, as with memory that is read-only.
TEST_F(VerbsTransportTest, WithoutMemoryForWindows) {
  VerbsProcess from, to;
  Stream stream(from, to);
  connect(from, to, stream);
  fake_verbs::fail_call("ibv_alloc_mw", ENOMEM, 1, 1000);
  const unsigned pairs = fake_verbs::in_use().queue_pairs;
  for (int round = 0; round < 5; ++round)
    for (const bool write : {false, true}) transfer(from, to, stream.link(), write, 100'000, 3);
  ASSERT_TRUE(stream.pass(100));
  EXPECT_EQ(fake_verbs::in_use().queue_pairs, pairs);
  fake_verbs::fail_call("ibv_alloc_mw", 0, 1, 0);
}

TEST_F(VerbsTransportTest, ADeviceWithoutWindows) {
  start({.windows = false});
  VerbsProcess from, to;
  Stream stream(from, to);
  connect(from, to, stream);
  for (const bool write : {false, true}) transfer(from, to, stream.link(), write, 100'000, 3);
  ASSERT_TRUE(stream.pass(100));
}

// No more memory may be locked. The device lets the kernel page in what it needs, with or without
// windows.
TEST_F(VerbsTransportTest, MemoryThatCannotBeLockedIsPagedOnDemand) {
  for (const bool windows : {true, false}) {
    start({.windows = windows, .on_demand = true});
    VerbsProcess from, to;
    Stream stream(from, to);
    connect(from, to, stream);
    const uint64_t locked = fake_verbs::locked_bytes();
    fake_verbs::limit_locked_bytes(locked);
    for (const bool write : {false, true}) transfer(from, to, stream.link(), write, 100'000, 3);
    EXPECT_EQ(fake_verbs::locked_bytes(), locked);
    // This does not apply to inaccessible memory.
    void* const nothing = mmap(nullptr, 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(nothing, MAP_FAILED);
    const Piece piece{static_cast<std::byte*>(nothing), 8192};
    RemoteMemory told{};
    for (const bool write : {false, true}) {
      const Exposure exposure = from.transport->expose(stream.link(), &piece, 1, write, 1, &told);
      EXPECT_EQ(exposure.status, SendStatus::sent);
      EXPECT_EQ(exposure.count, 0u);
    }
    munmap(nothing, 8192);
    ASSERT_TRUE(stream.pass(100));
  }
}

TEST_F(VerbsTransportTest, WithoutPagingOnDemandTheLimitSendsDataInMessages) {
  VerbsProcess from, to;
  Stream stream(from, to);
  connect(from, to, stream);
  fake_verbs::limit_locked_bytes(fake_verbs::locked_bytes());
  std::vector<std::byte> memory(8192);
  const Piece piece{memory.data(), memory.size()};
  RemoteMemory told{};
  const Exposure exposure = from.transport->expose(stream.link(), &piece, 1, false, 1, &told);
  EXPECT_EQ(exposure.status, SendStatus::sent);
  EXPECT_EQ(exposure.count, 0u);
  ASSERT_TRUE(stream.pass(100));
}

TEST_F(VerbsTransportTest, ADeviceThatHasLittleOfEverything) {
  start({.mtu = IBV_MTU_1024,
         .max_message_bytes = 10'000,
         .max_qp_wr = 256,
         .max_srq_wr = 32,
         .max_sge = 2,
         .max_inline_bytes = 0,
         .max_reads = 1});
  VerbsProcess from, to;
  ASSERT_EQ(from.status, OpenStatus::opened) << from.reason;
  Stream stream(from, to);
  connect(from, to, stream);
  for (const bool write : {false, true}) transfer(from, to, stream.link(), write, 300'000, 7);
  ASSERT_TRUE(stream.pass(500));
}

TEST_F(VerbsTransportTest, WithoutQueuePairs) {
  VerbsProcess from([](VerbsSettings& settings) { settings.max_rc = 0; });
  VerbsProcess to;
  Stream stream(from, to);
  ASSERT_TRUE(stream.pass(1000));
  EXPECT_TRUE(fake_verbs::queue_pairs(IBV_QPT_RC).empty());
}

TEST_F(VerbsTransportTest, MorePeersThanQueuePairs) {
  const auto one_pair = [](VerbsSettings& settings) { settings.max_rc = 1; };
  VerbsProcess center(one_pair);
  std::vector<std::unique_ptr<VerbsProcess>> peers;
  std::vector<std::unique_ptr<Stream>> streams;
  for (int i = 0; i < 5; ++i) {
    peers.push_back(std::make_unique<VerbsProcess>(one_pair));
    streams.push_back(std::make_unique<Stream>(center, *peers.back()));
  }
  for (int round = 0; round < 10; ++round)
    for (auto& stream : streams) ASSERT_TRUE(stream->pass(60));
  EXPECT_LE(fake_verbs::queue_pairs(IBV_QPT_RC).size(), 6u);
}

// Reads may take longer than the idle time of queue pairs. Their queue pair is not closed for that
// reason, nor given to another peer.
TEST_F(VerbsTransportTest, AQueuePairIsNotIdleWhileMemoryIsRead) {
  const auto impatient = [](VerbsSettings& settings) {
    settings.rc_idle_ns = 20'000'000;
    settings.max_rc = 1;
  };
  VerbsProcess from([](VerbsSettings& settings) { settings.max_rc = 1; });
  VerbsProcess to(impatient), another(impatient);
  Stream stream(from, to), elsewhere(to, another);
  connect(from, to, stream);
  std::vector<std::byte> exposed = test::bytes_of(1, 100'000), own(exposed.size());
  const Piece part{exposed.data(), exposed.size()}, local{own.data(), own.size()};
  RemoteMemory told{};
  const Exposure exposure = test::tell_of(from, to, stream.link(), &part, 1, false, &told);
  ASSERT_EQ(exposure.count, 1u);
  fake_verbs::hold();
  ASSERT_EQ(to.transport->remote_access(*to.last_link, false, &local, 1, &told, 1, 77).status,
            RemoteStatus::started);
  const auto start = std::chrono::steady_clock::now();
  // Longer than the time after which another peer may get the queue pair.
  ASSERT_TRUE(run_until({&from, &to, &another}, [&] {
    static_cast<void>(elsewhere.send_one());
    to.transport->check_peers(to, nullptr, 0);
    return !to.ended.empty() ||
           std::chrono::steady_clock::now() - start > std::chrono::milliseconds(700);
  }));
  fake_verbs::release();
  ASSERT_TRUE(run_until({&from, &to, &another}, [&] { return !to.ended.empty(); }));
  EXPECT_EQ(to.ended[0].result.status, RemoteStatus::done);
  EXPECT_EQ(own, exposed);
  from.transport->withdraw(stream.link(), exposure.number, false);
  // Afterwards it is closed.
  EXPECT_TRUE(run_until({&from, &to, &another}, [&] {
    to.transport->check_peers(to, nullptr, 0);
    return fake_verbs::queue_pairs(IBV_QPT_RC).empty();
  }));
  EXPECT_EQ(from.failed + to.failed + another.failed, 0u);
}

TEST_F(VerbsTransportTest, PacketsAreMarkedAsTheFabricDemands) {
  start({.pkeys = {0xffff, 0x8005}});
  constexpr uint8_t level = 5, traffic_class = 96;
  const auto demands = [](VerbsSettings& settings) {
    settings.port.pkey = 0x0005;  // the membership bit is ignored
    settings.port.service_level = level;
    settings.port.traffic_class = traffic_class;
  };
  VerbsProcess from(demands), to(demands);
  ASSERT_EQ(from.status, OpenStatus::opened) << from.reason;
  Stream stream(from, to);
  connect(from, to, stream);
  for (const ibv_qp_type type : {IBV_QPT_UD, IBV_QPT_RC}) {
    const std::vector<uint32_t> numbers = fake_verbs::queue_pairs(type);
    ASSERT_EQ(numbers.size(), 2u);
    for (const uint32_t number : numbers) {
      const ibv_qp_attr pair = fake_verbs::attributes_of(number);
      EXPECT_EQ(pair.pkey_index, 1);
      if (type == IBV_QPT_UD) continue;
      EXPECT_EQ(pair.ah_attr.sl, level);
      EXPECT_EQ(pair.ah_attr.grh.traffic_class, traffic_class);
    }
  }
  EXPECT_EQ(fake_verbs::last_address().sl, level);
  EXPECT_EQ(fake_verbs::last_address().grh.traffic_class, traffic_class);
}

TEST_F(VerbsTransportTest, APortOutsideThePartitionIsNotUsed) {
  VerbsProcess process([](VerbsSettings& settings) { settings.port.pkey = 0x0005; });
  ASSERT_EQ(process.status, OpenStatus::failed);
  EXPECT_NE(process.reason.find("0x0005"), std::string::npos) << process.reason;
  EXPECT_NE(process.reason.find("PTL_VERBS_PKEY"), std::string::npos) << process.reason;
}

}  // namespace
}  // namespace lintel::test
