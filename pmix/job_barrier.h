// A barrier of all processes of a job on one node, in memory that their launcher shares with them
// (PTL_JOB_MEMORY). Set-up path.
//
// The launcher names a file of 4096 bytes, zeros but for the version, which it keeps open while the
// job runs. It sets the first word when a process of the job has ended, and wakes those that sleep
// on the third word.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

namespace lintel {

class JobBarrier {
 public:
  JobBarrier() = default;
  ~JobBarrier();
  JobBarrier(const JobBarrier&) = delete;
  JobBarrier& operator=(const JobBarrier&) = delete;

  // Each returns an empty text, or what went wrong.
  [[nodiscard]] std::string open(const std::string& path, uint32_t processes);
  // Waits for all, however long it takes; but `limit` at most for processes that have not called
  // open().
  [[nodiscard]] std::string wait(std::chrono::seconds limit);

  [[nodiscard]] bool is_open() const noexcept { return words_ != nullptr; }

 private:
  struct Words {
    std::atomic<uint32_t> ended;  // not 0: a process has ended; set by the launcher
    std::atomic<uint32_t> arrived;
    std::atomic<uint32_t> generation;  // barriers passed; a futex
    std::atomic<uint32_t> opened;      // processes that have called open()
    std::atomic<uint32_t> version;     // of this layout; set by the launcher
  };
  static_assert(sizeof(Words) == 20);
  static constexpr uint32_t version = 1;

  Words* words_ = nullptr;
  uint32_t processes_ = 0;
};

}  // namespace lintel
