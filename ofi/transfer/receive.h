// Receives: posting, the ways in which their data arrives, and cancelling. Message path.
#pragma once

#include <portals4.h>
#include <sys/uio.h>

#include <rdma/fabric.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_tagged.h>

#include "endpoint/operation.h"

namespace lintel::ofi {

class Deferral;
class Endpoint;
struct Arrival;

struct ReceiveRequest {
  const iovec* pieces;
  size_t count;
  fi_addr_t source;  // as the program gives it
  uint64_t tag;
  uint64_t ignore;
  void* context;
  uint64_t flags;  // of the call, or those of the endpoint
  bool is_message;
  Deferral* deferral = nullptr;
};
// In the place of `ignore` for messages without tags.
inline constexpr uint64_t any_sender = ~uint64_t{0};

// Arguments of fi_recvmsg and fi_trecvmsg.
[[nodiscard]] ReceiveRequest request_to_receive(const fi_msg& message, uint64_t flags) noexcept;
[[nodiscard]] ReceiveRequest request_to_receive(const fi_msg_tagged& message,
                                                uint64_t flags) noexcept;

// An entry that matches what a request asks for. Returns 0 or a negative error number.
[[nodiscard]] ssize_t make_criteria(const Endpoint& endpoint, const ReceiveRequest& request,
                                    ptl_me_t& entry) noexcept;

// The name of the only sender that an entry of make_criteria() matches, or FI_ADDR_NOTAVAIL.
[[nodiscard]] fi_addr_t only_sender(const Endpoint& endpoint, const ReceiveRequest& request,
                                    const ptl_me_t& entry) noexcept;
// A receive of a message that cannot come any more. With the lock.
void fail_directed_receive(Operation& operation, ptl_ni_fail_t failure);

// Without the lock of the domain.
ssize_t post_receive(Endpoint& endpoint, const ReceiveRequest& request);
// fi_trecv in the common case (CommonCases::posts), from anyone.
ssize_t post_plain_receive(Endpoint& endpoint, void* buffer, size_t length, uint64_t tag,
                           uint64_t ignore, void* context);
ssize_t cancel_receive(Endpoint& endpoint, void* context);

// Events of a receive: the data is in place; or a header was there already.
void receive_arrived(Operation& operation, const ptl_event_t& event);
void receive_found_header(Operation& operation, const ptl_event_t& event);

// Notes the memory of a request in its operation, until the operation ends.
void take_memory(Operation& operation, const ReceiveRequest& request);

// Gets the data of a long message that `arrival` describes into the buffer of the operation, which
// becomes a fetch or a multi_fetch.
void fetch(Operation& operation, const Arrival& arrival, OwnerKind kind = OwnerKind::fetch);
// The data of a fetch has arrived.
void fetch_ended(Operation& operation, const ptl_event_t& event);

[[nodiscard]] Arrival arrival_of(const ptl_event_t& event) noexcept;

}  // namespace lintel::ofi
