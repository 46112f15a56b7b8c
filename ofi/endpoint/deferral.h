// An operation that starts when a counter reaches a threshold: FI_TRIGGER at a call, or a work of
// FI_QUEUE_WORK. It stands in its Operation in the place of the context. Set-up path; all functions
// need the lock of the domain.
#pragma once

#include <portals4.h>
#include <sys/uio.h>

#include <memory>
#include <vector>

#include "completion/counter.h"
#include "completion/trigger.h"
#include "endpoint/operation.h"

namespace lintel::ofi {

class Deferral final : public TriggeredWork {
 public:
  // Frees an operation that is withdrawn.
  using Undo = void (*)(Operation& operation);

  struct Terms {
    Counter* trigger;
    uint64_t threshold;
    const void* identity;
    void* context;        // for completions
    bool is_work;         // counted by `completion`, not by the counters of the endpoint
    Counter* completion;  // or NULL
  };

  // `endpoint` is NULL for a work that moves a counter, which is `completion` then.
  Deferral(const Endpoint* endpoint, const Terms& terms) noexcept;
  ~Deferral() override;

  void withdrawn() noexcept override;
  [[nodiscard]] bool is_silent() const noexcept override { return operation_ == nullptr; }

  // Hands what was added to Portals, and gives `undo` the operation if it is withdrawn. Returns as
  // Trigger::start().
  Trigger::Result start(Operation* operation, Undo undo);
  // The operation has ended. Deletes this.
  void end() noexcept { terms_.trigger->existing_trigger()->end(*this); }

  // NULL before start(), and of a work that moves a counter.
  [[nodiscard]] const Operation* operation() const noexcept { return operation_; }
  [[nodiscard]] void* context() const noexcept { return terms_.context; }
  [[nodiscard]] bool is_work() const noexcept { return terms_.is_work; }
  // Returns the counter of the end of the operation; `usual` is the counter of the endpoint.
  [[nodiscard]] Counter* counter(Counter* usual) const noexcept {
    if (is_counted_) return nullptr;
    return terms_.is_work ? terms_.completion : usual;
  }
  // The descriptor for an operation with a single part: Portals counts its end, so that the counter
  // triggers others without a call of this process. `usual` if that cannot be.
  [[nodiscard]] ptl_handle_md_t descriptor(Counter::Counted what, ptl_handle_md_t usual) noexcept;

  // Copies what is sent, since the program may change it (FI_INJECT). False: it cannot be read.
  [[nodiscard]] bool copy(const iovec* pieces, size_t count, iovec& result);
  // Lasts as long as the operation.
  [[nodiscard]] ptl_me_t& entry() noexcept { return entry_; }

 private:
  const Terms terms_;
  Operation* operation_ = nullptr;
  Undo undo_ = nullptr;
  bool is_counted_ = false;
  std::vector<std::vector<std::byte>> copies_;
  ptl_me_t entry_{};
};

[[nodiscard]] inline Deferral& deferral_of(const Operation& operation) noexcept {
  return *static_cast<Deferral*>(operation.context);
}
// The context that the program gave.
[[nodiscard]] inline void* context_of(const Operation& operation) noexcept {
  return operation.has(is_deferred) ? deferral_of(operation).context() : operation.context;
}
[[nodiscard]] inline Counter* counter_of(const Operation& operation, Counter* usual) noexcept {
  return operation.has(is_deferred) ? deferral_of(operation).counter(usual) : usual;
}

}  // namespace lintel::ofi
