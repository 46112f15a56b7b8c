// Memory of a process, here of this one, read and written through the kernel.
#include <sys/mman.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "shm/peer_memory.h"
#include "shm_test_support.h"

namespace lintel {
namespace {

class PeerMemoryTest : public ::testing::Test {
 protected:
  [[nodiscard]] SegmentIdentity owner(uint64_t nonce) const {
    SegmentIdentity identity{};
    identity.os_pid = getpid();
    identity.nonce = nonce;
    identity.nonce_address = reinterpret_cast<uint64_t>(&nonce_);
    return identity;
  }
  static RemoteMemory at(void* address, uint64_t length) {
    return {reinterpret_cast<uint64_t>(address), length, 0};
  }
  uint64_t nonce_ = 0x4711000;
  std::byte here_[64]{};
  std::byte there_[64]{};
};

TEST_F(PeerMemoryTest, IsOutOfReachUnlessTheNonceIsThere) {
  PeerMemory none;
  EXPECT_FALSE(none.reach());
  PeerMemory other(owner(nonce_ + 16));
  EXPECT_FALSE(other.reach());
  EXPECT_FALSE(PeerMemory::has_nonce(owner(nonce_ + 16)));
  const Piece piece{here_, 1};
  const RemoteMemory remote = at(there_, 1);
  EXPECT_EQ(other.copy(CopyDirection::to_here, &piece, 1, &remote, 1).status,
            RemoteStatus::unsupported);
  PeerMemory self(owner(nonce_));
  EXPECT_FALSE(self.reached());
  EXPECT_TRUE(self.reach());
  EXPECT_TRUE(self.reached());
  EXPECT_TRUE(PeerMemory::has_nonce(owner(nonce_)));
}

TEST_F(PeerMemoryTest, CopiesPiecesOfDifferentLengthsBothWays) {
  PeerMemory memory(owner(nonce_));
  for (unsigned i = 0; i < 64; ++i) there_[i] = static_cast<std::byte>(i + 1);
  const Piece local[] = {{here_, 7}, {here_ + 7, 0}, {here_ + 7, 33}};
  const RemoteMemory remote[] = {at(there_, 1), at(there_ + 1, 39)};
  RemoteResult result = memory.copy(CopyDirection::to_here, local, 3, remote, 2);
  EXPECT_EQ(result.status, RemoteStatus::done);
  EXPECT_EQ(result.bytes, 40u);
  EXPECT_EQ(std::memcmp(here_, there_, 40), 0);
  EXPECT_EQ(here_[40], std::byte{0});
  std::memset(here_, 0x5a, sizeof here_);
  result = memory.copy(CopyDirection::to_peer, local, 3, remote, 2);
  EXPECT_EQ(result.status, RemoteStatus::done);
  EXPECT_EQ(std::memcmp(here_, there_, 40), 0);
  EXPECT_EQ(there_[40], std::byte{41});
}

TEST_F(PeerMemoryTest, TellsWhoseMemoryIsNotThere) {
  install_fault_handler();
  PeerMemory memory(owner(nonce_));
  void* const hole = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const Piece good{here_, 8};
  const Piece bad{static_cast<std::byte*>(hole), 8};
  const RemoteMemory good_remote = at(there_, 8);
  const RemoteMemory bad_remote = at(hole, 8);
  for (const CopyDirection direction : {CopyDirection::to_here, CopyDirection::to_peer}) {
    EXPECT_EQ(memory.copy(direction, &good, 1, &bad_remote, 1).status, RemoteStatus::remote_fault);
    EXPECT_EQ(memory.copy(direction, &bad, 1, &good_remote, 1).status, RemoteStatus::local_fault);
  }
  munmap(hole, 4096);
}

}  // namespace
}  // namespace lintel
