// Failing a link. Connection path.
#include "shm/link_failures.h"

#include "util/without_cancellation.h"

namespace lintel {

void LinkFailures::fail(MessageSink& sink, ShmLink& link, Cause cause) noexcept {
  if (link.failure_reported) return;
  const WithoutCancellation scope;
  link.failure_reported = true;
  const uint32_t number = link.receive_lane;
  // A malformed message among the last ones ends the draining, since the link has failed already.
  if (cause == Cause::gone && number != no_lane) lanes_.drain(sink, number);
  link.failure.reason = cause == Cause::gone ? "its process is gone or has closed its interface"
                                             : "it sent a malformed message";
  link.failed.store(true, std::memory_order_release);
  if (offers_.pending() == &link) offers_.give_up(sink);
  if (number != no_lane) {
    link.receive_lane = no_lane;
    if (cause == Cause::gone)
      lanes_.free(number);
    else
      lanes_.refuse(number);
  }
  ++count_;
  // The core takes the send lock of the peer there: afterwards no thread sends.
  sink.on_peer_failed(link);
  links_.release(link);
}

}  // namespace lintel
