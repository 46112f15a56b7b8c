// The priority or overflow list of a portal table entry (spec 2.5, 3.12): entries in posting order,
// and the first of them that matches a message at a cost that does not grow with the list.
// Message path: append() and remove() make no system call and no allocation; nor does find(),
// unless more entries than ever are passed over. The caller holds the lock of the portal table
// entry around every call.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/matching/match_index.h"
#include "core/matching/match_node.h"
#include "util/assert.h"

namespace lintel {

// Only entries that searches pass over are indexed, in posting order: receives that are consumed in
// the order of their appends never are. At most `direct_limit` entries behind the indexed ones are
// compared one by one.
class MatchList {
 public:
  MatchList() = default;
  MatchList(const MatchList&) = delete;
  MatchList& operator=(const MatchList&) = delete;
  ~MatchList();

  // Whether messages are matched (the default). Only the head of a list of a non-matching interface
  // is used, so it has no index. To be called while the list is empty.
  void set_matching(bool matching) noexcept {
    direct_limit_ = matching ? direct_limit : UINT32_MAX;
  }

  // Appends at the end; `node` must not be on a list.
  void append(MatchNode& node) noexcept {
    LINTEL_ASSERT((head_ == nullptr) == (size_ == 0) && (head_ == nullptr) == (tail_ == nullptr));
    node.sequence = next_sequence_++;
    ++size_;
    node.group = nullptr;
    node.next_in_list = nullptr;
    node.previous_in_list = tail_;
    (tail_ == nullptr ? head_ : tail_->next_in_list) = &node;
    tail_ = &node;
    if (not_indexed_ == nullptr) not_indexed_ = &node;
  }

  // `node` must be on this list.
  void remove(MatchNode& node) noexcept {
    MatchNode* const next = node.next_in_list;
    MatchNode* const previous = node.previous_in_list;
    LINTEL_ASSERT(size_ != 0);
    check_head();
    LINTEL_ASSERT((next == nullptr ? tail_ : next->previous_in_list) == &node);
    LINTEL_ASSERT((previous == nullptr ? head_ : previous->next_in_list) == &node);
    (next == nullptr ? tail_ : next->previous_in_list) = previous;
    (previous == nullptr ? head_ : previous->next_in_list) = next;
    --size_;
    if (not_indexed_ == &node) not_indexed_ = next;
    if (node.group != nullptr) index_->remove(node);
  }

  // The first node in posting order that matches and for which accepts(node) is true. `accepts` is
  // called with matching nodes in posting order, once each, and must not change the list.
  template <typename Accepts>
  [[nodiscard, gnu::always_inline]] MatchNode* find(uint64_t match_bits, uint64_t source,
                                                    Accepts&& accepts) noexcept {
    // Messages often come in the order of the entries.
    if (head_ == nullptr || (head_->criteria.matches(match_bits, source) && accepts(*head_)))
      return head_;
    return find_behind_head(match_bits, source, accepts);
  }

  // The first node in posting order that matches.
  [[nodiscard, gnu::always_inline]] MatchNode* find_any(uint64_t match_bits,
                                                        uint64_t source) noexcept {
    return find(match_bits, source, [](const MatchNode&) { return true; });
  }

  [[nodiscard]] MatchNode* head() const noexcept { return head_; }
  // The node posted next after `node`, or null.
  [[nodiscard]] static MatchNode* next(const MatchNode& node) noexcept { return node.next_in_list; }
  [[nodiscard]] size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return head_ == nullptr; }

 private:
  static constexpr uint32_t direct_limit = 4;

  // The rest of find(). A function of its own: inline it would take registers from the common case.
  template <typename Accepts>
  [[nodiscard, gnu::noinline]] MatchNode* find_behind_head(uint64_t match_bits, uint64_t source,
                                                           Accepts& accepts) noexcept {
    check_head();
    MatchNode* node = not_indexed_;
    if (node == head_) {
      node = head_->next_in_list;
    } else if (MatchNode* const found = find_indexed(match_bits, source, accepts)) {
      return found;
    }
    for (uint32_t passed = 0; node != nullptr; node = node->next_in_list) {
      if (node->criteria.matches(match_bits, source) && accepts(*node)) return node;
      if (++passed >= direct_limit_) index_next();
    }
    return nullptr;
  }

  // The first indexed node behind the head that matches and is accepted.
  template <typename Accepts>
  [[nodiscard, gnu::always_inline]] MatchNode* find_indexed(uint64_t match_bits, uint64_t source,
                                                            Accepts& accepts) noexcept {
    MatchNode* node = index_->earliest(match_bits, source);
    if (node == nullptr || (node != head_ && accepts(*node))) return node;
    index_->start_walk(match_bits, source);
    node = index_->next_candidate();  // returns the rejected node again
    do {
      node = index_->next_candidate();
    } while (node != nullptr && !accepts(*node));
    return node;
  }

  // Indexed nodes come first.
  void check_head() const noexcept {
    LINTEL_ASSERT((head_->group != nullptr) == (head_ != not_indexed_));
  }

  // Indexes `not_indexed_`. Without memory it stays as it is.
  void index_next() noexcept;

  MatchNode* head_ = nullptr;
  MatchNode* not_indexed_ = nullptr;  // first node behind the indexed ones
  MatchIndex* index_ = nullptr;
  uint32_t direct_limit_ = direct_limit;
  uint32_t size_ = 0;
  MatchNode* tail_ = nullptr;
  uint64_t next_sequence_ = 0;
};

}  // namespace lintel
