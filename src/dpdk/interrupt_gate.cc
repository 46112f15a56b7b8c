// A callback that does not return until it may. Path into and out of a rest of the port.
#include "dpdk/interrupt_gate.h"

#include <rte_interrupts.h>
#include <sched.h>
#include <unistd.h>

#include "util/futex.h"
#include "util/lock.h"
#include "util/new_descriptor.h"

namespace lintel {

InterruptGate* InterruptGate::get(std::string& reason) {
  static Mutex mutex;
  static InterruptGate* gate = nullptr;
  const LockGuard guard(mutex);
  if (gate != nullptr) return gate;
  rte_intr_handle* const handle = rte_intr_instance_alloc(RTE_INTR_INSTANCE_F_PRIVATE);
  auto* const made = new InterruptGate;
  made->handle_ = handle;
  made->event_ = make_event().release();
  if (handle == nullptr || made->event_ < 0 || rte_intr_fd_set(handle, made->event_) != 0 ||
      rte_intr_type_set(handle, RTE_INTR_HANDLE_EXT) != 0 ||
      rte_intr_callback_register(handle, &InterruptGate::entry, made) != 0) {
    reason = "DPDK's interrupt thread takes no further callback";
    if (made->event_ >= 0) ::close(made->event_);
    rte_intr_instance_free(handle);
    delete made;
    return nullptr;
  }
  gate = made;
  return gate;
}

void InterruptGate::entry(void* self) noexcept { static_cast<InterruptGate*>(self)->stay(); }

void InterruptGate::stay() noexcept {
  uint64_t ignored = 0;
  static_cast<void>(!read(event_, &ignored, sizeof ignored));
  const uint32_t releases = releases_.load(std::memory_order_acquire);
  if (!closed_.load(std::memory_order_acquire)) return;
  held_at_.store(releases, std::memory_order_release);
  while (releases_.load(std::memory_order_acquire) == releases)
    futex_wait(releases_, releases, futex_no_timeout);
}

void InterruptGate::summon() noexcept {
  const uint64_t one = 1;
  static_cast<void>(!write(event_, &one, sizeof one));
}

void InterruptGate::release() noexcept {
  releases_.fetch_add(1, std::memory_order_acq_rel);
  futex_wake(releases_);
}

void InterruptGate::close() noexcept {
  closed_.store(true, std::memory_order_release);
  summon();
}

void InterruptGate::close_and_wait() noexcept {
  if (holds()) return;
  close();
  while (!holds()) sched_yield();
}

void InterruptGate::open() noexcept {
  closed_.store(false, std::memory_order_release);
  release();
}

void InterruptGate::let_round() noexcept {
  summon();
  release();
}

}  // namespace lintel
