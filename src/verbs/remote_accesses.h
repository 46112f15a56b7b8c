// Reads and writes of memory of peers: cut into work requests as the device can take them, to and
// from memory that is registered meanwhile. Message path of large payloads.
#pragma once

#include <atomic>
#include <cstdint>

#include "util/arena.h"
#include "util/counter.h"
#include "verbs/channel.h"
#include "verbs/device_memory.h"

namespace lintel {

struct RemoteAccess {
  static constexpr unsigned most_pieces = 32;
  std::atomic<uint32_t> next_free{0};
  RemoteAccess* next = nullptr;  // link of the channel's waiting list, or of the list of ended ones
  VerbsLink* link = nullptr;
  uint32_t token = 0;
  MessageSink* owner = nullptr;  // nullptr: the sink of report()
  bool writes = false;
  RemoteStatus outcome = RemoteStatus::done;
  unsigned local_count = 0;
  unsigned remote_count = 0;
  unsigned next_local = 0;
  unsigned next_remote = 0;
  uint64_t local_offset = 0;   // within the next piece
  uint64_t remote_offset = 0;  // within the next range
  uint32_t outstanding = 0;    // work requests
  bool proven = false;         // no proof is left to be posted
  uint64_t length = 0;
  Piece local[most_pieces];
  RemoteMemory remote[most_pieces];
  const RegisteredRegion* regions[most_pieces];

  [[nodiscard]] bool is_posted() const noexcept { return next_remote == remote_count && proven; }
};

class RemoteAccesses {
 public:
  RemoteAccesses(const VerbsDevice& device, DeviceMemory& memory) noexcept;
  ~RemoteAccesses();

  // Set-up path. False: no address space.
  [[nodiscard]] bool open() noexcept;
  // Scatter/gather elements of a work request.
  [[nodiscard]] uint32_t pieces_of_request() const noexcept { return pieces_; }

  // The poller. Implements Transport::remote_access(). `owner`: gets the result, if it is not
  // nullptr.
  [[nodiscard]] RemoteResult start(VerbsLink& link, const Piece* local, unsigned local_count,
                                   const RemoteMemory* remote, unsigned remote_count, bool writes,
                                   uint32_t token, MessageSink* owner = nullptr) noexcept;
  // Posts waiting accesses of the link, as far as the send queue has room. The lock is held.
  void post_waiting(VerbsLink& link) noexcept LINTEL_REQUIRES(link.lock);
  // Notes that a work request has ended. The lock of the link is held.
  void retire(Channel& channel, uint32_t index, bool success) noexcept;
  // Ends the waiting accesses, as the queue pair is gone. The lock of the link is held.
  void abandon(Channel& channel) noexcept;
  // Sets the outcome of accesses that have failed and have not been reported.
  void set_failure(const VerbsLink& link, RemoteStatus outcome) noexcept;
  // The poller, without any lock: reports ended accesses.
  void report(MessageSink& sink) noexcept LINTEL_REQUIRES(polling);

  [[nodiscard]] uint64_t started() const noexcept { return started_.get(); }
  [[nodiscard]] uint64_t bytes() const noexcept { return bytes_.get(); }

 private:
  bool post_next_part(Channel& channel, RemoteAccess& access) noexcept;
  bool post_proof(Channel& channel, RemoteAccess& access) noexcept;
  bool post_part(Channel& channel, RemoteAccess& access, ibv_sge* pieces, unsigned count,
                 const RemoteMemory& remote, uint64_t offset) noexcept;
  void end(RemoteAccess& access) noexcept;
  RemoteAccess* take_ended() noexcept;
  void release(RemoteAccess& access) noexcept;

  DeviceMemory& memory_;
  const uint32_t pieces_;
  const uint64_t largest_part_;
  const bool reads_need_proof_;
  Arena<RemoteAccess> accesses_;
  RemoteAccess* ended_ = nullptr;
  RemoteAccess** ended_tail_ = &ended_;
  SharedCounter started_;
  SharedCounter bytes_;
};

}  // namespace lintel
