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

// Only while all buckets are empty, or about to be.
void KeyedHeaderIndex::set_bucket_count(uint32_t count) noexcept {
  bucket_count_ = count;
  bucket_mask_ = std::bit_ceil(count) - 1;
}

uint32_t KeyedHeaderIndex::hash_of(uint64_t match_bits, uint64_t source) const noexcept {
  return static_cast<uint32_t>(
      keyed_hash(match_bits & significant_bits_, source & source_mask_, seed_) & hash_mask);
}

uint32_t& KeyedHeaderIndex::bucket_of(uint32_t hash) const noexcept {
  uint32_t bucket = hash & bucket_mask_;
  if (bucket >= bucket_count_) bucket &= bucket_mask_ >> 1;  // not split off yet
  return buckets_[bucket];
}

uint32_t KeyedHeaderIndex::first(const MatchCriteria& criteria) const noexcept {
  const uint32_t hash = hash_of(criteria.match_bits, criteria.source);
  uint32_t leader = bucket_of(hash);
  while (leader != no_unexpected_header) {
    const UnexpectedHeader& header = pool_->header(leader);
    // The claim of a header reads it, and it decides where hashes are equal.
    __builtin_prefetch(&header, 1);
    const KeyLinks& links = links_of(leader);
    if (links.hash == hash && criteria.matches(header.match_bits, header.source)) break;
    leader = links.next_in_bucket;
  }
  return leader;
}

void KeyedHeaderIndex::add(uint32_t number) noexcept {
  const UnexpectedHeader& header = pool_->header(number);
  const uint32_t hash = hash_of(header.match_bits, header.source);
  uint32_t& bucket = bucket_of(hash);
  KeyLinks& links = links_of(number);
  links.hash = hash;
  links.indexed = 1;
  for (uint32_t leader = bucket; leader != no_unexpected_header;) {
    KeyLinks& first = links_of(leader);
    if (first.hash == hash) {
      const UnexpectedHeader& other = pool_->header(leader);
      const uint64_t difference = ((other.match_bits ^ header.match_bits) & significant_bits_) |
                                  ((other.source ^ header.source) & source_mask_);
      if (difference == 0) {
        const uint32_t last = first.previous_of_key;
        links.leads = 0;
        links.previous_of_key = last;
        links.next_of_key = leader;
        links_of(last).next_of_key = number;
        first.previous_of_key = number;
        return;
      }
    }
    leader = first.next_in_bucket;
  }
  links.leads = 1;
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
  if (links.leads != 0) {
    uint32_t* link = &bucket_of(links.hash);
    while (*link != number) link = &links_of(*link).next_in_bucket;
    if (following == number) {
      *link = links.next_in_bucket;
      if (--leaders_ == 0) shrink_empty();
    } else {
      *link = following;
      links_of(following).next_in_bucket = links.next_in_bucket;
      links_of(following).leads = 1;
    }
  }
  links_of(following).previous_of_key = links.previous_of_key;
  links_of(links.previous_of_key).next_of_key = following;
  links.indexed = 0;
}

void KeyedHeaderIndex::split_bucket() noexcept {
  if (bucket_count_ == bucket_capacity_) return;
  const uint32_t created = bucket_count_++;
  if (created > bucket_mask_) bucket_mask_ = bucket_mask_ * 2 + 1;
  // Its headers were in the bucket whose number lacks the highest bit.
  uint32_t* kept = &buckets_[created & (bucket_mask_ >> 1)];
  uint32_t* moved = &buckets_[created];
  for (uint32_t leader = *kept; leader != no_unexpected_header;) {
    KeyLinks& links = links_of(leader);
    uint32_t*& end = (links.hash & bucket_mask_) == created ? moved : kept;
    *end = leader;
    end = &links.next_in_bucket;
    leader = links.next_in_bucket;
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
