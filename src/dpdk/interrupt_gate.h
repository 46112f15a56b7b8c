// Keeps DPDK's interrupt thread out while a port is in use. Path into and out of a rest of the
// port.
//
// The memif driver takes its shared memory away, from the interrupt thread, as soon as the other
// side closes, also under the feet of a thread that is receiving or sending there at that moment.
// So while the port is used, the interrupt thread is held in a callback of ours; every now and then
// the port rests and the thread may go round once.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

struct rte_intr_handle;

namespace lintel {

class InterruptGate {
 public:
  // Returns the gate of this process; nullptr, with a reason, if it cannot be made. Set-up path.
  [[nodiscard]] static InterruptGate* get(std::string& reason);

  // Requests that the interrupt thread stops here. holds(): it has.
  void close() noexcept;
  [[nodiscard]] bool holds() const noexcept {
    return held_at_.load(std::memory_order_acquire) == releases_.load(std::memory_order_acquire);
  }
  void close_and_wait() noexcept;
  // Lets it go. With let_round() it comes back when it has looked after everything that is due.
  void open() noexcept;
  void let_round() noexcept;

 private:
  InterruptGate() = default;
  static void entry(void* self) noexcept;
  void stay() noexcept;
  void summon() noexcept;
  void release() noexcept;

  rte_intr_handle* handle_ = nullptr;  // lives as long as the process
  int event_ = -1;
  std::atomic<bool> closed_{false};
  std::atomic<uint32_t> releases_{0};
  // The number of releases at which the thread came to stay: it stays until there is another.
  std::atomic<uint32_t> held_at_{UINT32_MAX};
};

}  // namespace lintel
