// fi_cntr: a count of completions and one of errors. Accesses of peers are counted by Portals, in a
// counting event; so is everything once the counter triggers operations. Message path, but for
// open() and close(). Functions without another remark need the lock of the domain.
#pragma once

#include <portals4.h>

#include <cstdint>
#include <memory>

#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>

#include "base/assert.h"
#include "base/object.h"
#include "completion/counter_alarm.h"
#include "completion/trigger.h"

namespace lintel::ofi {

class Domain;

class Counter : public fid_cntr {
 public:
  Counter(Domain& domain, void* context) noexcept;

  [[nodiscard]] static Counter& of(Object* object) noexcept {
    return *static_cast<Counter*>(reinterpret_cast<fid_cntr*>(object));
  }
  // fi_cntr_open.
  static int open(fid_domain* domain, fi_cntr_attr* attr, fid_cntr** result,
                  void* context) noexcept;
  int close() noexcept;

  [[nodiscard]] Domain& domain() const noexcept { return domain_; }

  void add(uint64_t count) noexcept {
    if (is_plain_) [[likely]] {
      successes_ += count;
    } else {
      add_and_tell(count);
    }
  }
  void add_errors(uint64_t count) noexcept;
  void set(uint64_t count) noexcept;
  void set_errors(uint64_t count) noexcept;
  // The counting event for what Portals counts; PTL_CT_NONE if there can be none.
  [[nodiscard]] ptl_handle_ct_t count_in_portals() noexcept;
  // Returns what it triggers, or NULL without memory. From then on Portals counts everything.
  [[nodiscard]] Trigger* trigger() noexcept;
  // The same if it has triggered something before, else NULL.
  [[nodiscard]] Trigger* existing_trigger() const noexcept { return trigger_.get(); }
  // A descriptor over all memory like those of the Network, of whose operations Portals counts the
  // ends here: acknowledgments and replies, or the ends of sends. PTL_INVALID_HANDLE if there can
  // be none.
  enum class Counted { answers, sends };
  [[nodiscard]] ptl_handle_md_t counted_descriptor(Counted what) noexcept;

  // Without the lock; after progress of the domain.
  [[nodiscard]] uint64_t read() noexcept;
  [[nodiscard]] uint64_t read_errors() noexcept;
  // Without the lock. Returns 0, -FI_EAVAIL after another error, or -FI_ETIMEDOUT.
  [[nodiscard]] int wait(uint64_t threshold, int timeout_ms) noexcept;
  // Without the lock. fi_trywait: 0 if the program may sleep on the descriptor, or -FI_EAGAIN if
  // the counter has changed since the program read it.
  [[nodiscard]] int try_wait() noexcept;
  // FI_GETWAIT, FI_GETWAITOBJ.
  [[nodiscard]] int control(int command, void* argument) const noexcept;

  void add_user() noexcept { ++users_; }
  void remove_user() noexcept {
    OFI_ASSERT(users_ != 0);
    --users_;
  }

 private:
  // Returns the counts of Portals.
  [[nodiscard]] ptl_ct_event_t counted() const noexcept;
  [[nodiscard]] uint64_t successes() const noexcept { return successes_ + counted().success; }
  [[nodiscard]] uint64_t errors() const noexcept { return errors_ + counted().failure; }
  void add_and_tell(uint64_t count) noexcept;
  void ring() noexcept {
    if (alarm_ != nullptr) alarm_->ring();
  }
  // Waits a moment for a count of Portals.
  void wait_for_portals(uint64_t threshold, int most_ms) noexcept;

  Domain& domain_;
  uint64_t successes_ = 0;
  uint64_t errors_ = 0;
  ptl_handle_ct_t events_ = PTL_CT_NONE;
  // By what they count.
  ptl_handle_md_t descriptors_[2] = {PTL_INVALID_HANDLE, PTL_INVALID_HANDLE};
  std::unique_ptr<CounterAlarm> alarm_;  // FI_WAIT_FD
  std::unique_ptr<Trigger> trigger_;
  bool is_plain_ = true;  // neither of these
  // Values that the program read last.
  uint64_t seen_ = 0;
  uint64_t seen_errors_ = 0;
  size_t users_ = 0;  // bindings of endpoints and regions, deferred work
};

}  // namespace lintel::ofi
