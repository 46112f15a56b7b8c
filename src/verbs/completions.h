// Takes completions from the completion queue, and passes them to the classes concerned. The
// poller.
#pragma once

#include <cstdint>
#include <vector>

#include "util/counter.h"
#include "verbs/channels.h"
#include "verbs/exposures.h"
#include "verbs/message_sender.h"
#include "verbs/receive_buffers.h"
#include "verbs/remote_accesses.h"

namespace lintel {

// What peers tell over queue pairs by further ports, see memory_notice.h.
class NoticeSink {
 public:
  virtual void on_notice(VerbsLink& link, const std::byte* data, uint32_t bytes) noexcept = 0;

 protected:
  ~NoticeSink() = default;
};

// Messages that arrive over queue pairs. Those of one peer are delivered together; those that
// overtake the last datagram of their sender are kept until it has come. Message path, the poller.
class Arrivals {
 public:
  // Bit that marks the wr_id of receives.
  static constexpr uint64_t tag = uint64_t{1} << 63;

  // `notices`: nullptr for queue pairs over which there are none.
  Arrivals(ReceiveBuffers& receives, Channels& channels, Exposures& exposures, uint32_t eager_bytes,
           NoticeSink* notices = nullptr) noexcept
      : receives_(receives),
        channels_(channels),
        exposures_(exposures),
        eager_bytes_(eager_bytes),
        notices_(notices) {}
  // Set-up path, once the receive buffers are open.
  void open() { kept_.resize(receives_.count()); }

  // Takes the completion of a receive. Its message is delivered by deliver() at the latest.
  void take(const ibv_wc& completion, MessageSink& sink) noexcept LINTEL_REQUIRES(polling);
  void deliver(MessageSink& sink) noexcept LINTEL_REQUIRES(polling);
  // The last datagram of the peer has come.
  void hand_up_kept(VerbsLink& link, MessageSink& sink) noexcept LINTEL_REQUIRES(polling);
  // The peer has failed before its last datagram came.
  void discard_kept(Channel& channel) noexcept;

  [[nodiscard]] uint64_t received() const noexcept { return received_.get(); }
  [[nodiscard]] uint64_t refused() const noexcept { return refused_.get(); }

 private:
  static constexpr unsigned most_together = CompletionQueue::burst;
  struct KeptMessage {
    ibv_wc completion;
    uint32_t next;
  };

  Channels::Place* sender_of(const ibv_wc& completion) noexcept;
  void take_message(VerbsLink& link, const ibv_wc& completion, MessageSink& sink) noexcept
      LINTEL_REQUIRES(polling);
  void keep(Channel& channel, const ibv_wc& completion) noexcept;
  void refuse(uint32_t buffer) noexcept;
  [[nodiscard]] bool is_plausible(const MessageHeader& header, uint32_t payload_bytes,
                                  bool invalidates) const noexcept;

  ReceiveBuffers& receives_;
  Channels& channels_;
  Exposures& exposures_;
  const uint32_t eager_bytes_;
  NoticeSink* const notices_;
  std::vector<KeptMessage> kept_;  // indexed by receive buffer
  VerbsLink* link_ = nullptr;      // sender of the messages that are delivered together
  unsigned count_ = 0;
  InboundMessage messages_[most_together];
  uint32_t buffers_[most_together];
  Counter received_;
  SharedCounter refused_;
};

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
