// Events and counts at the initiator (spec 3.10.1, 3.13, 3.14). Message path.
#pragma once

#include <cstdint>

#include "core/objects/memory_descriptor.h"
#include "portals4.h"
#include "transport/message.h"

namespace lintel {

class NetworkInterface;

// What the initiator knows of its operation when it reports on it.
struct OperationView {
  const MessageHeader& header;  // of the request
  uint64_t offset;              // into the descriptor
  void* user_ptr;
};

void report_send(NetworkInterface& interface, MemoryDescriptor& descriptor,
                 const OperationView& view, ptl_ni_fail_t fail) noexcept;

struct AnswerResult {
  uint64_t mlength;        // bytes manipulated at the target
  uint64_t remote_offset;  // bytes, as used by the target
  ptl_list_t list;
  ptl_ni_fail_t fail;
};
void report_ack(NetworkInterface& interface, MemoryDescriptor& descriptor,
                const OperationView& view, const AnswerResult& result) noexcept;
void report_reply(NetworkInterface& interface, MemoryDescriptor& descriptor,
                  const OperationView& view, const AnswerResult& result) noexcept;

// Whether an acknowledgement would reach anybody (spec 3.15.2: it is only sent then).
[[nodiscard]] inline bool descriptor_listens(const MemoryDescriptor& descriptor) noexcept {
  return descriptor.event_queue != nullptr || descriptor.counter != nullptr;
}

}  // namespace lintel
