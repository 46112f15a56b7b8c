#include "completion/counter_alarm.h"

#include "base/provider.h"
#include "domain/domain.h"

namespace lintel::ofi {

int CounterAlarm::open() noexcept {
  if (const int code = descriptor_.open(); code != 0) return code;
  return domain_.watcher().start();
}

CounterAlarm::~CounterAlarm() {
  unwatch();
  if (is_armed_) domain_.watcher().disarm();
  domain_.pump().drain();  // of events that name this
}

void CounterAlarm::arm() noexcept {
  if (is_armed_) return;
  descriptor_.clear();
  is_armed_ = true;
  domain_.watcher().arm();
}

void CounterAlarm::ring() noexcept {
  if (!is_armed_) return;
  is_armed_ = false;
  domain_.watcher().disarm();
  descriptor_.raise();
  unwatch();
}

void CounterAlarm::watch(ptl_handle_ct_t events, ptl_size_t count) noexcept {
  if (is_watching_) return;  // its event is to come
  events_ = events;
  count_ = count;
  entry_ = {};
  entry_.ct_handle = PTL_CT_NONE;
  entry_.uid = PTL_UID_ANY;
  entry_.options = PTL_ME_OP_PUT | PTL_ME_EVENT_UNLINK_DISABLE | PTL_ME_EVENT_COMM_DISABLE;
  entry_.match_id.phys = {PTL_NID_ANY, PTL_PID_ANY};
  const int code = PtlTriggeredMEAppend(domain_.network().interface(), domain_.watcher().portal(),
                                        &entry_, PTL_PRIORITY_LIST, static_cast<EventOwner*>(this),
                                        &handle_, events_, count_);
  is_watching_ = code == PTL_OK;
  if (is_watching_) return;
  (void)failed(FI_LOG_CNTR, "PtlTriggeredMEAppend", code);
  ring();  // the program looks itself
}

void CounterAlarm::unwatch() noexcept {
  if (is_watching_) PtlMEUnlink(handle_);
  is_watching_ = false;
}

void CounterAlarm::watch_again() noexcept {
  if (!is_watching_) return;
  unwatch();
  watch(events_, count_);
}

void CounterAlarm::event_counted() noexcept {
  ptl_ct_event_t counts{};
  if (is_watching_) PtlCTGet(events_, &counts);
  // The event may be that of an earlier entry.
  if (is_watching_ && counts.success >= count_) ring();
}

}  // namespace lintel::ofi
