// Messages of a process to itself, copies within its own memory, and the choice of transports for
// an interface.
#include "local/local_transport.h"

#include <sys/mman.h>

#include <gtest/gtest.h>

#include "shm_test_support.h"
#include "support/modules.h"
#include "udp/udp_address.h"
#include "wiring/registry.h"

namespace lintel::test {
namespace {

constexpr uint64_t page = 4096;

class LocalTransportTest : public ::testing::Test {
 protected:
  void SetUp() override {
    install_fault_handler();
    transport_ = LocalTransport::open({1, 2}, 3);
    ASSERT_NE(transport_, nullptr);
    link_ = transport_->connect({1, 2}, nullptr);
    ASSERT_NE(link_, nullptr);
  }
  std::unique_ptr<LocalTransport> transport_;
  Link* link_ = nullptr;
  RecordingSink sink_;
};

TEST_F(LocalTransportTest, ReachesNobodyElse) {
  EXPECT_EQ(link_->peer, (ProcessId{1, 2}));
  EXPECT_EQ(link_->uid, 3u);
  std::string reason;
  EXPECT_EQ(transport_->connect({1, 3}, &reason), nullptr);
  EXPECT_FALSE(reason.empty());
  EXPECT_EQ(transport_->connect({2, 2}, nullptr), nullptr);
  EXPECT_EQ(transport_->doorbell(), nullptr);
}

TEST_F(LocalTransportTest, FullLaneIsReportedAndArmLooksAgain) {
  uint64_t sent = 0;
  while (transport_->send(*link_, put_header(sent), nullptr, 0) == SendStatus::sent) ++sent;
  EXPECT_GT(sent, 100u);
  EXPECT_FALSE(transport_->arm(true));
  while (transport_->poll(sink_, 64) != 0) {
  }
  EXPECT_EQ(sink_.total, sent);
  EXPECT_FALSE(transport_->arm(true)) << "the refused send can go now";
  EXPECT_EQ(transport_->send(*link_, put_header(sent), nullptr, 0), SendStatus::sent);
  transport_->poll(sink_, 64);
  EXPECT_TRUE(transport_->arm(true));
}

TEST_F(LocalTransportTest, FaultsTellSideAndCount) {
  auto* memory = static_cast<std::byte*>(
      mmap(nullptr, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_EQ(mprotect(memory + 3 * page, page, PROT_NONE), 0);
  std::vector<std::byte> good(8 * page);
  const Piece bad_local[] = {{good.data(), 100}, {memory + 100, 4 * page - 100}};
  const RemoteMemory good_remote{reinterpret_cast<uint64_t>(good.data() + 200), 4 * page, 0};
  const Piece good_local{good.data(), 4 * page};
  const RemoteMemory bad_remote{reinterpret_cast<uint64_t>(memory), 4 * page, 0};

  RemoteResult result = transport_->remote_access(*link_, false, bad_local, 2, &good_remote, 1, 0);
  EXPECT_EQ(result.status, RemoteStatus::local_fault);
  EXPECT_EQ(result.bytes, 3 * page);
  result = transport_->remote_access(*link_, true, bad_local, 2, &good_remote, 1, 0);
  EXPECT_EQ(result.status, RemoteStatus::local_fault);
  EXPECT_EQ(result.bytes, 3 * page);
  result = transport_->remote_access(*link_, false, &good_local, 1, &bad_remote, 1, 0);
  EXPECT_EQ(result.status, RemoteStatus::remote_fault);
  EXPECT_EQ(result.bytes, 3 * page);
  result = transport_->remote_access(*link_, true, &good_local, 1, &bad_remote, 1, 0);
  EXPECT_EQ(result.status, RemoteStatus::remote_fault);
  EXPECT_EQ(result.bytes, 3 * page);
  munmap(memory, 4 * page);
}

TransportSettings settings_for(uint32_t interface_number) {
  TransportSettings settings;
  settings.interface_number = interface_number;
  settings.nid = test::test_nid;
  settings.pid = PTL_PID_ANY;
  settings.uid = geteuid();
  settings.job_key = test::test_settings().job_key;
  settings.shm_memory_bytes = 1 << 20;
  settings.shm_cma_threshold_bytes = 16384;
  settings.udp_host = find_udp_host("lo");
  if (!test::use_built_modules()) settings.job_key.clear();
  return settings;
}

std::vector<std::string> names_of(const OpenedTransports& opened) {
  std::vector<std::string> names;
  for (const auto& transport : opened.transports) names.push_back(transport->capabilities().name);
  return names;
}

TEST(Registry, InterfacesAndTheirTransports) {
  const std::vector<std::string> best = {"local", "shm", "udp"};
  const std::vector<std::string> both = {"local", "shm"};
  const std::vector<std::string> self = {"local"};
  for (const uint32_t number : {PTL_IFACE_DEFAULT, 0u, 1u}) {
    const OpenedTransports opened = open_transports(settings_for(number));
    EXPECT_EQ(opened.status, OpenStatus::opened) << opened.reason;
    for (const OpenedTransports::Unused& unused : opened.unused)
      EXPECT_FALSE(unused.is_unexpected) << unused.transport << ": " << unused.reason;
    EXPECT_EQ(names_of(opened), number == 1 ? both : best);
    EXPECT_LT(opened.id.pid, PTL_PID_MAX);
    const ProcessId id = opened.id;
    EXPECT_EQ(id.nid, test::test_nid);
    for (const auto& transport : opened.transports) {
      // Messages of the process to itself do not use a network.
      const bool network = std::string(transport->capabilities().name) == "udp";
      EXPECT_EQ(transport->connect(id, nullptr) == nullptr, network);
    }
  }
  const OpenedTransports local = open_transports(settings_for(2));
  EXPECT_EQ(names_of(local), self);
  EXPECT_LT(local.id.pid, PTL_PID_MAX);
  EXPECT_EQ(names_of(open_transports(settings_for(3))), (std::vector<std::string>{"local", "udp"}));
  const OpenedTransports unknown = open_transports(settings_for(77));
  EXPECT_EQ(unknown.status, OpenStatus::failed);
  EXPECT_TRUE(unknown.no_such_interface);
  EXPECT_EQ(interface_numbers(), (std::vector<uint32_t>{0, 1, 2, 3, 4, 5}));
}

TEST(Registry, GivenPidIsTakenOnce) {
  auto settings = settings_for(0);
  settings.pid = 4242;
  const OpenedTransports opened = open_transports(settings);
  EXPECT_EQ(opened.status, OpenStatus::opened);
  EXPECT_EQ(opened.id.pid, 4242u);
  const OpenedTransports again = open_transports(settings);
  EXPECT_EQ(again.status, OpenStatus::pid_in_use);
  EXPECT_TRUE(again.transports.empty());
}

TEST(Registry, TransportListIsRespectedAndExplained) {
  auto settings = settings_for(0);
  settings.allowed = {"local"};
  const OpenedTransports opened = open_transports(settings);
  EXPECT_EQ(opened.status, OpenStatus::opened);
  EXPECT_EQ(names_of(opened), std::vector<std::string>{"local"});
  EXPECT_NE(opened.reason.find("shm: PTL_TRANSPORT"), std::string::npos) << opened.reason;
  bool shm_explained = false;
  for (const TransportChoice& choice : explain_transports(settings)) {
    EXPECT_FALSE(choice.reason.empty());
    if (choice.name == "shm") {
      shm_explained = true;
      EXPECT_FALSE(choice.usable);
      EXPECT_NE(choice.reason.find("PTL_TRANSPORT"), std::string::npos);
    } else {
      EXPECT_EQ(choice.usable, choice.name == "local");
    }
  }
  EXPECT_TRUE(shm_explained);
  // The list is in order of preference. The process can always reach itself.
  settings.allowed = {"udp", "shm"};
  EXPECT_EQ(names_of(open_transports(settings)), (std::vector<std::string>{"local", "udp", "shm"}));
  settings.allowed = {"shm", "carrier-pigeon"};
  const OpenedTransports refused = open_transports(settings);
  EXPECT_EQ(refused.status, OpenStatus::failed);
  EXPECT_NE(refused.reason.find("\"carrier-pigeon\""), std::string::npos) << refused.reason;
  settings.interface_number = 99;
  EXPECT_TRUE(explain_transports(settings).empty());
}

}  // namespace
}  // namespace lintel::test
