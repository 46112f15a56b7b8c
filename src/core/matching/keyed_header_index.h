// One index of an unexpected list: for one shape of wildcards, a hash table from what is
// significant to the headers that have it, in arrival order. Linear hashing: the table grows by
// splitting a bucket or two with an insertion, so that no insertion has to move the whole.
// Message path: add() and remove() touch only reserved memory. Connection path: open().
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/matching/match_criteria.h"
#include "core/matching/unexpected_pool.h"

namespace lintel {

class KeyedHeaderIndex {
 public:
  KeyedHeaderIndex() = default;
  KeyedHeaderIndex(const KeyedHeaderIndex&) = delete;
  KeyedHeaderIndex& operator=(const KeyedHeaderIndex&) = delete;
  ~KeyedHeaderIndex();

  // Makes it an empty index for the shape of `criteria`. `number`: which of the list's indexes it
  // is, `pool`: where the list's headers are; both the same in each call. Number 0 keeps its links
  // in the headers. The first call reserves buckets and links for all headers of the pool.
  // `expected_headers`: how many are about to be added. False when the reservation is refused.
  [[nodiscard]] bool open(unsigned number, UnexpectedPool& pool, const MatchCriteria& criteria,
                          uint32_t expected_headers) noexcept;
  [[nodiscard]] bool has_shape_of(const MatchCriteria& criteria) const noexcept {
    return ((criteria.ignore_bits ^ ~significant_bits_) | (criteria.source_mask ^ source_mask_)) ==
           0;
  }

  // The header must have arrived after every header in the index.
  void add(uint32_t number) noexcept;
  void remove(uint32_t number) noexcept;
  // `criteria` has the shape of the index. Both find functions: no_unexpected_header if there is
  // none.
  [[nodiscard]] uint32_t first(const MatchCriteria& criteria) noexcept;
  [[nodiscard]] uint32_t next(uint32_t number) const noexcept {
    const uint32_t following = links_of(number).next_of_key;
    return leads(links_of(following)) ? no_unexpected_header : following;
  }
  [[nodiscard]] bool contains(uint32_t number) const noexcept {
    return links_of(number).next_of_key != no_unexpected_header;
  }

 private:
  static constexpr uint32_t smallest_bucket_count = 64;

  [[nodiscard]] KeyLinks& links_of(uint32_t number) const noexcept {
    return links_ == nullptr ? pool_->header(number).key : links_[number - 1];
  }
  [[nodiscard]] static bool leads(const KeyLinks& links) noexcept {
    return links.next_in_bucket != KeyLinks::in_no_bucket;
  }
  [[nodiscard]] uint32_t bucket_of(uint64_t match_bits, uint64_t source) const noexcept;
  void set_bucket_count(uint32_t count) noexcept;
  void split_bucket() noexcept;
  void shrink_empty() noexcept;

  uint64_t significant_bits_ = 0;
  uint64_t source_mask_ = 0;
  uint64_t seed_ = 0;
  UnexpectedPool* pool_ = nullptr;
  uint32_t* buckets_ = nullptr;  // leaders
  KeyLinks* links_ = nullptr;    // by number; null: the headers contain the links
  size_t reserved_bytes_ = 0;    // size of both tables
  uint32_t bucket_count_ = 0;
  uint32_t bucket_mask_ = 0;      // one less than the power of two that holds bucket_count_
  uint32_t bucket_capacity_ = 0;  // reserved
  uint32_t leaders_ = 0;
  uint32_t most_leaders_ = 0;  // maximum since the index was last empty
  // The header that first() found last and its bucket: most often it is removed next.
  uint32_t found_ = no_unexpected_header;
  uint32_t found_bucket_ = 0;
};

}  // namespace lintel
