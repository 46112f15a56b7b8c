// Setting the rank map. Set-up path.
#include "core/objects/rank_map.h"

namespace lintel {

bool RankMap::set(const ptl_process_t* mapping, uint64_t count, ProcessId own) noexcept {
  try {
    auto ranks = std::make_unique<Ranks>();
    ranks->count = count;
    if (count >= fewest_shared_ranks) ranks->shared = SharedRanks::obtain(mapping, count);
    if (ranks->shared != nullptr) {
      ranks->at = ranks->shared->entries();
    } else {
      ranks->own = std::make_unique_for_overwrite<ProcessId[]>(count);
      for (uint64_t rank = 0; rank < count; ++rank)
        ranks->own[rank] = {mapping[rank].phys.nid, mapping[rank].phys.pid};
      ranks->at = ranks->own.get();
    }
    ranks->own_rank = search(*ranks, own);
    all_.push_back(std::move(ranks));
  } catch (...) {
    return false;
  }
  current_.store(all_.back().get(), std::memory_order_release);
  return true;
}

uint32_t RankMap::second_own_rank() const noexcept {
  const Ranks* ranks = current_.load(std::memory_order_acquire);
  if (ranks == nullptr || ranks->own_rank == PTL_RANK_ANY) return PTL_RANK_ANY;
  return search(*ranks, ranks->at[ranks->own_rank], uint64_t{ranks->own_rank} + 1);
}

uint32_t RankMap::search(const Ranks& ranks, ProcessId id, uint64_t from) noexcept {
  for (uint64_t rank = from; rank < ranks.count; ++rank)
    if (ranks.at[rank] == id) return static_cast<uint32_t>(rank);
  return PTL_RANK_ANY;
}

uint64_t RankMap::size() const noexcept {
  const Ranks* ranks = current_.load(std::memory_order_acquire);
  return ranks == nullptr ? 0 : ranks->count;
}

}  // namespace lintel
