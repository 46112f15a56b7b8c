// Choosing the job key: the program's, PTL_JOB_KEY, PTL_JOB_KEY_FILE, in this order. Set-up path.
#include "util/job_key.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "util/config.h"
#include "util/log.h"
#include "util/new_descriptor.h"
#include "util/uninterrupted.h"

namespace lintel {

namespace {

constexpr size_t longest_key = 4096;  // bytes; a file that is longer is not a key file

std::optional<std::string>& chosen_key() {
  static std::optional<std::string>& key = *new std::optional<std::string>;
  return key;
}

// Returns what is wrong with a file that contains a secret; empty if nothing is.
std::string why_not_secret(int fd) {
  struct stat status;
  if (fstat(fd, &status) != 0) return std::strerror(errno);
  if (!S_ISREG(status.st_mode)) return "it is not a regular file";
  if (status.st_uid != geteuid())
    return "it belongs to user " + std::to_string(status.st_uid) + ", not to user " +
           std::to_string(geteuid());
  if ((status.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    return "others than its owner have access; chmod 600 it";
  return "";
}

// The first line of the file.
std::string read_key(int fd, std::string& key) {
  key.resize(longest_key + 1);
  size_t length = 0;
  while (length < key.size()) {
    const ssize_t got =
        uninterrupted([&] { return read(fd, key.data() + length, key.size() - length); });
    if (got < 0) return std::strerror(errno);
    if (got == 0) break;
    length += static_cast<size_t>(got);
  }
  key.resize(length);
  if (const size_t end = key.find_first_of("\r\n"); end != std::string::npos) key.resize(end);
  if (key.empty()) return "its first line is empty";
  if (key.size() > longest_key) return "its first line is longer than 4096 bytes";
  return "";
}

}  // namespace

void choose_job_key(std::string key) {
  config_set(ConfigKey::job_key, key);
  chosen_key() = std::move(key);
}

bool settle_job_key() {
  if (chosen_key()) {
    config_set(ConfigKey::job_key, *chosen_key());
    return true;
  }
  const std::string& path = config_string(ConfigKey::job_key_file);
  if (!config_string(ConfigKey::job_key).empty() || path.empty()) return true;
  std::string key;
  const Descriptor file = open_file(path.c_str(), O_RDONLY | O_NONBLOCK);
  std::string why = file.is_open() ? why_not_secret(file.get()) : std::strerror(errno);
  if (why.empty()) why = read_key(file.get(), key);
  if (!why.empty()) {
    log_message(LogLevel::error, "no job key: PTL_JOB_KEY_FILE=%s: %s", path.c_str(), why.c_str());
    return false;
  }
  config_set(ConfigKey::job_key, std::move(key));
  return true;
}

}  // namespace lintel
