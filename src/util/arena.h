// Type-stable pools: objects of one type at fixed addresses, found by index, reused but never
// returned to the system before the pool goes, unless trim() is called. A stale index therefore
// always names memory of the right type, and a generation stored in the object shows that it is
// stale.
// Message path: allocate() and release() are lock-free and make no system call; memory is reserved
// at creation and touched only when an index is used for the first time.
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <type_traits>

#include "util/cache_line.h"
#include "util/page_size.h"

namespace lintel {

// T must be default-constructible and have a member `std::atomic<uint32_t> next_free` that the pool
// may use while the object is free. Objects are constructed when first used and stay constructed.
template <typename T>
class Arena {
 public:
  static constexpr uint32_t no_index = UINT32_MAX;

  Arena() = default;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena() { close(); }

  // Reserves address space for `capacity` objects (set-up path). False when the system refuses.
  [[nodiscard]] bool open(uint32_t capacity) noexcept {
    const size_t bytes = size_t{capacity} * sizeof(T);
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return false;
    objects_ = static_cast<T*>(memory);
    capacity_ = capacity;
    return true;
  }

  // Destroys every object; nobody may use the pool any more (set-up path).
  void close() noexcept {
    if (objects_ == nullptr) return;
    const uint32_t used = high_water();
    for (uint32_t i = 0; i < used; ++i) objects_[i].~T();
    munmap(static_cast<void*>(objects_), size_t{capacity_} * sizeof(T));
    objects_ = nullptr;
    capacity_ = 0;
    high_water_.store(0, std::memory_order_relaxed);
    free_head_.store(no_index, std::memory_order_relaxed);
  }

  // An index that nobody else holds, or no_index when all are in use.
  [[nodiscard]] uint32_t allocate() noexcept {
    for (;;) {
      uint64_t head = free_head_.load(std::memory_order_acquire);
      const uint32_t index = static_cast<uint32_t>(head);
      if (index == no_index) return allocate_fresh();
      // The object may be taken by another thread meanwhile; then `next` is stale and the tag in
      // the upper half makes the exchange fail.
      const uint32_t next = objects_[index].next_free.load(std::memory_order_relaxed);
      const uint64_t replacement = ((head >> 32) + 1) << 32 | next;
      if (free_head_.compare_exchange_weak(head, replacement, std::memory_order_relaxed))
        return index;
    }
  }

  void release(uint32_t index) noexcept { release(at(index)); }
  void release(T& object) noexcept {
    const uint32_t index = index_of(object);
    uint64_t head = free_head_.load(std::memory_order_relaxed);
    uint64_t replacement;
    do {
      object.next_free.store(static_cast<uint32_t>(head), std::memory_order_relaxed);
      replacement = ((head >> 32) + 1) << 32 | index;
    } while (!free_head_.compare_exchange_weak(head, replacement, std::memory_order_release,
                                               std::memory_order_relaxed));
  }

  // Connection path: gives back the memory behind the last object in use. For pools of objects
  // that nobody but their holders refers to. Takes time for every object that was ever used. A
  // thread that needs an object meanwhile waits.
  void trim() noexcept {
    static_assert(std::is_trivially_destructible_v<T>);
    begin_growth();
    const uint32_t used = high_water_.load(std::memory_order_relaxed);
    if (const std::unique_ptr<bool[]> unused(new (std::nothrow) bool[used]()); unused != nullptr) {
      take_all_free([&unused](uint32_t index) { unused[index] = true; });
      uint32_t last = used;
      while (last != 0 && unused[last - 1]) --last;
      release_pages(last, used);
      high_water_.store(last, std::memory_order_relaxed);
      // Objects with low indexes are used first.
      for (uint32_t index = last; index != 0; --index)
        if (unused[index - 1]) release(index - 1);
    }
    growing_.store(false, std::memory_order_release);
  }

  [[nodiscard]] T& at(uint32_t index) const noexcept {
    T* const object = objects_ + index;
    if (object == nullptr) __builtin_unreachable();  // spares the callers a test
    return *object;
  }
  // True if the index was ever handed out, so that at() names a constructed object.
  [[nodiscard]] bool contains(uint32_t index) const noexcept {
    return index < high_water_.load(std::memory_order_acquire);
  }
  [[nodiscard]] uint32_t index_of(const T& object) const noexcept {
    return static_cast<uint32_t>(&object - objects_);
  }
  [[nodiscard]] bool owns(const T* object) const noexcept {
    return object >= objects_ && object < objects_ + capacity_;
  }
  [[nodiscard]] uint32_t high_water() const noexcept {
    return high_water_.load(std::memory_order_acquire);
  }
  [[nodiscard]] uint32_t capacity() const noexcept { return capacity_; }

 private:
  void begin_growth() noexcept {
    while (growing_.exchange(true, std::memory_order_acquire)) {
    }
  }
  template <typename Action>
  void take_all_free(const Action& action) noexcept {
    uint64_t head = free_head_.load(std::memory_order_relaxed);
    while (!free_head_.compare_exchange_weak(head, ((head >> 32) + 1) << 32 | no_index,
                                             std::memory_order_acquire,
                                             std::memory_order_relaxed)) {
    }
    for (auto index = static_cast<uint32_t>(head); index != no_index;
         index = objects_[index].next_free.load(std::memory_order_relaxed))
      action(index);
  }
  // Whole pages of the objects from `first` on; the one at `end` was never used.
  void release_pages(uint32_t first, uint32_t end) noexcept {
    const uintptr_t from =
        page_start(reinterpret_cast<uintptr_t>(objects_ + first) + system_page_bytes() - 1);
    const auto to = reinterpret_cast<uintptr_t>(objects_ + end);
    if (from < to) madvise(reinterpret_cast<void*>(from), to - from, MADV_DONTNEED);
  }

  // Fresh objects are constructed one at a time under a flag so that contains() never admits an
  // index whose constructor has not finished.
  uint32_t allocate_fresh() noexcept {
    begin_growth();
    const uint32_t index = high_water_.load(std::memory_order_relaxed);
    if (index == capacity_) {
      growing_.store(false, std::memory_order_release);
      return no_index;
    }
    new (&objects_[index]) T();
    high_water_.store(index + 1, std::memory_order_release);
    growing_.store(false, std::memory_order_release);
    return index;
  }

  T* objects_ = nullptr;
  uint32_t capacity_ = 0;
  std::atomic<uint32_t> high_water_{0};
  std::atomic<bool> growing_{false};
  alignas(cache_line_bytes) std::atomic<uint64_t> free_head_{no_index};
};

}  // namespace lintel
