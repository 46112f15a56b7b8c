// Finding, listing and locking segments. Set-up and connection path.
#include "shm/segment_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <utility>
#include <vector>

#include "shm/private_directory.h"
#include "util/clock.h"
#include "util/never_destroyed.h"
#include "util/new_descriptor.h"

namespace lintel {

namespace {

constexpr mode_t owner_reads_and_writes = S_IRUSR | S_IWUSR;

std::string& root() noexcept {
  static NeverDestroyed<std::string> name("/dev/shm");
  return name.get();
}

struct flock whole_file_lock() noexcept {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return lock;
}

}  // namespace

std::string SegmentName::text() const {
  char text[48];
  std::snprintf(text, sizeof text, "%08x.%u.%016llx", id.nid, id.pid,
                static_cast<unsigned long long>(nonce));
  return text;
}

std::optional<SegmentName> SegmentName::parse(const char* text) noexcept {
  SegmentName name;
  const char* const end = text + std::strlen(text);
  // A number as text() writes it has `digits` digits, or no leading zeros.
  const auto read = [&](auto& number, int base, ptrdiff_t digits) {
    const char* const first = text;
    const auto [rest, error] = std::from_chars(text, end, number, base);
    text = rest;
    return error == std::errc() &&
           (digits == 0 ? *first != '0' || rest - first == 1 : rest - first == digits);
  };
  const bool is_name = std::none_of(text, end, [](char c) { return c >= 'A' && c <= 'F'; }) &&
                       read(name.id.nid, 16, 8) && *text++ == '.' && read(name.id.pid, 10, 0) &&
                       *text++ == '.' && read(name.nonce, 16, 16) && text == end;
  return is_name ? std::optional(name) : std::nullopt;
}

std::optional<SegmentDirectory> SegmentDirectory::open(bool make) {
  std::optional<PrivateDirectory> found = open_private_directory(root(), make);
  if (!found) return {};
  return SegmentDirectory(std::move(found->path), std::move(found->descriptor));
}

SegmentFile SegmentDirectory::make_file() noexcept {
  return SegmentFile(open_file(root().c_str(), O_TMPFILE | O_RDWR, owner_reads_and_writes));
}

void SegmentDirectory::for_each(const std::function<bool(const SegmentName&)>& action) const {
  for_each_name([&](const char* text) {
    const std::optional<SegmentName> name = SegmentName::parse(text);
    return !name || action(*name);
  });
}

void SegmentDirectory::for_each_name(const std::function<bool(const char*)>& action) const {
  const DirectoryStream stream = open_directory_at(directory_.get(), ".");
  for (bool more = stream != nullptr; more;) {
    const dirent* const entry = readdir(stream.get());
    more = entry != nullptr && action(entry->d_name);
  }
}

bool SegmentDirectory::lock(uint64_t limit_ns) const noexcept {
  struct stat status {};
  timespec last_change{};
  uint64_t deadline = 0;
  // Thousands of processes that wait must not keep the one that has the lock from its processor.
  constexpr useconds_t longest_pause_us = 250'000;
  useconds_t pause_us = 100;
  while (flock(directory_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK || fstat(directory_.get(), &status) != 0) return false;
    const timespec change = status.st_mtim;
    if (deadline == 0 || change.tv_sec != last_change.tv_sec ||
        change.tv_nsec != last_change.tv_nsec) {
      last_change = change;
      deadline = now_ns() + limit_ns;
    } else if (now_ns() > deadline) {
      errno = EWOULDBLOCK;
      return false;
    }
    usleep(pause_us);
    pause_us = std::min(longest_pause_us, pause_us + pause_us / 2);
  }
  if (fstat(directory_.get(), &status) == 0 && status.st_nlink != 0) return true;
  errno = ENOENT;
  return false;
}

void SegmentDirectory::unlock() const noexcept { flock(directory_.get(), LOCK_UN); }

unsigned SegmentDirectory::sweep(unsigned living_limit) const {
  std::vector<SegmentName> names;
  for_each([&names](const SegmentName& name) {
    names.push_back(name);
    return true;
  });
  const size_t first = names.empty() ? 0 : now_ns() % names.size();
  unsigned removed = 0;
  unsigned living = 0;
  for (size_t i = 0; i < names.size() && living < living_limit; ++i) {
    const std::string path = path_of(names[(first + i) % names.size()]);
    const SegmentFile file(path);
    if (file.fd() < 0) continue;
    if (file.owner_alive())
      ++living;
    else if (unlink(path.c_str()) == 0)
      ++removed;
  }
  return removed;
}

SegmentFile::SegmentFile(const std::string& path) noexcept {
  constexpr int flags = O_RDWR | O_NOFOLLOW | O_NONBLOCK;
  file_ = open_file(path.c_str(), flags);
  if (!file_.is_open() && errno == EACCES && mend_private(path.c_str(), owner_reads_and_writes))
    file_ = open_file(path.c_str(), flags);
}

bool SegmentFile::lock() const noexcept {
  struct flock lock = whole_file_lock();
  return fcntl(fd(), F_OFD_SETLK, &lock) == 0;
}

bool SegmentFile::owner_alive() const noexcept {
  struct flock lock = whole_file_lock();
  return fcntl(fd(), F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

bool nonce_is_alive(uint64_t nonce) {
  bool alive = false;
  if (const auto directory = SegmentDirectory::open(false)) {
    directory->for_each([&](const SegmentName& name) {
      if (name.nonce != nonce) return true;
      const SegmentFile file(directory->path_of(name));
      alive = file.fd() < 0 || file.owner_alive();
      return false;
    });
  }
  return alive;
}

uint32_t job_hash_of(std::string_view job_key) noexcept {
  if (job_key.empty()) return 0;
  uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  for (const char c : job_key) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  const uint32_t folded = static_cast<uint32_t>(hash ^ hash >> 32);
  return folded == 0 ? 1 : folded;
}

const std::string& segment_root() noexcept { return root(); }

void set_segment_root(std::string directory) { root() = std::move(directory); }

}  // namespace lintel
