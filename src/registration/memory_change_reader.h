// Reads what the application unmaps, moves and discards, and retires the regions there. Two
// threads: one reads, and never allocates or frees anything; another deregisters, see
// watched_cache.h.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "registration/region_maker.h"
#include "util/descriptor.h"
#include "util/service_thread.h"

namespace lintel {

class MemoryChangeReader {
 public:
  MemoryChangeReader(RegionTable& table, MemoryWatch& watch,
                     Deregistration& deregistration) noexcept
      : table_(table), watch_(watch), deregistration_(deregistration) {}

  // Set-up path, while the watch is open. False: `reason` says why not.
  [[nodiscard]] bool start(std::string& reason);
  void stop() noexcept;
  // Called in a forked child, which has none of the threads.
  void close_in_child() noexcept { stop_reader_.close(); }

  // Any thread. Returns when no thread changes watched memory. False: the changes do not end.
  [[nodiscard]] bool wait_for_changes() noexcept;

 private:
  void read() noexcept;
  void wake_retirer() noexcept;
  void run_reader() noexcept;
  void run_retirer() noexcept;

  RegionTable& table_;
  MemoryWatch& watch_;
  Deregistration& deregistration_;
  ServiceThread reader_;
  ServiceThread retirer_;
  Descriptor stop_reader_;
  std::atomic<bool> stop_retirer_{false};
  std::atomic<bool> stop_reading_{false};
  std::atomic<uint32_t> retirements_{0};  // counts; the retirer's futex
};

}  // namespace lintel
