// Talks to userfaultfd. Connection path; changing() is message path.
#include "registration/memory_watch.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "util/new_descriptor.h"

namespace lintel {

namespace {

constexpr uint64_t wanted_features = UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_EVENT_UNMAP |
                                     UFFD_FEATURE_EVENT_REMAP | UFFD_FEATURE_EVENT_REMOVE;

Descriptor open_descriptor() {
#ifndef UFFD_USER_MODE_ONLY
  constexpr int UFFD_USER_MODE_ONLY = 1;
#endif
  constexpr int flags = O_CLOEXEC | O_NONBLOCK;
  // This kind is open to every user, and no other is needed: faults are never delivered.
  const long descriptor = syscall(SYS_userfaultfd, flags | UFFD_USER_MODE_ONLY);
  if (descriptor >= 0 || errno != EINVAL) return above_standard(static_cast<int>(descriptor));
  return above_standard(static_cast<int>(syscall(SYS_userfaultfd, flags)));  // before Linux 5.11
}

// The features that the kernel offers; 0 with errno: it has another version.
uint64_t agree(const Descriptor& descriptor, uint64_t features) {
  uffdio_api api{};
  api.api = UFFD_API;
  api.features = features;
  return ioctl(descriptor.get(), UFFDIO_API, &api) == 0 ? api.features : 0;
}

// Sizes of huge pages, which memory of that kind can only be watched in multiples of.
std::vector<uint64_t> find_granules() {
  std::vector<uint64_t> found{static_cast<uint64_t>(sysconf(_SC_PAGESIZE))};
  const DirectoryStream directory = open_directory("/sys/kernel/mm/hugepages");
  while (const dirent* const entry = directory != nullptr ? readdir(directory.get()) : nullptr) {
    unsigned long long kib = 0;
    if (std::sscanf(entry->d_name, "hugepages-%llu", &kib) == 1 && kib != 0 &&
        (kib & (kib - 1)) == 0)
      found.push_back(uint64_t{kib} * 1024);
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

bool MemoryWatch::open(std::string& reason) {
  // The features of the kernel can be requested once per descriptor. A request for a feature that
  // it does not have is refused.
  const Descriptor asked = open_descriptor();
  const uint64_t offered = asked.is_open() ? agree(asked, 0) : 0;
  if (offered == 0) {
    reason = std::string("userfaultfd: ") + strerror(errno);
    if (errno == EPERM)
      reason += "; containers often forbid this system call in their seccomp profile";
    return false;
  }
  // Beyond plain memory, the kernel watches shared and huge memory if it has this.
  constexpr uint64_t further = UFFD_FEATURE_WP_HUGETLBFS_SHMEM;
  const bool suffices = (offered & wanted_features) == wanted_features;
  Descriptor descriptor = suffices ? open_descriptor() : Descriptor();
  if (agree(descriptor, wanted_features | (offered & further)) == 0) {
    reason = "userfaultfd of this kernel cannot report unmapping by way of write protection";
    return false;
  }
  granules_ = find_granules();
  descriptor_ = std::move(descriptor);
  return true;
}

bool MemoryWatch::add(uint64_t begin, uint64_t end) noexcept {
  uffdio_register request{};
  request.range = {begin, end - begin};
  request.mode = UFFDIO_REGISTER_MODE_WP;
  if (ioctl(descriptor_.get(), UFFDIO_REGISTER, &request) != 0) return false;
  // Zero pages can be had everywhere but in huge memory. Of the kinds of shared memory of System V
  // the kernel accepts only that one.
  const bool huge = (request.ioctls & uint64_t{1} << _UFFDIO_ZEROPAGE) == 0;
  return !huge || !detachable(begin, end);
}

void MemoryWatch::remove(uint64_t begin, uint64_t end) noexcept {
  // Refused if a mapping of another kind has come to lie there. Then some of it may stay watched,
  // which costs those who unmap it some time and nothing else.
  uffdio_range range{begin, end - begin};
  ioctl(descriptor_.get(), UFFDIO_UNREGISTER, &range);
}

unsigned MemoryWatch::read(std::span<MemoryEvent> events) noexcept {
  constexpr size_t most = 16;
  uffd_msg messages[most];
  const ssize_t bytes =
      ::read(descriptor_.get(), messages, std::min(events.size(), most) * sizeof(uffd_msg));
  unsigned count = 0;
  for (size_t i = 0; bytes > 0 && i < static_cast<size_t>(bytes) / sizeof(uffd_msg); ++i) {
    const uffd_msg& message = messages[i];
    switch (message.event) {
      case UFFD_EVENT_UNMAP:
        events[count++] = {MemoryEvent::Kind::unmapped, message.arg.remove.start,
                           message.arg.remove.end, 0};
        break;
      case UFFD_EVENT_REMOVE:
        events[count++] = {MemoryEvent::Kind::discarded, message.arg.remove.start,
                           message.arg.remove.end, 0};
        break;
      case UFFD_EVENT_REMAP:
        events[count++] = {MemoryEvent::Kind::moved, message.arg.remap.from,
                           message.arg.remap.from + message.arg.remap.len, message.arg.remap.to};
        break;
      default:
        break;
    }
  }
  return count;
}

bool MemoryWatch::changing() const noexcept {
  // The kernel counts changes from before the memory goes until the event was read, and refuses to
  // protect memory meanwhile; before it looks at the range, which here is never valid.
  uffdio_writeprotect nothing{};
  return ioctl(descriptor_.get(), UFFDIO_WRITEPROTECT, &nothing) != 0 && errno == EAGAIN;
}

bool MemoryWatch::detachable(uint64_t begin, uint64_t end) noexcept {
  const Stream maps = open_for_reading("/proc/self/maps");
  if (maps == nullptr) return true;
  char line[512];
  while (fgets(line, sizeof line, maps.get()) != nullptr) {
    char* rest = nullptr;
    const uint64_t from = strtoull(line, &rest, 16);
    const uint64_t to = *rest == '-' ? strtoull(rest + 1, nullptr, 16) : 0;
    if (from < end && begin < to && strstr(line, "/SYSV") != nullptr) return true;
  }
  return false;
}

}  // namespace lintel
