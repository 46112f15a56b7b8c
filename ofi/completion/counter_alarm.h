// The descriptor of a counter (FI_WAIT_FD). It becomes readable with the first change after arm().
// A count of Portals makes no event; so an entry that Portals appends with the next count does.
// Set-up path, and sleeping; all functions but open() and control() need the lock of the domain.
#pragma once

#include <portals4.h>

#include "base/wait_descriptor.h"
#include "domain/event_owner.h"

namespace lintel::ofi {

class Domain;

class CounterAlarm final : public EventOwner {
 public:
  explicit CounterAlarm(Domain& domain) noexcept
      : EventOwner{OwnerKind::counter}, domain_(domain) {}
  ~CounterAlarm();
  CounterAlarm(const CounterAlarm&) = delete;
  CounterAlarm& operator=(const CounterAlarm&) = delete;

  // Returns 0 or a negative error number.
  [[nodiscard]] int open() noexcept;
  [[nodiscard]] int control(int command, void* argument) const noexcept {
    return descriptor_.control(command, argument, FI_WAIT_UNSPEC);
  }

  // The program may sleep.
  void arm() noexcept;
  [[nodiscard]] bool is_armed() const noexcept { return is_armed_; }
  // The counter has changed.
  void ring() noexcept;
  // The change of a counting event to `count` is noticed, too.
  void watch(ptl_handle_ct_t events, ptl_size_t count) noexcept;
  // Until watch() is called again.
  void unwatch() noexcept;
  // The same as watch() with what was watched last, after PtlCTCancelTriggered.
  void watch_again() noexcept;
  // The event of the entry.
  void event_counted() noexcept;

 private:
  Domain& domain_;
  WaitDescriptor descriptor_;
  ptl_handle_ct_t events_ = PTL_CT_NONE;
  ptl_size_t count_ = 0;
  ptl_me_t entry_{};
  ptl_handle_me_t handle_ = PTL_INVALID_HANDLE;
  bool is_watching_ = false;
  bool is_armed_ = false;
};

}  // namespace lintel::ofi
