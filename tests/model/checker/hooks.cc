// What the compiler calls for each access to memory in files compiled with -fsanitize=thread. This
// program is linked with these functions in place of that sanitizer's. So the headers and sources
// of the library run here unchanged. System calls of futexes and membarrier arrive here as well, by
// the option --wrap of the linker.
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <algorithm>
#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "checker/explorer.h"

namespace lintel::model {
namespace {

Sites* sites = nullptr;
constexpr size_t most_mapped_bytes = 64 << 10;

// The exploration that runs this thread; nullptr in the set-up and at the end, and if none runs.
// Until it goes, memory is allocated for the checker.
class Entry {
 public:
  Entry() noexcept : explorer_(Explorer::current()) {
    if (explorer_ == nullptr || !explorer_->in_thread() || !explorer_->in_model)
      explorer_ = nullptr;
    else
      explorer_->in_model = false;
  }
  ~Entry() {
    if (explorer_ != nullptr) explorer_->in_model = true;
  }
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;
  explicit operator bool() const noexcept { return explorer_ != nullptr; }
  Explorer* operator->() const noexcept { return explorer_; }

 private:
  Explorer* explorer_;
};
Order order_of(int order) noexcept {
  constexpr Order orders[] = {Order::relaxed, Order::acquire, Order::acquire,
                              Order::release, Order::acq_rel, Order::seq_cst};
  return orders[order & 7];
}
uintptr_t number_of(const volatile void* address) noexcept {
  return reinterpret_cast<uintptr_t>(address);
}

}  // namespace

void use_sites(Sites& of) { sites = &of; }

// An execution in which a pointer is wrong, also one that does not count in the end.
void catch_faults() {
  struct sigaction action {};
  action.sa_handler = [](int) {
    Explorer* const now = Explorer::current();
    if (now == nullptr || !now->in_thread()) std::abort();
    now->in_model = false;
    now->fail("access to no memory");
  };
  action.sa_flags = SA_NODEFER;
  sigaction(SIGSEGV, &action, nullptr);
}

template <typename T>
T load(const volatile T* from, int order, uintptr_t site) {
  if (const Entry now; now)
    return static_cast<T>(now->load({number_of(from), sizeof(T), site},
                                    sites->order_of(site, Operation::load, order_of(order))));
  return *from;
}
template <typename T>
void store(volatile T* to, T value, int order, uintptr_t site) {
  if (const Entry now; now)
    return now->store({number_of(to), sizeof(T), site},
                      sites->order_of(site, Operation::store, order_of(order)), value);
  *to = value;
}
template <typename T, typename Compute>
T exchange(volatile T* at, int order, uintptr_t site, const Compute& compute) {
  if (const Entry now; now) {
    const Order success = sites->order_of(site, Operation::exchange, order_of(order));
    return static_cast<T>(now->exchange(
        {number_of(at), sizeof(T), site}, {true, 0, success, success},
        [&](uint64_t value) { return static_cast<T>(compute(static_cast<T>(value))); }));
  }
  const T before = *at;
  *at = static_cast<T>(compute(before));
  return before;
}
template <typename T>
T compare_exchange(volatile T* at, T expected, T desired, int success, int failure,
                   uintptr_t site) {
  if (const Entry now; now) {
    const Exchange exchange{false, expected,
                            sites->order_of(site, Operation::exchange, order_of(success)),
                            sites->order_of(site, Operation::failure, order_of(failure))};
    return static_cast<T>(now->exchange({number_of(at), sizeof(T), site}, exchange,
                                        [&](uint64_t) { return uint64_t{desired}; }));
  }
  const T before = *at;
  if (before == expected) *at = desired;
  return before;
}
void plain(const volatile void* address, size_t bytes, bool writes, uintptr_t site) {
  if (const Entry now; now) now->plain(number_of(address), bytes, writes, site);
}
void fence(Operation operation, Order order, uintptr_t site) {
  const Entry now;
  if (!now) return;
  order = sites->order_of(site, operation, order);
  if (!sites->is_dropped(site, operation)) now->fence(order, site);
}

// See include/util/spin_lock.h.
void await_lock(std::atomic<bool>& held);
void await_lock(std::atomic<bool>& held) {
  if (const Entry now; now)
    return now->await_exchange(
        {number_of(&held), 1, reinterpret_cast<uintptr_t>(__builtin_return_address(0))},
        {false, 0, Order::acquire, Order::relaxed}, 1);
  held.store(true, std::memory_order_relaxed);
}

}  // namespace lintel::model

#define SITE reinterpret_cast<uintptr_t>(__builtin_return_address(0))
namespace model = lintel::model;

extern "C" {
#define OPERATIONS(bits, T)                                                                        \
  T __tsan_atomic##bits##_load(const volatile T* from, int order) {                                \
    return model::load(from, order, SITE);                                                         \
  }                                                                                                \
  void __tsan_atomic##bits##_store(volatile T* to, T value, int order) {                           \
    model::store(to, value, order, SITE);                                                          \
  }                                                                                                \
  T __tsan_atomic##bits##_exchange(volatile T* at, T value, int order) {                           \
    return model::exchange(at, order, SITE, [=](T) { return value; });                             \
  }                                                                                                \
  T __tsan_atomic##bits##_fetch_add(volatile T* at, T value, int order) {                          \
    return model::exchange(at, order, SITE, [=](T before) { return before + value; });             \
  }                                                                                                \
  T __tsan_atomic##bits##_fetch_sub(volatile T* at, T value, int order) {                          \
    return model::exchange(at, order, SITE, [=](T before) { return before - value; });             \
  }                                                                                                \
  T __tsan_atomic##bits##_fetch_and(volatile T* at, T value, int order) {                          \
    return model::exchange(at, order, SITE, [=](T before) { return before & value; });             \
  }                                                                                                \
  T __tsan_atomic##bits##_fetch_or(volatile T* at, T value, int order) {                           \
    return model::exchange(at, order, SITE, [=](T before) { return before | value; });             \
  }                                                                                                \
  int __tsan_atomic##bits##_compare_exchange_strong(volatile T* at, T* expected, T desired,        \
                                                    int success, int failure) {                    \
    const T before = model::compare_exchange(at, *expected, desired, success, failure, SITE);      \
    if (before == *expected) return 1;                                                             \
    *expected = before;                                                                            \
    return 0;                                                                                      \
  }                                                                                                \
  int __tsan_atomic##bits##_compare_exchange_weak(volatile T* at, T* expected, T desired,          \
                                                  int success, int failure) {                      \
    const T before = model::compare_exchange(at, *expected, desired, success, failure, SITE);      \
    if (before == *expected) return 1;                                                             \
    *expected = before;                                                                            \
    return 0;                                                                                      \
  }                                                                                                \
  T __tsan_atomic##bits##_compare_exchange_val(volatile T* at, T expected, T desired, int success, \
                                               int failure) {                                      \
    return model::compare_exchange(at, expected, desired, success, failure, SITE);                 \
  }

OPERATIONS(8, uint8_t)
OPERATIONS(16, uint16_t)
OPERATIONS(32, uint32_t)
OPERATIONS(64, uint64_t)

void __tsan_atomic_thread_fence(int order) {
  model::fence(model::Operation::fence, model::order_of(order), SITE);
}
// In this code a fence of the compiler is the light side of an asymmetric fence.
void __tsan_atomic_signal_fence(int) {
  model::fence(model::Operation::light, model::Order::light, SITE);
}

#define PLAIN(bytes)                                                                    \
  void __tsan_read##bytes(void* at) { model::plain(at, bytes, false, SITE); }           \
  void __tsan_write##bytes(void* at) { model::plain(at, bytes, true, SITE); }           \
  void __tsan_unaligned_read##bytes(void* at) { model::plain(at, bytes, false, SITE); } \
  void __tsan_unaligned_write##bytes(void* at) { model::plain(at, bytes, true, SITE); } \
  void __tsan_volatile_read##bytes(void* at) { model::plain(at, bytes, false, SITE); }  \
  void __tsan_volatile_write##bytes(void* at) { model::plain(at, bytes, true, SITE); }
PLAIN(1)
PLAIN(2)
PLAIN(4)
PLAIN(8)
PLAIN(16)

void __tsan_read_range(void* at, size_t bytes) { model::plain(at, bytes, false, SITE); }
void __tsan_write_range(void* at, size_t bytes) { model::plain(at, bytes, true, SITE); }
void __tsan_vptr_read(void** at) { model::plain(at, sizeof(void*), false, SITE); }
void __tsan_vptr_update(void** at, void*) { model::plain(at, sizeof(void*), true, SITE); }
// Of util/peer_order.h: the models have all processes.
void __tsan_acquire(void*) {}
void __tsan_release(void*) {}
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}

void* __real_memcpy(void* to, const void* from, size_t bytes);
void* __wrap_memcpy(void* to, const void* from, size_t bytes) {
  model::plain(from, bytes, false, SITE);
  model::plain(to, bytes, true, SITE);
  return __real_memcpy(to, from, bytes);
}
void* __tsan_memcpy(void* to, const void* from, size_t bytes) {
  model::plain(from, bytes, false, SITE);
  model::plain(to, bytes, true, SITE);
  return __real_memcpy(to, from, bytes);
}
void* __real_memset(void* to, int value, size_t bytes);
void* __wrap_memset(void* to, int value, size_t bytes) {
  model::plain(to, bytes, true, SITE);
  return __real_memset(to, value, bytes);
}
void* __tsan_memset(void* to, int value, size_t bytes) {
  model::plain(to, bytes, true, SITE);
  return __real_memset(to, value, bytes);
}

long __wrap_syscall(long number, ...) {
  va_list list;
  va_start(list, number);
  auto* const word = va_arg(list, uint32_t*);
  const int operation = number == SYS_futex ? va_arg(list, int) : 0;
  const auto value = number == SYS_futex ? va_arg(list, uint32_t) : 0;
  va_end(list);
  if (number == SYS_membarrier) {
    model::fence(model::Operation::heavy, model::Order::heavy, SITE);
  } else if (number == SYS_futex) {
    if (const model::Entry now; now) {
      const model::Explorer::Access access{reinterpret_cast<uintptr_t>(word), 4, SITE};
      if (operation == FUTEX_WAIT) {
        now->futex_wait(access, value);
      } else {
        now->futex_wake(access);
      }
    }
  }
  return 0;
}
int __wrap_sched_yield() { return 0; }

void* __real_mmap(void* at, size_t bytes, int protection, int flags, int descriptor, off_t offset);
void* __wrap_mmap(void* at, size_t bytes, int protection, int flags, int descriptor, off_t offset) {
  model::Explorer* const now = model::Explorer::current();
  // Pools reserve more than a model uses.
  if (now != nullptr && now->in_model)
    return now->allocate(std::min(bytes, model::most_mapped_bytes));
  return __real_mmap(at, bytes, protection, flags, descriptor, offset);
}
int __wrap_munmap(void*, size_t) { return 0; }
int __wrap_madvise(void*, size_t, int) { return 0; }
}  // extern "C"

void* operator new(size_t bytes) {
  model::Explorer* const now = model::Explorer::current();
  return now != nullptr && now->in_model ? now->allocate(bytes) : std::malloc(bytes);
}
void operator delete(void* memory) noexcept {
  const model::Explorer* const now = model::Explorer::current();
  if (now == nullptr || !now->owns(memory)) std::free(memory);
}
void operator delete(void* memory, size_t) noexcept { operator delete(memory); }

namespace lintel {
[[noreturn]] __attribute__((visibility("default"))) void assertion_failed(const char* condition,
                                                                          const char* file,
                                                                          int line) noexcept {
  if (const model::Entry now; now) now->fail(std::string("assertion: ") + condition);
  std::fprintf(stderr, "%s:%d: %s\n", file, line, condition);
  std::abort();
}
namespace guarded_detail {
bool copy_under_recovery_point(void* destination, const void* source, size_t bytes) noexcept {
  __wrap_memcpy(destination, source, bytes);
  return true;
}
}  // namespace guarded_detail
}  // namespace lintel
