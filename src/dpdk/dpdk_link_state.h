// Whether another process is at the other end of a port, and when the port may be used. Connection
// path, the poller: reached every so many receptions.
#pragma once

#include <atomic>
#include <cstdint>

#include "dpdk/discovery.h"
#include "dpdk/dpdk_sender.h"
#include "dpdk/interrupt_gate.h"

namespace lintel {

class DpdkLinkState {
 public:
  // `gate`: nullptr if the driver needs none.
  DpdkLinkState(Port& port, InterruptGate* gate, DpdkSender& sender, Discovery& discovery) noexcept;

  // Message path. False: the port may not be used now.
  [[nodiscard]] bool may_receive() noexcept {
    if (!is_up() || receptions_ >= receptions_between_looks) [[unlikely]]
      look();
    return is_up();
  }
  // A reception without frames counts more, as the next one may be late.
  void note_reception(unsigned frames) noexcept { receptions_ += frames == 0 ? 16 : 1; }
  void look() noexcept;
  // Any thread.
  [[nodiscard]] bool reaches_network() const noexcept {
    return reaches_network_.load(std::memory_order_relaxed);
  }

 private:
  static constexpr unsigned receptions_between_looks = 1024;

  [[nodiscard]] bool is_up() const noexcept { return sender_.state() == DpdkSender::State::up; }
  void bring_up(uint64_t now) noexcept;
  void start_again(uint64_t now) noexcept;
  void set_state(DpdkSender::State state) noexcept;

  Port& port_;
  InterruptGate* const gate_;
  DpdkSender& sender_;
  Discovery& discovery_;
  unsigned receptions_ = 0;  // since the last look
  bool gate_closed_ = false;
  uint64_t next_rest_ns_ = 0;
  uint64_t next_start_ns_;
  std::atomic<bool> reaches_network_{false};
};

}  // namespace lintel
