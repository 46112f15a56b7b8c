// All regions of the cache by their state: being registered, kept (leased or idle), and retired,
// that is to be deregistered after the last lease. One lock protects them. Message path: lease()
// and give_back(). Nothing in here allocates, frees or waits, see watched_cache.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "registration/memory_watch.h"
#include "registration/registration.h"
#include "util/lock.h"
#include "util/spin_lock.h"

namespace lintel {

struct Region;
struct RegionOwner;

struct MemoryRange {
  uint64_t begin;
  uint64_t end;
  bool operator==(const MemoryRange&) const = default;
};

struct RegionLinks {
  Region* before = nullptr;
  Region* after = nullptr;
};

// Everything but what the base class shows is protected by the lock of the cache.
struct Region : RegisteredRegion {
  Region(RegionOwner& memory, bool for_writing) : owner(memory) { writable = for_writing; }

  [[nodiscard]] uint64_t begin() const noexcept { return address; }
  [[nodiscard]] uint64_t end() const noexcept { return address + length; }
  [[nodiscard]] MemoryRange range() const noexcept { return {begin(), end()}; }
  void cover(MemoryRange range) noexcept {
    address = range.begin;
    length = range.end - range.begin;
  }
  [[nodiscard]] bool overlaps(uint64_t from, uint64_t to) const noexcept {
    return begin() < to && from < end();
  }

  RegionOwner& owner;
  uint32_t leases = 0;
  bool kept = false;      // the region is in an index of its owner: look-ups find it
  bool watched = false;   // the kernel reports changes
  bool outdated = false;  // changed by the application while it was being registered
  // Range of the region that the application unmapped: other memory may be mapped there.
  uint64_t gone_begin = 0;
  uint64_t gone_end = 0;
  RegionLinks chain;     // regions in the same state: being registered, idle, or retired
  RegionLinks siblings;  // all registered regions of the owner
};

// A list through the regions themselves.
template <RegionLinks Region::*links>
class RegionList {
 public:
  [[nodiscard]] bool empty() const noexcept { return head_ == nullptr; }
  [[nodiscard]] Region* head() const noexcept { return head_; }
  [[nodiscard]] static Region* next(const Region& region) noexcept { return (region.*links).after; }

  void append(Region& region) noexcept {
    region.*links = {tail_, nullptr};
    (tail_ == nullptr ? head_ : (tail_->*links).after) = &region;
    tail_ = &region;
  }
  void remove(Region& region) noexcept {
    const RegionLinks& own = region.*links;
    (own.before == nullptr ? head_ : (own.before->*links).after) = own.after;
    (own.after == nullptr ? tail_ : (own.after->*links).before) = own.before;
    region.*links = {};
  }

 private:
  Region* head_ = nullptr;
  Region* tail_ = nullptr;
};

using RegionChain = RegionList<&Region::chain>;
using RegionSiblings = RegionList<&Region::siblings>;

// Finds the region that contains a piece of memory. Message path: a binary search through
// neighbouring memory, and nothing here allocates after open().
//
// Regions may overlap, but none contains another: so the order of their beginnings is the order of
// their ends, and if any contains a piece of memory, then the last one that begins at or before it.
class RegionIndex {
 public:
  // Set-up path: room for that many regions. Throws std::bad_alloc.
  void open(size_t capacity) { entries_.reserve(capacity); }

  [[nodiscard]] Region* find(uint64_t begin, uint64_t end) const noexcept {
    const size_t after = first_beginning_after(begin);
    return after != 0 && entries_[after - 1].end >= end ? entries_[after - 1].region : nullptr;
  }

  [[nodiscard]] size_t size() const noexcept { return entries_.size(); }
  [[nodiscard]] bool full() const noexcept { return entries_.size() == entries_.capacity(); }

  // No region may contain it, and it none; and there must be room.
  void insert(Region& region) noexcept;
  void remove(const Region& region) noexcept;

  // Takes out the regions that overlap [begin, end), or only those within it, each given to
  // `taken`.
  template <typename Taken>
  void take_overlapping(uint64_t begin, uint64_t end, const Taken& taken) noexcept {
    take(first_ending_after(begin), first_beginning_after(end - 1), taken);
  }
  template <typename Taken>
  void take_within(uint64_t begin, uint64_t end, const Taken& taken) noexcept {
    const size_t from = begin == 0 ? 0 : first_beginning_after(begin - 1);
    const size_t to = first_ending_after(end);
    if (from < to) take(from, to, taken);
  }

  // The region nearest to [begin, end) on the left or right that overlaps or touches it and reaches
  // beyond it; nullptr: none.
  [[nodiscard]] const Region* left_neighbour(uint64_t begin) const noexcept;
  [[nodiscard]] const Region* right_neighbour(uint64_t end) const noexcept;

  // The first address from `from` on that no region covers.
  [[nodiscard]] uint64_t covered_until(uint64_t from) const noexcept;
  // Returns the begin of the first region that begins after `from`; UINT64_MAX: none.
  [[nodiscard]] uint64_t next_beginning(uint64_t from) const noexcept {
    const size_t index = first_beginning_after(from);
    return index == entries_.size() ? UINT64_MAX : entries_[index].begin;
  }

 private:
  struct Entry {
    uint64_t begin;
    uint64_t end;
    Region* region;
  };

  [[nodiscard]] size_t first_beginning_after(uint64_t address) const noexcept {
    size_t from = 0;
    for (size_t count = entries_.size(); count != 0;) {
      const size_t half = count / 2;
      const bool further = entries_[from + half].begin <= address;
      from = further ? from + half + 1 : from;
      count = further ? count - half - 1 : half;
    }
    return from;
  }
  [[nodiscard]] size_t first_ending_after(uint64_t address) const noexcept;

  template <typename Taken>
  void take(size_t from, size_t to, const Taken& taken) noexcept {
    for (size_t i = from; i < to; ++i) taken(*entries_[i].region);
    erase(from, to);
  }
  void erase(size_t from, size_t to) noexcept;

  std::vector<Entry> entries_;
};

// The regions of one registrar; under the lock of the table.
struct RegionOwner {
  RegionOwner(Registrar& device, size_t capacity) : registrar(device) {
    for_writing.open(capacity);
    for_reading.open(capacity);
  }
  [[nodiscard]] RegionIndex& index(bool writable) noexcept {
    return writable ? for_writing : for_reading;
  }
  [[nodiscard]] Region* find(MemoryRange range, bool writable) const noexcept {
    Region* const found = for_writing.find(range.begin, range.end);
    return found != nullptr || writable ? found : for_reading.find(range.begin, range.end);
  }

  Registrar& registrar;
  RegionIndex for_writing;  // serves reading, too
  RegionIndex for_reading;
  RegionSiblings regions;
  unsigned deregistering = 0;  // regions that threads deregister now, without the lock
  RegionOwner* next = nullptr;
};

class RegionTable {
 public:
  RegionTable(uint64_t most_regions, uint64_t most_bytes) noexcept
      : most_regions_(most_regions), most_bytes_(most_bytes) {}

  // Leases a region that contains the range. nullptr: no kept region does.
  [[nodiscard]] Region* lease(RegionOwner& owner, MemoryRange range, bool writable) noexcept {
    const LockGuard guard(lock_);
    Region* const found = owner.find(range, writable);
    if (found == nullptr) return nullptr;
    if (found->leases++ == 0) idle_.remove(*found);
    ++counters_.hits;
    return found;
  }
  // True: the region has retired.
  [[nodiscard]] bool give_back(Region& region) noexcept {
    const LockGuard guard(lock_);
    if (--region.leases != 0) return false;
    (region.kept ? idle_ : retired_).append(region);
    return !region.kept;
  }

  void add(RegionOwner& owner) noexcept;
  // Retires all its regions, also those that are leased.
  void retire_all(RegionOwner& owner) noexcept;
  // False: some of its regions are still to be deregistered.
  [[nodiscard]] bool remove(RegionOwner& owner) noexcept;

  // The region is being registered for this range, or for this range and neighbours that are worth
  // it; false: there are none.
  void begin(Region& region, MemoryRange range) noexcept;
  [[nodiscard]] bool begin_with_neighbours(Region& region, MemoryRange range) noexcept;
  // Ends begin() of a region that could not be registered.
  void cancel(Region& region) noexcept;
  // Leases a region that was registered to the caller. True: it is kept for others. It is not if
  // the application changed its memory meanwhile, another thread was faster, or there is no room.
  [[nodiscard]] bool keep(Region& region) noexcept;
  // The same for a region that was not begun: it serves the caller alone.
  void add_single_use(Region& region) noexcept;
  void note_failure() noexcept;

  // Retires regions that are idle, the least recently used first, up to that many bytes.
  enum class Evicted : uint8_t { none, some, others_work };
  [[nodiscard]] Evicted evict(uint64_t bytes) noexcept;
  // Reads events and retires the regions that they concern. `retired`: some are to be deregistered.
  [[nodiscard]] unsigned take_events(MemoryWatch& watch, std::span<MemoryEvent> events,
                                     bool& retired) noexcept;
  // The next region to be deregistered, which leaves the table; nullptr: none.
  [[nodiscard]] Region* take_retired() noexcept;
  void note_deregistered(RegionOwner& owner) noexcept;
  // The first part of the range that no region covers; empty, at its end: none.
  [[nodiscard]] MemoryRange first_unused(MemoryRange range) const noexcept;

  [[nodiscard]] RegistrationCounters counters() const noexcept;

 private:
  [[nodiscard]] MemoryRange widened(const Region& region, MemoryRange range) const noexcept
      LINTEL_REQUIRES(lock_);
  [[nodiscard]] bool has_room(const Region& region) const noexcept LINTEL_REQUIRES(lock_);
  void retire(Region& region) noexcept LINTEL_REQUIRES(lock_);
  [[nodiscard]] uint64_t evict_one() noexcept LINTEL_REQUIRES(lock_);
  void handle(const MemoryEvent& event) noexcept LINTEL_REQUIRES(lock_);

  const uint64_t most_regions_;
  const uint64_t most_bytes_;
  // Held for some dozens of nanoseconds by look-ups, and for a short system call by readers of
  // events, which must be so and happens only when the application has changed registered memory.
  mutable SpinLock lock_;
  RegionOwner* owners_ LINTEL_GUARDED_BY(lock_) = nullptr;
  RegionChain entering_ LINTEL_GUARDED_BY(lock_);  // being registered
  RegionChain idle_ LINTEL_GUARDED_BY(lock_);      // kept and not leased, least recently used first
  RegionChain retired_ LINTEL_GUARDED_BY(lock_);   // regions without leases, to be deregistered
  RegistrationCounters counters_ LINTEL_GUARDED_BY(lock_);
};

}  // namespace lintel
