// Making, finding and checking node-shared rank maps. Set-up path.
#include "core/objects/shared_ranks.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <utility>

#include "transport/process_key.h"
#include "util/clock.h"
#include "util/local_rank.h"
#include "util/new_descriptor.h"
#include "util/own_names.h"
#include "util/uninterrupted.h"

namespace lintel {

namespace {

constexpr const char* directory = "/dev/shm";
constexpr const char* memory_name = "lintel-map";
constexpr unsigned attempts = 8;  // maximum number, as others may change the link meanwhile
constexpr uint64_t longest_filling_ns = 2'000'000'000;
constexpr useconds_t look_after_us = 200;
constexpr unsigned sweep_limit = 4096;  // directory entries looked at
constexpr int all_seals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;

// The start of the memory; the entries follow.
struct Header {
  uint64_t magic;
  uint64_t count;
  uint64_t hash;
  uint64_t reserved;
};
constexpr uint64_t header_magic = 0x31'50'41'4d'4c'54'4e'4c;  // "LNTLMAP1", version included
static_assert(sizeof(Header) == 32 && offsetof(Header, count) == 8 && offsetof(Header, hash) == 16);
static_assert(sizeof(ProcessId) == sizeof(ptl_process_t) && sizeof(ProcessId) == 8);
static_assert(offsetof(ProcessId, nid) == offsetof(ptl_process_t, phys.nid) &&
              offsetof(ProcessId, pid) == offsetof(ptl_process_t, phys.pid));

// Finds candidates only: every entry is compared afterwards.
uint64_t hash_of(const ptl_process_t* mapping, uint64_t count) noexcept {
  uint64_t hash = 0x9e3779b97f4a7c15u ^ count;
  for (uint64_t rank = 0; rank < count; ++rank) {
    hash ^= key_of({mapping[rank].phys.nid, mapping[rank].phys.pid});
    hash *= 0xff51afd7ed558ccdu;
    hash ^= hash >> 32;
  }
  return hash;
}

std::string link_prefix() {
  return std::string(memory_name) + "." + std::to_string(geteuid()) + ".";
}

std::string link_path(uint64_t hash) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return std::string(directory) + "/" + link_prefix() + text;
}

std::string read_link(const std::string& path) {
  char text[128];
  const ssize_t length = readlink(path.c_str(), text, sizeof text);
  return length > 0 && static_cast<size_t>(length) < sizeof text
             ? std::string(text, static_cast<size_t>(length))
             : std::string();
}

enum class Target : uint8_t { memory, gone, unclear };

// Returns the kind of target of a link that this library made: memory with a map, none any more, or
// unclear.
Target classify(const std::string& target) {
  int process = 0;
  int fd = 0;
  int end = 0;
  if (std::sscanf(target.c_str(), "/proc/%d/fd/%d%n", &process, &fd, &end) != 2 ||
      target[static_cast<size_t>(end)] != '\0' || process <= 0)
    return Target::gone;  // this library writes no such target
  if (kill(process, 0) != 0) return errno == ESRCH ? Target::gone : Target::unclear;
  char name[128];
  const ssize_t length = readlink(target.c_str(), name, sizeof name - 1);
  if (length < 0) return errno == ENOENT ? Target::gone : Target::unclear;
  name[length] = '\0';
  const std::string expected = std::string("/memfd:") + memory_name;
  return std::strncmp(name, expected.c_str(), expected.size()) == 0 ? Target::memory : Target::gone;
}

// False: the process that makes the map does not go on, or died. Each then keeps a map of its own.
bool wait_until_filled(int fd) noexcept {
  const uint64_t deadline = now_ns() + longest_filling_ns;
  while (flock(fd, LOCK_SH | LOCK_NB) != 0) {
    if ((errno != EWOULDBLOCK && errno != EINTR) || now_ns() > deadline) return false;
    usleep(look_after_us);
  }
  return true;
}

bool is_own_link(const std::string& path) {
  struct stat status;
  return lstat(path.c_str(), &status) == 0 && S_ISLNK(status.st_mode) && status.st_uid == geteuid();
}

bool write_all(int fd, const void* from, size_t bytes, off_t offset) noexcept {
  const char* next = static_cast<const char*>(from);
  while (bytes > 0) {
    const ssize_t written = uninterrupted([&] { return pwrite(fd, next, bytes, offset); });
    if (written <= 0) return false;
    next += written;
    offset += written;
    bytes -= static_cast<size_t>(written);
  }
  return true;
}

}  // namespace

const ProcessId* SharedRanks::entries() const noexcept {
  return reinterpret_cast<const ProcessId*>(static_cast<const char*>(memory_) + sizeof(Header));
}

bool SharedRanks::map_file(int fd, uint64_t count) {
  mapped_bytes_ = sizeof(Header) + count * sizeof(ProcessId);
  // The seals forbid shared writable mappings, and older kernels treat every shared mapping as one.
  // A private mapping that nobody writes to has the same pages.
  void* const memory = mmap(nullptr, mapped_bytes_, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
  if (memory == MAP_FAILED) return false;
  memory_ = memory;
  return true;
}

bool SharedRanks::create(const std::string& link, const ptl_process_t* mapping, uint64_t count,
                         uint64_t hash, bool replace) {
  Descriptor memory = make_memory_file(memory_name, MFD_ALLOW_SEALING);
  // A process that finds the link before the memory is filled waits for this lock.
  if (!memory.is_open() || flock(memory.get(), LOCK_EX) != 0) return false;
  const std::string target =
      "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(memory.get());
  if (replace) {
    const std::string temporary = link + "." + std::to_string(getpid());
    static_cast<void>(unlink(temporary.c_str()));
    if (symlink(target.c_str(), temporary.c_str()) != 0) return false;
    if (rename(temporary.c_str(), link.c_str()) != 0) {
      static_cast<void>(unlink(temporary.c_str()));
      return false;
    }
  } else if (symlink(target.c_str(), link.c_str()) != 0) {
    return false;
  }
  link_ = link;
  OwnNames().remember(link);
  published_ = std::move(memory);  // from now on the destructor removes the link
  const int fd = published_.get();
  const Header header{header_magic, count, hash, 0};
  const bool filled = write_all(fd, &header, sizeof header, 0) &&
                      write_all(fd, mapping, count * sizeof(ProcessId), sizeof header) &&
                      fcntl(fd, F_ADD_SEALS, all_seals) == 0;
  static_cast<void>(flock(fd, LOCK_UN));
  return filled && map_file(fd, count);
}

bool SharedRanks::attach(const std::string& link, const ptl_process_t* mapping, uint64_t count,
                         uint64_t hash) {
  const std::string target = read_link(link);
  if (target.empty() || classify(target) != Target::memory) return false;
  const Descriptor memory = open_file(target.c_str(), O_RDONLY | O_NONBLOCK);
  if (!memory.is_open()) return false;
  if (!wait_until_filled(memory.get())) return false;
  struct stat status;
  if (fstat(memory.get(), &status) != 0 || status.st_uid != geteuid() ||
      static_cast<uint64_t>(status.st_size) != sizeof(Header) + count * sizeof(ProcessId) ||
      (fcntl(memory.get(), F_GET_SEALS) & all_seals) != all_seals)
    return false;
  if (!map_file(memory.get(), count)) return false;
  Header header;
  std::memcpy(&header, memory_, sizeof header);
  if (header.magic == header_magic && header.count == count && header.hash == hash &&
      std::memcmp(entries(), mapping, count * sizeof(ProcessId)) == 0)
    return true;
  munmap(memory_, mapped_bytes_);
  memory_ = nullptr;
  return false;
}

std::unique_ptr<SharedRanks> SharedRanks::obtain(const ptl_process_t* mapping, uint64_t count) {
  const uint64_t hash = hash_of(mapping, count);
  const std::string link = link_path(hash);
  for (unsigned attempt = 0; attempt < attempts; ++attempt) {
    std::unique_ptr<SharedRanks> ranks(new SharedRanks);
    if (is_own_link(link)) {
      if (ranks->attach(link, mapping, count, hash)) return ranks;
      // Left behind, or another map with the same hash. In both cases the newer one is worth more.
      if (ranks->create(link, mapping, count, hash, true)) return ranks;
      return nullptr;
    }
    if (ranks->create(link, mapping, count, hash, false)) return ranks;
    if (!is_own_link(link)) return nullptr;  // no room, or not permitted here
  }
  return nullptr;
}

SharedRanks::~SharedRanks() {
  if (published_.is_open()) {
    const std::string target =
        "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(published_.get());
    OwnNames names;
    if (read_link(link_) == target)
      names.remove(link_);
    else
      names.forget(link_);
  }
  if (memory_ != nullptr) munmap(memory_, mapped_bytes_);
}

void SharedRanks::remove_leftovers() noexcept {
  try {
    if (find_local_rank().rank != 0) return;
    const DirectoryStream entries = open_directory(directory);
    if (entries == nullptr) return;
    const std::string prefix = link_prefix();
    for (unsigned seen = 0; seen < sweep_limit; ++seen) {
      const dirent* entry = readdir(entries.get());
      if (entry == nullptr) break;
      if (std::strncmp(entry->d_name, prefix.c_str(), prefix.size()) != 0) continue;
      const std::string path = std::string(directory) + "/" + entry->d_name;
      const std::string target = is_own_link(path) ? read_link(path) : std::string();
      if (!target.empty() && classify(target) == Target::gone && read_link(path) == target)
        static_cast<void>(unlink(path.c_str()));
    }
  } catch (...) {
    // No memory for a name: the next interface tries again.
  }
}

}  // namespace lintel
