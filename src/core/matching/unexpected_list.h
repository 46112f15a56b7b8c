// The unexpected list of a portal table entry (spec 2.5, 3.12.2): headers in arrival order, and the
// first of them that an appended entry matches, at a cost that does not grow with the list. The
// match list turned round: there the wildcards are stored and the key arrives, here the keys are
// stored.
// Message path: add() and remove() make no system call and no allocation. The find functions run in
// the application's append and search; a shape of wildcards that is new to a long list is indexed
// there, by one pass over the list.
// The caller holds the lock of the portal table entry around every call.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/matching/match_criteria.h"
#include "portals4.h"
#include "transport/message.h"

namespace lintel {

inline constexpr unsigned unexpected_shapes = 4;

struct ListEntry;

// What an overflow event tells of a message, beside match bits and source. Of this the list looks at
// `number` alone.
struct UnexpectedMessage {
  ptl_uid_t uid = 0;
  uint16_t pt_index = 0;
  MessageKind kind = MessageKind::none;
  uint8_t operation = 0;  // ptl_op_t
  uint8_t datatype = 0;   // ptl_datatype_t
  uint8_t fail = 0;       // ptl_ni_fail_t
  // Its data are still on the way. An overflow event must not be seen before they have arrived
  // (spec 2.5), so an entry that is appended and matches the header meanwhile claims it.
  bool arriving = false;
  bool claimed = false;
  // Of the header, below max_headers, and no other's on the same list.
  uint32_t number = 0;
  ListEntry* entry = nullptr;  // the overflow entry that holds the data
  std::byte* start = nullptr;
  uint64_t mlength = 0;        // bytes
  uint64_t rlength = 0;        // bytes
  uint64_t remote_offset = 0;  // bytes
  uint64_t hdr_data = 0;
};
static_assert(sizeof(UnexpectedMessage) == 64);

// Base of what is kept in an UnexpectedList. `match_bits`, `source` and `message.number` are set
// before add() and constant while the node is on a list; everything else belongs to the list.
struct alignas(64) UnexpectedNode {
  uint64_t match_bits = 0;
  uint64_t source = 0;
  UnexpectedNode* next_in_list = nullptr;
  UnexpectedNode* previous_in_list = nullptr;
  // One bit for each index of the list.
  uint8_t indexed_by = 0;
  uint8_t leads_in = 0;
  std::atomic<uint32_t> next_free{0};  // belongs to the Arena
  // Headers with the same key under the shape of one index form a ring in arrival order. The first
  // of them leads: it alone is in a bucket.
  struct Links {
    UnexpectedNode* next_of_key;
    UnexpectedNode* previous_of_key;
    UnexpectedNode* next_in_bucket;
  };
  union {
    Links links{};  // of index 0; valid where indexed_by says so. Other indexes keep theirs.
    // Matched the message while its data are arriving; the node is off the list then.
    // ListEntry::operations counts the message until it is reported.
    ListEntry* claimant;
  };
  UnexpectedMessage message;
};
// Without gaps: at a larger stride some sets of a cache would hold no headers and the others too many.
static_assert(sizeof(UnexpectedNode) == 128 && offsetof(UnexpectedNode, message) == 64);

class UnexpectedIndexes;

class UnexpectedList {
 public:
  UnexpectedList() = default;
  UnexpectedList(const UnexpectedList&) = delete;
  UnexpectedList& operator=(const UnexpectedList&) = delete;
  ~UnexpectedList();

  // Set-up path; to be called while the list is empty, each time with the same value.
  // `max_headers`: how many headers the indexes are dimensioned for; with more the list works, but
  // its cost grows. Takes no memory yet. False when it is more than 2^30.
  [[nodiscard]] bool open(uint32_t max_headers) noexcept;

  // Adds a header that has just arrived.
  void add(UnexpectedNode& node) noexcept {
    node.indexed_by = 0;
    node.leads_in = 0;
    node.next_in_list = nullptr;
    node.previous_in_list = tail_;
    (tail_ == nullptr ? head_ : tail_->next_in_list) = &node;
    tail_ = &node;
    ++size_;
    if (indexes_ != nullptr) index_added(node);
  }

  // `node` must be on this list.
  void remove(UnexpectedNode& node) noexcept;

  // The matching header that arrived first, or null.
  [[nodiscard]] UnexpectedNode* find_first(const MatchCriteria& criteria) noexcept {
    return head_ == nullptr ? nullptr : find_first_of_some(criteria);
  }

  // The matching header that arrived first after `after`, which matches and is still on the list.
  // For visits that remove headers see Matches.
  [[nodiscard]] UnexpectedNode* find_next(const MatchCriteria& criteria,
                                          UnexpectedNode& after) noexcept;

  // Visits all matching headers in arrival order. The header that next() has handed out may be
  // removed before the following call; other than that the list must not change meanwhile.
  //
  //   UnexpectedList::Matches matches(list, criteria);
  //   while (UnexpectedNode* node = matches.next()) list.remove(*node);
  class Matches {
   public:
    Matches(UnexpectedList& list, const MatchCriteria& criteria) noexcept
        : list_(list), criteria_(criteria), upcoming_(list.find_first(criteria)) {}

    [[nodiscard]] UnexpectedNode* next() noexcept {
      UnexpectedNode* const current = upcoming_;
      if (current != nullptr) upcoming_ = list_.find_next(criteria_, *current);
      return current;
    }

   private:
    UnexpectedList& list_;
    const MatchCriteria criteria_;
    UnexpectedNode* upcoming_;
  };

  [[nodiscard]] UnexpectedNode* head() const noexcept { return head_; }
  // The header that arrived next after `node`, or null.
  [[nodiscard]] static UnexpectedNode* next(const UnexpectedNode& node) noexcept {
    return node.next_in_list;
  }
  [[nodiscard]] size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return head_ == nullptr; }

 private:
  void index_added(UnexpectedNode& node) noexcept;
  [[nodiscard]] UnexpectedNode* find_first_of_some(const MatchCriteria& criteria) noexcept;

  UnexpectedNode* head_ = nullptr;
  UnexpectedNode* tail_ = nullptr;
  UnexpectedIndexes* indexes_ = nullptr;  // created by the first search of a long list
  uint32_t size_ = 0;
  uint32_t max_headers_ = 0;
};

}  // namespace lintel
