// The functions of fi_ops_tagged. Message path.
#include <rdma/fi_tagged.h>

#include "base/unsupported.h"
#include "endpoint/endpoint.h"
#include "transfer/deferred.h"
#include "transfer/peek.h"
#include "transfer/receive.h"
#include "transfer/send.h"
#include "transfer/short_send.h"
#include "transfer/tables.h"
#include "wire/message_header.h"

namespace lintel::ofi {
namespace {

ssize_t receive_pieces(fid_ep* endpoint, const iovec* pieces, void**, size_t count,
                       fi_addr_t source, uint64_t tag, uint64_t ignore, void* context) {
  Endpoint& own = Endpoint::of(endpoint);
  return post_receive(own, {pieces, count, source, tag, ignore, context,
                            own.receive().op_flags & ~FI_MULTI_RECV, false});
}

ssize_t receive(fid_ep* endpoint, void* buffer, size_t length, void*, fi_addr_t source,
                uint64_t tag, uint64_t ignore, void* context) {
  Endpoint& own = Endpoint::of(endpoint);
  if (own.common().posts && context != nullptr &&
      (source == FI_ADDR_UNSPEC || (own.caps() & FI_DIRECTED_RECV) == 0)) [[likely]]
    return post_plain_receive(own, buffer, length, tag, ignore, context);
  const iovec piece = {buffer, length};
  return receive_pieces(endpoint, &piece, nullptr, 1, source, tag, ignore, context);
}

ssize_t receive_message(fid_ep* endpoint, const fi_msg_tagged* message, uint64_t flags) {
  Endpoint& own = Endpoint::of(endpoint);
  const ReceiveRequest request = request_to_receive(*message, flags);
  if ((flags & FI_PEEK) != 0) return peek(own, request);
  if ((flags & FI_CLAIM) != 0) return receive_claimed(own, request);
  if ((flags & (FI_MULTI_RECV | FI_DISCARD)) != 0) return -FI_EBADFLAGS;
  return perform(own, request, post_receive);
}

ssize_t send_pieces(fid_ep* endpoint, const iovec* pieces, void**, size_t count, fi_addr_t target,
                    uint64_t tag, void* context) {
  Endpoint& own = Endpoint::of(endpoint);
  return send(own, {pieces, count, target, tag, 0, context, own.transmit().op_flags, false});
}

ssize_t send_one(fid_ep* endpoint, const void* buffer, size_t length, void*, fi_addr_t target,
                 uint64_t tag, void* context) {
  Endpoint& own = Endpoint::of(endpoint);
  if (own.common().sends && length <= inject_bytes) [[likely]]
    return send_short(own, {buffer, length, target, tag, 0, false}, true, context);
  const iovec piece = {const_cast<void*>(buffer), length};
  return send_pieces(endpoint, &piece, nullptr, 1, target, tag, context);
}

ssize_t send_message(fid_ep* endpoint, const fi_msg_tagged* message, uint64_t flags) {
  return perform(Endpoint::of(endpoint), request_to_send(*message, flags), send);
}

ssize_t inject_one(fid_ep* endpoint, const void* buffer, size_t length, fi_addr_t target,
                   uint64_t tag) {
  return inject(Endpoint::of(endpoint), {buffer, length, target, tag, 0, false});
}

ssize_t send_data(fid_ep* endpoint, const void* buffer, size_t length, void*, uint64_t data,
                  fi_addr_t target, uint64_t tag, void* context) {
  Endpoint& own = Endpoint::of(endpoint);
  if (own.common().sends && length <= inject_bytes) [[likely]]
    return send_short(own, {buffer, length, target, tag, MessageHeader::with_data(data), false},
                      true, context);
  const iovec piece = {const_cast<void*>(buffer), length};
  return send(own, {&piece, 1, target, tag, MessageHeader::with_data(data), context,
                    own.transmit().op_flags, false});
}

ssize_t inject_data(fid_ep* endpoint, const void* buffer, size_t length, uint64_t data,
                    fi_addr_t target, uint64_t tag) {
  return inject(Endpoint::of(endpoint),
                {buffer, length, target, tag, MessageHeader::with_data(data), false});
}

constexpr fi_ops_tagged all_calls = {.size = sizeof(fi_ops_tagged),
                                     .recv = receive,
                                     .recvv = receive_pieces,
                                     .recvmsg = receive_message,
                                     .send = send_one,
                                     .sendv = send_pieces,
                                     .sendmsg = send_message,
                                     .inject = inject_one,
                                     .senddata = send_data,
                                     .injectdata = inject_data};

}  // namespace

fi_ops_tagged tagged_ops = all_calls;
fi_ops_tagged tagged_send_ops = without_receives(all_calls);
fi_ops_tagged tagged_receive_ops = without_sends(all_calls);

}  // namespace lintel::ofi
