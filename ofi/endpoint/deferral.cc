#include "endpoint/deferral.h"

#include "domain/domain.h"
#include "endpoint/segments.h"

namespace lintel::ofi {

Deferral::Deferral(const Endpoint* endpoint, const Terms& terms) noexcept
    : TriggeredWork(terms.identity, endpoint, terms.threshold), terms_(terms) {
  terms_.trigger->domain().pump().add_deferral();
  terms_.trigger->add_user();
  if (terms_.completion != nullptr) terms_.completion->add_user();
}

Deferral::~Deferral() {
  terms_.trigger->domain().pump().remove_deferral();
  terms_.trigger->remove_user();
  if (terms_.completion != nullptr) terms_.completion->remove_user();
}

void Deferral::withdrawn() noexcept {
  if (operation_ != nullptr) undo_(*operation_);
}

Trigger::Result Deferral::start(Operation* operation, Undo undo) {
  Trigger* const trigger = terms_.trigger->trigger();
  if (trigger == nullptr) return {PTL_NO_SPACE, 0};
  operation_ = operation;
  undo_ = undo;
  return trigger->start(this);
}

ptl_handle_md_t Deferral::descriptor(Counter::Counted what, ptl_handle_md_t usual) noexcept {
  if (!terms_.is_work || terms_.completion == nullptr) return usual;
  const ptl_handle_md_t counted = terms_.completion->counted_descriptor(what);
  if (counted == PTL_INVALID_HANDLE) return usual;
  is_counted_ = true;
  return counted;
}

bool Deferral::copy(const iovec* pieces, size_t count, iovec& result) {
  std::vector<std::byte>& copied = copies_.emplace_back(total_bytes(pieces, count));
  result = {copied.data(), copied.size()};
  return gather(copied.data(), copied.size(), pieces, count);
}

bool OperationReference::is_receive_of(const void* context) const noexcept {
  if (kind != OwnerKind::receive && kind != OwnerKind::multi_receive) return false;
  return in_pool ? context_of(*operation) == context : operation == context;
}

}  // namespace lintel::ofi
