// The priority or overflow list of a portal table entry (spec 2.5, 3.12): entries in posting order,
// and the first of them that matches a message at a cost that does not grow with the list.
// Message path: find(), remove() and a steady state of append() make no system call and no
// allocation. The caller holds the lock of the portal table entry around every call.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/matching/match_index.h"
#include "core/matching/match_node.h"
#include "util/assert.h"

namespace lintel {

// A list of up to `direct_limit` entries is compared one by one; a longer one is indexed until it
// is almost empty again.
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

  // Appends at the end; `node` must not be on a list. False when memory for the index cannot be
  // had: then the list is unchanged.
  [[nodiscard]] bool append(MatchNode& node) noexcept {
    LINTEL_ASSERT((head_ == nullptr) == (size_ == 0) && (head_ == nullptr) == (tail_ == nullptr));
    node.sequence = next_sequence_;
    if ((indexed_ || size_ >= direct_limit_) && !append_to_index(node)) return false;
    ++next_sequence_;
    ++size_;
    node.next_in_list = nullptr;
    node.previous_in_list = tail_;
    (tail_ == nullptr ? head_ : tail_->next_in_list) = &node;
    tail_ = &node;
    return true;
  }

  // `node` must be on this list.
  void remove(MatchNode& node) noexcept {
    MatchNode* const next = node.next_in_list;
    MatchNode* const previous = node.previous_in_list;
    LINTEL_ASSERT(size_ != 0);
    LINTEL_ASSERT((next == nullptr ? tail_ : next->previous_in_list) == &node);
    LINTEL_ASSERT((previous == nullptr ? head_ : previous->next_in_list) == &node);
    (next == nullptr ? tail_ : next->previous_in_list) = previous;
    (previous == nullptr ? head_ : previous->next_in_list) = next;
    --size_;
    if (indexed_) remove_from_index(node);
  }

  // The first node in posting order that matches and for which accepts(node) is true. `accepts` is
  // called with matching nodes in posting order, once each, and must not change the list.
  template <typename Accepts>
  [[nodiscard, gnu::always_inline]] MatchNode* find(uint64_t match_bits, uint64_t source,
                                                    Accepts&& accepts) noexcept {
    if (indexed_) return find_indexed(match_bits, source, accepts);
    for (MatchNode* node = head_; node != nullptr; node = node->next_in_list) {
      if (node->criteria.matches(match_bits, source) && accepts(*node)) return node;
    }
    return nullptr;
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
  static constexpr uint32_t indexed_minimum = 2;

  // find() in a long list. A function of its own: inline it would take registers from short lists.
  template <typename Accepts>
  [[nodiscard, gnu::noinline]] MatchNode* find_indexed(uint64_t match_bits, uint64_t source,
                                                       Accepts& accepts) noexcept {
    // Messages often come in the order of the entries.
    const bool head_matches = head_->criteria.matches(match_bits, source);
    MatchNode* node = head_matches ? head_ : index_->earliest(match_bits, source);
    if (node == nullptr || accepts(*node)) return node;
    index_->start_walk(match_bits, source);
    node = index_->next_candidate();  // returns the rejected node again
    do {
      node = index_->next_candidate();
    } while (node != nullptr && !accepts(*node));
    return node;
  }

  // Indexes the whole list first if it was not.
  [[nodiscard]] bool append_to_index(MatchNode& node) noexcept;
  void remove_from_index(MatchNode& node) noexcept;

  MatchNode* head_ = nullptr;
  MatchIndex* index_ = nullptr;  // kept when the list is short again
  bool indexed_ = false;
  uint32_t direct_limit_ = direct_limit;
  uint32_t size_ = 0;
  MatchNode* tail_ = nullptr;
  uint64_t next_sequence_ = 0;
};

}  // namespace lintel
