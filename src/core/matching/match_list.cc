// The index of a match list grows.
// Message path: allocates only on growth.
#include "core/matching/match_list.h"

namespace lintel {

MatchList::~MatchList() { MatchIndex::destroy(index_); }

void MatchList::index_next() noexcept {
  LINTEL_ASSERT(not_indexed_ != nullptr && not_indexed_->group == nullptr);
  if (index_ == nullptr) index_ = MatchIndex::create();
  if (index_ != nullptr && index_->insert(*not_indexed_)) not_indexed_ = not_indexed_->next_in_list;
}

}  // namespace lintel
