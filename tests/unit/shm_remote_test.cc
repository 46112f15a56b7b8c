// Direct access to the memory of a peer: all combinations of pieces, faults on either side,
// refusals.
#include <sys/mman.h>

#include <atomic>
#include <random>

#include <gtest/gtest.h>

#include "shm_test_support.h"

namespace lintel::test {
namespace {

constexpr uint64_t page = 4096;

// A peer process with memory of its own, which contains a pattern at first.
class RemoteAccess : public ::testing::Test {
 protected:
  static constexpr uint64_t bytes = 64 * page;

  struct Board {
    std::atomic<int> step;
    std::atomic<uint64_t> address;  // of `bytes` bytes, with an inaccessible page behind them
    std::atomic<uint64_t> read_only;
    std::atomic<uint64_t> changed;  // bytes that differ from the pattern, counted after step 2
  };

  void SetUp() override {
    static_cast<void>(test_settings());
    child_ = std::make_unique<ChildProcess>([this] { return peer(); });
    ASSERT_TRUE(wait_until([&] { return board_->step.load() == 1; }));
    transport_ = open_transport();
    link_ = connect_or_fail(*transport_, {test::test_nid, 700});
    ASSERT_NE(link_, nullptr);
  }

  int peer() {
    const auto own = open_transport(test_settings(700));
    auto* memory = static_cast<std::byte*>(
        mmap(nullptr, bytes + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    const std::vector<std::byte> content = pattern(1, bytes);
    std::memcpy(memory, content.data(), bytes);
    mprotect(memory + bytes, page, PROT_NONE);
    void* read_only = mmap(nullptr, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    board_->address.store(reinterpret_cast<uint64_t>(memory));
    board_->read_only.store(reinterpret_cast<uint64_t>(read_only));
    board_->step.store(1);
    while (board_->step.load() != 2) usleep(100);
    uint64_t changed = 0;
    for (uint64_t i = 0; i < bytes; ++i) changed += memory[i] != content[i] ? 1 : 0;
    board_->changed.store(changed);
    board_->step.store(3);
    while (board_->step.load() != 4) usleep(100);
    return own != nullptr ? 0 : 1;
  }

  uint64_t changed_at_peer() {
    board_->step.store(2);
    EXPECT_TRUE(wait_until([&] { return board_->step.load() == 3; }));
    return board_->changed.load();
  }

  RemoteMemory remote(uint64_t offset, uint64_t length) {
    return {board_->address.load() + offset, length, 0};
  }

  Shared<Board> board_;
  std::unique_ptr<ChildProcess> child_;
  std::unique_ptr<ShmTransport> transport_;
  Link* link_ = nullptr;
};

TEST_F(RemoteAccess, ReadsAndWrites) {
  std::vector<std::byte> here(bytes);
  const Piece piece{here.data(), bytes};
  const RemoteMemory there = remote(0, bytes);
  RemoteResult result = transport_->remote_access(*link_, false, &piece, 1, &there, 1, 0);
  EXPECT_EQ(result.status, RemoteStatus::done);
  EXPECT_EQ(result.bytes, bytes);
  EXPECT_EQ(here, pattern(1, bytes));
  for (std::byte& b : here) b = ~b;
  result = transport_->remote_access(*link_, true, &piece, 1, &there, 1, 0);
  EXPECT_EQ(result.status, RemoteStatus::done);
  EXPECT_EQ(result.bytes, bytes);
  EXPECT_EQ(changed_at_peer(), bytes);
}

TEST_F(RemoteAccess, NothingIsDoneAtOnce) {
  const RemoteResult result = transport_->remote_access(*link_, false, nullptr, 0, nullptr, 0, 0);
  EXPECT_EQ(result.status, RemoteStatus::done);
  EXPECT_EQ(result.bytes, 0u);
}

// More pieces than one system call accepts, divided differently on the two sides, some of them
// empty.
TEST_F(RemoteAccess, ManyPieces) {
  std::mt19937 random(2);
  const std::vector<std::byte> content = pattern(1, bytes);
  for (int round = 0; round < 20; ++round) {
    std::vector<std::byte> here(bytes);
    std::vector<Piece> pieces;
    std::vector<RemoteMemory> remotes;
    const auto cut = [&](auto&& add) {
      for (uint64_t at = 0; at < bytes;) {
        const uint64_t length = std::min<uint64_t>(random() % 200, bytes - at);
        add(at, length);
        at += length;
      }
    };
    cut([&](uint64_t at, uint64_t length) { pieces.push_back({here.data() + at, length}); });
    cut([&](uint64_t at, uint64_t length) { remotes.push_back(remote(at, length)); });
    ASSERT_GT(pieces.size(), 1024u);
    const RemoteResult result = transport_->remote_access(
        *link_, false, pieces.data(), static_cast<unsigned>(pieces.size()), remotes.data(),
        static_cast<unsigned>(remotes.size()), 0);
    ASSERT_EQ(result.status, RemoteStatus::done);
    ASSERT_EQ(result.bytes, bytes);
    ASSERT_EQ(here, content);
  }
}

TEST_F(RemoteAccess, FaultsTellSideAndCount) {
  std::vector<std::byte> here(2 * bytes);
  const std::vector<std::byte> content = pattern(1, bytes);
  // A local range whose accessible part ends after 3 pages.
  auto* guarded = static_cast<std::byte*>(
      mmap(nullptr, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_EQ(mprotect(guarded + 3 * page, page, PROT_NONE), 0);
  const auto read = [&](std::vector<Piece> local, std::vector<RemoteMemory> there) {
    return transport_->remote_access(*link_, false, local.data(),
                                     static_cast<unsigned>(local.size()), there.data(),
                                     static_cast<unsigned>(there.size()), 0);
  };
  const auto write = [&](std::vector<Piece> local, std::vector<RemoteMemory> there) {
    return transport_->remote_access(*link_, true, local.data(),
                                     static_cast<unsigned>(local.size()), there.data(),
                                     static_cast<unsigned>(there.size()), 0);
  };

  // The peer's memory is accessible for two pages from the start.
  RemoteResult result = read({{here.data(), 3 * page}}, {remote(bytes - 2 * page, 3 * page)});
  EXPECT_EQ(result.status, RemoteStatus::remote_fault);
  EXPECT_EQ(result.bytes, 2 * page);
  EXPECT_EQ(std::memcmp(here.data(), &content[bytes - 2 * page], 2 * page), 0);
  result = write({{here.data(), 3 * page}}, {remote(bytes - 2 * page, 3 * page)});
  EXPECT_EQ(result.status, RemoteStatus::remote_fault);
  EXPECT_EQ(result.bytes, 2 * page);

  // The local memory is accessible for three.
  result = read({{guarded, 4 * page}}, {remote(0, 4 * page)});
  EXPECT_EQ(result.status, RemoteStatus::local_fault);
  EXPECT_EQ(result.bytes, 3 * page);
  EXPECT_EQ(std::memcmp(guarded, content.data(), 3 * page), 0);
  result = write({{guarded, 4 * page}}, {remote(0, 4 * page)});
  EXPECT_EQ(result.status, RemoteStatus::local_fault);
  EXPECT_EQ(result.bytes, 3 * page);

  // An inaccessible piece between accessible ones: the bytes before it are copied.
  result =
      read({{here.data(), 100}, {guarded + 3 * page, 100}, {here.data(), 100}}, {remote(0, 300)});
  EXPECT_EQ(result.status, RemoteStatus::local_fault);
  EXPECT_EQ(result.bytes, 100u);
  result = read({{here.data(), 100}, {reinterpret_cast<std::byte*>(UINT64_MAX - 4095), 100}},
                {remote(0, 200)});
  EXPECT_EQ(result.status, RemoteStatus::local_fault);
  EXPECT_EQ(result.bytes, 100u);
  result =
      read({{here.data(), 300}}, {remote(0, 100), {UINT64_MAX - 4095, 100, 0}, remote(0, 100)});
  EXPECT_EQ(result.status, RemoteStatus::remote_fault);
  EXPECT_EQ(result.bytes, 100u);
  result = read({{here.data(), 8}}, {{0, 8, 0}});
  EXPECT_EQ(result.status, RemoteStatus::remote_fault);
  EXPECT_EQ(result.bytes, 0u);
  result = read({{nullptr, 8}}, {remote(0, 8)});
  EXPECT_EQ(result.status, RemoteStatus::local_fault);
  EXPECT_EQ(result.bytes, 0u);

  // Memory of the peer that may be read but not written.
  const RemoteMemory constant{board_->read_only.load(), 8, 0};
  EXPECT_EQ(read({{here.data(), 8}}, {constant}).status, RemoteStatus::done);
  result = write({{here.data(), 8}}, {constant});
  EXPECT_EQ(result.status, RemoteStatus::remote_fault);
  EXPECT_EQ(result.bytes, 0u);
  // Local memory that may be read but not written.
  ASSERT_EQ(mprotect(guarded, page, PROT_READ), 0);
  EXPECT_EQ(write({{guarded, 8}}, {remote(0, 8)}).status, RemoteStatus::done);
  result = read({{guarded, 8}}, {remote(0, 8)});
  EXPECT_EQ(result.status, RemoteStatus::local_fault);
  munmap(guarded, 4 * page);
}

TEST_F(RemoteAccess, ADeadPeerIsNoticed) {
  std::vector<std::byte> here(8);
  const Piece piece{here.data(), 8};
  const RemoteMemory there = remote(0, 8);
  ASSERT_EQ(transport_->remote_access(*link_, false, &piece, 1, &there, 1, 0).status,
            RemoteStatus::done);
  child_->kill_and_wait();
  EXPECT_EQ(transport_->remote_access(*link_, false, &piece, 1, &there, 1, 0).status,
            RemoteStatus::peer_failed);
  EXPECT_EQ(transport_->remote_access(*link_, true, &piece, 1, &there, 1, 0).status,
            RemoteStatus::peer_failed);
}

TEST_F(RemoteAccess, SwitchedOffItIsUnsupported) {
  auto settings = test_settings();
  settings.cma = false;
  const auto transport = open_transport(settings);
  EXPECT_FALSE(transport->capabilities().remote_access);
  Link* link = connect_or_fail(*transport, {test::test_nid, 700});
  std::vector<std::byte> here(8);
  const Piece piece{here.data(), 8};
  const RemoteMemory there = remote(0, 8);
  EXPECT_EQ(transport->remote_access(*link, false, &piece, 1, &there, 1, 0).status,
            RemoteStatus::unsupported);
  EXPECT_EQ(transport->remote_access(*link, true, &piece, 1, &there, 1, 0).status,
            RemoteStatus::unsupported);
  EXPECT_EQ(changed_at_peer(), 0u);
}

// This happens across pid namespaces: some process has that number, but it is not the peer.
TEST(RemoteAccessRefused, AnotherProcessUnderThePeersNumber) {
  const auto a = open_transport();
  const auto b = open_transport();
  auto& identity = b->segment().header().identity;
  const uint64_t elsewhere = 0x1234567890;
  identity.nonce_address = reinterpret_cast<uint64_t>(&elsewhere);
  Link* link = connect_or_fail(*a, b->id());
  std::vector<std::byte> here(8);
  uint64_t target = 5;
  const Piece piece{here.data(), 8};
  const RemoteMemory there{reinterpret_cast<uint64_t>(&target), 8, 0};
  EXPECT_EQ(a->remote_access(*link, false, &piece, 1, &there, 1, 0).status,
            RemoteStatus::unsupported);
  EXPECT_EQ(a->remote_access(*link, true, &piece, 1, &there, 1, 0).status,
            RemoteStatus::unsupported);
  EXPECT_EQ(target, 5u);
  // Messages still work.
  RecordingSink sink;
  EXPECT_EQ(test::send_message(*a, *link, 1, 8, sink), SendStatus::sent);
}

}  // namespace
}  // namespace lintel::test
