// Memory for the unexpected messages of a channel: its overflow list. A few blocks are linked, and
// behind them a reserve of address space, so that messages find room while the program does not
// call. Nothing but what has arrived takes memory, and blocks of the reserve go back to the system
// one by one. Full blocks have a limit. Beyond it messages stay at their senders until the program
// has received others. Connection path.
#pragma once

#include <portals4.h>

#include <array>
#include <vector>

#include "endpoint/operation.h"

namespace lintel::ofi {

class Domain;
class UnexpectedStore;

struct Block : EventOwner {
  UnexpectedStore* store;
  char* start;
  size_t bytes;
  bool is_reserve;
  bool is_linked;
  ptl_handle_me_t entry;
};

class UnexpectedStore {
 public:
  explicit UnexpectedStore(Domain& domain) noexcept : domain_(domain) {}
  ~UnexpectedStore();
  UnexpectedStore(const UnexpectedStore&) = delete;
  UnexpectedStore& operator=(const UnexpectedStore&) = delete;

  [[nodiscard]] int open(ptl_pt_index_t portal) noexcept;
  // Drops what has arrived. The portal table entry is disabled.
  void close() noexcept;

  // PTL_EVENT_AUTO_UNLINK: the block is full.
  void replace(Block& block);
  // PTL_EVENT_AUTO_FREE: nothing refers to the block any more.
  void reuse(Block& block);

 private:
  [[nodiscard]] Block* make(size_t bytes, bool is_reserve);
  [[nodiscard]] int link(Block& block) noexcept;
  [[nodiscard]] int link_another();
  [[nodiscard]] int renew_reserve();
  // Links what is missing, unless the limit of memory is reached.
  [[nodiscard]] int refill();
  void destroy(Block* block) noexcept;

  Domain& domain_;
  ptl_pt_index_t portal_ = PTL_PT_ANY;
  ptl_handle_me_t headers_ = PTL_INVALID_HANDLE;  // takes long messages without their data
  std::array<Block*, 16> reserve_{};              // blocks with room, in the order of their use
  size_t linked_ = 0;                             // blocks that are not of the reserve
  size_t kept_bytes_ = 0;                         // of blocks that are full
  std::vector<Block*> blocks_;                    // all
  std::vector<Block*> free_;
};

}  // namespace lintel::ofi
