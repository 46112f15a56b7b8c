#include "completion/trigger.h"

#include <algorithm>

#include "base/assert.h"
#include "base/provider.h"
#include "completion/counter_alarm.h"

namespace lintel::ofi {

Trigger::~Trigger() {
  OFI_ASSERT(works_.empty());
  for (const ptl_handle_ct_t marker : free_markers_) PtlCTFree(marker);
}

bool TriggeredWork::has_started() const noexcept {
  ptl_ct_event_t counts{};
  PtlCTGet(marker_, &counts);
  return counts.success != 0;
}

ptl_handle_ct_t Trigger::take_marker() noexcept {
  ptl_handle_ct_t marker = PTL_CT_NONE;
  if (free_markers_.empty()) {
    const int code = PtlCTAlloc(interface_, &marker);
    if (code == PTL_OK) return marker;
    (void)failed(FI_LOG_CNTR, "PtlCTAlloc", code);
    return PTL_CT_NONE;
  }
  marker = free_markers_.back();
  free_markers_.pop_back();
  PtlCTSet(marker, {0, 0});
  return marker;
}

void Trigger::give_back_marker(TriggeredWork& work) noexcept {
  if (work.marker_ != PTL_CT_NONE) free_markers_.push_back(work.marker_);
  work.marker_ = PTL_CT_NONE;
}

// The marker comes first. Portals takes out all that a count reaches in one step, so PtlCTCancel-
// Triggered leaves both or none.
Trigger::Result Trigger::hand_over(TriggeredWork& work) noexcept {
  Result result = {PtlTriggeredCTInc(work.marker_, {1, 0}, counter_, work.threshold_), 0};
  for (const TriggeredWork::Call& call : work.calls_) {
    if (result.code != PTL_OK) break;
    result.code = call(counter_, work.threshold_);
    if (result.code == PTL_OK) ++result.calls;
  }
  return result;
}

Trigger::Result Trigger::start(TriggeredWork* work) {
  if (works_.size() >= most_unswept_) {
    sweep();
    most_unswept_ = std::max<size_t>(64, 2 * works_.size());
  }
  work->marker_ = take_marker();
  if (work->marker_ == PTL_CT_NONE) return {PTL_NO_SPACE, 0};
  Result result = hand_over(*work);
  if (result.code == PTL_OK) {
    work->place_ = works_.emplace(works_.end(), work);
    return result;
  }
  PtlCTCancelTriggered(counter_);
  if (work->has_started() && result.calls != 0) {
    work->place_ = works_.emplace(works_.end(), work);
  } else {
    result.calls = 0;
    give_back_marker(*work);
  }
  withdraw_if([](const TriggeredWork&) { return false; });
  return result;
}

void Trigger::end(TriggeredWork& work) noexcept {
  give_back_marker(work);
  works_.erase(work.place_);
}

size_t Trigger::withdraw_if(const std::function<bool(const TriggeredWork&)>& is_wanted) noexcept {
  PtlCTCancelTriggered(counter_);
  std::list<std::unique_ptr<TriggeredWork>> withdrawn;
  for (auto each = works_.begin(); each != works_.end();) {
    const auto work = each++;
    if ((*work)->has_started()) continue;
    if (is_wanted(**work)) {
      withdrawn.splice(withdrawn.end(), works_, work);
    } else if (const int code = hand_over(**work).code; code != PTL_OK) {
      (void)failed(FI_LOG_EP_DATA, "A triggered operation, handed over again", code);
    }
  }
  if (alarm_ != nullptr) alarm_->watch_again();
  for (const auto& work : withdrawn) {
    give_back_marker(*work);
    work->withdrawn();
  }
  return withdrawn.size();
}

void Trigger::sweep() noexcept {
  for (auto each = works_.begin(); each != works_.end();) {
    const auto work = each++;
    if ((*work)->is_silent() && (*work)->has_started()) end(**work);
  }
}

}  // namespace lintel::ofi
