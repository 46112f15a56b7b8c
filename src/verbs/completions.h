// Takes completions from the completion queue, and passes them to the classes concerned. The
// poller.
#pragma once

#include "verbs/arrivals.h"
#include "verbs/message_sender.h"
#include "verbs/remote_accesses.h"

namespace lintel {

class Completions {
 public:
  Completions(CompletionQueue& queue, Channels& channels, Arrivals& arrivals, MessageSender& sender,
              RemoteAccesses& accesses, Exposures& exposures) noexcept
      : queue_(queue),
        channels_(channels),
        arrivals_(arrivals),
        sender_(sender),
        accesses_(accesses),
        exposures_(exposures) {}

  // Message path. Returns how many were taken.
  unsigned poll(MessageSink& sink, unsigned budget) noexcept LINTEL_REQUIRES(polling);
  // Ends receiving. All messages that have come over the queue pair are delivered, now or after the
  // last datagram of the peer; later ones are dropped.
  void stop_receiving(Channel& channel, MessageSink& sink) noexcept LINTEL_REQUIRES(polling);
  // Destroys the queue pair. All its work requests end, remote accesses with this status.
  void release(VerbsLink& link, RemoteStatus status) noexcept;
  // Called without the lock of any link.
  void report_ended(MessageSink& sink) noexcept LINTEL_REQUIRES(polling);

 private:
  void take_send(const ibv_wc& completion) noexcept;
  void retire(VerbsLink& link, bool success) noexcept LINTEL_REQUIRES(link.lock);

  CompletionQueue& queue_;
  Channels& channels_;
  Arrivals& arrivals_;
  MessageSender& sender_;
  RemoteAccesses& accesses_;
  Exposures& exposures_;
};

}  // namespace lintel
