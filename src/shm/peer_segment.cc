// Opening and checking the segment of another process. Connection path.
#include "shm/peer_segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "shm/own_segments.h"
#include "shm/peer_memory.h"
#include "shm/segment_name.h"
#include "util/log.h"

namespace lintel {

namespace {

// A descriptor of a segment file; one that this process owns is borrowed and stays open.
class SegmentFile {
 public:
  SegmentFile(const std::string& path, int flags) {
    if (const std::optional<int> own = own_segment_fd(path)) {
      fd_ = *own;
      borrowed_ = true;
    } else {
      fd_ = ::open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    }
  }
  SegmentFile(const SegmentFile&) = delete;
  SegmentFile& operator=(const SegmentFile&) = delete;
  ~SegmentFile() {
    if (fd_ >= 0 && !borrowed_) close(fd_);
  }
  [[nodiscard]] int fd() const noexcept { return fd_; }
  [[nodiscard]] bool borrowed() const noexcept { return borrowed_; }

 private:
  int fd_ = -1;
  bool borrowed_ = false;
};

}  // namespace

PeerSegment::Status PeerSegment::open(ProcessId peer, uint32_t job_hash,
                                      std::unique_ptr<PeerSegment>& result, std::string& reason) {
  std::unique_ptr<PeerSegment> segment(new PeerSegment);
  segment->path_ = segment_path(job_hash, peer);
  const SegmentFile file(segment->path_, O_RDWR);
  if (file.fd() < 0) {
    const int error = errno;
    reason = segment->path_ + ": " + std::strerror(error);
    if (error == ENOENT) return Status::absent;
    return error == EMFILE || error == ENFILE || error == ENOMEM ? Status::failed : Status::refused;
  }
  const Status status = segment->check_and_map(file.fd(), peer, job_hash, reason);
  if (status == Status::opened)
    result = std::move(segment);
  else
    reason = segment->path_ + " " + reason;
  return status;
}

PeerSegment::Status PeerSegment::check_and_map(int fd, ProcessId peer, uint32_t job_hash,
                                               std::string& reason) {
  struct stat status;
  if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
    reason = "is not a regular file";
    return Status::refused;
  }
  if (status.st_uid != geteuid()) {
    reason = "belongs to user " + std::to_string(status.st_uid);
    return Status::refused;
  }
  const uint64_t bytes = static_cast<uint64_t>(status.st_size);
  if (bytes < first_lane_offset || bytes > segment_max_bytes) {
    reason = "has an impossible size";
    return Status::refused;
  }
  // Reading through the descriptor gives a private copy and cannot fault.
  if (pread(fd, &identity_, sizeof identity_, 0) != sizeof identity_ ||
      identity_.magic != segment_magic) {
    reason = "is not a segment of this library";
    return Status::refused;
  }
  if (identity_.layout_version != segment_layout_version ||
      identity_.message_version != message_version) {
    reason = "was made by another version of this library";
    return Status::refused;
  }
  geometry_ = SegmentGeometry::checked(identity_, bytes);
  if (geometry_.lane_count == 0 || identity_.segment_bytes != bytes ||
      identity_.lane_count != geometry_.lane_count || identity_.nid != peer.nid ||
      identity_.pid != peer.pid || identity_.job_hash != job_hash ||
      (identity_.nonce & lane_state_mask) != 0) {
    reason = "contradicts itself";
    return Status::refused;
  }
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) {
    reason = std::string("cannot be mapped: ") + std::strerror(errno);
    return Status::failed;
  }
  header_ = static_cast<SegmentHeader*>(memory);
  uid_ = status.st_uid;
  device_ = status.st_dev;
  inode_ = status.st_ino;
  return Status::opened;
}

PeerSegment::~PeerSegment() {
  if (header_ != nullptr) munmap(static_cast<void*>(header_), geometry_.segment_bytes);
}

bool PeerSegment::is_this_segment(int fd) const noexcept {
  struct stat status;
  return fstat(fd, &status) == 0 && status.st_dev == device_ && status.st_ino == inode_;
}

bool PeerSegment::owner_alive() const {
  if (owner_finished()) return false;
  const SegmentFile file(path_, O_RDWR);
  if (file.fd() < 0 && errno != ENOENT) return true;  // no descriptor left, say: ask again later
  if (file.fd() < 0 || !is_this_segment(file.fd())) return PeerMemory::has_nonce(identity_);
  if (file.borrowed()) return true;
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_len = 1;
  return fcntl(file.fd(), F_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

// Allocated now, a full /dev/shm is an error; later it would be SIGBUS.
PeerSegment::ClaimStatus PeerSegment::allocate(const SegmentGeometry::Place& place,
                                               std::string& reason) const {
  const SegmentFile file(path_, O_RDWR);
  if (file.fd() < 0 || !is_this_segment(file.fd())) {
    reason = path_ + " is gone";
    return ClaimStatus::gone;
  }
  if (fallocate(file.fd(), 0, static_cast<off_t>(place.offset_bytes),
                static_cast<off_t>(place.length_bytes)) != 0) {
    const char* const error = std::strerror(errno);
    reason = path_ + " cannot grow: " + error;
    static std::atomic<bool> said{false};
    log_once(
        said, LogLevel::warn,
        "shared memory cannot grow by %llu KiB for a queue: %s: %s; processes of this node do not "
        "reach each other through it. Remove what fills its file system, or mount that larger",
        static_cast<unsigned long long>(place.length_bytes / 1024), path_.c_str(), error);
    return ClaimStatus::no_room;
  }
  return ClaimStatus::claimed;
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
    const ClaimStatus status = allocate(place, reason);
    if (status != ClaimStatus::claimed) {
      entry.owner.store(0, std::memory_order_release);
      return status;
    }
    entry.nid = claimer.id.nid;
    entry.pid = claimer.id.pid;
    entry.os_pid = claimer.os_pid;
    claim.lane = lane;
    claim.control =
        reinterpret_cast<LaneControl*>(reinterpret_cast<std::byte*>(header_) + place.offset_bytes);
    claim.geometry = place.geometry;
    entry.owner.store(ready, std::memory_order_release);
    header_->lane_generation.fetch_add(1, std::memory_order_release);
    return ClaimStatus::claimed;
  }
  reason = path_ + " has no free lane left (see PTL_SHM_MEMORY_KIB)";
  return ClaimStatus::no_room;
}

void PeerSegment::close_lane(uint32_t lane, uint64_t nonce) noexcept {
  lane_table(header_)[lane].owner.store(nonce | static_cast<uint64_t>(LaneState::closing),
                                        std::memory_order_release);
  header_->lane_generation.fetch_add(1, std::memory_order_release);
  doorbell().ring_if_sleeping();
}

void PeerSegment::abandon(uint32_t lane, uint64_t nonce) noexcept {
  const auto exchange = [](void* from, uint64_t bytes) {
    mmap(from, bytes, PROT_READ | PROT_WRITE,
         MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  };
  std::byte* const base = reinterpret_cast<std::byte*>(header_);
  exchange(base + first_lane_offset, geometry_.segment_bytes - first_lane_offset);
  if (lane != no_lane) close_lane(lane, nonce);
  exchange(base, first_lane_offset);
}

}  // namespace lintel
