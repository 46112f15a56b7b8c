// Long copies in which both processes take part: every byte, copied by either of them; refusals,
// faults, and helpers that die.
#include <sched.h>
#include <sys/mman.h>

#include <atomic>
#include <random>

#include <gtest/gtest.h>

#include "shm_test_support.h"

namespace lintel::test {
namespace {

constexpr uint64_t page = 4096;
constexpr uint64_t key = 4711;

// A core that exposes one range of memory to peers.
class GrantingSink final : public test::QuietSink {
 public:
  bool may_access(Link&, const RemoteMemory& memory, bool) noexcept override {
    ++asked;
    if (stops_itself) raise(SIGSTOP);
    return memory.key == key && memory.address >= address &&
           memory.address + memory.length <= address + length;
  }
  uint64_t address = 0;
  uint64_t length = 0;
  uint64_t asked = 0;
  bool stops_itself = false;
};

// The core of a process that copies. It records copies that end later, and their results.
class CopyingSink final : public test::QuietSink {
 public:
  void on_messages(Link&, const InboundMessage*, unsigned count) noexcept override {
    messages += count;
  }
  void on_peer_failed(Link&) noexcept override { failed = true; }
  void on_remote_done(Link&, uint32_t token, RemoteResult result) noexcept override {
    EXPECT_EQ(token, token_used);
    EXPECT_FALSE(failed) << "remote accesses end before their peer is reported";
    ended = result;
    ++endings;
  }

  static constexpr uint32_t token_used = 77;
  unsigned messages = 0;
  unsigned endings = 0;
  bool failed = false;
  RemoteResult ended{};
};

// Gives each of the two processes a processor, so that they run at the same time.
class Processors {
 public:
  Processors() { sched_getaffinity(0, sizeof all_, &all_); }
  [[nodiscard]] int count() const { return CPU_COUNT(&all_); }
  void take(int which) const {
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
      if (CPU_ISSET(cpu, &all_) && which-- == 0) CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
  }
  void give_back() const { sched_setaffinity(0, sizeof all_, &all_); }

 private:
  cpu_set_t all_;
};

class JointCopyTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (processors_.count() < 2)
      GTEST_SKIP() << "with one processor, no process polls while another one copies";
    processors_.take(0);
  }
  void TearDown() override { processors_.give_back(); }

  static constexpr uint64_t bytes = 1024 * page;

  struct Board {
    std::atomic<int> step;
    std::atomic<uint64_t> address;  // of `bytes` bytes, with an inaccessible page behind them
    std::atomic<uint64_t> granted_bytes;
    std::atomic<bool> stops_itself;  // when it is about to copy a chunk
    std::atomic<uint64_t> asked;
    std::atomic<uint64_t> changed;  // bytes that differ from the pattern, counted after step 2
  };

  // A peer that polls all the time, like one that waits for an event.
  void start_peer(uint64_t granted_bytes) {
    static_cast<void>(test_settings());
    board_->granted_bytes.store(granted_bytes);
    child_ = std::make_unique<ChildProcess>([this] { return peer(); });
    ASSERT_TRUE(wait_until([&] { return board_->step.load() == 1; }));
    transport_ = open_transport();
    link_ = connect_or_fail(*transport_, {test::test_nid, 700});
    ASSERT_NE(link_, nullptr);
    RecordingSink sink;
    ASSERT_EQ(test::send_message(*transport_, *link_, 1, 8, sink), SendStatus::sent);
    // The first access determines that the memory of the peer can be accessed.
    std::byte first{};
    const Piece piece{&first, 1};
    const RemoteMemory there = remote(0, 1);
    ASSERT_EQ(transport_->remote_access(*link_, false, &piece, 1, &there, 1, 0).status,
              RemoteStatus::done);
  }

  int peer() {
    processors_.take(1);
    const auto own = open_transport(test_settings(700));
    auto* memory = static_cast<std::byte*>(
        mmap(nullptr, bytes + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    const std::vector<std::byte> content = pattern(1, bytes);
    std::memcpy(memory, content.data(), bytes);
    mprotect(memory + bytes, page, PROT_NONE);
    GrantingSink sink;
    sink.address = reinterpret_cast<uint64_t>(memory);
    sink.length = board_->granted_bytes.load();
    board_->address.store(sink.address);
    board_->step.store(1);
    while (board_->step.load() != 2) {
      sink.stops_itself = board_->stops_itself.load();
      own->poll(sink, 16);
      board_->asked.store(sink.asked);
    }
    uint64_t changed = 0;
    for (uint64_t i = 0; i < bytes; ++i) changed += memory[i] != content[i] ? 1 : 0;
    board_->changed.store(changed);
    board_->step.store(3);
    while (board_->step.load() != 4) usleep(100);
    return 0;
  }

  uint64_t changed_at_peer() {
    board_->step.store(2);
    EXPECT_TRUE(wait_until([&] { return board_->step.load() == 3; }));
    return board_->changed.load();
  }

  RemoteMemory remote(uint64_t offset, uint64_t length) const {
    return {board_->address.load() + offset, length, key};
  }
  RemoteResult start_read(std::byte* to, uint64_t offset, uint64_t length) {
    const Piece piece{to, length};
    const RemoteMemory there = remote(offset, length);
    return transport_->remote_access(*link_, false, &piece, 1, &there, 1, CopyingSink::token_used);
  }
  RemoteResult read(std::byte* to, uint64_t offset, uint64_t length) {
    return end_of(start_read(to, offset, length));
  }
  RemoteResult write(std::byte* from, uint64_t offset, uint64_t length) {
    const Piece piece{from, length};
    const RemoteMemory there = remote(offset, length);
    return end_of(
        transport_->remote_access(*link_, true, &piece, 1, &there, 1, CopyingSink::token_used));
  }
  // A helper without a processor ends its part later.
  RemoteResult end_of(RemoteResult result) {
    if (result.status != RemoteStatus::started) return result;
    CopyingSink sink;
    EXPECT_TRUE(wait_until([&] {
      transport_->poll(sink, 16);
      transport_->check_peers(sink, &link_, 1);
      return sink.endings != 0;
    }));
    return sink.ended;
  }
  // A copy whose helper stops while it holds a chunk.
  void start_copy_with_stopped_helper(std::byte* to) {
    start_peer(bytes);
    if (HasFatalFailure()) return;
    bool stopped = false;
    ASSERT_TRUE(wait_until([&] {
      board_->stops_itself.store(true);
      if (start_read(to, 0, bytes).status != RemoteStatus::started) return false;
      // The helper has stopped, or was only without a processor for a while.
      CopyingSink sink;
      EXPECT_TRUE(wait_until([&] {
        siginfo_t state{};
        waitid(P_PID, static_cast<id_t>(child_->pid()), &state, WSTOPPED | WNOHANG | WNOWAIT);
        stopped = state.si_pid != 0;
        if (!stopped) transport_->poll(sink, 16);
        return stopped || sink.endings != 0;
      }));
      return stopped;
    }));
  }

  Processors processors_;
  Shared<Board> board_;
  std::unique_ptr<ChildProcess> child_;
  std::unique_ptr<ShmTransport> transport_;
  Link* link_ = nullptr;
};

TEST_F(JointCopyTest, ReadsEveryByteWhoeverCopiesIt) {
  start_peer(bytes);
  const std::vector<std::byte> content = pattern(1, bytes);
  std::mt19937_64 random(3);
  uint64_t rounds = 0;
  ASSERT_TRUE(wait_until([&] {
    const uint64_t length = 1 + random() % bytes;
    const uint64_t offset = random() % (bytes - length + 1);
    std::vector<std::byte> here(length + 1, std::byte{0x5a});
    const RemoteResult result = read(here.data(), offset, length);
    EXPECT_EQ(result.status, RemoteStatus::done);
    EXPECT_EQ(result.bytes, length);
    EXPECT_EQ(std::memcmp(here.data(), &content[offset], length), 0) << offset << " " << length;
    EXPECT_EQ(here[length], std::byte{0x5a});
    return ++rounds >= 50 && transport_->counters().helped_chunks >= 5;
  }));
}

TEST_F(JointCopyTest, WritesEveryByteWhoeverCopiesIt) {
  start_peer(bytes);
  std::vector<std::byte> here = pattern(1, bytes);
  for (std::byte& b : here) b = ~b;
  ASSERT_TRUE(wait_until([&] {
    const RemoteResult result = write(here.data(), 0, bytes);
    EXPECT_EQ(result.status, RemoteStatus::done);
    EXPECT_EQ(result.bytes, bytes);
    return transport_->counters().helped_chunks >= 5;
  }));
  EXPECT_EQ(changed_at_peer(), bytes);
}

// The core of the helper refuses access to the memory. The helper does not copy; the owner does.
TEST_F(JointCopyTest, WhatWasNotGrantedTheHelperDoesNotTouch) {
  start_peer(0);
  const std::vector<std::byte> content = pattern(1, bytes);
  ASSERT_TRUE(wait_until([&] {
    std::vector<std::byte> here(bytes);
    EXPECT_EQ(read(here.data(), 0, bytes).status, RemoteStatus::done);
    EXPECT_EQ(here, content);
    return board_->asked.load() >= 5;
  }));
}

TEST_F(JointCopyTest, FaultsTellTheFirstByteThatIsNotThere) {
  start_peer(bytes);
  auto* guarded = static_cast<std::byte*>(
      mmap(nullptr, bytes + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_EQ(mprotect(guarded + bytes, page, PROT_NONE), 0);
  for (int round = 0; round < 50; ++round) {
    RemoteResult result = read(guarded, page, bytes);
    EXPECT_EQ(result.status, RemoteStatus::remote_fault);
    EXPECT_EQ(result.bytes, bytes - page);
    result = read(guarded + 3 * page, 0, bytes);
    EXPECT_EQ(result.status, RemoteStatus::local_fault);
    EXPECT_EQ(result.bytes, bytes - 3 * page);
    result = write(guarded, page, bytes);
    EXPECT_EQ(result.status, RemoteStatus::remote_fault);
    EXPECT_EQ(result.bytes, bytes - page);
    result = write(guarded + 3 * page, 0, bytes);
    EXPECT_EQ(result.status, RemoteStatus::local_fault);
    EXPECT_EQ(result.bytes, bytes - 3 * page);
  }
  munmap(guarded, bytes + page);
}

// Stopped like by a debugger, or when a job is suspended: its peers can still communicate with
// others.
TEST_F(JointCopyTest, AStoppedHelperHoldsUpNobodyElse) {
  std::vector<std::byte> here(bytes);
  start_copy_with_stopped_helper(here.data());
  if (HasFatalFailure()) return;
  const auto third = open_transport();
  CopyingSink sink;
  Link* link = connect_or_fail(*third, transport_->id());
  ASSERT_EQ(test::send_message(*third, *link, 1, 8, sink), SendStatus::sent);
  transport_->poll(sink, 16);
  EXPECT_EQ(sink.messages, 1u);
  EXPECT_EQ(sink.endings, 0u);
  EXPECT_FALSE(transport_->all_delivered());
  EXPECT_TRUE(transport_->arm(false)) << "nothing to do until the helper continues";
  transport_->disarm();
  transport_->check_peers(sink, &link_, 1);
  EXPECT_FALSE(sink.failed) << "the helper is alive";
  std::byte first{};
  EXPECT_EQ(read(&first, 0, 1).status, RemoteStatus::done) << "other copies are possible";

  board_->stops_itself.store(false);
  ASSERT_EQ(kill(child_->pid(), SIGCONT), 0);
  ASSERT_TRUE(wait_until([&] {
    transport_->poll(sink, 16);
    return sink.endings != 0;
  }));
  EXPECT_EQ(sink.ended.status, RemoteStatus::done);
  EXPECT_EQ(sink.ended.bytes, bytes);
  EXPECT_EQ(here, pattern(1, bytes));
  EXPECT_TRUE(transport_->all_delivered());
}

TEST_F(JointCopyTest, AStoppedHelperMayDie) {
  std::vector<std::byte> here(bytes);
  start_copy_with_stopped_helper(here.data());
  if (HasFatalFailure()) return;
  child_->kill_and_wait();
  CopyingSink sink;
  transport_->check_peers(sink, &link_, 1);
  EXPECT_EQ(sink.endings, 1u);
  EXPECT_EQ(sink.ended.status, RemoteStatus::peer_failed);
  EXPECT_TRUE(sink.failed);
}

TEST_F(JointCopyTest, AHelperMayDieAtAnyTime) {
  std::mt19937_64 random(4);
  for (int round = 0; round < 20; ++round) {
    board_->step.store(0);
    start_peer(bytes);
    std::vector<std::byte> here(bytes);
    std::atomic<bool> killed{false};
    std::thread killer([&] {
      usleep(static_cast<useconds_t>(random() % 3000));
      child_->kill_and_wait();
      killed.store(true);
    });
    RemoteStatus status = RemoteStatus::done;
    while (status == RemoteStatus::done) status = read(here.data(), 0, bytes).status;
    // A dying process has lost its memory, but may still hold the lock that shows that it lives.
    EXPECT_TRUE(status == RemoteStatus::peer_failed || status == RemoteStatus::unsupported)
        << static_cast<int>(status);
    killer.join();
    EXPECT_TRUE(killed.load());
    transport_.reset();
  }
}

TEST(JointClaims, NoChunkIsTakenTwiceNorLeft) {
  JointCopy copy{};
  copy.claims.store(JointClaims{5, 7, 0, 0}.pack());
  unsigned index = 0;
  EXPECT_FALSE(copy.claim_back(4, index)) << "an earlier offer";
  EXPECT_TRUE(copy.claim_front());
  EXPECT_TRUE(copy.claim_back(5, index));
  EXPECT_EQ(index, 6u);
  EXPECT_TRUE(copy.claim_back(5, index));
  EXPECT_EQ(index, 5u);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(copy.claim_front());
  EXPECT_FALSE(copy.claim_front());
  EXPECT_FALSE(copy.claim_back(5, index));
  EXPECT_EQ(copy.close(), 2u);

  copy.claims.store(JointClaims{6, 7, 2, 1}.pack());
  EXPECT_EQ(copy.close(), 1u);
  EXPECT_FALSE(copy.claim_back(6, index));
}

TEST(JointClaims, NonsenseIsRefused) {
  JointCopy copy{};
  unsigned index = 0;
  for (const uint64_t word : {UINT64_MAX, uint64_t{255} << 16, uint64_t{0x00ff'00ffu}}) {
    copy.claims.store(word);
    EXPECT_FALSE(copy.claim_back(static_cast<uint32_t>(word >> 32), index)) << std::hex << word;
  }
}

}  // namespace
}  // namespace lintel::test
