// Rings of equal headers and the buckets of their leaders (see keyed_header_index.h).
// Message path, except open().
#include "core/matching/keyed_header_index.h"

#include <algorithm>
#include <bit>
#include <cstddef>

#include "core/matching/keyed_hash.h"
#include "core/matching/keyed_memory.h"

namespace lintel {
namespace {

constexpr size_t bucket_bytes = sizeof(void*);

}  // namespace

KeyedHeaderIndex::~KeyedHeaderIndex() {
  if (buckets_ != nullptr) keyed_memory.release(buckets_, reserved_bytes_);
}

bool KeyedHeaderIndex::open(unsigned number, const MatchCriteria& criteria, uint32_t max_headers,
                            uint32_t expected_headers) noexcept {
  if (buckets_ == nullptr) {
    // Two buckets for each header, should all their keys differ.
    const uint32_t capacity = std::max(smallest_bucket_count, std::bit_ceil(max_headers) * 2);
    const size_t link_bytes = number == 0 ? 0 : max_headers * sizeof(Links);
    void* const memory = keyed_memory.acquire(capacity * bucket_bytes + link_bytes);
    if (memory == nullptr) return false;
    buckets_ = static_cast<UnexpectedNode**>(memory);
    bucket_capacity_ = capacity;
    if (link_bytes != 0) links_ = reinterpret_cast<Links*>(buckets_ + capacity);
    reserved_bytes_ = capacity * bucket_bytes + link_bytes;
    seed_ = keyed_hash_seed();
  }
  bit_ = static_cast<uint8_t>(1U << number);
  significant_bits_ = ~criteria.ignore_bits;
  source_mask_ = criteria.source_mask;
  leaders_ = 0;
  most_leaders_ = 0;
  set_bucket_count(std::clamp(expected_headers * 2, smallest_bucket_count, bucket_capacity_));
  std::fill_n(buckets_, bucket_count_, nullptr);
  return true;
}

// Only while all buckets are empty, or about to be.
void KeyedHeaderIndex::set_bucket_count(uint32_t count) noexcept {
  bucket_count_ = count;
  bucket_mask_ = std::bit_ceil(count) - 1;
}

uint64_t KeyedHeaderIndex::hash_of(uint64_t match_bits, uint64_t source) const noexcept {
  return keyed_hash(match_bits & significant_bits_, source & source_mask_, seed_);
}

UnexpectedNode*& KeyedHeaderIndex::bucket_of(uint64_t hash) const noexcept {
  uint64_t bucket = hash & bucket_mask_;
  if (bucket >= bucket_count_) bucket &= bucket_mask_ >> 1;  // not split off yet
  return buckets_[bucket];
}

UnexpectedNode* KeyedHeaderIndex::first(const MatchCriteria& criteria) const noexcept {
  UnexpectedNode* leader = bucket_of(hash_of(criteria.match_bits, criteria.source));
  // Whoever finds the leader claims it: its message and its neighbours are needed next.
  if (leader != nullptr) __builtin_prefetch(&leader->message, 1);
  while (leader != nullptr && !criteria.matches(leader->match_bits, leader->source))
    leader = links_of(*leader).next_in_bucket;
  if (leader != nullptr) {
    if (leader->next_in_list != nullptr) __builtin_prefetch(leader->next_in_list, 1);
    if (leader->previous_in_list != nullptr) __builtin_prefetch(leader->previous_in_list, 1);
  }
  return leader;
}

void KeyedHeaderIndex::add(UnexpectedNode& node) noexcept {
  UnexpectedNode*& bucket = bucket_of(hash_of(node.match_bits, node.source));
  UnexpectedNode::Links& links = links_of(node);
  node.indexed_by |= bit_;
  for (UnexpectedNode* leader = bucket; leader != nullptr;
       leader = links_of(*leader).next_in_bucket) {
    const uint64_t difference = ((leader->match_bits ^ node.match_bits) & significant_bits_) |
                                ((leader->source ^ node.source) & source_mask_);
    if (difference != 0) continue;
    UnexpectedNode* const last = links_of(*leader).previous_of_key;
    links.previous_of_key = last;
    links.next_of_key = leader;
    links_of(*last).next_of_key = &node;
    links_of(*leader).previous_of_key = &node;
    node.leads_in &= static_cast<uint8_t>(~bit_);
    return;
  }
  links = {.next_of_key = &node, .previous_of_key = &node, .next_in_bucket = bucket};
  bucket = &node;
  node.leads_in |= bit_;
  ++leaders_;
  most_leaders_ = std::max(most_leaders_, leaders_);
  // Two splits with an insertion keep twice as many buckets as leaders without ever falling behind.
  for (int i = 0; i < 2 && bucket_count_ / 2 < leaders_; ++i) split_bucket();
}

void KeyedHeaderIndex::remove(UnexpectedNode& node) noexcept {
  UnexpectedNode::Links& links = links_of(node);
  UnexpectedNode* const following = links.next_of_key;
  if ((node.leads_in & bit_) != 0) {
    UnexpectedNode** link = &bucket_of(hash_of(node.match_bits, node.source));
    while (*link != &node) link = &links_of(**link).next_in_bucket;
    if (following == &node) {
      *link = links.next_in_bucket;
      if (--leaders_ == 0) shrink_empty();
    } else {
      *link = following;
      links_of(*following).next_in_bucket = links.next_in_bucket;
      following->leads_in |= bit_;
    }
  }
  links_of(*following).previous_of_key = links.previous_of_key;
  links_of(*links.previous_of_key).next_of_key = following;
  node.indexed_by &= static_cast<uint8_t>(~bit_);
  node.leads_in &= static_cast<uint8_t>(~bit_);
}

void KeyedHeaderIndex::split_bucket() noexcept {
  if (bucket_count_ == bucket_capacity_) return;
  const uint32_t created = bucket_count_++;
  if (created > bucket_mask_) bucket_mask_ = bucket_mask_ * 2 + 1;
  // Its headers were in the bucket whose number lacks the highest bit.
  UnexpectedNode** kept = &buckets_[created & (bucket_mask_ >> 1)];
  UnexpectedNode** moved = &buckets_[created];
  for (UnexpectedNode* leader = *kept; leader != nullptr;) {
    UnexpectedNode*& next = links_of(*leader).next_in_bucket;
    const bool moves = (hash_of(leader->match_bits, leader->source) & bucket_mask_) == created;
    UnexpectedNode**& end = moves ? moved : kept;
    *end = leader;
    end = &next;
    leader = next;
  }
  *kept = nullptr;
  *moved = nullptr;
}

// All buckets are empty: any number of them will do. After a burst, a small list shall not be
// spread over the caches again.
void KeyedHeaderIndex::shrink_empty() noexcept {
  set_bucket_count(std::min(bucket_count_, std::max(smallest_bucket_count, most_leaders_ * 2)));
  most_leaders_ = 0;
}

}  // namespace lintel
