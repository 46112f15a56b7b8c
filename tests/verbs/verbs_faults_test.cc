// Faults of RDMA devices: failing calls and work requests, ports that go down, lost queue pairs and
// completion queues, peers that die. Messages arrive once and in order, or the peer is reported as
// failed; no call waits for ever.
#include <random>

#include "verbs/send_queue.h"
#include "verbs_test_support.h"

namespace lintel::test {
namespace {

class VerbsFaultsTest : public test::VerbsTest {};

// Functions of libibverbs that may fail while objects are made.
constexpr const char* making_functions[] = {
    "ibv_get_device_list", "ibv_open_device",         "ibv_query_device", "ibv_query_port",
    "ibv_query_gid_table", "ibv_query_pkey",          "ibv_alloc_pd",     "ibv_reg_mr",
    "ibv_create_cq",       "ibv_create_comp_channel", "ibv_create_srq",   "ibv_create_qp",
    "ibv_create_ah",       "ibv_modify_qp",           "ibv_post_recv",    "ibv_post_srq_recv",
    "ibv_req_notify_cq"};

// While a transport is opened, each call fails once. The transport is opened without the object, or
// the reason is reported. Nothing remains in use.
TEST_F(VerbsFaultsTest, EachCallMayFailWhileOpening) {
  for (const char* function : making_functions) {
    start();
    { VerbsProcess counting; }
    const unsigned calls = std::min(fake_verbs::calls(function), 40u);
    for (unsigned nth = 1; nth <= calls; ++nth) {
      SCOPED_TRACE(std::string(function) + ", call " + std::to_string(nth));
      start();
      fake_verbs::fail_call(function, ENOMEM, nth);
      {
        VerbsProcess process;
        EXPECT_NE(process.status == OpenStatus::failed, process.reason.empty());
        EXPECT_EQ(process.status == OpenStatus::opened, process.transport != nullptr);
      }
      ASSERT_EQ(fake_verbs::in_use(), fake_verbs::InUse{});
      ASSERT_EQ(fake_verbs::violations(), std::vector<std::string>{});
    }
  }
}

// After both transports are open, each call fails once while they connect.
TEST_F(VerbsFaultsTest, EachCallMayFailWhileConnecting) {
  for (const char* function : {"ibv_create_qp", "ibv_modify_qp", "ibv_destroy_qp", "ibv_create_ah",
                               "ibv_post_send", "ibv_post_recv", "ibv_post_srq_recv", "ibv_poll_cq",
                               "ibv_req_notify_cq", "ibv_resize_cq"}) {
    for (unsigned nth = 1; nth <= 6; ++nth) {
      SCOPED_TRACE(std::string(function) + ", call " + std::to_string(nth));
      start();
      {
        VerbsProcess from, to;
        ASSERT_NE(from.transport, nullptr) << from.reason;
        ASSERT_NE(to.transport, nullptr) << to.reason;
        if (std::string(function) != "ibv_destroy_qp") fake_verbs::fail_call(function, ENOMEM, nth);
        Stream stream(from, to);
        ASSERT_TRUE(stream.pass(150));
        ASSERT_EQ(from.failed + to.failed, 0u);
      }
      ASSERT_EQ(fake_verbs::in_use(), fake_verbs::InUse{});
      ASSERT_EQ(fake_verbs::violations(), std::vector<std::string>{});
    }
  }
}

// A queue pair that fails during a stream, with each status.
class VerbsStatusTest : public VerbsFaultsTest,
                        public testing::WithParamInterface<ibv_wc_status> {};

TEST_P(VerbsStatusTest, AStreamGoesOnWhenItsQueuePairFails) {
  VerbsProcess from, to;
  Stream stream(from, to);
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(run_until({&from, &to}, [&] {
      stream.send_one();
      stream.check();
      return stream.sent() > 600u * (round + 1);
    }));
    fake_verbs::fail_request(GetParam(), [](const fake_verbs::Request& request) {
      return request.type == IBV_QPT_RC && request.opcode == IBV_WR_SEND_WITH_IMM;
    });
    ASSERT_TRUE(stream.pass(700));
  }
  EXPECT_EQ(from.failed + to.failed, 0u);
}

INSTANTIATE_TEST_SUITE_P(Errors, VerbsStatusTest,
                         testing::Values(IBV_WC_LOC_LEN_ERR, IBV_WC_LOC_QP_OP_ERR,
                                         IBV_WC_LOC_PROT_ERR, IBV_WC_WR_FLUSH_ERR,
                                         IBV_WC_BAD_RESP_ERR, IBV_WC_LOC_ACCESS_ERR,
                                         IBV_WC_REM_INV_REQ_ERR, IBV_WC_REM_ACCESS_ERR,
                                         IBV_WC_REM_OP_ERR, IBV_WC_RETRY_EXC_ERR,
                                         IBV_WC_RNR_RETRY_EXC_ERR, IBV_WC_FATAL_ERR,
                                         IBV_WC_GENERAL_ERR),
                         [](const testing::TestParamInfo<ibv_wc_status>& tested) {
                           return "Status" + std::to_string(tested.param);
                         });

// One that carries nothing is followed by another one, each time after more messages.
TEST_F(VerbsFaultsTest, QueuePairsThatFailAtOnceAreMadeAgain) {
  VerbsProcess from, to;
  Stream stream(from, to);
  for (unsigned round = 0; round < 5; ++round) {
    SCOPED_TRACE(round);
    bool failed = false;
    fake_verbs::fail_request(IBV_WC_RETRY_EXC_ERR, [&](const fake_verbs::Request& request) {
      failed |= request.type == IBV_QPT_RC;
      return request.type == IBV_QPT_RC;
    });
    ASSERT_TRUE(run_until({&from, &to}, [&] {
      stream.send_one();
      stream.check();
      return failed;
    }));
    ASSERT_TRUE(stream.pass(10));
  }
  ASSERT_TRUE(stream.pass(256u << 6));
  EXPECT_EQ(fake_verbs::queue_pairs(IBV_QPT_RC).size(), 2u);
  EXPECT_EQ(from.failed + to.failed, 0u);
}

// Two processes with a stream over queue pairs; `numbers` contains their numbers, or nothing after
// a failure.
struct ConnectedPair {
  VerbsProcess from, to;
  Stream stream{from, to};
  std::vector<uint32_t> numbers =
      stream.pass(300) ? fake_verbs::queue_pairs(IBV_QPT_RC) : std::vector<uint32_t>{};
};

// Completions in the queue are lost and cannot be recovered. If there were any, the peer is
// reported as failed. In any case no process waits for ever, and later messages arrive.
TEST_F(VerbsFaultsTest, ALostCompletionQueue) {
  for (const bool busy : {false, true}) {
    for (const unsigned side : {0u, 1u}) {
      SCOPED_TRACE(std::string(busy ? "busy" : "idle").append(" ") + std::to_string(side));
      start();
      ConnectedPair pair;
      // Some compilers do not permit lambdas to capture structured bindings.
      VerbsProcess& from = pair.from;
      VerbsProcess& to = pair.to;
      Stream& stream = pair.stream;
      const std::vector<uint32_t>& numbers = pair.numbers;
      ASSERT_EQ(numbers.size(), 2u);
      ASSERT_TRUE(run_until({&from}, [&] { return !busy || !stream.send_one(); }));
      fake_verbs::break_completion_queue(numbers[side]);
      Link& link = stream.link();
      uint64_t number = 1u << 20;
      const auto has_arrived = [&] {
        for (const VerbsProcess::Arrived& message : to.arrived)
          if (message.header.hdr_data == number) return true;
        return false;
      };
      ASSERT_TRUE(run_until({&from, &to}, [&] {
        if (has_arrived()) return true;
        static_cast<void>(from.send(link, number, {}));
        return from.failed != 0;
      }));
      // Over datagrams or a new connection.
      to.arrived.clear();
      ++number;
      ASSERT_TRUE(run_until({&from, &to}, [&] {
        Link* const anew = from.connect(to);
        if (anew != nullptr) static_cast<void>(from.send(*anew, number, {}));
        return has_arrived();
      }));
    }
  }
}

// One end loses its receive buffers: all further messages are sent as datagrams.
TEST_F(VerbsFaultsTest, ALostReceiveQueue) {
  for (const unsigned side : {0u, 1u}) {
    SCOPED_TRACE(side);
    start();
    ConnectedPair pair;
    auto& [from, to, stream, numbers] = pair;
    ASSERT_EQ(numbers.size(), 2u);
    fake_verbs::break_receive_queue(numbers[side]);
    ASSERT_TRUE(stream.pass(1000));
    EXPECT_TRUE(
        run_until({&from, &to}, [] { return fake_verbs::queue_pairs(IBV_QPT_RC).empty(); }));
    ASSERT_TRUE(stream.pass(1000));
    // An offer of the other end may have one until it is declined.
    EXPECT_TRUE(
        run_until({&from, &to}, [] { return fake_verbs::queue_pairs(IBV_QPT_RC).empty(); }));
    EXPECT_EQ(from.failed + to.failed, 0u);
  }
}

// No operation of the device works. This is detected within the time after which peers count as
// dead.
TEST_F(VerbsFaultsTest, ADeviceThatHasFailed) {
  VerbsProcess from, to;
  Stream stream(from, to);
  ASSERT_TRUE(stream.pass(300));
  fake_verbs::set_port(0, false);
  fake_verbs::raise_device_event(0, IBV_EVENT_DEVICE_FATAL);
  Link* const link = &stream.link();
  ASSERT_TRUE(run_until(
      {&from},
      [&] {
        static_cast<void>(from.send(*link, 1, {}));
        from.transport->check_peers(from, &link, 1);
        return from.failed != 0;
      },
      test::wait_deadline * 2));
}

// Two processes with two ports each, of which the first ones go down for a while, and then the
// second ones: messages go by the others, over queue pairs or as datagrams.
TEST_F(VerbsFaultsTest, APortIsReplacedByAnother) {
  for (const uint32_t max_rc : {0u, 1024u}) {
    SCOPED_TRACE(max_rc);
    start({.devices = 4});
    {
      const auto with_ports = [max_rc](const char* first, const char* second) {
        return [=](VerbsSettings& settings) {
          settings.max_rc = max_rc;
          settings.port.device = first;
          settings.port.further = {second};
        };
      };
      VerbsProcess from(with_ports("fake0", "fake1")), to(with_ports("fake2", "fake3"));
      ASSERT_NE(from.transport, nullptr) << from.reason;
      ASSERT_NE(to.transport, nullptr) << to.reason;
      Stream stream(from, to);
      ASSERT_TRUE(stream.pass(500));
      for (const unsigned down : {0u, 1u}) {
        fake_verbs::set_port(down, false);
        fake_verbs::set_port(down + 2, false);
        const uint64_t goal = stream.sent() + 500;
        ASSERT_TRUE(run_until({&from, &to}, [&] {
          if (stream.sent() < goal) stream.send_one();
          fake_verbs::expire_retries();
          stream.check();
          return stream.received() == goal || HasFatalFailure();
        }));
        fake_verbs::set_port(down, true);
        fake_verbs::set_port(down + 2, true);
        ASSERT_TRUE(stream.pass(500));
      }
      EXPECT_EQ(from.failed + to.failed, 0u);
    }
    EXPECT_EQ(fake_verbs::in_use(), fake_verbs::InUse{});
  }
}

// A port of 4,096 bytes behind a path that takes 1,500: frames that are too long are lost silently.
TEST_F(VerbsFaultsTest, DatagramsOnANarrowPath) {
  fake_verbs::lose_datagrams(
      [](const fake_verbs::Datagram& datagram) { return datagram.bytes > 1500; });
  VerbsProcess from([](VerbsSettings& settings) { settings.max_rc = 0; });
  VerbsProcess to;
  Link* const link = from.connect(to);
  ASSERT_NE(link, nullptr);
  const size_t first_limit = link->max_data_bytes;
  ASSERT_GT(first_limit, 1500u);
  // As much as the port lets through, so that each message is one frame that is too long, at first.
  const std::vector<std::byte> payload = test::bytes_of(3, first_limit);
  uint64_t sent = 0;
  ASSERT_TRUE(run_until({&from, &to}, [&] {
    if (sent < 50 && from.send(*link, sent, payload) == SendStatus::sent) ++sent;
    return to.arrived.size() == 50;
  }));
  for (uint64_t i = 0; i < 50; ++i) {
    EXPECT_EQ(to.arrived[i].header.hdr_data, i);
    EXPECT_EQ(to.arrived[i].payload, payload);
  }
  EXPECT_LT(link->max_data_bytes, 1500u);
  EXPECT_EQ(from.failed + to.failed, 0u);
  EXPECT_GE(from.transport->network_counters().paths_narrowed, 1u);
}

// Like rxe when it rejects the answer to a repeated read.
TEST_F(VerbsFaultsTest, AReadThatTheSoftwareDeviceGaveUpIsNotDoneThoughItSaysSo) {
  start({.vendor = 0xffffff});
  VerbsProcess from, to;
  to.answers = true;
  std::vector<std::byte> exposed = test::bytes_of(1, 100'000), own(exposed.size());
  Stream stream(from, to);
  ASSERT_TRUE(stream.pass(300));
  const Piece part{exposed.data(), exposed.size()}, local{own.data(), own.size()};
  for (const bool given_up : {false, true}) {
    RemoteMemory told{};
    ASSERT_EQ(test::tell_of(from, to, stream.link(), &part, 1, false, &told).count, 1u);
    if (given_up)
      fake_verbs::fail_request(
          IBV_WC_SUCCESS, [](const auto& request) { return request.opcode == IBV_WR_RDMA_READ; });
    to.ended.clear();
    ASSERT_EQ(to.transport->remote_access(*to.last_link, false, &local, 1, &told, 1, 3).status,
              RemoteStatus::started);
    ASSERT_TRUE(run_until({&from, &to}, [&] { return !to.ended.empty(); }));
    EXPECT_EQ(to.ended[0].result.status, given_up ? RemoteStatus::unsupported : RemoteStatus::done);
    EXPECT_EQ(own == exposed, !given_up);
    std::fill(own.begin(), own.end(), std::byte{});
  }
  ASSERT_TRUE(stream.pass(100));
}

// A peer dies while its memory is being read or written. The following answer finds no queue pair.
TEST_F(VerbsFaultsTest, APeerThatDiesWhileItsMemoryIsAccessed) {
  for (const bool write : {false, true}) {
    SCOPED_TRACE(write);
    start();
    {
      VerbsProcess survivor;
      survivor.answers = true;
      auto victim = std::make_unique<VerbsProcess>();
      std::vector<std::byte> exposed(1 << 20), own(1 << 20);
      {
        Stream stream(*victim, survivor);
        ASSERT_TRUE(stream.pass(300));
        const Piece part{exposed.data(), exposed.size()};
        RemoteMemory told{};
        ASSERT_EQ(test::tell_of(*victim, survivor, stream.link(), &part, 1, write, &told).count,
                  1u);
        fake_verbs::hold();
        const Piece local{own.data(), own.size()};
        Link& link = *survivor.last_link;
        ASSERT_EQ(survivor.transport->remote_access(link, write, &local, 1, &told, 1, 3).status,
                  RemoteStatus::started);
      }
      Link* const link = survivor.last_link;
      victim.reset();
      ASSERT_TRUE(run_until({&survivor}, [&] {
        survivor.transport->check_peers(survivor, &link, 1);
        return survivor.failed != 0;
      }));
      ASSERT_EQ(survivor.ended.size(), 1u);
      EXPECT_NE(survivor.ended[0].result.status, RemoteStatus::done);
      EXPECT_EQ(survivor.answered, SendStatus::peer_failed);
    }
    fake_verbs::release();
  }
}

// The last datagram of a dead peer is lost. The port of its pid shows that it is gone, long before
// its silence would. This holds also if a successor has the number by then.
TEST_F(VerbsFaultsTest, ADeadPeerIsMissedAtItsPort) {
  const auto patient = [](VerbsSettings& settings) {
    settings.reliable.peer_timeout_ns = 600'000'000'000;
  };
  for (const bool replaced : {false, true}) {
    SCOPED_TRACE(replaced);
    start();
    {
      VerbsProcess from(patient);
      auto to = std::make_unique<VerbsProcess>(patient);
      {
        Stream stream(from, *to);
        ASSERT_TRUE(stream.pass(300));
      }
      Link* const link = from.connect(*to);
      const uint32_t pid = to->id.pid;
      fake_verbs::lose_datagrams([](const fake_verbs::Datagram&) { return true; });
      to.reset();
      if (replaced) {
        to = std::make_unique<VerbsProcess>(patient, WatchedCache::Settings{}, pid);
        ASSERT_EQ(to->id.pid, pid);
      }
      static_cast<void>(from.send(*link, 1, {}));
      ASSERT_TRUE(run_until({&from}, [&] {
        from.transport->check_peers(from, &link, 1);
        return from.failed != 0;
      }));
    }
  }
}

// An access fails half way: its end is reported, and messages continue.
TEST_F(VerbsFaultsTest, AFailedAccessEnds) {
  for (const ibv_wr_opcode opcode : {IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE}) {
    start();
    VerbsProcess from, to;
    Stream stream(from, to);
    ASSERT_TRUE(stream.pass(300));
    const bool write = opcode == IBV_WR_RDMA_WRITE;
    std::vector<std::byte> exposed(40 << 20), own(40 << 20);
    const Piece part{exposed.data(), exposed.size()};
    RemoteMemory told{};
    const Exposure exposure = test::tell_of(from, to, stream.link(), &part, 1, write, &told);
    ASSERT_EQ(exposure.count, 1u);
    fake_verbs::hold();
    const Piece local{own.data(), own.size()};
    const RemoteResult result =
        to.transport->remote_access(*to.last_link, write, &local, 1, &told, 1, 3);
    ASSERT_EQ(result.status, RemoteStatus::started);
    fake_verbs::fail_request(IBV_WC_RETRY_EXC_ERR, [](const fake_verbs::Request& request) {
      return request.opcode == IBV_WR_RDMA_READ || request.opcode == IBV_WR_RDMA_WRITE;
    });
    fake_verbs::release();
    ASSERT_TRUE(run_until({&from, &to}, [&] { return !to.ended.empty(); }));
    EXPECT_EQ(to.ended[0].result.status, RemoteStatus::unsupported);
    EXPECT_EQ(to.ended[0].result.bytes, 0u);
    ASSERT_TRUE(stream.pass(300));
    from.transport->withdraw(stream.link(), exposure.number, true);
    EXPECT_EQ(to.ended.size(), 1u);
  }
}

// An operation is abandoned while the peer reads the memory, or has already invalidated the window,
// or has not begun. The window is not invalidated twice, the memory becomes inaccessible at once,
// and messages continue.
TEST_F(VerbsFaultsTest, AbandonedWhileThePeerInvalidates) {
  enum class Peer { has_not_begun, reads, has_read, has_invalidated };
  for (const Peer peer :
       {Peer::has_not_begun, Peer::reads, Peer::has_read, Peer::has_invalidated}) {
    SCOPED_TRACE(static_cast<int>(peer));
    start();
    VerbsProcess from, to;
    Stream stream(from, to);
    ASSERT_TRUE(stream.pass(300));
    std::vector<std::byte> exposed = test::bytes_of(1, 100'000);
    std::vector<std::byte> own(exposed.size());
    const Piece part{exposed.data(), exposed.size()};
    RemoteMemory told{};
    const Exposure exposure = test::tell_of(from, to, stream.link(), &part, 1, false, &told);
    ASSERT_EQ(exposure.count, 1u);
    const Piece local{own.data(), own.size()};
    const auto read = [&] {
      return to.transport->remote_access(*to.last_link, false, &local, 1, &told, 1, 3).status;
    };
    const auto end_access = [&] {
      to.transport->end_access(*to.last_link, &told, 1);
      static_cast<void>(to.send(*to.last_link, 0, {}));
    };
    if (peer == Peer::reads) fake_verbs::hold();
    if (peer != Peer::has_not_begun) {
      ASSERT_EQ(read(), RemoteStatus::started);
    }
    if (peer == Peer::has_read || peer == Peer::has_invalidated) {
      ASSERT_TRUE(run_until({&to}, [&] { return !to.ended.empty(); }));
    }
    if (peer == Peer::has_invalidated) end_access();
    from.transport->withdraw(stream.link(), exposure.number, true);
    exposed.assign(exposed.size(), std::byte{0});
    if (peer == Peer::reads) fake_verbs::release();
    if (peer == Peer::has_read) end_access();
    if (peer == Peer::has_not_begun) static_cast<void>(read());
    ASSERT_TRUE(run_until({&to, &from}, [&] { return !to.ended.empty(); }));
    if (peer == Peer::has_not_begun || peer == Peer::reads) {
      EXPECT_NE(to.ended[0].result.status, RemoteStatus::done);
      EXPECT_EQ(own, exposed);
    }
    ASSERT_TRUE(stream.pass(300));
    EXPECT_EQ(from.failed + to.failed, 0u);
    EXPECT_EQ(fake_verbs::violations(), std::vector<std::string>{});
  }
}

// The window stays bound until the queue pair is gone, and the memory registered as long.
TEST_F(VerbsFaultsTest, AnInvalidationThatFails) {
  const WatchedCache::Settings keeps_nothing{.most_regions = 0};
  VerbsProcess from({}, keeps_nothing), to;
  Stream stream(from, to);
  ASSERT_TRUE(stream.pass(300));
  std::vector<std::byte> memory(8192);
  const Piece piece{memory.data(), memory.size()};
  RemoteMemory told{};
  const Exposure exposure = test::tell_of(from, to, stream.link(), &piece, 1, false, &told);
  ASSERT_EQ(exposure.count, 1u);
  fake_verbs::fail_request(IBV_WC_GENERAL_ERR, [](const fake_verbs::Request& request) {
    return request.opcode == IBV_WR_LOCAL_INV;
  });
  from.transport->withdraw(stream.link(), exposure.number, false);
  ASSERT_TRUE(stream.pass(300));
  EXPECT_EQ(from.failed + to.failed, 0u);
}

// The device invalidates the first window and refuses the second request. It reports the first one
// if that is the last of a number of requests.
TEST_F(VerbsFaultsTest, AnInvalidationThatIsRefused) {
  const WatchedCache::Settings keeps_nothing{.most_regions = 0};
  for (unsigned before = 8; before < SendQueue::signal_interval; ++before) {
    SCOPED_TRACE(before);
    VerbsProcess from({}, keeps_nothing), to;
    Stream stream(from, to);
    ASSERT_TRUE(stream.pass(300));
    std::vector<std::byte> memory(3 * 8192);
    Piece pieces[3];
    for (unsigned i = 0; i < 3; ++i) pieces[i] = {memory.data() + 8192 * i, 8192};
    RemoteMemory told[3]{};
    const Exposure exposure = test::tell_of(from, to, stream.link(), pieces, 3, false, told);
    ASSERT_EQ(exposure.count, 3u);
    for (unsigned i = 0; i < before; ++i)
      ASSERT_EQ(from.send(stream.link(), i, {}), SendStatus::sent);
    fake_verbs::fail_call("ibv_post_send", ENOMEM, 2);
    from.transport->withdraw(stream.link(), exposure.number, false);
    ASSERT_TRUE(run_until({&from, &to}, [&] { return to.arrived.size() == before; }));
    to.arrived.clear();
    ASSERT_TRUE(stream.pass(10));
    EXPECT_EQ(from.failed + to.failed, 0u);
  }
}

// The device completes work requests late and in portions, during other activity.
TEST_F(VerbsFaultsTest, LateCompletions) {
  VerbsProcess from, to;
  Stream stream(from, to);
  ASSERT_TRUE(stream.pass(200));
  std::mt19937 dice(11);
  fake_verbs::hold();
  const uint64_t goal = stream.sent() + 2000;
  ASSERT_TRUE(run_until({&from, &to}, [&] {
    if (stream.sent() < goal) stream.send_one();
    static_cast<void>(fake_verbs::let_pass(dice() % 4));
    stream.check();
    return stream.received() == goal || HasFatalFailure();
  }));
  fake_verbs::release();
}

// All kinds of faults, in random order.
class VerbsChaosTest : public VerbsFaultsTest, public testing::WithParamInterface<unsigned> {};

TEST_P(VerbsChaosTest, NothingIsLostOrDoubled) {
  const unsigned seed = GetParam();
  std::mt19937 dice(seed);
  start({.max_inline_bytes = seed % 2 == 0 ? 256u : 0u,
         .windows = seed % 3 != 0,
         .completions_vanish = seed % 4 < 2});
  std::mt19937 losses(seed + 1000);
  fake_verbs::lose_datagrams([&losses](const fake_verbs::Datagram&) { return losses() % 50 == 0; });
  const auto patient = [](VerbsSettings& settings) {
    settings.reliable.peer_timeout_ns = 60'000'000'000;
  };
  VerbsProcess one(patient), other(patient);
  Stream there(one, other);
  Stream back(other, one);
  const uint64_t goal = test::long_tests() ? 20000 : 2000;
  bool down = false;
  bool held = false;
  const auto misfortune = [&] {
    const auto numbers = fake_verbs::queue_pairs(IBV_QPT_RC);
    switch (dice() % 8) {
      case 0:
        fake_verbs::fail_request(static_cast<ibv_wc_status>(1 + dice() % 10));
        break;
      case 1:
        if (!numbers.empty())
          fake_verbs::raise_queue_pair_event(numbers[dice() % numbers.size()], IBV_EVENT_QP_FATAL);
        break;
      case 2:
        fake_verbs::fail_call("ibv_post_send", ENOMEM, 1 + dice() % 5, 1 + dice() % 3);
        break;
      case 3:
        fake_verbs::fail_call("ibv_post_srq_recv", ENOMEM, 1 + dice() % 5);
        break;
      case 4:
        fake_verbs::set_port(0, down);
        down = !down;
        break;
      case 5:
        held = !held;
        held ? fake_verbs::hold() : fake_verbs::release();
        break;
      case 6:
        fake_verbs::expire_retries();
        break;
      default:
        fake_verbs::fail_call("ibv_create_qp", ENOMEM);
    }
  };
  ASSERT_TRUE(run_until(
      {&one, &other},
      [&] {
        if (there.sent() < goal) there.send_one();
        if (back.sent() < goal && dice() % 3 == 0) back.send_one();
        if (dice() % 400 == 0) misfortune();
        if (down && dice() % 50 == 0) {
          down = false;
          fake_verbs::set_port(0, true);
        }
        if (held && dice() % 50 == 0) {
          held = false;
          fake_verbs::release();
        }
        there.check();
        back.check();
        return (there.received() == goal && back.received() == goal) || HasFatalFailure();
      },
      test::wait_deadline * 4))
      << there.received() << " and " << back.received() << " of " << goal << " messages";
  EXPECT_EQ(one.failed + other.failed, 0u);
  if (held) fake_verbs::release();
}

INSTANTIATE_TEST_SUITE_P(Seeds, VerbsChaosTest, testing::Range(0u, 12u),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace lintel::test
