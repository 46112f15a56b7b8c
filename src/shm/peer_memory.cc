// Copying between the memory of this process and that of a peer. Message path of large payloads.
#include "shm/peer_memory.h"

#include <sys/uio.h>

#include <algorithm>
#include <cerrno>

#include "util/clock.h"
#include "util/guarded_memory.h"

namespace lintel {

namespace {

constexpr unsigned pieces_per_call = 32;
constexpr uint64_t bytes_per_call = uint64_t{1} << 30;  // the kernel moves less than 2 GiB at once
// The kernel does not give the number of a process that ended to another one as fast as this.
constexpr uint64_t recheck_ns = 100'000'000;

// A position in a list of pieces.
template <typename Item>
class Cursor {
 public:
  Cursor(const Item* items, unsigned count) noexcept : items_(items), count_(count) {
    skip_empty();
  }
  [[nodiscard]] bool at_end() const noexcept { return index_ == count_; }
  [[nodiscard]] void* address() const noexcept { return base_of(items_[index_], offset_); }

  // Fills `out` from here on with at most `bytes`; returns the number of vectors, and their sum.
  unsigned fill(iovec* out, unsigned max, uint64_t& bytes) const noexcept {
    uint64_t left = bytes;
    unsigned filled = 0;
    uint64_t skip = offset_;
    for (unsigned i = index_; i < count_ && filled < max && left != 0; ++i, skip = 0) {
      const uint64_t length = std::min(items_[i].length - skip, left);
      if (length == 0) continue;
      out[filled++] = {base_of(items_[i], skip), length};
      left -= length;
    }
    bytes -= left;
    return filled;
  }
  void advance(uint64_t bytes) noexcept {
    while (bytes != 0) {
      const uint64_t step = std::min(items_[index_].length - offset_, bytes);
      offset_ += step;
      bytes -= step;
      skip_empty();
    }
  }

 private:
  static void* base_of(const Piece& piece, uint64_t offset) noexcept { return piece.base + offset; }
  static void* base_of(const RemoteMemory& memory, uint64_t offset) noexcept {
    return reinterpret_cast<void*>(memory.address + offset);
  }
  void skip_empty() noexcept {
    while (index_ < count_ && offset_ == items_[index_].length) {
      ++index_;
      offset_ = 0;
    }
  }

  const Item* items_;
  unsigned count_;
  unsigned index_ = 0;
  uint64_t offset_ = 0;
};

bool read_peer(pid_t os_pid, void* to, uint64_t address, size_t bytes) noexcept {
  const iovec here{to, bytes};
  const iovec there{reinterpret_cast<void*>(address), bytes};
  return process_vm_readv(os_pid, &here, 1, &there, 1, 0) == static_cast<ssize_t>(bytes);
}

}  // namespace

bool PeerMemory::look() const noexcept {
  uint64_t found = 0;
  return read_peer(os_pid_, &found, nonce_address_, sizeof found) && found == nonce_;
}

bool PeerMemory::reach() noexcept {
  if (state_ == State::unreachable) return false;
  const uint64_t now = now_ns();
  if (reached() && now - looked_ns_ < recheck_ns) return true;
  state_ = look() ? State::reachable : State::unreachable;
  looked_ns_ = now;
  return reached();
}

RemoteResult PeerMemory::copy(CopyDirection direction, const Piece* local, unsigned local_count,
                              const RemoteMemory* remote, unsigned remote_count) noexcept {
  if (!reach()) return {RemoteStatus::unsupported, 0};
  const bool reading = direction == CopyDirection::to_here;
  Cursor here(local, local_count);
  Cursor there(remote, remote_count);
  uint64_t moved = 0;
  unsigned pieces = pieces_per_call;
  while (!here.at_end() && !there.at_end()) {
    iovec local_vector[pieces_per_call];
    iovec remote_vector[pieces_per_call];
    uint64_t bytes = bytes_per_call;
    const unsigned remote_filled = there.fill(remote_vector, pieces, bytes);
    const unsigned local_filled = here.fill(local_vector, pieces, bytes);
    const ssize_t result = reading ? process_vm_readv(os_pid_, local_vector, local_filled,
                                                      remote_vector, remote_filled, 0)
                                   : process_vm_writev(os_pid_, local_vector, local_filled,
                                                       remote_vector, remote_filled, 0);
    if (result > 0) {
      moved += static_cast<uint64_t>(result);
      here.advance(static_cast<uint64_t>(result));
      there.advance(static_cast<uint64_t>(result));
      continue;
    }
    if (result < 0 && errno == ESRCH) return {RemoteStatus::peer_failed, moved};
    if (result < 0 && errno != EFAULT) return {RemoteStatus::unsupported, moved};
    // One bad piece makes the kernel refuse all of them: continue piece by piece.
    if (pieces != 1) {
      pieces = 1;
      continue;
    }
    // The next byte is not accessible, here or at the peer. Test the side that can be read without
    // harm.
    std::byte probe;
    const bool remote_is_good =
        reading ? read_peer(os_pid_, &probe, reinterpret_cast<uint64_t>(there.address()), 1)
                : !guarded_copy(&probe, here.address(), 1);
    return {remote_is_good ? RemoteStatus::local_fault : RemoteStatus::remote_fault, moved};
  }
  return {RemoteStatus::done, moved};
}

}  // namespace lintel
