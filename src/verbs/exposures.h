// Memory of this process that a peer may access on behalf of one operation: exactly these bytes, in
// one direction, through the queue pair of that peer alone. The means is a memory window, which
// costs a work request; where the device has none, or the memory is read-only or that of an
// accelerator, it is a registration, which costs system calls. Message path of large payloads.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include "transport/packet_link.h"
#include "util/arena.h"
#include "util/counter.h"
#include "verbs/channel.h"
#include "verbs/device_memory.h"

namespace lintel {

struct ExposedMemory {
  static constexpr unsigned most_pieces = 16;
  enum class State : uint8_t { exposed, to_withdraw, withdrawing, ended };
  std::atomic<uint32_t> next_free{0};
  ExposedMemory* next = nullptr;  // link of the channel's list, or of the list of ended exposures
  ExposedMemory** previous = nullptr;
  State state = State::ended;
  uint32_t channel_number = 0;  // number of the queue pair; 0: it is gone
  unsigned count = 0;
  unsigned outstanding = 0;               // invalidations by this end
  uint32_t invalid = 0;                   // bit i: window i has been invalidated by the other end
  uint32_t further[most_rails - 1] = {};  // the same memory for further ports, see StripedAccesses
  uint32_t windows[most_pieces];
  const RegisteredRegion* regions[most_pieces];

  // Whether this end has to invalidate this window.
  [[nodiscard]] bool is_bound(unsigned i) const noexcept {
    return regions[i] != nullptr && (invalid >> i & 1) == 0;
  }
};

class Exposures {
 public:
  Exposures(VerbsDevice& device, DeviceMemory& memory, ChannelRequests& requests) noexcept
      : device_(device), memory_(memory), requests_(requests) {}
  ~Exposures();

  // Set-up path. False: no address space.
  [[nodiscard]] bool open() noexcept;

  // Implement Transport::expose() and withdraw().
  [[nodiscard]] Exposure expose(VerbsLink& link, const Piece* pieces, unsigned count, bool write,
                                RemoteMemory* out) noexcept;
  void withdraw(VerbsLink& link, uint32_t number, bool peer_may_access) noexcept;

  // Notes what withdraw() will ask for. take_further(): 0 if nothing was noted since expose().
  void set_further(uint32_t number, unsigned rail, uint32_t further) noexcept {
    exposures_.at(number - 1).further[rail] = further;
  }
  [[nodiscard]] uint32_t take_further(uint32_t number, unsigned rail) noexcept {
    return std::exchange(exposures_.at(number - 1).further[rail], 0u);
  }

  // The poller. The peer has completed its access, and invalidated the window with the message that
  // says so.
  void note_invalidated(VerbsLink& link, uint32_t index, uint32_t window_key) noexcept;
  // Posts invalidations for which there was no room. The lock of the link is held.
  void post_waiting(VerbsLink& link) noexcept LINTEL_REQUIRES(link.lock);
  // Notes that an invalidation has ended. The lock of the link is held.
  void retire(uint32_t index) noexcept;
  // Called when the queue pair is destroyed, and its windows with it. Exposures that operations
  // still use end with withdraw(). The lock of the link is held.
  void abandon(Channel& channel) noexcept;
  // The poller, without any lock: releases the memory of ended exposures.
  void release_ended() noexcept;

  [[nodiscard]] uint64_t exposed() const noexcept { return exposed_.get(); }

 private:
  struct Window {
    std::atomic<uint32_t> next_free{0};
    uint32_t key = 0;                // key with which the peer may use it
    ibv_mw* window = nullptr;        // bound to a part of a region; kept from use to use
    ibv_mr* registration = nullptr;  // registration for one use, in place of a window
  };

  bool prepare(ExposedMemory& exposed, const Piece* pieces, unsigned count, bool write) noexcept;
  bool bind(Channel& channel, ExposedMemory& exposed, const Piece* pieces, bool write) noexcept;
  void post_withdraw(VerbsLink& link, ExposedMemory& exposed) noexcept LINTEL_REQUIRES(link.lock);
  static void unlink(ExposedMemory& exposed) noexcept;
  void end(ExposedMemory& exposed) noexcept;
  void release_memory(ExposedMemory& exposed) noexcept;

  VerbsDevice& device_;
  DeviceMemory& memory_;
  ChannelRequests& requests_;
  Arena<ExposedMemory> exposures_;
  Arena<Window> windows_;
  ExposedMemory* ended_ = nullptr;
  SharedCounter exposed_;
};

}  // namespace lintel
