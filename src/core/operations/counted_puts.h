// Puts to one peer whose acknowledgement is only counted. Keeps, by cookie, what is to be counted.
// An acknowledgement that completes full events needs an Operation instead.
// Message path. add() and take_back() run under the peer's send lock, the others under the poll
// token.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/objects/memory_descriptor.h"
#include "core/operations/initiator_events.h"
#include "util/arena.h"
#include "util/assert.h"

namespace lintel {

// Set in cookies that name a counted put; others name an Operation.
inline constexpr uint32_t counted_put_cookie = 1u << 31;

class CountedPuts {
 public:
  static constexpr uint32_t count_one = UINT32_MAX;
  struct Record {
    std::atomic<MemoryDescriptor*> descriptor{nullptr};  // nullptr: free
    uint32_t generation = 0;                             // generation of the descriptor
    uint32_t bytes = 0;                                  // see Put
  };
  static constexpr uint32_t capacity = 512;
  struct Ring {
    std::atomic<uint32_t> next_free{0};
    Record records[capacity];
  };
  struct Put {
    MemoryDescriptor* descriptor;
    uint32_t generation;
    uint32_t bytes;  // requested length if bytes are counted, else count_one
    // Returns nullptr if the descriptor was released.
    [[nodiscard]] MemoryDescriptor* resolve() const noexcept {
      return DescriptorReference{descriptor, generation}.resolve();
    }
    // Returns the number that success adds to the counter when the target took `mlength` bytes.
    [[nodiscard]] uint64_t amount(uint64_t mlength) const noexcept {
      return bytes == count_one ? 1 : mlength < bytes ? mlength : bytes;
    }
    // Of nothing if the descriptor was released, or counts no acknowledgements.
    [[nodiscard]] Count count(uint64_t mlength) const noexcept {
      const MemoryDescriptor* const put = resolve();
      if (put == nullptr || (put->options & PTL_MD_EVENT_CT_ACK) == 0) return {};
      return {put->counter, amount(mlength)};
    }
  };

  // Rings come from `rings` at the first put and stay with the peer. `first`: the number of that
  // put. Set-up path.
  void open(Arena<Ring>& rings, uint32_t first = 0) noexcept {
    rings_ = &rings;
    next_ = first;
  }

  // False: no record is free.
  [[nodiscard]] bool add(const Request& request, uint32_t& cookie) noexcept {
    if (ring_.load(std::memory_order_relaxed) == nullptr && !acquire_ring()) [[unlikely]]
      return false;
    Record& record = record_of(next_);
    if (record.descriptor.load(std::memory_order_acquire) != nullptr) return false;
    record.generation = request.put.generation;
    const bool bytes = counts_bytes(*request.put.descriptor, PTL_MD_EVENT_CT_ACK, request.header);
    record.bytes = bytes ? static_cast<uint32_t>(request.header.length()) : count_one;
    record.descriptor.store(request.put.descriptor, std::memory_order_release);
    cookie = counted_put_cookie | (next_++ & ~counted_put_cookie);
    return true;
  }
  // The put that was added last was not sent. False: the peer has acknowledged it all the same.
  [[nodiscard]] bool take_back(uint32_t cookie) noexcept {
    LINTEL_ASSERT(((next_ - 1) & ~counted_put_cookie) == (cookie & ~counted_put_cookie));
    --next_;
    return record_of(cookie).descriptor.exchange(nullptr, std::memory_order_relaxed) != nullptr;
  }

  // Ends the put that `cookie` names. `put.descriptor` is nullptr if there is none.
  [[nodiscard]] Put take(uint32_t cookie) noexcept {
    if (ring_.load(std::memory_order_acquire) == nullptr) [[unlikely]]
      return {};
    Record& record = record_of(cookie);
    const Put put = look_at(record);
    record.descriptor.store(nullptr, std::memory_order_release);
    return put;
  }
  // Ends those, in no order, for which end(const Put&) is true.
  template <typename End>
  void end_if(End&& end) noexcept {
    Ring* const ring = ring_.load(std::memory_order_acquire);
    if (ring == nullptr) return;
    for (Record& record : ring->records) {
      const Put put = look_at(record);
      if (put.descriptor != nullptr && end(put))
        record.descriptor.store(nullptr, std::memory_order_release);
    }
  }

 private:
  [[nodiscard, gnu::noinline, gnu::cold]] bool acquire_ring() noexcept {
    const uint32_t index = rings_ == nullptr ? Arena<Ring>::no_index : rings_->allocate();
    if (index == Arena<Ring>::no_index) return false;
    ring_.store(&rings_->at(index), std::memory_order_release);
    return true;
  }
  [[nodiscard]] Record& record_of(uint32_t cookie) const noexcept {
    return ring_.load(std::memory_order_relaxed)->records[cookie % capacity];
  }
  [[nodiscard]] static Put look_at(const Record& record) noexcept {
    MemoryDescriptor* const descriptor = record.descriptor.load(std::memory_order_acquire);
    if (descriptor == nullptr) return {};
    return {descriptor, record.generation, record.bytes};
  }

  Arena<Ring>* rings_ = nullptr;
  std::atomic<Ring*> ring_{nullptr};
  uint32_t next_ = 0;
};

}  // namespace lintel
