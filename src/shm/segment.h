// The shared segment of this process: creating it under a name, proving that its owner lives,
// removing it. Set-up path.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "shm/segment_directory.h"
#include "shm/segment_layout.h"
#include "transport/message.h"
#include "transport/open_status.h"
#include "util/own_names.h"

namespace lintel {

class Segment {
 public:
  struct Settings {
    uint32_t nid = 0;
    uint32_t pid = 0;  // PTL_PID_ANY: one that is free
    uint32_t job_hash = 0;
    uint64_t memory_bytes = 0;  // maximum size of the segment
    uint64_t incarnation = 0;   // incarnation of this process: the nonce. 0: a new one
  };

  // The segment appears under its name complete and with its owner's lock held, or not at all.
  // Removes segments of dead processes of this user. `reason` says what went wrong.
  [[nodiscard]] static OpenStatus create(const Settings& settings, std::unique_ptr<Segment>& result,
                                         std::string& reason);

  // Removes the name, unless the caller is a forked child of the creator.
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  [[nodiscard]] SegmentHeader& header() const noexcept { return *header_; }
  [[nodiscard]] const SegmentGeometry& geometry() const noexcept { return geometry_; }
  [[nodiscard]] LaneEntry& entry(uint32_t lane) const noexcept { return lane_table(header_)[lane]; }
  [[nodiscard]] LaneControl* lane(uint32_t lane) const noexcept;
  [[nodiscard]] ProcessId id() const noexcept { return id_; }
  [[nodiscard]] uint64_t nonce() const noexcept { return nonce_; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] bool created_by_this_process() const noexcept;

  // The lane was cleared and has no claimer any more: processes that wait for one try to claim it.
  void free_entry(uint32_t lane) const noexcept {
    entry(lane).owner.store(0, std::memory_order_release);
    header_->lanes_freed.fetch_add(1, std::memory_order_release);
  }
  // Zeroes a lane and returns its memory to the system.
  void clear_lane(uint32_t lane) const noexcept;

 private:
  Segment() = default;
  bool prepare(const Settings& settings, const SegmentFile& file, std::string& reason);
  OpenStatus publish(const Settings& settings, const SegmentFile& file, OwnNames& own_names,
                     std::string& reason);
  bool choose_pid(uint32_t wanted, const std::function<bool(uint32_t)>& taken);

  pid_t creator_ = 0;
  SegmentHeader* header_ = nullptr;
  SegmentGeometry geometry_{};
  ProcessId id_{};
  uint64_t nonce_ = 0;  // peers read it here to make sure whose memory they reach
  std::string path_;    // empty: it has no name yet
};

// Makes memory of a shared file zero, and gives its whole pages of `page_bytes` back to the system.
void clear_shared_memory(std::byte* memory, size_t bytes, size_t page_bytes) noexcept;

}  // namespace lintel
