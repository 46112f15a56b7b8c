// The arguments of a data movement call (spec 3.15), written once: PtlPut and the others fill them
// in, a triggered operation and an operation in flight keep them, and their header is sent. Message
// path.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "portals4.h"
#include "transport/message.h"

namespace lintel {

struct MemoryDescriptor;

// Names a memory descriptor that may be released meanwhile.
struct DescriptorReference {
  MemoryDescriptor* descriptor;
  uint32_t generation;

  // Returns nullptr if the descriptor was released. Defined in memory_descriptor.h.
  [[nodiscard]] MemoryDescriptor* resolve() const noexcept;
};

inline constexpr size_t largest_operand_bytes = 32;  // long double complex

struct Request {
  // Complete but for the cookie and the flags that say how the payload travels.
  MessageHeader header;
  DescriptorReference put;  // source of the data; null for a get
  DescriptorReference get;  // destination of received data; null for put and atomic
  uint64_t put_offset;      // bytes
  uint64_t get_offset;      // bytes
  void* user_ptr;
  ptl_process_t target;
  uint32_t operand_bytes;  // size of the operand of a swap; 0 if there is none
  std::byte operand[largest_operand_bytes];

  Request() noexcept {}  // the caller fills in every field but the operand
  Request(const Request& other) noexcept { *this = other; }
  Request& operator=(const Request& other) noexcept {
    std::memcpy(static_cast<void*>(this), &other, offsetof(Request, operand));
    if (operand_bytes != 0) [[unlikely]]
      std::memcpy(operand, other.operand, sizeof operand);
    return *this;
  }

  [[nodiscard]] bool has_answer() const noexcept {
    return get.descriptor != nullptr || header.asks_for_ack();
  }
  // Bytes that the message itself sends, apart from an operand.
  [[nodiscard]] uint64_t sent_bytes() const noexcept {
    return put.descriptor != nullptr ? header.length() : 0;
  }
};

}  // namespace lintel
