// The directory of the segments of this user: files <nid>.<pid>.<nonce> in a directory of /dev/shm
// that only the user can enter (private_directory.h). It also contains the secret of node_secret.h.
// Set-up and connection path.
//
// The owner of a segment shows that it lives by a lock of the open file. The kernel drops it with
// the owner's mapping, so no descriptor has to stay open.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "transport/message.h"
#include "util/descriptor.h"

namespace lintel {

// The name of a segment, and its parts.
struct SegmentName {
  ProcessId id;
  uint64_t nonce = 0;

  [[nodiscard]] std::string text() const;
  [[nodiscard]] static std::optional<SegmentName> parse(const char* text) noexcept;
};

class SegmentFile {
 public:
  explicit SegmentFile(Descriptor file) noexcept : file_(std::move(file)) {}
  explicit SegmentFile(const std::string& path) noexcept;  // fd() < 0: errno says why

  [[nodiscard]] int fd() const noexcept { return file_.get(); }
  // Takes the lock of the owner, which lasts as long as the file is mapped.
  [[nodiscard]] bool lock() const noexcept;
  [[nodiscard]] bool owner_alive() const noexcept;

 private:
  Descriptor file_;
};

class SegmentDirectory {
 public:
  // Sets errno if there is no directory (`make`: and none can be made).
  [[nodiscard]] static std::optional<SegmentDirectory> open(bool make);

  // A file without a name, which can be entered in the directory.
  [[nodiscard]] static SegmentFile make_file() noexcept;

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] std::string path_of(const SegmentName& name) const {
    return path_ + "/" + name.text();
  }
  // Calls action(name) for each segment until it returns false.
  void for_each(const std::function<bool(const SegmentName&)>& action) const;
  // The same for all files in it.
  void for_each_name(const std::function<bool(const char*)>& action) const;

  // A process that looks for a free pid and takes it holds this lock until the object is destroyed.
  // False: errno is ENOENT if the directory was removed; or other processes held the lock, and no
  // file came or went for `limit_ns`. Thousands of processes that start at once may take minutes.
  [[nodiscard]] bool lock(uint64_t limit_ns = 30'000'000'000) const noexcept;
  void unlock() const noexcept;
  // Removes segments whose owners ended; returns how many. Begins anywhere, ends after so many
  // whose owners run: thousands of processes may start at once.
  static constexpr unsigned most_living = 256;
  unsigned sweep(unsigned living_limit = most_living) const;

 private:
  SegmentDirectory(std::string path, Descriptor directory) noexcept
      : path_(std::move(path)), directory_(std::move(directory)) {}
  std::string path_;
  Descriptor directory_;
};

// True if a live process of this user owns a segment with this nonce.
[[nodiscard]] bool nonce_is_alive(uint64_t nonce);

// Processes of different jobs do not see each other. An empty key gives 0.
[[nodiscard]] uint32_t job_hash_of(std::string_view job_key) noexcept;

// Path of the directory that contains the directories of users.
[[nodiscard]] const std::string& segment_root() noexcept;
// For tests, whose segments other processes must not remove. Called before the first segment is
// made.
void set_segment_root(std::string directory);

}  // namespace lintel
