// Creating the shared segment of this process. Set-up path.
#include "shm/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <new>
#include <vector>

#include "portals4.h"
#include "transport/incarnation.h"
#include "util/asymmetric_fence.h"
#include "util/local_rank.h"
#include "util/log.h"
#include "util/own_names.h"
#include "util/page_size.h"
#include "util/prefault.h"
#include "util/text.h"

namespace lintel {

namespace {

// Pids that PTL_PID_ANY may give: small numbers are left to those who choose their own.
constexpr uint32_t first_any_pid = 1024;
constexpr uint32_t any_pids = PTL_PID_MAX - first_any_pid;

std::string because(const std::string& what) {
  const int error = errno;
  return what + ": " + std::strerror(error);
}

// A file that grows beyond the limit of its process ends it by SIGXFSZ.
uint64_t file_size_limit() noexcept {
  rlimit limit;
  return getrlimit(RLIMIT_FSIZE, &limit) == 0 ? limit.rlim_cur : UINT64_MAX;
}

// The segments of that node, in the order of their pids.
std::vector<SegmentName> names_of_node(const SegmentDirectory& directory, uint32_t nid) {
  std::vector<SegmentName> names;
  directory.for_each([&](const SegmentName& name) {
    if (name.id.nid == nid) names.push_back(name);
    return true;
  });
  std::sort(names.begin(), names.end(),
            [](const SegmentName& a, const SegmentName& b) { return a.id.pid < b.id.pid; });
  return names;
}

// Whether a running process of the job has that pid. Opens only the segments that have it: on a
// large node there are thousands.
bool is_taken(const SegmentDirectory& directory, const std::vector<SegmentName>& names,
              uint32_t pid, uint32_t job_hash) {
  const auto first = std::lower_bound(
      names.begin(), names.end(), pid,
      [](const SegmentName& name, uint32_t wanted) { return name.id.pid < wanted; });
  for (auto name = first; name != names.end() && name->id.pid == pid; ++name) {
    const SegmentFile file(directory.path_of(*name));
    SegmentIdentity identity;
    if (file.fd() < 0) {
      if (errno != ENOENT) return true;
      continue;
    }
    if (!file.owner_alive()) continue;
    if (pread(file.fd(), &identity, sizeof identity, 0) != sizeof identity ||
        identity.job_hash == job_hash)
      return true;
  }
  return false;
}

}  // namespace

OpenStatus Segment::create(const Settings& settings, std::unique_ptr<Segment>& result,
                           std::string& reason) {
  std::unique_ptr<Segment> segment;
  OwnNames own_names;  // given up before a segment that fails, whose end takes it
  const SegmentFile file = SegmentDirectory::make_file();
  if (file.fd() < 0)
    return explained(OpenStatus::failed, reason, because("cannot create a file in /dev/shm"));
  segment.reset(new Segment);
  if (!segment->prepare(settings, file, reason)) return OpenStatus::failed;
  const OpenStatus status = segment->publish(settings, file, own_names, reason);
  if (status == OpenStatus::opened) result = std::move(segment);
  return status;
}

// The file has no name yet: no process sees it half made, nothing stays if we are killed here. No
// descriptor stays open, so a program that closes all descriptors does no harm.
bool Segment::prepare(const Settings& settings, const SegmentFile& file, std::string& reason) {
  geometry_ = SegmentGeometry::plan(std::min(settings.memory_bytes, file_size_limit()));
  if (geometry_.lane_count == 0)
    return explained(
        false, reason,
        "PTL_SHM_MEMORY_KIB, or the limit of the size of files (ulimit -f), is too little for a "
        "single lane");
  nonce_ = settings.incarnation != 0 ? settings.incarnation : new_incarnation();
  if (nonce_ == 0) return explained(false, reason, because("no random numbers"));
  const off_t bytes = static_cast<off_t>(geometry_.segment_bytes);
  // The table is allocated at once: a full /dev/shm shows here and not as SIGBUS later. It has room
  // for more lanes than this segment.
  const uint64_t table_end = lane_table_offset + geometry_.lane_count * sizeof(LaneEntry);
  if (ftruncate(file.fd(), bytes) != 0 ||
      fallocate(file.fd(), 0, 0, static_cast<off_t>(table_end)) != 0)
    return explained(false, reason, because("no room in /dev/shm"));
  void* memory =
      mmap(nullptr, geometry_.segment_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.fd(), 0);
  if (memory == MAP_FAILED)
    return explained(false, reason, because("cannot map the shared segment"));
  prefault(memory, table_end);
  creator_ = getpid();
  id_.nid = settings.nid;
  header_ = new (memory) SegmentHeader{};
  SegmentIdentity& identity = header_->identity;
  identity.magic = segment_magic;
  identity.layout_version = segment_layout_version;
  identity.message_version = message_version;
  identity.segment_bytes = geometry_.segment_bytes;
  identity.lane_count = geometry_.lane_count;
  identity.job_hash = settings.job_hash;
  identity.nid = settings.nid;
  identity.uid = geteuid();
  identity.os_pid = creator_;
  identity.nonce = nonce_;
  identity.nonce_address = reinterpret_cast<uint64_t>(&nonce_);
  std::memcpy(identity.classes, geometry_.classes, sizeof identity.classes);
  header_->doorbell.full_fences.store(asymmetric_fence_available() ? 0 : 1);
  // A mapping in a forked child would keep the lock: the owner would seem to run.
  if (madvise(memory, geometry_.segment_bytes, MADV_DONTFORK) != 0)
    log_message(
        LogLevel::warn,
        "shm: madvise is denied (%s): while a forked child of this process runs, peers take "
        "the process for alive; permit it in the seccomp profile of the container",
        strerror(errno));
  if (!file.lock()) return explained(false, reason, because("cannot lock the shared segment"));
  return true;
}

OpenStatus Segment::publish(const Settings& settings, const SegmentFile& file, OwnNames& own_names,
                            std::string& reason) {
  const std::string nameless = "/proc/self/fd/" + std::to_string(file.fd());
  // The last process to finish removes the directory, perhaps just before this process enters its
  // name.
  constexpr unsigned attempts = 1000;
  for (unsigned attempt = 0; attempt < attempts; ++attempt) {
    auto directory = SegmentDirectory::open(true);
    if (directory && directory->lock()) {
      const std::vector<SegmentName> names = names_of_node(*directory, id_.nid);
      if (!choose_pid(settings.pid, [&](uint32_t pid) {
            return is_taken(*directory, names, pid, settings.job_hash);
          })) {
        reason = "a running process has this pid";
        return OpenStatus::pid_in_use;
      }
      path_ = directory->path_of({id_, nonce_});
      own_names.remember(path_, directory->path());
      if (linkat(AT_FDCWD, nameless.c_str(), AT_FDCWD, path_.c_str(), AT_SYMLINK_FOLLOW) == 0) {
        // The lock is released: of many processes that start at once each would wait for all.
        directory->unlock();
        // The first process of a job on this node looks at all of them, unless there are too many.
        constexpr unsigned few = 8;
        if (find_local_rank().rank == 0)
          directory->sweep();
        else if (names.size() >= SegmentDirectory::most_living)
          directory->sweep(few);
        return OpenStatus::opened;
      }
      const int error = errno;
      own_names.remove(path_);
      path_.clear();
      errno = error;
    }
    if (errno != ENOENT) break;
  }
  const bool denied = errno == EPERM || errno == ENOSYS;
  reason = because("cannot enter a segment in the private directory lintel." +
                   std::to_string(geteuid()) + " of /dev/shm");
  if (denied) reason += "; permit flock and linkat in the seccomp profile of the container";
  return OpenStatus::failed;
}

bool Segment::choose_pid(uint32_t wanted, const std::function<bool(uint32_t)>& taken) {
  const uint32_t start = static_cast<uint32_t>(creator_) % any_pids;
  const bool any = wanted == PTL_PID_ANY;
  for (uint32_t i = 0; i < (any ? any_pids : 1); ++i) {
    const uint32_t pid = any ? first_any_pid + (start + i) % any_pids : wanted;
    if (taken(pid)) continue;
    id_.pid = header_->identity.pid = pid;
    return true;
  }
  return false;
}

// A forked child has no mapping of it.
Segment::~Segment() {
  if (header_ == nullptr || !created_by_this_process()) return;
  header_->closed.store(1, std::memory_order_release);
  if (!path_.empty()) OwnNames().remove(path_);
  munmap(static_cast<void*>(header_), geometry_.segment_bytes);
}

bool Segment::created_by_this_process() const noexcept { return creator_ == getpid(); }

LaneControl* Segment::lane(uint32_t lane) const noexcept {
  return reinterpret_cast<LaneControl*>(reinterpret_cast<std::byte*>(header_) +
                                        geometry_.place(lane).offset_bytes);
}

void Segment::clear_lane(uint32_t number) const noexcept {
  clear_shared_memory(reinterpret_cast<std::byte*>(lane(number)),
                      geometry_.place(number).length_bytes, system_page_bytes());
}

// The kernel would round the length up to whole pages, and so clear what follows.
void clear_shared_memory(std::byte* memory, size_t bytes, size_t page_bytes) noexcept {
  std::byte* const end = memory + bytes;
  std::byte* const first = memory + (-reinterpret_cast<uintptr_t>(memory) & (page_bytes - 1));
  std::byte* const last = end - (reinterpret_cast<uintptr_t>(end) & (page_bytes - 1));
  if (first >= last || madvise(first, static_cast<size_t>(last - first), MADV_REMOVE) != 0) {
    std::memset(memory, 0, bytes);
    return;
  }
  std::memset(memory, 0, static_cast<size_t>(first - memory));
  std::memset(last, 0, static_cast<size_t>(end - last));
}

}  // namespace lintel
