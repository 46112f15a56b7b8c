// One index of an unexpected list: for one shape of wildcards, a hash table from what is
// significant to the headers that have it, in arrival order. Linear hashing: the table grows by
// splitting a bucket or two with an insertion, so that no insertion has to move the whole.
// Message path: add() and remove() touch only reserved memory. Connection path: open().
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/matching/unexpected_list.h"

namespace lintel {

class KeyedHeaderIndex {
 public:
  KeyedHeaderIndex() = default;
  KeyedHeaderIndex(const KeyedHeaderIndex&) = delete;
  KeyedHeaderIndex& operator=(const KeyedHeaderIndex&) = delete;
  ~KeyedHeaderIndex();

  // Makes it an empty index for the shape of `criteria`. `number`: which of the list's indexes it is,
  // the same in each call; number 0 keeps its links in the nodes. `max_headers`: what buckets and
  // links are reserved for by the first call; `expected_headers`: how many are about to be added.
  // False when the reservation is refused.
  [[nodiscard]] bool open(unsigned number, const MatchCriteria& criteria, uint32_t max_headers,
                          uint32_t expected_headers) noexcept;
  [[nodiscard]] bool has_shape_of(const MatchCriteria& criteria) const noexcept {
    return ((criteria.ignore_bits ^ ~significant_bits_) | (criteria.source_mask ^ source_mask_)) ==
           0;
  }

  // `node` must have arrived after every header in the index.
  void add(UnexpectedNode& node) noexcept;
  void remove(UnexpectedNode& node) noexcept;
  // `criteria` has the shape of the index.
  [[nodiscard]] UnexpectedNode* first(const MatchCriteria& criteria) const noexcept;
  [[nodiscard]] UnexpectedNode* next(const UnexpectedNode& node) const noexcept {
    UnexpectedNode* const following = links_of(node).next_of_key;
    return (following->leads_in & bit_) != 0 ? nullptr : following;
  }
  [[nodiscard]] bool contains(const UnexpectedNode& node) const noexcept {
    return (node.indexed_by & bit_) != 0;
  }

 private:
  using Links = UnexpectedNode::Links;
  static constexpr uint32_t smallest_bucket_count = 64;

  [[nodiscard]] Links& links_of(UnexpectedNode& node) const noexcept {
    return links_ == nullptr ? node.links : links_[node.message.number];
  }
  [[nodiscard]] const Links& links_of(const UnexpectedNode& node) const noexcept {
    return links_ == nullptr ? node.links : links_[node.message.number];
  }
  [[nodiscard]] uint64_t hash_of(uint64_t match_bits, uint64_t source) const noexcept;
  [[nodiscard]] UnexpectedNode*& bucket_of(uint64_t hash) const noexcept;
  void set_bucket_count(uint32_t count) noexcept;
  void split_bucket() noexcept;
  void shrink_empty() noexcept;

  uint64_t significant_bits_ = 0;
  uint64_t source_mask_ = 0;
  uint64_t seed_ = 0;
  UnexpectedNode** buckets_ = nullptr;
  Links* links_ = nullptr;     // by message.number; null: in the nodes
  size_t reserved_bytes_ = 0;  // for both
  uint32_t bucket_count_ = 0;
  uint32_t bucket_mask_ = 0;      // one less than the power of two that holds bucket_count_
  uint32_t bucket_capacity_ = 0;  // reserved
  uint32_t leaders_ = 0;
  uint32_t most_leaders_ = 0;  // since the index was last empty
  uint8_t bit_ = 0;
};

}  // namespace lintel
