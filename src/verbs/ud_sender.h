// Sends bursts of frames as datagrams, without a copy where their memory is registered. Message
// path, any thread: no system call of its own; what needs one is left to the resolver's thread,
// which is woken once for it.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <infiniband/verbs.h>

#include "transport/packet_link.h"
#include "util/cache_line.h"
#include "util/spin_lock.h"
#include "verbs/device_memory.h"
#include "verbs/resolver.h"
#include "verbs/ud_hosts.h"
#include "verbs/ud_queue_pair.h"

namespace lintel {

// Memory that frames are sent from without a copy, registered with the device as it comes into use:
// the reliability layer reserves much and uses little of it, and registered memory is locked.
// key_of(): message path. register_wanted(): a thread that may wait.
class UdMemory {
 public:
  static constexpr size_t part_bytes = 1 << 20;  // registered at a time

  UdMemory() = default;
  UdMemory(const UdMemory&) = delete;
  UdMemory& operator=(const UdMemory&) = delete;
  ~UdMemory();

  // Set-up path, once, before anything is sent. False: no memory for the table.
  [[nodiscard]] bool offer(ibv_pd* pd, std::byte* start, size_t bytes) noexcept;

  [[nodiscard]] bool contains(const std::byte* start, size_t bytes) const noexcept {
    return start >= start_ && static_cast<size_t>(start - start_) < bytes_ &&
           bytes <= bytes_ - static_cast<size_t>(start - start_);
  }
  // Bytes from `start` (which lies inside) to the end of its part.
  [[nodiscard]] size_t rest_of_part(const std::byte* start) const noexcept {
    return part_bytes - static_cast<size_t>(start - start_) % part_bytes;
  }
  // Whether the part that `start` lies in is registered, and with which key. If not, it is noted as
  // wanted; `asked` then becomes true if it was not before.
  [[nodiscard]] bool key_of(const std::byte* start, uint32_t& key, bool& asked) noexcept {
    Part& part = parts_[static_cast<size_t>(start - start_) / part_bytes];
    const ibv_mr* const region = part.region.load(std::memory_order_acquire);
    if (region == nullptr) [[unlikely]] {
      asked |= !part.wanted.exchange(true, std::memory_order_acq_rel) &&
               !refused_.load(std::memory_order_relaxed);
      return false;
    }
    key = region->lkey;
    return true;
  }
  void register_wanted() noexcept;

  [[nodiscard]] bool refused() const noexcept { return refused_.load(std::memory_order_relaxed); }

 private:
  struct Part {
    std::atomic<ibv_mr*> region{nullptr};
    std::atomic<bool> wanted{false};
  };

  ibv_pd* pd_ = nullptr;
  std::byte* start_ = nullptr;
  size_t bytes_ = 0;
  size_t part_count_ = 0;
  std::unique_ptr<Part[]> parts_;
  std::atomic<bool> refused_{false};  // the device has refused: no further attempts
};

class UdSender {
 public:
  UdSender(uint8_t rail, UdQueuePair& queue_pair, UdHosts& hosts, UdMemory& memory,
           Resolver& resolver, AtomicLinkCounters& counters) noexcept
      : rail_(rail),
        queue_pair_(queue_pair),
        hosts_(hosts),
        memory_(memory),
        resolver_(resolver),
        counters_(counters) {}

  // Set-up path, once the queue pair is open. False: `reason` says why not.
  [[nodiscard]] bool open(uint32_t mtu, std::string& reason);
  [[nodiscard]] size_t buffer_bytes() const noexcept { return buffer_.bytes(); }
  // Set-up path: returns when all datagrams have been sent, or after a millisecond. `self`: an
  // address of this process.
  void finish(const UdAddress& self) noexcept;

  // See PacketLink::send().
  [[nodiscard]] unsigned send(const OutboundFrame* frames, unsigned count) noexcept;
  // Takes completions to find failed datagrams: the queue may not become full for a long time.
  void look_for_failures() noexcept;

  // Whether the device has given back all work requests. While the queue pair is broken there are
  // no more of them from then on.
  [[nodiscard]] bool all_ended() noexcept;
  // The queue pair has been reset: the others do not come back.
  void forget_sent() noexcept;

 private:
  void post_last(const UdAddress& self) noexcept;
  unsigned send_burst(const OutboundFrame* frames, unsigned count) noexcept LINTEL_REQUIRES(lock_);
  bool prepare(const OutboundFrame& frame, ibv_send_wr& request, ibv_sge* elements,
               bool& ask) noexcept LINTEL_REQUIRES(lock_);
  bool refer(const Piece& piece, ibv_send_wr& request, ibv_sge* elements, bool& ask) noexcept
      LINTEL_REQUIRES(lock_);
  unsigned post(unsigned count) noexcept LINTEL_REQUIRES(lock_);
  void take_completions() noexcept LINTEL_REQUIRES(lock_);
  [[nodiscard]] unsigned free_slots() const noexcept LINTEL_REQUIRES(lock_) {
    return UdQueuePair::send_depth - static_cast<unsigned>(posted_ - completed_);
  }

  const uint8_t rail_;
  UdQueuePair& queue_pair_;
  UdHosts& hosts_;
  UdMemory& memory_;
  Resolver& resolver_;
  AtomicLinkCounters& counters_;
  RegisteredBuffer buffer_;  // a slot for each work request
  uint32_t mtu_ = 0;

  alignas(cache_line_bytes) SpinLock lock_;
  uint64_t posted_ LINTEL_GUARDED_BY(lock_) = 0;
  uint64_t completed_ LINTEL_GUARDED_BY(lock_) = 0;
  uint64_t last_signalled_ LINTEL_GUARDED_BY(lock_) = 0;
  std::array<ibv_send_wr, PacketLink::largest_burst> requests_ LINTEL_GUARDED_BY(lock_){};
  std::array<std::array<ibv_sge, UdQueuePair::most_elements>, PacketLink::largest_burst> elements_
      LINTEL_GUARDED_BY(lock_){};
};

}  // namespace lintel
