// The step from a short match list, compared entry by entry, to an indexed one and back.
// Message path: remove_from_index(); append_to_index() allocates only on growth.
#include "core/matching/match_list.h"

namespace lintel {

MatchList::~MatchList() { MatchIndex::destroy(index_); }

bool MatchList::append_to_index(MatchNode& node) noexcept {
  if (indexed_) return index_->insert(node);
  if (index_ == nullptr) {
    index_ = MatchIndex::create();
    if (index_ == nullptr) return false;
  }
  MatchNode* waiting = head_;
  while (waiting != nullptr && index_->insert(*waiting)) waiting = waiting->next_in_list;
  if (waiting == nullptr && index_->insert(node)) {
    indexed_ = true;
    return true;
  }
  for (MatchNode* done = head_; done != waiting; done = done->next_in_list) index_->remove(*done);
  return false;
}

void MatchList::remove_from_index(MatchNode& node) noexcept {
  index_->remove(node);
  if (size_ > indexed_minimum) return;
  for (MatchNode* left = head_; left != nullptr; left = left->next_in_list) index_->remove(*left);
  indexed_ = false;
}

}  // namespace lintel
