// The map from ranks to physical addresses of a logically addressed interface (spec 3.6.6, 3.6.7).
// Message path for find(); set-up path otherwise.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/objects/shared_ranks.h"
#include "portals4.h"
#include "transport/message.h"

namespace lintel {

class RankMap {
 public:
  // The caller excludes other changes. `own`: this process, to learn its rank. False: no memory.
  // Operations that look ranks up meanwhile see the old map or the new one.
  [[nodiscard]] bool set(const ptl_process_t* mapping, uint64_t count, ProcessId own) noexcept;

  [[nodiscard]] bool is_set() const noexcept {
    return current_.load(std::memory_order_relaxed) != nullptr;
  }
  [[nodiscard]] uint64_t size() const noexcept;
  // False if the rank is not in the map, or there is none.
  [[nodiscard]] bool find(uint32_t rank, ProcessId* id) const noexcept {
    const Ranks* ranks = current_.load(std::memory_order_acquire);
    if (ranks == nullptr || rank >= ranks->count) [[unlikely]]
      return false;
    *id = ranks->at[rank];
    return true;
  }
  // The rank of the process `id` in this map; PTL_RANK_ANY if it is not in the map. `claimed` is
  // the rank that the process claims, by its own map. It spares a search if it is right (spec
  // 3.6.6: maps may differ; 2.5: an initiator is not trusted).
  [[nodiscard]] uint32_t rank_of(ProcessId id, uint32_t claimed) const noexcept {
    const Ranks* ranks = current_.load(std::memory_order_acquire);
    if (ranks == nullptr) return PTL_RANK_ANY;
    if (claimed < ranks->count && ranks->at[claimed] == id) [[likely]]
      return claimed;
    return search(*ranks, id);
  }
  // The first rank that is this process; PTL_RANK_ANY if none is.
  [[nodiscard]] uint32_t own_rank() const noexcept {
    const Ranks* ranks = current_.load(std::memory_order_acquire);
    return ranks == nullptr ? PTL_RANK_ANY : ranks->own_rank;
  }
  // The next one; PTL_RANK_ANY if there is none. Set-up path.
  [[nodiscard]] uint32_t second_own_rank() const noexcept;

 private:
  struct Ranks {
    uint64_t count = 0;
    uint32_t own_rank = PTL_RANK_ANY;
    const ProcessId* at = nullptr;  // entries of `own` or of `shared`
    std::unique_ptr<ProcessId[]> own;
    std::unique_ptr<SharedRanks> shared;
  };
  [[nodiscard]] static uint32_t search(const Ranks& ranks, ProcessId id,
                                       uint64_t from = 0) noexcept;

  std::atomic<const Ranks*> current_{nullptr};
  // A reader may still look at a map that was replaced; they go with the interface.
  std::vector<std::unique_ptr<Ranks>> all_;
};

}  // namespace lintel
