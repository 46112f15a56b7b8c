// A thread that waits for descriptors and rings the doorbell of the poller. The poller sleeps on a
// futex: processes of this node can ring it, the network cannot. So a poll makes no system call for
// a network without traffic.
// Set-up path for start() and stop(). enable(), disable() and detach() make one system call at most
// and belong to the path into sleep.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "util/descriptor.h"
#include "util/doorbell.h"
#include "util/service_thread.h"

namespace lintel {

class DescriptorWatch {
 public:
  DescriptorWatch() = default;
  DescriptorWatch(const DescriptorWatch&) = delete;
  DescriptorWatch& operator=(const DescriptorWatch&) = delete;
  ~DescriptorWatch() { stop(); }

  // Starts the thread. When `descriptor` becomes readable while the watch is enabled, the thread
  // sets `noticed` and rings `doorbell` if a thread sleeps there. False: `reason` says why not.
  [[nodiscard]] bool start(int descriptor, std::atomic<bool>& noticed, Doorbell& doorbell,
                           std::string& reason) noexcept;
  // Idempotent.
  void stop() noexcept;
  [[nodiscard]] bool running() const noexcept { return thread_.running(); }

  // The poller. Enabled, the watch notices once and is then disabled. A descriptor that is readable
  // already is noticed at once.
  void enable() noexcept;
  void disable() noexcept;
  // Whether the watch is attached, but not enabled: the kernel calls epoll for each arrival, in the
  // sender's context, without need.
  [[nodiscard]] bool is_idle() const noexcept {
    return attached_ && !enabled_.load(std::memory_order_relaxed);
  }
  // Detaches the watch from the descriptor. This saves the sender that cost; the next enable()
  // costs more. Requires is_idle().
  void detach() noexcept;

 private:
  void run() noexcept;
  bool control(int operation, uint32_t events) noexcept;

  int descriptor_ = -1;
  Descriptor epoll_;
  Descriptor stop_event_;
  std::atomic<bool>* noticed_ = nullptr;
  Doorbell* doorbell_ = nullptr;
  std::atomic<bool> enabled_{false};
  std::atomic<bool> stopping_{false};
  bool attached_ = false;  // the poller's
  ServiceThread thread_;
};

}  // namespace lintel
