// Messages whose data is copied at the call, which complete then. Message path.
#pragma once

#include <portals4.h>

#include "base/limits.h"
#include "base/provider.h"
#include "endpoint/report.h"
#include "wire/message_header.h"

namespace lintel::ofi {

// Where a message goes, and what it carries beside its data.
struct Envelope {
  Envelope(const Endpoint& endpoint, fi_addr_t target, uint64_t tag, uint64_t header,
           bool is_message) noexcept
      : peer(endpoint.addresses().resolve(target)),
        portal(peer.channel(is_message)),
        bits(is_message ? endpoint.index() : tag & ~long_bit),
        header(header | MessageHeader::with_index(endpoint.index())) {}

  Peer peer;
  ptl_pt_index_t portal;
  ptl_match_bits_t bits;
  uint64_t header;
};

// The error number for a PtlPut that did nothing.
[[nodiscard, gnu::cold]] inline ssize_t error_of_put(int code) {
  // The receiver has no room, and many messages for it wait here already.
  return code == PTL_NO_SPACE ? -FI_EAGAIN : failed(FI_LOG_EP_DATA, "PtlPut", code);
}

[[gnu::always_inline]] inline ssize_t put_copy(Endpoint& endpoint, const void* buffer,
                                               size_t length, const Envelope& envelope) {
  const int code = PtlPut(endpoint.domain().network().quiet(), reinterpret_cast<ptl_size_t>(buffer),
                          length, PTL_NO_ACK_REQ, envelope.peer.process, envelope.portal,
                          envelope.bits, envelope.peer.recipient(), nullptr, envelope.header);
  if (code == PTL_OK) [[likely]]
    return 0;
  return error_of_put(code);
}

struct ShortMessage {
  const void* buffer;
  size_t length;  // at most inject_bytes
  fi_addr_t target;
  uint64_t tag;
  uint64_t header;
  bool is_message;
};

// `reports`: there is an entry of the completion queue. Without the lock of the domain.
[[gnu::always_inline]] inline ssize_t send_short(Endpoint& endpoint, const ShortMessage& message,
                                                 bool reports, void* context) {
  const Guard guard(endpoint.domain().lock());
  const Envelope envelope(endpoint, message.target, message.tag, message.header,
                          message.is_message);
  const ssize_t code = put_copy(endpoint, message.buffer, message.length, envelope);
  if (code == 0) [[likely]]
    report_sent(endpoint, reports, context, FI_SEND | (message.is_message ? FI_MSG : FI_TAGGED));
  endpoint.progress_while_sending();
  return code;
}

// fi_inject and fi_tinject: no completion.
[[gnu::always_inline]] inline ssize_t inject(Endpoint& endpoint, const ShortMessage& message) {
  if (message.length > inject_bytes) [[unlikely]]
    return -FI_EMSGSIZE;
  return send_short(endpoint, message, false, nullptr);
}

}  // namespace lintel::ofi
