// Operations in progress: what the provider must know of one until its last event. It lies in the
// fi_context2 of the program if there is one, otherwise in memory of the provider. Message path.
#pragma once

#include <portals4.h>

#include <cstddef>
#include <cstdint>

#include <rdma/fabric.h>

#include "domain/event_owner.h"

namespace lintel::ofi {

class Endpoint;
struct Segments;

// Bits of Operation::state. Some have a meaning for each kind.
inline constexpr uint8_t reports_completion = 1;  // an entry of the completion queue is wanted
inline constexpr uint8_t is_pooled = 2;           // memory of the provider
inline constexpr uint8_t is_message = 4;          // FI_MSG, not FI_TAGGED
inline constexpr uint8_t is_acknowledged = 8;     // long_send: the header has arrived
inline constexpr uint8_t is_delivered = 16;       // long_send: the data is not needed any more
inline constexpr uint8_t has_segments = 32;       // `buffer` is a Segments
inline constexpr uint8_t has_failed = 8;          // memory
inline constexpr uint8_t is_unlinked = 16;        // multi_receive: the buffer is used up
inline constexpr uint8_t is_deferred = 64;        // `context` is a Deferral

struct Operation : EventOwner {
  static constexpr uint32_t not_posted = UINT32_MAX;

  uint8_t state;
  uint16_t small;   // peek: what to do with the message; fetch: pid of the sender
  uint32_t posted;  // position in the table of posted entries, or not_posted; fetch: nid
  Endpoint* endpoint;
  void* context;  // of the program; see context_of()
  void* buffer;
  size_t length;  // bytes, of the buffer or of what is sent
  // Receives: match bits of the message; memory: flags of the completion; long_send: name of the
  // receiver in 64 bits.
  uint64_t tag;
  // Receives: header data of the message; before it arrives, name of the only sender, or
  // FI_ADDR_NOTAVAIL.
  uint64_t header;
  // fetch: bytes of the message; memory: parts that are pending; multi_receive: parts that are
  // fetched.
  uint64_t extra;

  // Sets the process that a fetch gets its data from.
  void set_sender(ptl_process_t process) noexcept {
    small = static_cast<uint16_t>(process.phys.pid);
    posted = process.phys.nid;
  }
  [[nodiscard]] ptl_process_t sender() const noexcept { return {.phys = {posted, small}}; }

  [[nodiscard]] bool has(uint8_t bits) const noexcept { return (state & bits) != 0; }
};
static_assert(sizeof(Operation) <= sizeof(fi_context2));

// Names an operation that may lie in memory of the program, which the program may have freed when
// it closes the endpoint. So what is needed then is here.
struct OperationReference {
  Operation* operation = nullptr;
  OwnerKind kind = OwnerKind::receive;
  bool in_pool = false;

  explicit OperationReference(Operation& named) noexcept
      : operation(&named), kind(named.kind), in_pool(named.has(is_pooled)) {}
  OperationReference() = default;

  // A receive with this context.
  [[nodiscard]] bool is_receive_of(const void* context) const noexcept;
};

}  // namespace lintel::ofi
