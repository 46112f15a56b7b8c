// Reliable, ordered messages over any PacketLink (transport/packet_link.h). docs/architecture.md
// describes its parts, frame.h the frames.
//
// Receiving, timers and everything that fails a connection belong to the poller (the holder of the
// core's poll token). send() runs in any thread that holds the core's send lock of the peer. Both
// take the lock of the connection. The sink is never called while that lock or the table's is held.
#pragma once

#include <memory>
#include <string>

#include "reliable/faulty_link.h"
#include "reliable/peer_watch.h"
#include "reliable/quiet_link.h"
#include "reliable/sender.h"

namespace lintel {

class ReliableTransport final : public Transport {
 public:
  // Messages longer than this travel as data that the target requests.
  static constexpr uint32_t max_eager_bytes = longest_eager_bytes;

  // Set-up path. nullptr with `reason`: no memory, or the job key cannot be used.
  [[nodiscard]] static std::unique_ptr<ReliableTransport> open(std::unique_ptr<PacketLink> link,
                                                               const ReliableSettings& settings,
                                                               std::string& reason);
  ~ReliableTransport() override;

  [[nodiscard]] ReliableCounters counters() const noexcept { return counters_; }
  [[nodiscard]] uint64_t frame_memory_used() const noexcept {
    return sent_.used_bytes() + received_.used_bytes() + reassembly_.used_bytes();
  }
  [[nodiscard]] size_t connections() const { return table_.size(); }

  [[nodiscard]] const Capabilities& capabilities() const noexcept override { return capabilities_; }
  [[nodiscard]] Link* connect(ProcessId peer, std::string* reason) override;
  [[nodiscard]] uint64_t incarnation(Link& link) const noexcept override;
  [[nodiscard]] uint32_t payload_mark(Link& link) noexcept override;
  [[nodiscard]] bool payloads_released(Link& link, uint32_t mark) noexcept override;
  [[nodiscard]] SendStatus send(Link& link, const MessageHeader& header, const Piece* pieces,
                                unsigned count) noexcept override;
  unsigned poll(MessageSink& sink, unsigned budget) noexcept override LINTEL_REQUIRES(polling);
  void set_doorbell(Doorbell& doorbell) noexcept override { quiet_.watch(doorbell); }
  [[nodiscard]] bool arm(bool blocked_senders) noexcept override;
  void disarm() noexcept override { quiet_.disarm(); }
  [[nodiscard]] int64_t sleep_limit_ns() noexcept override { return quiet_.sleep_limit_ns(); }
  [[nodiscard]] bool all_delivered() noexcept override;
  void check_peers(MessageSink& sink, Link* const* watch, unsigned count) noexcept override
      LINTEL_REQUIRES(polling);
  [[nodiscard]] NetworkCounters network_counters() const noexcept override;
  void write_state(StateWriter& out) const noexcept override;
  [[nodiscard]] std::vector<Statistic> statistics() const override;
  // Name of the device, and the protection of frames.
  [[nodiscard]] std::string device() const override {
    static constexpr const char* protection[] = {"", ", frames authenticated",
                                                 ", frames encrypted"};
    return link_->properties().device + protection[static_cast<size_t>(settings_.security)];
  }
  [[nodiscard]] std::string describe() const override;

 private:
  ReliableTransport(std::unique_ptr<PacketLink> link, const ReliableSettings& settings);
  ReliableContext context() noexcept {
    return {*link_, settings_, counters_, sent_, received_, reassembly_, timers_, table_};
  }
  bool open_pools();
  bool acknowledge_everything() noexcept;
  void take(InboundFrame& frame, uint64_t now_ns) noexcept LINTEL_REQUIRES(polling);
  Connection* connection_of(InboundFrame& frame, const FrameHeader& header,
                            uint64_t now_ns) noexcept;
  [[gnu::noinline]] Connection* connection_by_other_path(Connection& connection,
                                                         InboundFrame& frame,
                                                         const FrameHeader& header) noexcept;
  Connection* open_frame(Connection& connection, InboundFrame& frame,
                         const FrameHeader& header) noexcept;
  [[gnu::noinline]] void count_refused(FrameProtection::Opened opened) noexcept;
  void take_unnumbered(Connection& connection, const InboundFrame& frame, const FrameHeader& header,
                       uint64_t now_ns) noexcept LINTEL_REQUIRES(polling);

  std::unique_ptr<PacketLink> link_;
  const ReliableSettings settings_;
  const Capabilities capabilities_;
  ReliableCounters counters_;
  FramePool sent_;      // and not acknowledged
  FramePool received_;  // that came before others sent earlier
  Reassembly reassembly_;
  ConnectionTable table_;
  PollerWakeup wakeup_;
  ConnectionTimers timers_;
  QuietLink quiet_;
  Transmitter transmitter_;
  Acknowledger acknowledger_;
  Sender sender_;
  MessageBatch batch_;
  ConnectionCloser closer_;
  MessageAssembler assembler_;
  DataReceiver data_;
  Handshake handshake_;
  PeerWatch watch_;
};

// Returns the same with `faults` around the link. nullptr: `reason` says why not.
[[nodiscard, gnu::visibility("default")]] std::unique_ptr<Transport> reliable_over_link(
    std::unique_ptr<PacketLink> link, const ReliableSettings& settings, const Faults& faults,
    std::string& reason);

}  // namespace lintel
