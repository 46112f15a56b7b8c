// Sends. Short messages are copied at the call and are complete then; longer ones are complete when
// their memory is free. Long ones wait at their sender unless a receive is posted: they are sent
// whole, the receiver keeps only the header if it has no receive, and gets the data later. Message
// path.
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

struct SendRequest {
  const iovec* pieces;
  size_t count;
  fi_addr_t target;  // as the program gives it
  uint64_t tag;
  uint64_t header;  // MessageHeader::with_data(), or 0
  void* context;
  uint64_t flags;  // of the call, or those of the endpoint
  bool is_message;
  Deferral* deferral = nullptr;
};

// Arguments of fi_sendmsg and fi_tsendmsg.
[[nodiscard]] SendRequest request_to_send(const fi_msg& message, uint64_t flags) noexcept;
[[nodiscard]] SendRequest request_to_send(const fi_msg_tagged& message, uint64_t flags) noexcept;

// Without the lock of the domain.
ssize_t send(Endpoint& endpoint, const SendRequest& request);

// Events of a send: its memory is free, or the target has acknowledged it.
void send_ended(Operation& operation, const ptl_event_t& event);
// Events of a long message: an acknowledgment, or its data has been got.
void long_send_advanced(Operation& operation, const ptl_event_t& event);

// A long message whose receiver has died.
void fail_long_send(Operation& operation, ptl_ni_fail_t failure);

}  // namespace lintel::ofi
