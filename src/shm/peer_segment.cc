// Opening and checking the segment of another process. Connection path.
#include "shm/peer_segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "shm/peer_memory.h"
#include "util/log.h"
#include "util/text.h"
#include "util/without_cancellation.h"

namespace lintel {

namespace {

constexpr uint32_t first_data_bytes = 32 * 1024;

}  // namespace

// Opens the segment with that address whose owner runs and belongs to this job.
PeerSegment::Status PeerSegment::open(ProcessId peer, uint32_t job_hash,
                                      std::unique_ptr<PeerSegment>& result, std::string& reason) {
  Status found = Status::absent;
  const auto directory = SegmentDirectory::open(false);
  if (!directory) {
    if (errno == EMFILE || errno == ENFILE || errno == ENOMEM) found = Status::failed;
    reason = std::string("private directory of segments: ") + std::strerror(errno);
    return found;
  }
  reason = directory->path() + ": no process has this nid and pid";
  directory->for_each([&](const SegmentName& name) {
    if (name.id != peer) return true;
    std::unique_ptr<PeerSegment> segment(new PeerSegment);
    const Status status = segment->open_file(directory->path_of(name), name, job_hash, reason);
    if (status == Status::absent || (status != Status::opened && result != nullptr)) return true;
    found = status;
    if (status != Status::opened) return true;
    result = std::move(segment);
    return !result->owner_alive();
  });
  return found;
}

PeerSegment::Status PeerSegment::open_file(const std::string& path, const SegmentName& name,
                                           uint32_t job_hash, std::string& reason) {
  path_ = path;
  const SegmentFile file(path);
  if (file.fd() < 0) {
    const int error = errno;
    reason = path + ": " + std::strerror(error);
    if (error == ENOENT) return Status::absent;
    return error == EMFILE || error == ENFILE || error == ENOMEM ? Status::failed : Status::refused;
  }
  std::string complaint;
  const Status status = check_and_map(file.fd(), name, job_hash, complaint);
  if (status == Status::refused || status == Status::failed) reason = path + " " + complaint;
  return status;
}

PeerSegment::Status PeerSegment::check_and_map(int fd, const SegmentName& name, uint32_t job_hash,
                                               std::string& reason) {
  struct stat status;
  if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))
    return explained(Status::refused, reason, "is not a regular file");
  if (status.st_uid != geteuid())
    return explained(Status::refused, reason, "belongs to user " + std::to_string(status.st_uid));
  const uint64_t bytes = static_cast<uint64_t>(status.st_size);
  if (bytes < first_lane_offset || bytes > segment_max_bytes)
    return explained(Status::refused, reason, "has an impossible size");
  // Reading through the descriptor gives a private copy and cannot fault.
  if (pread(fd, &identity_, sizeof identity_, 0) != sizeof identity_ ||
      identity_.magic != segment_magic)
    return explained(Status::refused, reason, "is not a segment of this library");
  if (identity_.layout_version != segment_layout_version ||
      identity_.message_version != message_version)
    return explained(Status::refused, reason, "was made by another version of this library");
  geometry_ = SegmentGeometry::checked(identity_, bytes);
  if (geometry_.lane_count == 0 || identity_.segment_bytes != bytes ||
      identity_.lane_count != geometry_.lane_count || identity_.nid != name.id.nid ||
      identity_.pid != name.id.pid || identity_.nonce != name.nonce ||
      (identity_.nonce & lane_state_mask) != 0)
    return explained(Status::refused, reason, "has an inconsistent header");
  if (identity_.job_hash != job_hash) return Status::absent;
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED)
    return explained(Status::failed, reason,
                     std::string("cannot be mapped: ") + std::strerror(errno));
  header_ = static_cast<SegmentHeader*>(memory);
  uid_ = status.st_uid;
  return Status::opened;
}

PeerSegment::~PeerSegment() {
  if (header_ != nullptr) munmap(static_cast<void*>(header_), geometry_.segment_bytes);
}

bool PeerSegment::owner_alive() const {
  if (owner_finished()) return false;
  const SegmentFile file(path_);
  if (file.fd() >= 0) return file.owner_alive();
  // No descriptor may be left: another check follows later.
  return errno != ENOENT || PeerMemory::has_nonce(identity_);
}

// Allocated now, a full /dev/shm is an error; later it would be SIGBUS.
PeerSegment::ClaimStatus PeerSegment::allocate(uint64_t offset_bytes,
                                               uint64_t length_bytes) const noexcept {
  const SegmentFile file(path_);
  if (file.fd() < 0) return ClaimStatus::gone;
  return fallocate(file.fd(), 0, static_cast<off_t>(offset_bytes),
                   static_cast<off_t>(length_bytes)) == 0
             ? ClaimStatus::claimed
             : ClaimStatus::no_room;
}

PeerSegment::ClaimStatus PeerSegment::allocate_first(const SegmentGeometry::Place& place,
                                                     uint64_t length_bytes,
                                                     std::string& reason) const {
  const ClaimStatus status = allocate(place.offset_bytes, length_bytes);
  if (status == ClaimStatus::gone) reason = path_ + " is gone";
  if (status != ClaimStatus::no_room) return status;
  const char* const error = std::strerror(errno);
  reason = path_ + " cannot grow: " + error;
  static std::atomic<bool> said{false};
  log_once(
      said, LogLevel::warn,
      "shared memory cannot grow by %llu KiB for a queue: %s: %s; processes of this node do not "
      "reach each other through it. Remove files from its file system, or enlarge it",
      static_cast<unsigned long long>(length_bytes / 1024), path_.c_str(), error);
  return status;
}

bool PeerSegment::allocate_rest(uint32_t lane) const noexcept {
  const WithoutCancellation scope;
  const SegmentGeometry::Place place = geometry_.place(lane);
  if (allocate(place.offset_bytes, place.length_bytes) == ClaimStatus::claimed) return true;
  static std::atomic<bool> said{false};
  log_once(said, LogLevel::warn,
           "shared memory cannot grow by %llu KiB: %s: %s; a queue in it stays short. Remove files "
           "from its file system, or enlarge it",
           static_cast<unsigned long long>(place.length_bytes / 1024), path_.c_str(),
           std::strerror(errno));
  return false;
}

PeerSegment::ClaimStatus PeerSegment::claim_lane(const Claimer& claimer, Claim& claim,
                                                 std::string& reason) {
  LaneEntry* const table = lane_table(header_);
  const uint64_t claiming = claimer.nonce | static_cast<uint64_t>(LaneState::claiming);
  const uint64_t ready = claimer.nonce | static_cast<uint64_t>(LaneState::ready);
  for (uint32_t lane = 0; lane < geometry_.lane_count; ++lane) {
    LaneEntry& entry = table[lane];
    uint64_t free = 0;
    if (entry.owner.load(std::memory_order_relaxed) != 0 ||
        !entry.owner.compare_exchange_strong(free, claiming, std::memory_order_acquire)) {
      continue;
    }
    const SegmentGeometry::Place place = geometry_.place(lane);
    const uint32_t data_bytes = std::min(place.geometry.data_bytes, first_data_bytes);
    const uint64_t later_bytes = place.geometry.data_bytes - data_bytes;
    const ClaimStatus status = allocate_first(place, place.length_bytes - later_bytes, reason);
    if (status != ClaimStatus::claimed) {
      entry.owner.store(0, std::memory_order_release);
      return status;
    }
    entry.nid = claimer.id.nid;
    entry.pid = claimer.id.pid;
    claim.lane = lane;
    claim.control =
        reinterpret_cast<LaneControl*>(reinterpret_cast<std::byte*>(header_) + place.offset_bytes);
    claim.geometry = place.geometry;
    claim.data_bytes = data_bytes;
    entry.owner.store(ready, std::memory_order_release);
    header_->lane_generation.fetch_add(1, std::memory_order_release);
    return ClaimStatus::claimed;
  }
  want_lane();
  return ClaimStatus::no_lane;
}

void PeerSegment::announce_change() noexcept {
  header_->lane_generation.fetch_add(1, std::memory_order_release);
  doorbell().ring_if_sleeping();
}

void PeerSegment::tell_recall() noexcept {
  header_->lanes_recalled.fetch_add(1, std::memory_order_release);
  announce_change();
}

// Requests a lane. If many processes do that at once, one notifies the owner.
void PeerSegment::want_lane() noexcept {
  if (header_->lanes_wanted.load(std::memory_order_relaxed) == 0 &&
      header_->lanes_wanted.exchange(1, std::memory_order_release) == 0)
    announce_change();
}

void PeerSegment::close_lane(uint32_t lane, uint64_t nonce) noexcept {
  lane_table(header_)[lane].owner.store(nonce | static_cast<uint64_t>(LaneState::closing),
                                        std::memory_order_release);
  announce_change();
}

void PeerSegment::return_lane(uint32_t lane, uint64_t nonce) noexcept {
  uint64_t recalled = nonce | static_cast<uint64_t>(LaneState::recalled);
  if (lane_table(header_)[lane].owner.compare_exchange_strong(
          recalled, nonce | static_cast<uint64_t>(LaneState::returned), std::memory_order_release,
          std::memory_order_relaxed))
    announce_change();
}

}  // namespace lintel
