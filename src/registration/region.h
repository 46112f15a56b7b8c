// A region of registered memory as the cache sees it, and the lists that regions hang in.
// Message path: nothing here allocates.
#pragma once

#include <cstdint>

#include "registration/registration.h"

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

}  // namespace lintel
