// Rings of equal headers and the buckets of their leaders (see keyed_header_index.h).
// Message path, except open().
#include "core/matching/keyed_header_index.h"

#include <algorithm>
#include <bit>
#include <cstddef>

#include "core/matching/keyed_hash.h"
#include "core/matching/keyed_memory.h"

namespace lintel {

KeyedHeaderIndex::~KeyedHeaderIndex() {
  if (buckets_ != nullptr) keyed_memory.release(buckets_, reserved_bytes_);
}

bool KeyedHeaderIndex::open(unsigned number, UnexpectedPool& pool, const MatchCriteria& criteria,
                            uint32_t expected_headers) noexcept {
  if (buckets_ == nullptr) {
    // Two buckets for each header, should all their keys differ.
    const uint32_t capacity = std::max(smallest_bucket_count, std::bit_ceil(pool.capacity()) * 2);
    const size_t bucket_bytes = capacity * sizeof(uint32_t);
    const size_t link_bytes = number == 0 ? 0 : pool.capacity() * sizeof(KeyLinks);
    void* const memory = keyed_memory.acquire(bucket_bytes + link_bytes);
    if (memory == nullptr) return false;
    buckets_ = static_cast<uint32_t*>(memory);
    bucket_capacity_ = capacity;
    if (link_bytes != 0) links_ = reinterpret_cast<KeyLinks*>(buckets_ + capacity);
    reserved_bytes_ = bucket_bytes + link_bytes;
    pool_ = &pool;
    seed_ = keyed_hash_seed();
  }
  significant_bits_ = ~criteria.ignore_bits;
  source_mask_ = criteria.source_mask;
  leaders_ = 0;
  most_leaders_ = 0;
  set_bucket_count(std::clamp(expected_headers * 2, smallest_bucket_count, bucket_capacity_));
  std::fill_n(buckets_, bucket_count_, no_unexpected_header);
  return true;
}

// Requires that all buckets are empty, or are emptied before the next look-up.
void KeyedHeaderIndex::set_bucket_count(uint32_t count) noexcept {
  bucket_count_ = count;
  bucket_mask_ = std::bit_ceil(count) - 1;
  found_ = no_unexpected_header;
}

uint32_t KeyedHeaderIndex::bucket_of(uint64_t match_bits, uint64_t source) const noexcept {
  const uint64_t hash = keyed_hash(match_bits & significant_bits_, source & source_mask_, seed_);
  const uint32_t bucket = static_cast<uint32_t>(hash) & bucket_mask_;
  return bucket < bucket_count_ ? bucket : bucket & bucket_mask_ >> 1;  // not split off yet
}

uint32_t KeyedHeaderIndex::first(const MatchCriteria& criteria) noexcept {
  found_bucket_ = bucket_of(criteria.match_bits, criteria.source);
  uint32_t leader = buckets_[found_bucket_];
  while (leader != no_unexpected_header) {
    const UnexpectedHeader& header = pool_->header(leader);
    if (criteria.matches(header.match_bits, header.source)) break;
    leader = links_of(leader).next_in_bucket;
  }
  found_ = leader;
  return leader;
}

void KeyedHeaderIndex::add(uint32_t number) noexcept {
  const UnexpectedHeader& header = pool_->header(number);
  uint32_t& bucket = buckets_[bucket_of(header.match_bits, header.source)];
  KeyLinks& links = links_of(number);
  for (uint32_t leader = bucket; leader != no_unexpected_header;) {
    KeyLinks& first = links_of(leader);
    const UnexpectedHeader& other = pool_->header(leader);
    const uint64_t difference = ((other.match_bits ^ header.match_bits) & significant_bits_) |
                                ((other.source ^ header.source) & source_mask_);
    if (difference == 0) {
      const uint32_t last = first.previous_of_key;
      links.next_in_bucket = KeyLinks::in_no_bucket;
      links.previous_of_key = last;
      links.next_of_key = leader;
      links_of(last).next_of_key = number;
      first.previous_of_key = number;
      return;
    }
    leader = first.next_in_bucket;
  }
  links.next_of_key = number;
  links.previous_of_key = number;
  links.next_in_bucket = bucket;
  bucket = number;
  ++leaders_;
  most_leaders_ = std::max(most_leaders_, leaders_);
  // Two splits with an insertion keep twice as many buckets as leaders without ever falling behind.
  for (int i = 0; i < 2 && bucket_count_ / 2 < leaders_; ++i) split_bucket();
}

void KeyedHeaderIndex::remove(uint32_t number) noexcept {
  KeyLinks& links = links_of(number);
  const uint32_t following = links.next_of_key;
  const bool alone = following == number;
  if (leads(links)) {
    const UnexpectedHeader& header = pool_->header(number);
    uint32_t* link =
        &buckets_[number == found_ ? found_bucket_ : bucket_of(header.match_bits, header.source)];
    while (*link != number) link = &links_of(*link).next_in_bucket;
    *link = alone ? links.next_in_bucket : following;
    if (!alone) links_of(following).next_in_bucket = links.next_in_bucket;
    found_ = no_unexpected_header;
    if (alone && --leaders_ == 0) shrink_empty();
  }
  if (!alone) {
    links_of(following).previous_of_key = links.previous_of_key;
    links_of(links.previous_of_key).next_of_key = following;
  }
  links.next_of_key = no_unexpected_header;
}

void KeyedHeaderIndex::split_bucket() noexcept {
  if (bucket_count_ == bucket_capacity_) return;
  const uint32_t created = bucket_count_++;
  found_ = no_unexpected_header;
  if (created > bucket_mask_) bucket_mask_ = bucket_mask_ * 2 + 1;
  // The headers of the new bucket were in the bucket whose number lacks the highest bit.
  uint32_t* kept = &buckets_[created & (bucket_mask_ >> 1)];
  uint32_t* moved = &buckets_[created];
  for (uint32_t leader = *kept; leader != no_unexpected_header;) {
    const UnexpectedHeader& header = pool_->header(leader);
    uint32_t& next = links_of(leader).next_in_bucket;
    uint32_t*& end = bucket_of(header.match_bits, header.source) == created ? moved : kept;
    *end = leader;
    end = &next;
    leader = next;
  }
  *kept = no_unexpected_header;
  *moved = no_unexpected_header;
}

// All buckets are empty: any number of them will do. After a burst, a small list shall not be
// spread over the caches again.
void KeyedHeaderIndex::shrink_empty() noexcept {
  set_bucket_count(std::min(bucket_count_, std::max(smallest_bucket_count, most_leaders_ * 2)));
  most_leaders_ = 0;
}

}  // namespace lintel
