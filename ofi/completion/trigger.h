// Operations that wait until a counter reaches a threshold. Portals holds them back and starts them
// itself; what is here lets them be withdrawn one by one. Set-up path; all functions need the lock
// of the domain.
#pragma once

#include <portals4.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <vector>

namespace lintel::ofi {

class CounterAlarm;

class TriggeredWork {
 public:
  // PtlTriggeredPut or one of its siblings, but for what triggers it.
  using Call = std::function<int(ptl_handle_ct_t counter, ptl_size_t threshold)>;

  // `identity` is what the program names it by, `endpoint` NULL if it has none.
  TriggeredWork(const void* identity, const void* endpoint, uint64_t threshold) noexcept
      : identity_(identity), endpoint_(endpoint), threshold_(threshold) {}
  virtual ~TriggeredWork() = default;
  TriggeredWork(const TriggeredWork&) = delete;
  TriggeredWork& operator=(const TriggeredWork&) = delete;

  // Before it is started.
  void add(Call call) { calls_.push_back(std::move(call)); }
  // Called once Portals has given it up, before it is deleted.
  virtual void withdrawn() noexcept = 0;
  // Nothing tells when it has been carried out: it moves a counter.
  [[nodiscard]] virtual bool is_silent() const noexcept = 0;

  // Portals has begun it. After Trigger::start().
  [[nodiscard]] bool has_started() const noexcept;
  [[nodiscard]] const void* identity() const noexcept { return identity_; }
  [[nodiscard]] const void* endpoint() const noexcept { return endpoint_; }

 private:
  friend class Trigger;

  const void* const identity_;
  const void* const endpoint_;
  const uint64_t threshold_;
  std::vector<Call> calls_;
  ptl_handle_ct_t marker_ = PTL_CT_NONE;  // 1 from the start of the operation on
  std::list<std::unique_ptr<TriggeredWork>>::iterator place_;
};

// Operations that a counter triggers.
class Trigger {
 public:
  // `counter` must outlive this; so must its alarm, or NULL.
  Trigger(ptl_handle_ni_t interface, ptl_handle_ct_t counter, CounterAlarm* alarm) noexcept
      : interface_(interface), counter_(counter), alarm_(alarm) {}
  ~Trigger();
  Trigger(const Trigger&) = delete;
  Trigger& operator=(const Trigger&) = delete;

  struct Result {
    int code;      // of Portals
    size_t calls;  // that it has accepted
  };
  // Hands a work to Portals, and owns it from then on, unless no call was accepted.
  Result start(TriggeredWork* work);
  // It has been carried out. Deletes it.
  void end(TriggeredWork& work) noexcept;
  // Withdraws those that have not started and for which is_wanted(work) is true. Returns how many.
  size_t withdraw_if(const std::function<bool(const TriggeredWork&)>& is_wanted) noexcept;
  // Deletes silent ones that have been carried out.
  void sweep() noexcept;

 private:
  [[nodiscard]] ptl_handle_ct_t take_marker() noexcept;
  [[nodiscard]] Result hand_over(TriggeredWork& work) noexcept;
  void give_back_marker(TriggeredWork& work) noexcept;

  const ptl_handle_ni_t interface_;
  const ptl_handle_ct_t counter_;
  CounterAlarm* const alarm_;
  std::list<std::unique_ptr<TriggeredWork>> works_;  // in the order of start()
  size_t most_unswept_ = 64;
  std::vector<ptl_handle_ct_t> free_markers_;
};

}  // namespace lintel::ofi
