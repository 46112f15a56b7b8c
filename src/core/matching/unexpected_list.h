// The unexpected list of a portal table entry (spec 2.5, 3.12.2): headers in arrival order, and the
// first of them that an appended entry matches, at a cost that does not grow with the list. The
// match list turned round: there the wildcards are stored and the key arrives, here the keys are
// stored.
// Message path: add() and remove() make no system call and no allocation. The find functions run in
// the application's append and search; a shape of wildcards that is new to a long list is indexed
// there, by one pass over the list.
// The caller holds the lock of the portal table entry around every call.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/matching/match_criteria.h"
#include "core/matching/unexpected_pool.h"
#include "util/assert.h"

namespace lintel {

inline constexpr unsigned unexpected_shapes = 4;

class UnexpectedIndexes;

class UnexpectedList {
 public:
  UnexpectedList() = default;
  UnexpectedList(const UnexpectedList&) = delete;
  UnexpectedList& operator=(const UnexpectedList&) = delete;
  ~UnexpectedList();

  // Set-up path, before all other calls. `pool`: where all headers of the list come from; it must
  // outlive the list. Takes no memory yet.
  void open(UnexpectedPool& pool) noexcept { pool_ = &pool; }

  // Adds a header that has just arrived.
  void add(UnexpectedHeader& header) noexcept {
    join_neighbours();
    const uint32_t number = pool_->number_of(header);
    header.in_list = {.next = no_unexpected_header, .previous = tail_};
    (tail_ == no_unexpected_header ? head_ : pool_->header(tail_).in_list.next) = number;
    tail_ = number;
    LINTEL_ASSERT((header.in_list.previous == no_unexpected_header) == (size_ == 0));
    ++size_;
    if (indexes_ != nullptr) index_added(number);
  }

  // `header` must be on this list.
  void remove(UnexpectedHeader& header) noexcept;

  // The matching header that arrived first, or null.
  [[nodiscard]] UnexpectedHeader* find_first(const MatchCriteria& criteria) noexcept {
    return empty() ? nullptr : header_or_null(find_first_of_some(criteria));
  }

  // The matching header that arrived first after `after`, which matches and is still on the list.
  // For visits that remove headers see Matches.
  [[nodiscard]] UnexpectedHeader* find_next(const MatchCriteria& criteria,
                                            const UnexpectedHeader& after) noexcept;

  // Visits all matching headers in arrival order. The header that next() has handed out may be
  // removed before the following call; other than that the list must not change meanwhile.
  //
  //   UnexpectedList::Matches matches(list, criteria);
  //   while (UnexpectedHeader* header = matches.next()) list.remove(*header);
  class Matches {
   public:
    Matches(UnexpectedList& list, const MatchCriteria& criteria) noexcept
        : list_(list), criteria_(criteria), upcoming_(list.find_first(criteria)) {}

    [[nodiscard]] UnexpectedHeader* next() noexcept {
      UnexpectedHeader* const current = upcoming_;
      if (current != nullptr) upcoming_ = list_.find_next(criteria_, *current);
      return current;
    }

   private:
    UnexpectedList& list_;
    const MatchCriteria criteria_;
    UnexpectedHeader* upcoming_;
  };

  [[nodiscard]] UnexpectedHeader* head() const noexcept { return header_or_null(head_); }
  // The header that arrived next after `header`, or null.
  [[nodiscard]] UnexpectedHeader* next(const UnexpectedHeader& header) noexcept {
    join_neighbours();
    return header_or_null(header.in_list.next);
  }
  [[nodiscard]] size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return head_ == no_unexpected_header; }

 private:
  [[nodiscard]] UnexpectedHeader* header_or_null(uint32_t number) const noexcept {
    return number == no_unexpected_header ? nullptr : &pool_->header(number);
  }
  // Links the neighbours of the header that was removed last. The next function that uses the list
  // calls it first. Until then the cache lines of the neighbours are prefetched.
  void join_neighbours() noexcept {
    const auto [next, previous] = removed_;
    if (next != no_unexpected_header) pool_->header(next).in_list.previous = previous;
    if (previous != no_unexpected_header) pool_->header(previous).in_list.next = next;
    removed_ = {no_unexpected_header, no_unexpected_header};
  }
  void index_added(uint32_t number) noexcept;
  [[nodiscard]] uint32_t find_first_of_some(const MatchCriteria& criteria) noexcept;
  [[nodiscard]] uint32_t first_from(uint32_t number, const MatchCriteria& criteria) const noexcept;

  UnexpectedPool* pool_ = nullptr;
  uint32_t head_ = no_unexpected_header;
  uint32_t tail_ = no_unexpected_header;
  // Neighbours of the header that was removed last, while they are not linked to each other.
  UnexpectedHeader::Neighbours removed_{no_unexpected_header, no_unexpected_header};
  UnexpectedIndexes* indexes_ = nullptr;  // created by the first search of a long list
  uint32_t size_ = 0;
};

}  // namespace lintel
