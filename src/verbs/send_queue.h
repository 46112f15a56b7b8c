// The send queue of a queue pair: the work requests that the device has, in the order of posting,
// and those that are posted together with the next one. Message path; the lock of the link is held.
#pragma once

#include <cstdint>

#include <infiniband/verbs.h>

#include "verbs/channel_requests.h"
#include "verbs/verbs_link.h"

namespace lintel {

enum class RequestKind : uint8_t {
  message,
  remote_access,
  bind,      // binds a memory window
  withdraw,  // invalidates a memory window of this process
};

struct PostedRequest {
  RequestKind kind;
  uint32_t index;  // index of the slot, the remote access, or the exposure
};

class SendQueue {
 public:
  static constexpr uint32_t capacity = 128;  // a power of two
  // Room for requests that must not wait for messages: ends of exposures, remote accesses.
  static constexpr uint32_t reserved = 16;
  static constexpr uint32_t signal_interval = 16;
  enum class Posting : uint8_t { now, with_next };

  // `channel_index` becomes part of every wr_id.
  void open(VerbsLink& link, ChannelRequests& requests, ibv_qp* pair,
            uint32_t channel_index) noexcept;

  [[nodiscard]] uint32_t room() const noexcept { return capacity - (posted_ - retired_); }
  [[nodiscard]] bool is_empty() const noexcept { return posted_ == retired_; }
  // Whether the last requests have no completion.
  [[nodiscard]] bool is_unsignalled() const noexcept { return unsignalled_ != 0; }
  void signal_next() noexcept { unsignalled_ = signal_interval; }
  // The compiler does not follow the pointer to the link, whose lock is held. False: the device
  // refused, and the poller was requested to stop the queue pair. There must be room.
  [[nodiscard]] bool post(ibv_send_wr& request, PostedRequest record, bool signalled,
                          Posting when = Posting::now) noexcept LINTEL_UNCHECKED_LOCKS;
  // Posts the requests that wait for the next one.
  void flush() noexcept LINTEL_UNCHECKED_LOCKS;
  // The queue pair is given up: they are not posted.
  void discard_held() noexcept { held_count_ = 0; }

  // Position of the oldest request. Positions count modulo 2^32, and are the lower half of a wr_id.
  [[nodiscard]] uint32_t oldest() const noexcept { return retired_; }
  [[nodiscard]] bool contains(uint32_t position) const noexcept {
    return position - retired_ < posted_ - retired_;
  }
  // Removes the oldest request, which has ended.
  [[nodiscard]] PostedRequest retire() noexcept { return records_[retired_++ % capacity]; }

 private:
  static constexpr unsigned most_held = 12;

  VerbsLink* link_ = nullptr;
  ChannelRequests* requests_ = nullptr;
  ibv_qp* pair_ = nullptr;
  uint32_t channel_index_ = 0;
  uint32_t posted_ = 0;
  uint32_t retired_ = 0;
  uint16_t unsignalled_ = 0;
  uint16_t held_count_ = 0;
  ibv_send_wr held_[most_held];
  ibv_sge held_pieces_[most_held];
  PostedRequest records_[capacity];
};

}  // namespace lintel
