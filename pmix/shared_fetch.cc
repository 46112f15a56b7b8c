// Making, finding and filling the memory. Set-up path.
#include "shared_fetch.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string_view>

#include "util/futex.h"
#include "util/new_descriptor.h"

namespace lintel {

namespace {

constexpr const char* memory_name = "lintel-fetch";
constexpr uint32_t most_parts = 4096;  // processes of a node; more fetch for themselves
constexpr auto patience = std::chrono::seconds(5);

// Announcement of the leader; it stays on the node.
struct Announcement {
  uint32_t version;
  int32_t process;
  int32_t fd;
};
constexpr uint32_t announcement_version = 1;
static_assert(sizeof(Announcement) == 12);

}  // namespace

// The start of the memory; the entries follow.
struct SharedFetch::Header {
  uint64_t magic;
  uint32_t number;
  uint32_t ranks;
  std::atomic<uint32_t> parts_done;  // a futex
  uint32_t reserved;
  std::atomic<uint8_t> done[most_parts];
};

namespace {
constexpr uint64_t header_magic = 0x31'48'43'54'4c'54'4e'4c;  // "LNTLTCH1", version included
}

SharedFetch::Header& SharedFetch::header() const noexcept { return *static_cast<Header*>(memory_); }

ptl_process_t* SharedFetch::entries() const noexcept {
  static_assert(sizeof(Header) == 24 + most_parts && sizeof(ptl_process_t) == 8);
  return reinterpret_cast<ptl_process_t*>(static_cast<std::byte*>(memory_) + sizeof(Header));
}

const ptl_process_t* SharedFetch::map() const noexcept { return entries(); }

bool SharedFetch::map_memory(int fd, uint32_t ranks) {
  ranks_ = ranks;
  bytes_ = sizeof(Header) + size_t{ranks} * sizeof(ptl_process_t);
  void* const memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return false;
  memory_ = memory;
  return true;
}

std::unique_ptr<SharedFetch> SharedFetch::create(uint32_t number, uint32_t ranks) {
  std::unique_ptr<SharedFetch> shared(new SharedFetch);
  shared->fd_ = make_memory_file(memory_name, 0).release();
  const size_t bytes = sizeof(Header) + size_t{ranks} * sizeof(ptl_process_t);
  if (shared->fd_ < 0 || ftruncate(shared->fd_, static_cast<off_t>(bytes)) != 0 ||
      !shared->map_memory(shared->fd_, ranks))
    return nullptr;
  shared->header().number = number;
  shared->header().ranks = ranks;
  shared->header().magic = header_magic;
  return shared;
}

std::unique_ptr<SharedFetch> SharedFetch::attach(std::span<const std::byte> announcement,
                                                 uint32_t number, uint32_t ranks) {
  Announcement found{};
  if (announcement.size() != sizeof found) return nullptr;
  std::memcpy(&found, announcement.data(), sizeof found);
  if (found.version != announcement_version || found.process <= 0 || found.fd < 0) return nullptr;
  const std::string path =
      "/proc/" + std::to_string(found.process) + "/fd/" + std::to_string(found.fd);
  // If this process is in another PID namespace, the path may name something else.
  char target[64];
  const ssize_t length = readlink(path.c_str(), target, sizeof target);
  if (length < 0 || !std::string_view(target, static_cast<size_t>(length))
                         .starts_with(std::string("/memfd:") + memory_name))
    return nullptr;
  const Descriptor memory = open_file(path.c_str(), O_RDWR);
  if (!memory.is_open()) return nullptr;
  struct stat status;
  std::unique_ptr<SharedFetch> shared(new SharedFetch);
  const bool usable = fstat(memory.get(), &status) == 0 && status.st_uid == geteuid() &&
                      static_cast<uint64_t>(status.st_size) ==
                          sizeof(Header) + uint64_t{ranks} * sizeof(ptl_process_t) &&
                      shared->map_memory(memory.get(), ranks);
  // The leader may have gone on to the next map.
  if (!usable || shared->header().magic != header_magic || shared->header().number != number ||
      shared->header().ranks != ranks)
    return nullptr;
  return shared;
}

SharedFetch::~SharedFetch() {
  if (memory_ != nullptr) munmap(memory_, bytes_);
  if (fd_ >= 0) close(fd_);
}

std::vector<std::byte> SharedFetch::announcement() const {
  const Announcement own{announcement_version, getpid(), fd_};
  const auto* first = reinterpret_cast<const std::byte*>(&own);
  return {first, first + sizeof own};
}

std::string SharedFetch::fetch_part(uint32_t part, uint32_t parts, const Fetch& fetch) const {
  const auto begin = static_cast<uint32_t>(uint64_t{ranks_} * part / parts);
  const auto end = static_cast<uint32_t>(uint64_t{ranks_} * (part + 1) / parts);
  for (uint32_t rank = begin; rank < end; ++rank)
    if (std::string why = fetch(rank, entries()[rank]); !why.empty()) return why;
  return "";
}

std::string SharedFetch::run(uint32_t part, uint32_t parts, const Fetch& fetch) {
  if (complete_) return "";
  if (parts > most_parts || part >= parts) return fetch_part(0, 1, fetch);
  if (std::string why = fetch_part(part, parts, fetch); !why.empty()) return why;
  Header& shared = header();
  shared.done[part].store(1, std::memory_order_release);
  shared.parts_done.fetch_add(1, std::memory_order_acq_rel);
  futex_wake(shared.parts_done);
  const auto deadline = std::chrono::steady_clock::now() + patience;
  for (;;) {
    const uint32_t done = shared.parts_done.load(std::memory_order_acquire);
    const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(
        deadline - std::chrono::steady_clock::now());
    if (done >= parts || left.count() <= 0) break;
    futex_wait(shared.parts_done, done, left.count());
  }
  // A process that could not map the memory fetches its values itself; so its part is missing here.
  // If it comes later, it writes the same values once more.
  for (uint32_t other = 0; other < parts; ++other)
    if (shared.done[other].load(std::memory_order_acquire) == 0)
      if (std::string why = fetch_part(other, parts, fetch); !why.empty()) return why;
  complete_ = true;
  return "";
}

}  // namespace lintel
