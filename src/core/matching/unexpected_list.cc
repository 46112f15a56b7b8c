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

constexpr uint32_t most_headers = uint32_t{1} << 30;

bool matches_everything(const MatchCriteria& criteria) noexcept {
  return ~criteria.ignore_bits == 0 && criteria.source_mask == 0;
}

UnexpectedNode* first_from(UnexpectedNode* node, const MatchCriteria& criteria) noexcept {
  while (node != nullptr && !criteria.matches(node->match_bits, node->source))
    node = node->next_in_list;
  return node;
}

}  // namespace

class UnexpectedIndexes {
 public:
  // An index and how far it has come: all headers from `next_to_add` on are not in it yet.
  struct Entry {
    KeyedHeaderIndex index;
    UnexpectedNode* next_to_add = nullptr;
    uint64_t last_use = 0;

    void add_next() noexcept {
      index.add(*next_to_add);
      next_to_add = next_to_add->next_in_list;
    }
    void catch_up() noexcept {
      while (next_to_add != nullptr) add_next();
    }
  };

  // The up-to-date index for the shape of `criteria`, or null.
  Entry* find(const MatchCriteria& criteria) noexcept {
    for (unsigned i = 0; i < used_; ++i) {
      if (!entries_[i].index.has_shape_of(criteria)) continue;
      entries_[i].catch_up();
      return &entries_[i];
    }
    return nullptr;
  }

  // The same for a search from the beginning, where a new shape gets an index if one is to be had.
  Entry* find_or_build(const MatchCriteria& criteria, UnexpectedNode* head, uint32_t size,
                       uint32_t max_headers) noexcept {
    ++searches_;
    Entry* entry = find(criteria);
    if (entry == nullptr) entry = build(criteria, head, size, max_headers);
    if (entry != nullptr) entry->last_use = searches_;
    return entry;
  }

  void added(UnexpectedNode& node, bool list_is_short) noexcept {
    for (unsigned i = 0; i < used_; ++i) {
      Entry& entry = entries_[i];
      if (entry.next_to_add == nullptr) entry.next_to_add = &node;
      if (list_is_short) continue;
      for (int step = 0; step < catch_up_step && entry.next_to_add != nullptr; ++step)
        entry.add_next();
    }
  }

  // `node` is still on the list.
  void removing(UnexpectedNode& node) noexcept {
    for (unsigned i = 0; i < used_; ++i) {
      Entry& entry = entries_[i];
      if (entry.index.contains(node))
        entry.index.remove(node);
      else if (entry.next_to_add == &node)
        entry.next_to_add = node.next_in_list;
    }
  }

 private:
  Entry* build(const MatchCriteria& criteria, UnexpectedNode* head, uint32_t size,
               uint32_t max_headers) noexcept {
    const unsigned number = used_ < unexpected_shapes ? used_ : least_recently_used();
    Entry& entry = entries_[number];
    if (number < used_ && searches_ - entry.last_use <= idle_searches) return nullptr;
    if (!entry.index.open(number, criteria, max_headers, size)) return nullptr;
    if (number == used_) ++used_;
    // Each header on the list enters, which also clears what an index replaced left in it.
    entry.next_to_add = head;
    entry.catch_up();
    return &entry;
  }

  [[nodiscard]] unsigned least_recently_used() const noexcept {
    unsigned oldest = 0;
    for (unsigned i = 1; i < used_; ++i) {
      if (entries_[i].last_use < entries_[oldest].last_use) oldest = i;
    }
    return oldest;
  }

  Entry entries_[unexpected_shapes];
  unsigned used_ = 0;
  uint64_t searches_ = 0;
};

UnexpectedList::~UnexpectedList() {
  if (indexes_ == nullptr) return;
  indexes_->~UnexpectedIndexes();
  keyed_memory.release(indexes_, sizeof *indexes_);
}

bool UnexpectedList::open(uint32_t max_headers) noexcept {
  if (max_headers > most_headers) return false;
  max_headers_ = max_headers;
  return true;
}

void UnexpectedList::index_added(UnexpectedNode& node) noexcept {
  indexes_->added(node, size_ <= direct_limit);
}

void UnexpectedList::remove(UnexpectedNode& node) noexcept {
  if (indexes_ != nullptr) indexes_->removing(node);
  UnexpectedNode* const next = node.next_in_list;
  UnexpectedNode* const previous = node.previous_in_list;
  (next == nullptr ? tail_ : next->previous_in_list) = previous;
  (previous == nullptr ? head_ : previous->next_in_list) = next;
  --size_;
}

UnexpectedNode* UnexpectedList::find_first_of_some(const MatchCriteria& criteria) noexcept {
  if (matches_everything(criteria)) return head_;
  if (size_ <= direct_limit) return first_from(head_, criteria);
  if (indexes_ == nullptr) {
    void* const memory = keyed_memory.acquire(sizeof(UnexpectedIndexes));
    if (memory == nullptr) return first_from(head_, criteria);
    indexes_ = new (memory) UnexpectedIndexes();
  }
  const UnexpectedIndexes::Entry* const entry =
      indexes_->find_or_build(criteria, head_, size_, max_headers_);
  return entry == nullptr ? first_from(head_, criteria) : entry->index.first(criteria);
}

UnexpectedNode* UnexpectedList::find_next(const MatchCriteria& criteria,
                                          UnexpectedNode& after) noexcept {
  if (matches_everything(criteria)) return after.next_in_list;
  if (size_ > direct_limit && indexes_ != nullptr) {
    if (const UnexpectedIndexes::Entry* const entry = indexes_->find(criteria))
      return entry->index.next(after);
  }
  return first_from(after.next_in_list, criteria);
}

}  // namespace lintel
