// Puts to one peer that were sent with their payload and whose acknowledgement is awaited. Keeps,
// by cookie, what is to be reported then. Other operations, and puts that wait in a queue, need an
// Operation instead.
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

// Set in cookies that name an awaited put; others name an Operation.
inline constexpr uint32_t awaited_put_cookie = 1u << 31;

class AwaitedPuts {
 public:
  // Values that the acknowledgement of a put reports.
  struct Put {
    DescriptorReference descriptor;
    uint64_t length;  // bytes
    ptl_ack_req_t requested;
    void* user_ptr;
    uint64_t remote_offset;  // bytes
  };
  // Longer puts have no record.
  static constexpr uint64_t most_bytes = (1u << 30) - 1;
  static constexpr uint32_t capacity = 512;
  class Record {
   public:
    // The descriptor, as long as the put goes on. It may have been released.
    [[nodiscard]] MemoryDescriptor& descriptor() const noexcept {
      return *descriptor_.load(std::memory_order_relaxed);
    }
    // Returns nullptr if the descriptor was released.
    [[nodiscard]] MemoryDescriptor* resolve() const noexcept {
      return DescriptorReference{&descriptor(), generation_}.resolve();
    }
    [[nodiscard]] uint64_t length() const noexcept { return length_and_request_ >> 2; }
    [[nodiscard]] ptl_ack_req_t requested() const noexcept {
      return static_cast<ptl_ack_req_t>(length_and_request_ & 3);
    }
    // Defined if the descriptor has an event queue.
    [[nodiscard]] void* user_ptr() const noexcept { return user_ptr_; }
    [[nodiscard]] uint64_t remote_offset() const noexcept { return remote_offset_; }

   private:
    friend AwaitedPuts;
    std::atomic<MemoryDescriptor*> descriptor_{nullptr};  // nullptr: free
    uint32_t generation_ = 0;                             // generation of the descriptor
    uint32_t length_and_request_ = 0;
    void* user_ptr_ = nullptr;
    uint64_t remote_offset_ = 0;
  };
  static_assert(sizeof(Record) == 32);
  struct Ring {
    Record records[capacity];
    std::atomic<uint32_t> next_free{0};
  };

  // Rings come from `rings` at the first put and stay with the peer. `first`: the number of that
  // put. Set-up path.
  void open(Arena<Ring>& rings, uint32_t first = 0) noexcept {
    rings_ = &rings;
    next_ = first;
  }

  // False: no record is free.
  [[nodiscard]] bool add(const Put& put, uint32_t& cookie) noexcept {
    Ring* ring = ring_.load(std::memory_order_relaxed);
    if (ring == nullptr) [[unlikely]]
      ring = acquire_ring();
    if (ring == nullptr) [[unlikely]]
      return false;
    const uint32_t number = next_;
    Record& record = ring->records[number % capacity];
    if (record.descriptor_.load(std::memory_order_acquire) != nullptr || put.length > most_bytes)
        [[unlikely]]
      return false;
    record.generation_ = put.descriptor.generation;
    record.length_and_request_ = static_cast<uint32_t>(put.length) << 2 | put.requested;
    if (put.descriptor.descriptor->event_queue != nullptr) {
      record.user_ptr_ = put.user_ptr;
      record.remote_offset_ = put.remote_offset;
    }
    record.descriptor_.store(put.descriptor.descriptor, std::memory_order_release);
    next_ = number + 1;
    cookie = awaited_put_cookie | number;
    return true;
  }
  // The put that was added last was not sent. False: the peer has acknowledged it all the same.
  [[nodiscard]] bool take_back(uint32_t cookie) noexcept {
    LINTEL_ASSERT(((next_ - 1) | awaited_put_cookie) == cookie);
    --next_;
    return ring_.load(std::memory_order_relaxed)
               ->records[cookie % capacity]
               .descriptor_.exchange(nullptr, std::memory_order_relaxed) != nullptr;
  }

  // The put that `cookie` names; nullptr: there is none. The poller ends it.
  [[nodiscard]] Record* find(uint32_t cookie) const noexcept {
    Ring* const ring = ring_.load(std::memory_order_acquire);
    if (ring == nullptr) [[unlikely]]
      return nullptr;
    Record& record = ring->records[cookie % capacity];
    return record.descriptor_.load(std::memory_order_acquire) != nullptr ? &record : nullptr;
  }
  static void end(Record& record) noexcept {
    LINTEL_ASSERT(record.descriptor_.load(std::memory_order_relaxed) != nullptr);
    record.descriptor_.store(nullptr, std::memory_order_release);
  }
  // Ends those, in no order, for which report(const Record&) is true.
  template <typename Report>
  void end_if(const Report& report) noexcept {
    Ring* const ring = ring_.load(std::memory_order_acquire);
    if (ring == nullptr) return;
    for (Record& record : ring->records) {
      if (record.descriptor_.load(std::memory_order_acquire) != nullptr && report(record))
        record.descriptor_.store(nullptr, std::memory_order_release);
    }
  }
  // The descriptors of puts for which belongs(const Record&) is true go away. Their records name
  // `instead`, which no put has, until the acknowledgement: it is not taken for that of a later
  // put.
  template <typename Belongs>
  void disown_if(const Belongs& belongs, MemoryDescriptor& instead) noexcept {
    const uint32_t released = instead.handle.generation() + 1;
    end_if([&](Record& record) {
      if (belongs(record)) {
        record.generation_ = released;
        record.descriptor_.store(&instead, std::memory_order_relaxed);
      }
      return false;
    });
  }

 private:
  // Returns nullptr if there is none.
  [[nodiscard, gnu::noinline, gnu::cold]] Ring* acquire_ring() noexcept {
    const uint32_t index = rings_ == nullptr ? Arena<Ring>::no_index : rings_->allocate();
    if (index == Arena<Ring>::no_index) return nullptr;
    ring_.store(&rings_->at(index), std::memory_order_release);
    return &rings_->at(index);
  }

  Arena<Ring>* rings_ = nullptr;
  std::atomic<Ring*> ring_{nullptr};
  uint32_t next_ = 0;
};

}  // namespace lintel
