// Regions change their state. Connection path.
#include "registration/region_table.h"

#include <algorithm>

#include "util/lock.h"

namespace lintel {

// The index of regions: changes, and the search for neighbours. Connection path.
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

namespace {

// A neighbour is registered again together with what is asked for if it is at most this many times
// as long. Whatever the order in which an application uses a long stretch of memory: each time that
// a part of it is registered again, its region has grown by half, so that happens few times.
constexpr uint64_t longest_neighbour_factor = 2;

}  // namespace

void RegionTable::add(RegionOwner& owner) noexcept {
  const LockGuard guard(lock_);
  owner.next = owners_;
  owners_ = &owner;
}

void RegionTable::retire_all(RegionOwner& owner) noexcept {
  const LockGuard guard(lock_);
  const auto retire_one = [&](Region& region) {
    lock_.assert_held();
    retire(region);
  };
  owner.for_writing.take_overlapping(0, UINT64_MAX, retire_one);
  owner.for_reading.take_overlapping(0, UINT64_MAX, retire_one);
  for (Region* region = owner.regions.head(); region != nullptr;
       region = RegionSiblings::next(*region)) {
    if (region->leases == 0) continue;
    region->leases = 0;
    retired_.append(*region);
  }
}

bool RegionTable::remove(RegionOwner& owner) noexcept {
  const LockGuard guard(lock_);
  if (!owner.regions.empty() || owner.deregistering != 0) return false;
  RegionOwner** place = &owners_;
  while (*place != &owner) place = &(*place)->next;
  *place = owner.next;
  return true;
}

void RegionTable::begin(Region& region, MemoryRange range) noexcept {
  const LockGuard guard(lock_);
  region.cover(range);
  region.outdated = false;
  entering_.append(region);
}

// Neighbours are found and the region is begun under one lock: a neighbour whose memory is being
// discarded, but still there, may leave its index when the lock is released, and no event would
// report that memory again.
bool RegionTable::begin_with_neighbours(Region& region, MemoryRange range) noexcept {
  const LockGuard guard(lock_);
  const MemoryRange wide = widened(region, range);
  if (wide == range) return false;
  region.cover(wide);
  region.outdated = false;
  entering_.append(region);
  return true;
}

MemoryRange RegionTable::widened(const Region& region, MemoryRange range) const noexcept {
  const RegionIndex& index = region.owner.index(region.writable);
  const auto worth = [&](const Region* neighbour) {
    const uint64_t length = range.end - range.begin;
    return neighbour != nullptr && neighbour->length / longest_neighbour_factor <= length &&
           length + neighbour->length <= most_bytes_ / 2;
  };
  for (;;) {
    const Region* const left = index.left_neighbour(range.begin);
    const Region* const right = index.right_neighbour(range.end);
    if (worth(left)) {
      range.begin = left->begin();
    } else if (worth(right)) {
      range.end = right->end();
    } else {
      return range;
    }
  }
}

void RegionTable::cancel(Region& region) noexcept {
  const LockGuard guard(lock_);
  entering_.remove(region);
}

bool RegionTable::keep(Region& region) noexcept {
  const LockGuard guard(lock_);
  RegionOwner& owner = region.owner;
  entering_.remove(region);
  region.leases = 1;
  owner.regions.append(region);
  if (!region.outdated && owner.find(region.range(), region.writable) == nullptr) {
    const auto retire_other = [&](Region& other) {
      lock_.assert_held();
      retire(other);
    };
    owner.index(region.writable).take_within(region.begin(), region.end(), retire_other);
    if (region.writable) owner.for_reading.take_within(region.begin(), region.end(), retire_other);
    while (!has_room(region) && evict_one() != 0) continue;
    if (has_room(region)) {
      owner.index(region.writable).insert(region);
      region.kept = true;
      ++counters_.regions;
      counters_.bytes += region.length;
    }
  }
  region.watched = region.kept;
  ++(region.kept ? counters_.misses : counters_.single_uses);
  return region.kept;
}

void RegionTable::add_single_use(Region& region) noexcept {
  const LockGuard guard(lock_);
  region.leases = 1;
  region.owner.regions.append(region);
  ++counters_.single_uses;
}

void RegionTable::note_failure() noexcept {
  const LockGuard guard(lock_);
  ++counters_.failures;
}

bool RegionTable::has_room(const Region& region) const noexcept {
  return counters_.regions < most_regions_ && counters_.bytes <= most_bytes_ &&
         region.length <= most_bytes_ - counters_.bytes;
}

// The region has left its index: no look-up finds it any more.
void RegionTable::retire(Region& region) noexcept {
  region.kept = false;
  --counters_.regions;
  counters_.bytes -= region.length;
  if (region.leases != 0) return;
  idle_.remove(region);
  retired_.append(region);
}

// Returns its length; 0: no region is idle.
uint64_t RegionTable::evict_one() noexcept {
  Region* const oldest = idle_.head();
  if (oldest == nullptr) return 0;
  oldest->owner.index(oldest->writable).remove(*oldest);
  retire(*oldest);
  ++counters_.evictions;
  return oldest->length;
}

RegionTable::Evicted RegionTable::evict(uint64_t bytes) noexcept {
  const LockGuard guard(lock_);
  uint64_t evicted = 0;
  for (uint64_t length; evicted < bytes && (length = evict_one()) != 0;) evicted += length;
  if (!retired_.empty()) return Evicted::some;
  for (const RegionOwner* owner = owners_; owner != nullptr; owner = owner->next)
    if (owner->deregistering != 0) return Evicted::others_work;
  return Evicted::none;
}

unsigned RegionTable::take_events(MemoryWatch& watch, std::span<MemoryEvent> events,
                                  bool& retired) noexcept {
  const LockGuard guard(lock_);
  const unsigned count = watch.read(events);
  for (const MemoryEvent& event : events.first(count)) handle(event);
  retired = !retired_.empty();
  return count;
}

void RegionTable::handle(const MemoryEvent& event) noexcept {
  const auto invalidate = [&](Region& region) {
    lock_.assert_held();
    retire(region);
    ++counters_.invalidations;
    if (event.kind == MemoryEvent::Kind::unmapped) {
      region.gone_begin = std::max(region.begin(), event.begin);
      region.gone_end = std::min(region.end(), event.end);
    }
  };
  for (RegionOwner* owner = owners_; owner != nullptr; owner = owner->next) {
    owner->for_writing.take_overlapping(event.begin, event.end, invalidate);
    owner->for_reading.take_overlapping(event.begin, event.end, invalidate);
  }
  for (Region* region = entering_.head(); region != nullptr; region = RegionChain::next(*region))
    region->outdated = region->outdated || region->overlaps(event.begin, event.end);
}

Region* RegionTable::take_retired() noexcept {
  const LockGuard guard(lock_);
  Region* const region = retired_.head();
  if (region == nullptr) return nullptr;
  retired_.remove(*region);
  region->owner.regions.remove(*region);
  ++region->owner.deregistering;
  return region;
}

void RegionTable::note_deregistered(RegionOwner& owner) noexcept {
  const LockGuard guard(lock_);
  --owner.deregistering;
}

MemoryRange RegionTable::first_unused(MemoryRange range) const noexcept {
  const LockGuard guard(lock_);
  uint64_t begin = range.begin;
  for (uint64_t before = UINT64_MAX; before != begin && begin < range.end;) {
    before = begin;
    for (const RegionOwner* owner = owners_; owner != nullptr; owner = owner->next) {
      begin = owner->for_writing.covered_until(begin);
      begin = owner->for_reading.covered_until(begin);
    }
    for (const Region* region = entering_.head(); region != nullptr;
         region = RegionChain::next(*region))
      if (region->overlaps(begin, begin + 1)) begin = region->end();
  }
  if (begin >= range.end) return {range.end, range.end};
  uint64_t end = range.end;
  for (const RegionOwner* owner = owners_; owner != nullptr; owner = owner->next)
    end = std::min(
        {end, owner->for_writing.next_beginning(begin), owner->for_reading.next_beginning(begin)});
  for (const Region* region = entering_.head(); region != nullptr;
       region = RegionChain::next(*region))
    if (region->begin() > begin) end = std::min(end, region->begin());
  return {begin, end};
}

RegistrationCounters RegionTable::counters() const noexcept {
  const LockGuard guard(lock_);
  return counters_;
}

}  // namespace lintel
