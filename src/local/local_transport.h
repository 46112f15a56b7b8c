// Transport of a process to itself: one lane in private memory, and memcpy for remote access.
// Message path: send(), poll(), remote_access().
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "lane/lane_consumer.h"
#include "lane/lane_producer.h"
#include "transport/transport.h"

namespace lintel {

// "Remote" access to the memory of the own process: guarded copies between pieces on both sides.
// Copies from `remote` to `local` if `reading`, otherwise the other way, until one side ends or a
// byte is not there: the result says how many bytes were moved, and which side had the fault.
[[nodiscard]] RemoteResult copy_within_process(const Piece* local, unsigned local_count,
                                               const RemoteMemory* remote, unsigned remote_count,
                                               bool reading) noexcept;

class LocalTransport final : public Transport {
 public:
  // Set-up path. `self` is the only process that it reaches, `uid` that process' usage id. nullptr:
  // no memory.
  [[nodiscard]] static std::unique_ptr<LocalTransport> open(ProcessId self, uint32_t uid);
  ~LocalTransport() override;

  [[nodiscard]] const Capabilities& capabilities() const noexcept override { return capabilities_; }
  [[nodiscard]] Link* connect(ProcessId peer, std::string* reason) override;
  [[nodiscard]] uint64_t incarnation(Link&) const noexcept override { return 1; }  // the only one
  [[nodiscard]] uint32_t process_of(Link&) const noexcept override { return process_; }
  [[nodiscard]] SendStatus send(Link& link, const MessageHeader& header, const Piece* pieces,
                                unsigned count) noexcept override;
  [[nodiscard]] unsigned acknowledge(Link&, const uint32_t* cookies,
                                     unsigned count) noexcept override {
    return producer_.acks().push(cookies, count);
  }
  [[nodiscard]] RemoteResult remote_access(Link&, bool write, const Piece* local,
                                           unsigned local_count, const RemoteMemory* remote,
                                           unsigned remote_count, uint32_t) noexcept override {
    return copy_within_process(local, local_count, remote, remote_count, !write);
  }
  unsigned poll(MessageSink& sink, unsigned budget) noexcept override LINTEL_REQUIRES(polling);
  [[nodiscard]] bool arm(bool blocked_senders) noexcept override;
  [[nodiscard]] std::string describe() const override;

 private:
  static constexpr LaneGeometry geometry{254, 256 * 1024};
  static constexpr unsigned burst = 16;

  LocalTransport(ProcessId self, uint32_t uid, void* memory);
  void announce(MessageSink& sink) noexcept LINTEL_REQUIRES(polling);
  unsigned take_burst(MessageSink& sink, unsigned budget) noexcept LINTEL_REQUIRES(polling);

  Capabilities capabilities_;
  void* memory_;  // memory of the lane
  uint32_t process_;
  Link link_;
  bool announced_ = false;            // poll token
  std::atomic<bool> blocked_{false};  // the last send found the lane full
  LaneProducer producer_;             // under the core's send lock
  LaneConsumer consumer_;             // under the poll token
};

}  // namespace lintel
