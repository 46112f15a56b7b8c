// The index of regions: changes, and the search for neighbours. Connection path.
#include "registration/region_index.h"

#include <algorithm>

namespace lintel {

size_t RegionIndex::first_ending_after(uint64_t address) const noexcept {
  const auto found =
      std::upper_bound(entries_.begin(), entries_.end(), address,
                       [](uint64_t wanted, const Entry& entry) { return wanted < entry.end; });
  return static_cast<size_t>(found - entries_.begin());
}

void RegionIndex::erase(size_t from, size_t to) noexcept {
  if (from >= to) return;
  const auto first = entries_.begin();
  entries_.erase(first + static_cast<ptrdiff_t>(from), first + static_cast<ptrdiff_t>(to));
}

void RegionIndex::insert(Region& region) noexcept {
  const auto place = static_cast<ptrdiff_t>(first_beginning_after(region.begin()));
  entries_.insert(entries_.begin() + place, {region.begin(), region.end(), &region});
}

void RegionIndex::remove(const Region& region) noexcept {
  const size_t after = first_beginning_after(region.begin());
  erase(after - 1, after);
}

const Region* RegionIndex::left_neighbour(uint64_t begin) const noexcept {
  if (begin == 0) return nullptr;
  const size_t after = first_beginning_after(begin - 1);
  return after != 0 && entries_[after - 1].end >= begin ? entries_[after - 1].region : nullptr;
}

const Region* RegionIndex::right_neighbour(uint64_t end) const noexcept {
  const size_t index = first_ending_after(end);
  return index < entries_.size() && entries_[index].begin <= end ? entries_[index].region : nullptr;
}

uint64_t RegionIndex::covered_until(uint64_t from) const noexcept {
  for (size_t index = first_ending_after(from);
       index < entries_.size() && entries_[index].begin <= from; ++index)
    from = entries_[index].end;
  return from;
}

}  // namespace lintel
