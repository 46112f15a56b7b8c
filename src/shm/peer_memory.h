// The memory of a peer process, read and written with process_vm_readv and process_vm_writev.
// Message path of large payloads: one system call per slice, no allocation.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "shm/segment_layout.h"
#include "transport/transport.h"

namespace lintel {

enum class CopyDirection : uint8_t { to_here, to_peer };

class PeerMemory {
 public:
  PeerMemory() = default;  // out of reach
  explicit PeerMemory(const SegmentIdentity& owner) noexcept
      : state_(State::untried),
        os_pid_(owner.os_pid),
        nonce_address_(owner.nonce_address),
        nonce_(owner.nonce) {}

  // Checks that the process with the peer's number is the peer. It is not across pid namespaces;
  // the kernel may also forbid the check. Done at the first use, and again every 100 ms.
  [[nodiscard]] bool reach() noexcept;
  // Returns the last result of reach().
  [[nodiscard]] bool reached() const noexcept { return state_ == State::reachable; }

  [[nodiscard]] RemoteResult copy(CopyDirection direction, const Piece* local, unsigned local_count,
                                  const RemoteMemory* remote, unsigned remote_count) noexcept;

  // Tests whether memory can be reached, without recording the result.
  [[nodiscard]] static bool has_nonce(const SegmentIdentity& owner) noexcept {
    return PeerMemory(owner).look();
  }

 private:
  enum class State : uint8_t { untried, reachable, unreachable };
  [[nodiscard]] bool look() const noexcept;

  State state_ = State::unreachable;
  pid_t os_pid_ = 0;
  uint64_t nonce_address_ = 0;
  uint64_t nonce_ = 0;
  uint64_t looked_ns_ = 0;
};

}  // namespace lintel
