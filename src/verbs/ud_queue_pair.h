// The queue pair for datagrams and its completion queues. It can be started again after it has
// failed, with the same number and Q_Key. Set-up and connection path.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include <infiniband/verbs.h>

#include "verbs/device.h"

namespace lintel {

class UdQueuePair {
 public:
  static constexpr unsigned send_depth = 256;   // work requests that wait to be sent
  static constexpr unsigned most_elements = 2;  // scatter/gather elements of one

  explicit UdQueuePair(VerbsDevice& device) noexcept : device_(device) {}
  UdQueuePair(const UdQueuePair&) = delete;
  UdQueuePair& operator=(const UdQueuePair&) = delete;
  ~UdQueuePair() { close(); }

  // False: `reason` says why not.
  [[nodiscard]] bool open(uint32_t receive_depth, std::string& reason);
  // Before the buffers that its work requests refer to. Idempotent.
  void close() noexcept;
  // The device has no work request of it. False: `reason`.
  [[nodiscard]] bool start(std::string& reason) noexcept;
  // Every work request ends with an error.
  void stop() noexcept { static_cast<void>(move_to(IBV_QPS_ERR, 0)); }
  // False: the device refused. True: it has no work request any more.
  [[nodiscard]] bool reset() noexcept { return move_to(IBV_QPS_RESET, 0) == 0; }

  // Any thread: it does not work any more.
  void note_broken() noexcept { broken_.store(true, std::memory_order_relaxed); }
  void note_repaired() noexcept { broken_.store(false, std::memory_order_relaxed); }
  [[nodiscard]] bool is_broken() const noexcept { return broken_.load(std::memory_order_relaxed); }

  [[nodiscard]] VerbsDevice& device() const noexcept { return device_; }
  [[nodiscard]] ibv_qp* get() const noexcept { return pair_; }
  [[nodiscard]] ibv_cq* sends() const noexcept { return sends_; }
  [[nodiscard]] ibv_cq* receives() const noexcept { return receives_; }
  [[nodiscard]] uint32_t q_key() const noexcept { return q_key_; }
  [[nodiscard]] uint32_t inline_bytes() const noexcept { return inline_bytes_; }

 private:
  int move_to(ibv_qp_state state, int further_attributes) noexcept;

  VerbsDevice& device_;
  ibv_cq* sends_ = nullptr;
  ibv_cq* receives_ = nullptr;
  ibv_qp* pair_ = nullptr;
  uint32_t q_key_ = 0;
  uint32_t inline_bytes_ = 0;
  std::atomic<bool> broken_{false};
};

}  // namespace lintel
