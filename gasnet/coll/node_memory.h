/* node_memory.h: dividing the memory that neighbours share for collectives among teams. Set-up
 * path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_COLL_NODE_MEMORY_H
#define LINTEL_GASNET_COLL_NODE_MEMORY_H

#include <cstddef>
#include <cstdint>
#include <utility>

namespace lintel::gasnet {

/** Parts of the memory that this process shares with its neighbours for collectives. */
class NodeMemory {
 public:
  static constexpr uint32_t kNone = ~uint32_t{0};

  /** Whether there is room for the team of all, with so many members in the largest neighbourhood.
   * The result is the same in all processes. */
  static bool is_enough_for(uint32_t members);
  /** Takes memory that is zero. @return its offset, or kNone if there is no room. */
  static uint32_t take(size_t bytes);
  static void give_back(uint32_t offset);
  /** The address of the memory of a member of the neighbourhood. */
  static void* at(uint32_t member, uint32_t offset);
};

/** The part that this process has taken for a team; given back at the end. */
class NodeMemoryOfTeam {
 public:
  NodeMemoryOfTeam() = default;
  explicit NodeMemoryOfTeam(size_t bytes) : offset_(NodeMemory::take(bytes)), is_needed_(true) {}
  NodeMemoryOfTeam(NodeMemoryOfTeam&& other) noexcept
      : offset_(other.offset_), is_needed_(std::exchange(other.is_needed_, false)) {}
  NodeMemoryOfTeam& operator=(NodeMemoryOfTeam&&) = delete;
  ~NodeMemoryOfTeam() {
    if (is_needed_ && offset_ != NodeMemory::kNone) NodeMemory::give_back(offset_);
  }

  /** @return 0 if none is needed, NodeMemory::kNone if there is no room. */
  uint32_t offset() const { return offset_; }

 private:
  uint32_t offset_ = 0;
  bool is_needed_ = false;
};

}  // namespace lintel::gasnet

#endif  // LINTEL_GASNET_COLL_NODE_MEMORY_H
