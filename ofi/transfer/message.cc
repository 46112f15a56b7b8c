// The functions of fi_ops_msg. Message path.
#include "base/unsupported.h"
#include "endpoint/endpoint.h"
#include "transfer/deferred.h"
#include "transfer/receive.h"
#include "transfer/send.h"
#include "transfer/short_send.h"
#include "transfer/tables.h"
#include "wire/message_header.h"

namespace lintel::ofi {
namespace {

ssize_t receive_pieces(fid_ep* endpoint, const iovec* pieces, void**, size_t count,
                       fi_addr_t source, void* context) {
  Endpoint& own = Endpoint::of(endpoint);
  return post_receive(
      own, {pieces, count, source, 0, any_sender, context, own.receive().op_flags, true});
}

ssize_t receive(fid_ep* endpoint, void* buffer, size_t length, void*, fi_addr_t source,
                void* context) {
  const iovec piece = {buffer, length};
  return receive_pieces(endpoint, &piece, nullptr, 1, source, context);
}

ssize_t receive_message(fid_ep* endpoint, const fi_msg* message, uint64_t flags) {
  if ((flags & (FI_PEEK | FI_CLAIM | FI_DISCARD)) != 0) return -FI_EBADFLAGS;
  return perform(Endpoint::of(endpoint), request_to_receive(*message, flags), post_receive);
}

ssize_t send_pieces(fid_ep* endpoint, const iovec* pieces, void**, size_t count, fi_addr_t target,
                    void* context) {
  Endpoint& own = Endpoint::of(endpoint);
  return send(own, {pieces, count, target, 0, 0, context, own.transmit().op_flags, true});
}

ssize_t send_one(fid_ep* endpoint, const void* buffer, size_t length, void*, fi_addr_t target,
                 void* context) {
  Endpoint& own = Endpoint::of(endpoint);
  if (own.common().sends && length <= inject_bytes) [[likely]]
    return send_short(own, {buffer, length, target, 0, 0, true}, true, context);
  const iovec piece = {const_cast<void*>(buffer), length};
  return send_pieces(endpoint, &piece, nullptr, 1, target, context);
}

ssize_t send_message(fid_ep* endpoint, const fi_msg* message, uint64_t flags) {
  return perform(Endpoint::of(endpoint), request_to_send(*message, flags), send);
}

ssize_t inject_one(fid_ep* endpoint, const void* buffer, size_t length, fi_addr_t target) {
  return inject(Endpoint::of(endpoint), {buffer, length, target, 0, 0, true});
}

ssize_t send_data(fid_ep* endpoint, const void* buffer, size_t length, void*, uint64_t data,
                  fi_addr_t target, void* context) {
  Endpoint& own = Endpoint::of(endpoint);
  const iovec piece = {const_cast<void*>(buffer), length};
  return send(own, {&piece, 1, target, 0, MessageHeader::with_data(data), context,
                    own.transmit().op_flags, true});
}

ssize_t inject_data(fid_ep* endpoint, const void* buffer, size_t length, uint64_t data,
                    fi_addr_t target) {
  return inject(Endpoint::of(endpoint),
                {buffer, length, target, 0, MessageHeader::with_data(data), true});
}

constexpr fi_ops_msg all_calls = {.size = sizeof(fi_ops_msg),
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

fi_ops_msg message_ops = all_calls;
fi_ops_msg message_send_ops = without_receives(all_calls);
fi_ops_msg message_receive_ops = without_sends(all_calls);

}  // namespace lintel::ofi
