// Finding and making the private directory.
#include "shm/private_directory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "util/new_descriptor.h"

namespace lintel {

namespace {

// Names of the directory have numbers. That of the first one is not written.
class Names {
 public:
  explicit Names(const std::string& root)
      : root_(root), plain_("lintel." + std::to_string(geteuid())) {}

  [[nodiscard]] std::string path(uint64_t number) const {
    const std::string first = root_ + "/" + plain_;
    return number == 0 ? first : first + "." + std::to_string(number);
  }

  // The numbers of all names that are taken, by whomever, in order. False: errno says why not.
  [[nodiscard]] bool find_taken(std::vector<uint64_t>& numbers) const {
    numbers.clear();
    const DirectoryStream stream = open_directory(root_.c_str());
    if (stream == nullptr) return false;
    while (const dirent* const entry = readdir(stream.get()))
      if (const std::optional<uint64_t> number = number_of(entry->d_name))
        numbers.push_back(*number);
    std::sort(numbers.begin(), numbers.end());
    return true;
  }

 private:
  [[nodiscard]] std::optional<uint64_t> number_of(std::string_view name) const noexcept {
    if (!name.starts_with(plain_)) return {};
    name.remove_prefix(plain_.size());
    if (name.empty()) return 0;
    uint64_t number = 0;
    const char* const end = name.data() + name.size();
    if (name.size() < 2 || name[0] != '.' || name[1] == '0') return {};
    const auto [rest, error] = std::from_chars(name.data() + 1, end, number);
    return error == std::errc() && rest == end ? std::optional(number) : std::nullopt;
  }

  const std::string& root_;
  const std::string plain_;
};

bool is_without_resources(int error) noexcept {
  return error == EMFILE || error == ENFILE || error == ENOMEM;
}

// Opens a directory of this user. If the result is not open, errno says why.
Descriptor open_own(const std::string& path) noexcept {
  constexpr int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW;
  Descriptor directory = open_file(path.c_str(), flags);
  if (!directory.is_open() && errno == EACCES && mend_private(path.c_str(), S_IRWXU))
    directory = open_file(path.c_str(), flags);
  struct stat status;
  if (!directory.is_open()) return {};
  if (fstat(directory.get(), &status) != 0 || status.st_uid != geteuid() ||
      (status.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    errno = EACCES;
    return {};
  }
  if ((status.st_mode & S_IRWXU) != S_IRWXU) mend_private(path.c_str(), S_IRWXU);
  return directory;
}

// The first of these that is a directory of this user, other than `except`. If there is none, errno
// is ENOENT; EAGAIN if one was removed meanwhile.
std::optional<PrivateDirectory> open_first(const Names& names, const std::vector<uint64_t>& numbers,
                                           const std::string& except) {
  int error = ENOENT;
  for (const uint64_t number : numbers) {
    std::string path = names.path(number);
    if (path == except) continue;
    Descriptor directory = open_own(path);
    if (directory.is_open()) return PrivateDirectory{std::move(path), std::move(directory)};
    if (is_without_resources(errno)) return {};
    if (errno == ENOENT) error = EAGAIN;
  }
  errno = error;
  return {};
}

uint64_t first_free(const std::vector<uint64_t>& taken) noexcept {
  uint64_t number = 0;
  while (number < taken.size() && taken[number] == number) ++number;
  return number;
}

}  // namespace

std::optional<PrivateDirectory> open_private_directory(const std::string& root, bool make) {
  const Names names(root);
  std::string path = names.path(0);
  if (Descriptor first = open_own(path); first.is_open())
    return PrivateDirectory{std::move(path), std::move(first)};
  if (is_without_resources(errno)) return {};
  // Other users may take names, and give them up, at any moment.
  constexpr unsigned attempts = 1000;
  std::vector<uint64_t> taken;
  for (unsigned attempt = 0; attempt < attempts; ++attempt) {
    if (!names.find_taken(taken)) return {};
    std::optional<PrivateDirectory> found = open_first(names, taken, "");
    if (found || is_without_resources(errno)) return found;
    // A process that has just finished removed it. Who starts now does not take another name.
    if (errno == EAGAIN) continue;
    if (!make) return {};
    path = names.path(first_free(taken));
    if (make_directory(path.c_str(), S_IRWXU)) {
      const bool is_own = open_own(path).is_open();
      if (!is_own && errno != ENOENT) {  // another user may own it where user ids are mapped
        const int error = errno;
        rmdir(path.c_str());
        errno = error;
        return {};
      }
      // Under a name that was taken when another process made its own: that one is used.
      if (names.find_taken(taken) && open_first(names, taken, path)) rmdir(path.c_str());
    } else if (errno != EEXIST) {
      return {};
    }
  }
  errno = EEXIST;
  return {};
}

}  // namespace lintel
