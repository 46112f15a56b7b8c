// The changes between datagrams and a queue pair, see channel.h: offers, and the return to
// datagrams when a queue pair has stopped. Then each end takes everything that has arrived, and
// tells the other how many messages that were (resume); either repeats those that the other does
// not have, and goes on with datagrams. Remote accesses under way end as unsupported, and their
// data travel in messages. Connection path, the poller.
#pragma once

#include <cstdint>

#include "util/counter.h"
#include "verbs/agreement.h"
#include "verbs/channels.h"
#include "verbs/completions.h"

namespace lintel {

// The queue pairs by further ports to the peer of a link.
class RailsOfPeers {
 public:
  // The peer is gone: ends them, and all accesses to its memory by them.
  virtual void fail(VerbsLink& link) noexcept LINTEL_REQUIRES(polling) = 0;

 protected:
  ~RailsOfPeers() = default;
};

class ChannelChange {
 public:
  struct Parts {
    Transport& datagrams;
    Channels& channels;
    UnfinishedLinks& unfinished;
    Completions& completions;
    Arrivals& arrivals;
    MessageSender& sender;
  };
  // `idle_ns`: a queue pair without use is given up after this time; 0: never.
  ChannelChange(const Parts& parts, const QueuePairSizes& sizes, uint32_t eager_bytes, bool allowed,
                uint64_t idle_ns) noexcept
      : parts_(parts),
        sizes_(sizes),
        eager_bytes_(eager_bytes),
        allowed_(allowed),
        idle_(parts.channels, idle_ns),
        agreements_(parts.datagrams, parts.unfinished, eager_bytes) {}

  // Set-up path. Of the port of messages, if there are others.
  void set_rails(RailsOfPeers& rails) noexcept { rails_ = &rails; }

  // Execute requests of other threads: to stop broken queue pairs, and those of one link.
  void stop_broken(const ChannelRequests::Broken& broken) noexcept;
  void grant(VerbsLink& link) noexcept;
  // Makes a queue pair and offers it to the peer. False: there is no room.
  bool offer(VerbsLink& link) noexcept;
  // See AgreementSender.
  void decline(VerbsLink& link, uint32_t offered_number) noexcept {
    agreements_.decline(link, offered_number);
  }
  void tell_of_rails(VerbsLink& link, uint8_t ports) noexcept {
    agreements_.tell_of_rails(link, ports);
  }
  // Handles a message of kind connection.
  void handle(VerbsLink& link, const InboundMessage& message, MessageSink& sink) noexcept
      LINTEL_REQUIRES(polling);
  // Continues with an unfinished link. True: nothing is left to do.
  [[nodiscard]] bool serve(VerbsLink& link, MessageSink& sink) noexcept LINTEL_REQUIRES(polling);
  // Called regularly, also without messages.
  void stop_idle() noexcept { idle_.look(); }
  // The peer is gone.
  void fail(VerbsLink& link, MessageSink& sink) noexcept LINTEL_REQUIRES(polling);

  [[nodiscard]] uint64_t connected() const noexcept { return connected_.get(); }
  [[nodiscard]] uint64_t declined() const noexcept { return declined_.get(); }
  [[nodiscard]] uint64_t refused() const noexcept { return refused_.get(); }

 private:
  void handle_offer(VerbsLink& link, const AgreementBody& body, MessageSink& sink) noexcept
      LINTEL_REQUIRES(polling);
  void handle_resume(VerbsLink& link, const AgreementBody& body, MessageSink& sink) noexcept
      LINTEL_REQUIRES(polling);
  bool continue_stopping(VerbsLink& link, MessageSink& sink) noexcept LINTEL_REQUIRES(polling);
  void release(VerbsLink& link, RemoteStatus status, MessageSink& sink) noexcept
      LINTEL_REQUIRES(polling);
  void forget(VerbsLink& link) noexcept;

  const Parts parts_;
  const QueuePairSizes sizes_;
  const uint32_t eager_bytes_;
  const bool allowed_;
  RailsOfPeers* rails_ = nullptr;
  IdleChannels idle_;
  AgreementSender agreements_;
  SharedCounter connected_;
  SharedCounter declined_;
  SharedCounter refused_;
};

}  // namespace lintel
