// The streams of an interface between its network and memory of devices (staged_stream.h): which of
// them have copies under way, and which wait for buffers. Message path.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/operations/device_exports.h"
#include "core/operations/device_ways.h"
#include "core/operations/staged_stream.h"
#include "core/progress/poll_flag.h"
#include "transport/polling.h"
#include "util/arena.h"

namespace lintel {

class Staging {
 public:
  // `work_due` is set while there are copies to be asked about.
  explicit Staging(PollFlag& work_due) noexcept : work_due_(work_due) {}
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;
  // All streams have ended. Waits for their last copies.
  ~Staging();
  // Set-up path. False: no address space.
  [[nodiscard]] bool open() noexcept;

  // Returns nullptr if there are too many.
  [[nodiscard]] StagedStream* begin(const StagedStream::Settings& settings) noexcept
      LINTEL_REQUIRES(polling);
  // To be called after the client has used the stream: copies may be under way, or a buffer may be
  // lacking.
  void watch(StagedStream& stream) noexcept LINTEL_REQUIRES(polling);
  // The client does not use the stream any more. Copies of it may be under way, if they write to
  // nothing but its buffers.
  void end(StagedStream& stream) noexcept LINTEL_REQUIRES(polling);

  // Asks about all copies under way, and tells clients. Returns the number of those.
  unsigned advance() noexcept LINTEL_REQUIRES(polling);
  // advance() would achieve something, now or soon: the poller must not sleep.
  [[nodiscard]] bool is_busy() const noexcept LINTEL_REQUIRES(polling) {
    return busy_.first != nullptr || may_serve_waiting();
  }
  [[nodiscard]] DeviceWays& ways() noexcept { return ways_; }
  [[nodiscard]] const DeviceWays& ways() const noexcept { return ways_; }
  [[nodiscard]] DeviceExports& exports() noexcept { return exports_; }
  [[nodiscard]] unsigned streams() const noexcept { return in_use_; }
  [[nodiscard]] unsigned buffers_in_use() const noexcept {
    return to_device_.in_use() + from_device_.in_use();
  }

 private:
  struct ListedStream final : StagedStream {
    std::atomic<uint32_t> next_free{0};
    ListedStream* next = nullptr;
    bool listed = false;
    bool ended = false;  // the client has gone
  };
  struct List {
    ListedStream* first = nullptr;
    ListedStream* last = nullptr;
    void append(ListedStream& stream) noexcept;
  };
  [[nodiscard]] unsigned advance_all(ListedStream* stream, bool has_room) noexcept
      LINTEL_REQUIRES(polling);
  void release(ListedStream& stream) noexcept;
  [[nodiscard]] uint64_t given_back() const noexcept {
    return to_device_.given_back() + from_device_.given_back();
  }
  // Buffers were given back since all streams that wait for one have tried.
  [[nodiscard]] bool may_serve_waiting() const noexcept {
    return waiting_.first != nullptr && given_back() != seen_given_back_;
  }

  PollFlag& work_due_;
  DeviceWays ways_;
  DeviceExports exports_;
  // Apart, so that a stream that has data for the network does not wait for one that expects data
  // of the peer, which would be in the same situation.
  StagingBuffers to_device_;
  StagingBuffers from_device_;
  Arena<ListedStream> streams_;
  unsigned in_use_ = 0;
  List busy_;
  List waiting_;                     // for buffers
  uint64_t seen_given_back_ = 0;     // when those that wait have tried
  ListedStream* current_ = nullptr;  // stream that advance() deals with
};

}  // namespace lintel
