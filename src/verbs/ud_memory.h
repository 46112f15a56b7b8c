// Memory that frames are sent from without a copy, registered with the device as it comes into use:
// the reliability layer reserves much and uses little of it, and registered memory is locked.
// key_of(): message path. register_wanted(): a thread that may wait.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include <infiniband/verbs.h>

namespace lintel {

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

}  // namespace lintel
