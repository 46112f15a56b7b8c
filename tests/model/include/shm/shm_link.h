// Stands in for src/shm/shm_link.h in the model of joint copies: what these use of a link.
#pragma once

#include <atomic>
#include <cstdint>

#include "shm/segment.h"
#include "transport/transport.h"

namespace lintel {

enum class CopyDirection : uint8_t { to_here, to_peer };

// Copies the chunk that begins at that address of the process that copies.
class ChunkCopier {
 public:
  virtual void copy_chunk(uint64_t address) noexcept = 0;

 protected:
  ~ChunkCopier() = default;
};

struct ShmLink final : Link {
  struct Memory {
    [[nodiscard]] bool reached() const noexcept { return true; }
    [[nodiscard]] bool reach() const noexcept { return true; }
  };
  struct Sender {
    [[nodiscard]] uint32_t lane() const noexcept { return 0; }
  };

  uint64_t nonce = 0;
  const Segment* segment = nullptr;
  ChunkCopier* copier = nullptr;
  Memory memory;
  Sender sender;
  std::atomic<bool> failed{false};

  RemoteResult copy(CopyDirection, const Piece* local, unsigned, const RemoteMemory*,
                    unsigned) const noexcept {
    copier->copy_chunk(reinterpret_cast<uint64_t>(local->base));
    return {RemoteStatus::done, local->length};
  }
};

}  // namespace lintel
