// A reliable connected queue pair: made, connected to the other end, given up.
// Connection path.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <infiniband/verbs.h>

#include "verbs/device.h"

namespace lintel {

// Address of a queue pair for the other end.
struct QueuePairAddress {
  ibv_gid gid{};
  uint32_t number = 0;        // QPN
  uint32_t first_packet = 0;  // PSN
  uint16_t lid = 0;
  uint8_t mtu = 0;    // enum ibv_mtu
  uint8_t reads = 0;  // RDMA reads of the other end that it serves at once
};

struct QueuePairSizes {
  uint32_t send_requests = 0;
  uint32_t inline_bytes = 0;
  uint32_t pieces = 0;  // scatter/gather elements of a work request
};

class QueuePair {
 public:
  // Makes a queue pair in state INIT. nullptr: `reason` says why not.
  [[nodiscard]] static std::unique_ptr<QueuePair> create(VerbsDevice& device, ibv_cq* completions,
                                                         ibv_srq* receives,
                                                         const QueuePairSizes& sizes,
                                                         std::string& reason);
  QueuePair(const QueuePair&) = delete;
  QueuePair& operator=(const QueuePair&) = delete;
  ~QueuePair();

  [[nodiscard]] ibv_qp* get() const noexcept { return pair_; }
  [[nodiscard]] uint32_t number() const noexcept { return pair_->qp_num; }
  [[nodiscard]] QueuePairAddress address() const noexcept;
  // Returns the sizes of the queues, at least those requested.
  [[nodiscard]] const QueuePairSizes& sizes() const noexcept { return sizes_; }

  // Changes the state to RTR and RTS. False: `reason` says why not.
  [[nodiscard]] bool connect(const QueuePairAddress& peer, std::string& reason);
  // Changes the state to ERR: work requests end with an error, nothing arrives any more.
  // Idempotent.
  void stop() noexcept;
  // Changes the state to RESET: work requests are gone, too. False: the device refused.
  [[nodiscard]] bool reset() noexcept { return move_to(IBV_QPS_RESET); }

 private:
  explicit QueuePair(VerbsDevice& device) : device_(device) {}
  bool move_to(ibv_qp_state state) noexcept;

  VerbsDevice& device_;
  ibv_qp* pair_ = nullptr;
  uint32_t first_packet_ = 0;
  QueuePairSizes sizes_;
};

}  // namespace lintel
