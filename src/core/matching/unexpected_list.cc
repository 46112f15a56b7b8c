// The indexes of an unexpected list: which shapes have one, and when headers enter it.
// Message path: remove() and index_added(). Connection path: the find functions where they build an
// index; else they only read.
#include "core/matching/unexpected_list.h"

#include <new>

#include "core/matching/keyed_header_index.h"
#include "core/matching/keyed_memory.h"

namespace lintel {
namespace {

// A list this short is compared header by header; none enters an index meanwhile.
constexpr uint32_t direct_limit = 8;
// Headers that enter an index when one arrives: more than one, so that those which arrived while
// the list was short catch up, and few, so that an arrival costs the same in any list.
constexpr int catch_up_step = 2;
// An index gives way to another shape when this many searches did without it. Fewer would let five
// shapes that take turns rebuild an index each time, which costs more than comparing all headers.
constexpr uint64_t idle_searches = 64;

bool matches_everything(const MatchCriteria& criteria) noexcept {
  return ~criteria.ignore_bits == 0 && criteria.source_mask == 0;
}

}  // namespace

class UnexpectedIndexes {
 public:
  explicit UnexpectedIndexes(UnexpectedPool& pool) noexcept : pool_(pool) {}

  // The up-to-date index for the shape of `criteria`, or null.
  KeyedHeaderIndex* find(const MatchCriteria& criteria) noexcept {
    Entry* const entry = find_entry(criteria);
    return entry == nullptr ? nullptr : &entry->index;
  }

  // The same for a search from the beginning, where a new shape gets an index if one is to be had.
  KeyedHeaderIndex* find_or_build(const MatchCriteria& criteria, uint32_t head,
                                  uint32_t size) noexcept {
    ++searches_;
    Entry* entry = find_entry(criteria);
    if (entry == nullptr) entry = build(criteria, head, size);
    if (entry == nullptr) return nullptr;
    entry->last_use = searches_;
    return &entry->index;
  }

  void added(uint32_t number, bool list_is_short) noexcept {
    for (unsigned i = 0; i < used_; ++i) {
      Entry& entry = entries_[i];
      if (entry.next_to_add == no_unexpected_header) entry.next_to_add = number;
      if (list_is_short) continue;
      for (int step = 0; step < catch_up_step && entry.next_to_add != no_unexpected_header; ++step)
        add_next(entry);
    }
  }

  // The header is still on the list.
  void removing(uint32_t number) noexcept {
    for (unsigned i = 0; i < used_; ++i) {
      Entry& entry = entries_[i];
      if (entry.index.contains(number))
        entry.index.remove(number);
      else if (entry.next_to_add == number)
        entry.next_to_add = pool_.header(number).in_list.next;
    }
  }

 private:
  // An index and how far it has come: all headers from `next_to_add` on are not in it yet.
  struct Entry {
    KeyedHeaderIndex index;
    uint32_t next_to_add = no_unexpected_header;
    uint64_t last_use = 0;
  };

  void add_next(Entry& entry) noexcept {
    entry.index.add(entry.next_to_add);
    entry.next_to_add = pool_.header(entry.next_to_add).in_list.next;
  }
  void catch_up(Entry& entry) noexcept {
    while (entry.next_to_add != no_unexpected_header) add_next(entry);
  }

  Entry* find_entry(const MatchCriteria& criteria) noexcept {
    for (unsigned i = 0; i < used_; ++i) {
      if (!entries_[i].index.has_shape_of(criteria)) continue;
      catch_up(entries_[i]);
      return &entries_[i];
    }
    return nullptr;
  }

  Entry* build(const MatchCriteria& criteria, uint32_t head, uint32_t size) noexcept {
    const unsigned number = used_ < unexpected_shapes ? used_ : least_recently_used();
    Entry& entry = entries_[number];
    if (number < used_ && searches_ - entry.last_use <= idle_searches) return nullptr;
    if (!entry.index.open(number, pool_, criteria, size)) return nullptr;
    if (number == used_) ++used_;
    // Each header on the list enters, which also clears what an index replaced left in it.
    entry.next_to_add = head;
    catch_up(entry);
    return &entry;
  }

  [[nodiscard]] unsigned least_recently_used() const noexcept {
    unsigned oldest = 0;
    for (unsigned i = 1; i < used_; ++i) {
      if (entries_[i].last_use < entries_[oldest].last_use) oldest = i;
    }
    return oldest;
  }

  UnexpectedPool& pool_;
  Entry entries_[unexpected_shapes];
  unsigned used_ = 0;
  uint64_t searches_ = 0;
};

UnexpectedList::~UnexpectedList() {
  if (indexes_ == nullptr) return;
  indexes_->~UnexpectedIndexes();
  keyed_memory.release(indexes_, sizeof *indexes_);
}

void UnexpectedList::index_added(uint32_t number) noexcept {
  indexes_->added(number, size_ <= direct_limit);
}

void UnexpectedList::remove(UnexpectedHeader& header) noexcept {
  join_neighbours();
  const uint32_t number = pool_->number_of(header);
  removed_ = header.in_list;
  LINTEL_ASSERT(size_ != 0);
  LINTEL_ASSERT((removed_.next == no_unexpected_header) == (tail_ == number));
  LINTEL_ASSERT((removed_.previous == no_unexpected_header) == (head_ == number));
  if (removed_.next == no_unexpected_header)
    tail_ = removed_.previous;
  else
    __builtin_prefetch(&pool_->header(removed_.next), 1);
  if (removed_.previous == no_unexpected_header)
    head_ = removed_.next;
  else
    __builtin_prefetch(&pool_->header(removed_.previous), 1);
  --size_;
  if (indexes_ != nullptr) indexes_->removing(number);
}

uint32_t UnexpectedList::first_from(uint32_t number, const MatchCriteria& criteria) const noexcept {
  while (number != no_unexpected_header) {
    const UnexpectedHeader& header = pool_->header(number);
    if (criteria.matches(header.match_bits, header.source)) break;
    number = header.in_list.next;
  }
  return number;
}

uint32_t UnexpectedList::find_first_of_some(const MatchCriteria& criteria) noexcept {
  join_neighbours();
  if (matches_everything(criteria)) return head_;
  if (size_ <= direct_limit) return first_from(head_, criteria);
  if (indexes_ == nullptr) {
    void* const memory = keyed_memory.acquire(sizeof(UnexpectedIndexes));
    if (memory == nullptr) return first_from(head_, criteria);
    indexes_ = new (memory) UnexpectedIndexes(*pool_);
  }
  KeyedHeaderIndex* const index = indexes_->find_or_build(criteria, head_, size_);
  return index == nullptr ? first_from(head_, criteria) : index->first(criteria);
}

UnexpectedHeader* UnexpectedList::find_next(const MatchCriteria& criteria,
                                            const UnexpectedHeader& after) noexcept {
  join_neighbours();
  const uint32_t following = after.in_list.next;
  if (matches_everything(criteria)) return header_or_null(following);
  if (size_ > direct_limit && indexes_ != nullptr) {
    if (const KeyedHeaderIndex* const index = indexes_->find(criteria))
      return header_or_null(index->next(pool_->number_of(after)));
  }
  return header_or_null(first_from(following, criteria));
}

}  // namespace lintel
