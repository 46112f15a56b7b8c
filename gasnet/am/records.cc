/* records.cc: the list of free records. Message path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "am/records.h"

#include <new>

namespace lintel::gasnet {
namespace {

constexpr uint64_t kNumber = 0xFFFF'FFFF;
constexpr uint64_t kChange = uint64_t{1} << 32;

}  // namespace

RecordPool::RecordPool(PortalIndex index, uint32_t count)
    : index_(index),
      count_(count),
      records_(new std::byte[count * sizeof(SendRecord)]),
      buffers_(new char[size_t{count} * kSlotBytes + kAlignment]) {}

SendRecord* RecordPool::take() {
  for (;;) {
    uint64_t head = free_.load(std::memory_order_acquire);
    if ((head & kNumber) == 0) break;
    gasneti_assert((head & kNumber) <= made_.load(std::memory_order_relaxed));
    SendRecord& found = record((head & kNumber) - 1);
    const uint64_t next =
        ((head & ~kNumber) + kChange) | found.next_free.load(std::memory_order_relaxed);
    if (!free_.compare_exchange_weak(head, next, std::memory_order_relaxed)) continue;
    gasneti_assert(found.puts.load(std::memory_order_relaxed) == 0);
    return &found;
  }
  uint32_t number = made_.load(std::memory_order_relaxed);
  do {
    if (number == count_) return nullptr;
  } while (!made_.compare_exchange_weak(number, number + 1, std::memory_order_relaxed));
  auto* const made = new (&record(number)) SendRecord;
  const auto address = reinterpret_cast<uintptr_t>(buffers_.get());
  made->pool = this;
  made->buffer = buffers_.get() + (aligned(address) - address) + size_t{number} * kSlotBytes;
  return made;
}

bool RecordPool::are_all_free() const {
  uint32_t found = 0;
  uint64_t number = free_.load(std::memory_order_acquire) & kNumber;
  while (number != 0 && found < count_) {
    ++found;
    number = record(number - 1).next_free.load(std::memory_order_relaxed);
  }
  return found == made_.load(std::memory_order_relaxed);
}

void RecordPool::give_back(SendRecord* record) {
  gasneti_assert(record->pool == this);
  gasneti_assert(record->puts.load(std::memory_order_relaxed) == 0);
  const auto number = static_cast<uint64_t>(record - &this->record(0)) + 1;
  gasneti_assert(number <= made_.load(std::memory_order_relaxed));
  uint64_t head = free_.load(std::memory_order_relaxed);
  do {
    record->next_free.store(static_cast<uint32_t>(head & kNumber), std::memory_order_relaxed);
  } while (!free_.compare_exchange_weak(head, ((head & ~kNumber) + kChange) | number,
                                        std::memory_order_release, std::memory_order_relaxed));
}

}  // namespace lintel::gasnet
