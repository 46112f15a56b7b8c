// Creating the shared segment of this process. Set-up path.
#include "shm/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>

#include "portals4.h"
#include "shm/leftovers.h"
#include "shm/own_segments.h"
#include "shm/segment_name.h"
#include "util/asymmetric_fence.h"

namespace lintel {

namespace {

// Pids that PTL_PID_ANY may give: small numbers are left to those who choose their own.
constexpr uint32_t first_any_pid = 1024;
constexpr uint32_t any_pids = PTL_PID_MAX - first_any_pid;

std::string because(const std::string& what) {
  const int error = errno;
  return what + ": " + std::strerror(error);
}

uint64_t make_nonce() noexcept {
  uint64_t nonce = 0;
  while ((nonce & ~lane_state_mask) == 0)
    if (getrandom(&nonce, sizeof nonce, 0) != sizeof nonce) return 0;
  return nonce & ~lane_state_mask;
}

}  // namespace

OpenStatus Segment::create(const Settings& settings, std::unique_ptr<Segment>& result,
                           std::string& reason) {
  const auto creation = lock_segment_creation();
  sweep_leftovers();
  std::unique_ptr<Segment> segment(new Segment);
  if (!segment->prepare(settings, reason)) return OpenStatus::failed;
  const OpenStatus status = segment->publish_somewhere(settings, reason);
  if (status == OpenStatus::opened) result = std::move(segment);
  return status;
}

// The file has no name yet, so nobody sees it half made and nothing stays if we are killed here.
bool Segment::prepare(const Settings& settings, std::string& reason) {
  geometry_ = SegmentGeometry::plan(settings.memory_bytes);
  if (geometry_.lane_count == 0) {
    reason = "PTL_SHM_MEMORY_KIB is too little for a single lane";
    return false;
  }
  nonce_ = make_nonce();
  if (nonce_ == 0) {
    reason = because("no random numbers");
    return false;
  }
  fd_ = open(segment_directory().c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd_ < 0) {
    reason = because("cannot create a file in " + segment_directory());
    return false;
  }
  const off_t bytes = static_cast<off_t>(geometry_.segment_bytes);
  // The table is allocated at once: a full /dev/shm shows here and not as SIGBUS later.
  if (ftruncate(fd_, bytes) != 0 || fallocate(fd_, 0, 0, first_lane_offset) != 0) {
    reason = because("no room in " + segment_directory());
    return false;
  }
  void* memory = mmap(nullptr, geometry_.segment_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  if (memory == MAP_FAILED) {
    reason = because("cannot map the shared segment");
    return false;
  }
  creator_ = getpid();
  job_hash_ = settings.job_hash;
  id_.nid = settings.nid;
  header_ = new (memory) SegmentHeader{};
  SegmentIdentity& identity = header_->identity;
  identity.magic = segment_magic;
  identity.layout_version = segment_layout_version;
  identity.message_version = message_version;
  identity.segment_bytes = geometry_.segment_bytes;
  identity.lane_count = geometry_.lane_count;
  identity.job_hash = job_hash_;
  identity.nid = settings.nid;
  identity.uid = geteuid();
  identity.os_pid = creator_;
  identity.nonce = nonce_;
  identity.nonce_address = reinterpret_cast<uint64_t>(&nonce_);
  std::memcpy(identity.classes, geometry_.classes, sizeof identity.classes);
  header_->doorbell.fences.full.store(asymmetric_fence_available() ? 0 : 1);

  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_len = 1;
  if (fcntl(fd_, F_SETLK, &lock) != 0) {
    reason = because("cannot lock the shared segment");
    return false;
  }
  return true;
}

OpenStatus Segment::publish_somewhere(const Settings& settings, std::string& reason) {
  if (settings.pid != PTL_PID_ANY) return publish(settings.pid, reason);
  const uint32_t start = static_cast<uint32_t>(creator_) % any_pids;
  for (uint32_t i = 0; i < any_pids; ++i) {
    const OpenStatus status = publish(first_any_pid + (start + i) % any_pids, reason);
    if (status != OpenStatus::pid_in_use) return status;
  }
  return OpenStatus::pid_in_use;
}

OpenStatus Segment::publish(uint32_t pid, std::string& reason) {
  id_.pid = pid;
  header_->identity.pid = pid;
  path_ = segment_path(job_hash_, id_);
  const std::string nameless = "/proc/self/fd/" + std::to_string(fd_);
  for (;;) {
    LeftoverStatus leftover = LeftoverStatus::in_use;
    if (!own_segment_fd(path_)) {
      remember_own_segment(path_, fd_);
      if (linkat(AT_FDCWD, nameless.c_str(), AT_FDCWD, path_.c_str(), AT_SYMLINK_FOLLOW) == 0)
        break;
      const int error = errno;
      forget_own_segment(path_);
      if (error != EEXIST) {
        reason = "cannot create " + path_ + ": " + std::strerror(error);
        return OpenStatus::failed;
      }
      leftover = remove_leftover(path_);
    }
    if (leftover == LeftoverStatus::removed) continue;
    reason = path_ + (leftover == LeftoverStatus::in_use ? " belongs to a live process"
                                                         : " is not a segment of this user");
    return OpenStatus::pid_in_use;
  }
  published_ = true;
  return OpenStatus::opened;
}

Segment::~Segment() {
  if (published_ && created_by_this_process()) {
    header_->closed.store(1, std::memory_order_release);
    // The name may have been removed by hand and be another's by now.
    struct stat named;
    struct stat own;
    if (stat(path_.c_str(), &named) == 0 && fstat(fd_, &own) == 0 && named.st_ino == own.st_ino)
      unlink(path_.c_str());
    forget_own_segment(path_);
  }
  if (header_ != nullptr) munmap(static_cast<void*>(header_), geometry_.segment_bytes);
  if (fd_ >= 0) close(fd_);
}

bool Segment::created_by_this_process() const noexcept { return creator_ == getpid(); }

LaneControl* Segment::lane(uint32_t lane) const noexcept {
  return reinterpret_cast<LaneControl*>(reinterpret_cast<std::byte*>(header_) +
                                        geometry_.place(lane).offset_bytes);
}

void Segment::clear_lane(uint32_t number) const noexcept {
  const uint64_t bytes = geometry_.place(number).length_bytes;
  void* const memory = lane(number);
  if (madvise(memory, bytes, MADV_REMOVE) != 0) std::memset(memory, 0, bytes);
}

}  // namespace lintel
