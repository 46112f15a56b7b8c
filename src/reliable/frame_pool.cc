// Size classes over one reservation of memory. Message path, but for open().
#include "reliable/frame_pool.h"

#include <sys/mman.h>

#include <new>

#include "reliable/frame.h"
#include "util/guarded_memory.h"
#include "util/lock.h"

namespace lintel {

namespace {

constexpr uint32_t small_frame = 256;
constexpr uint32_t medium_frame = 2048;
// Divisors: each class has 1/n of the memory.
constexpr unsigned share_of_memory[FramePool::size_classes] = {8, 4, 2};

constexpr uint64_t footprint(uint32_t capacity) noexcept {
  return (sizeof(FrameBuffer) + capacity + 63) & ~uint64_t{63};
}

}  // namespace

bool FrameBuffer::compute_body_check(uint32_t seed) noexcept {
  body_check =
      lintel::body_check(seed, data() + sizeof(FrameHeader), held_bytes - sizeof(FrameHeader));
  const auto add_payload = [](void* frame) {
    auto& self = *static_cast<FrameBuffer*>(frame);
    self.body_check =
        lintel::body_check(self.body_check, self.payload, self.length - self.held_bytes);
  };
  if (payload == nullptr) return true;
  return (flags & frame_unchecked) != 0 ? has_readable_payload() : guarded_call(add_payload, this);
}

bool FrameBuffer::has_readable_payload() const noexcept {
  return payload == nullptr || is_readable(payload, length - held_bytes);
}

FramePool::~FramePool() {
  if (memory_ != nullptr) munmap(memory_, memory_bytes_);
}

bool FramePool::open(uint32_t largest_frame, uint64_t memory_bytes) noexcept {
  void* memory = mmap(nullptr, memory_bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return false;
  memory_ = static_cast<std::byte*>(memory);
  memory_bytes_ = memory_bytes;
  capacity_[0] = small_frame;
  capacity_[1] = largest_frame < medium_frame ? largest_frame : medium_frame;
  capacity_[2] = largest_frame;
  const LockGuard guard(lock_);
  std::byte* from = memory_;
  for (unsigned i = 0; i < size_classes; ++i) {
    fresh_[i] = from;
    from += memory_bytes / share_of_memory[i] & ~uint64_t{63};
    end_[i] = from;
  }
  return true;
}

FrameBuffer* FramePool::take(unsigned size_class) noexcept {
  FrameBuffer* buffer = free_[size_class];
  if (buffer != nullptr) {
    free_[size_class] = buffer->next;
    return buffer;
  }
  const uint64_t bytes = footprint(capacity_[size_class]);
  if (static_cast<uint64_t>(end_[size_class] - fresh_[size_class]) < bytes) return nullptr;
  buffer = new (fresh_[size_class]) FrameBuffer;
  fresh_[size_class] += bytes;
  return buffer;
}

FrameBuffer* FramePool::acquire(uint32_t length) noexcept {
  unsigned size_class = class_of(length);
  const LockGuard guard(lock_);
  FrameBuffer* buffer = take(size_class);
  while (buffer == nullptr && ++size_class < size_classes) buffer = take(size_class);
  if (buffer == nullptr) return nullptr;
  used_bytes_ += footprint(capacity_[size_class]);
  *buffer = FrameBuffer{};
  buffer->size_class = static_cast<uint8_t>(size_class);
  buffer->length = length;
  buffer->held_bytes = length;
  return buffer;
}

uint64_t FramePool::free_bytes() noexcept {
  const LockGuard guard(lock_);
  return memory_bytes_ / 2 > used_bytes_ ? memory_bytes_ / 2 - used_bytes_ : 0;
}

void FramePool::release_locked(FrameBuffer* buffer) noexcept {
  used_bytes_ -= footprint(capacity_[buffer->size_class]);
  buffer->next = free_[buffer->size_class];
  free_[buffer->size_class] = buffer;
}

void FramePool::release(FrameBuffer* buffer) noexcept {
  const LockGuard guard(lock_);
  release_locked(buffer);
}

void FramePool::release_chain(FrameBuffer* first) noexcept {
  if (first == nullptr) return;
  const LockGuard guard(lock_);
  while (first != nullptr) {
    FrameBuffer* next = first->next;
    release_locked(first);
    first = next;
  }
}

}  // namespace lintel
