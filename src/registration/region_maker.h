// Registers memory that no look-up finds. Connection path: takes as long as the device and the
// kernel need.
#pragma once

#include <atomic>
#include <cstdint>

#include "registration/region_table.h"
#include "util/lock.h"

namespace lintel {

// Ends the registration of regions that have retired, and the watching of memory that no region
// needs any more. Connection path; any thread but the reader of events, see watched_cache.h.
class Deregistration {
 public:
  Deregistration(RegionTable& table, MemoryWatch& watch) noexcept : table_(table), watch_(watch) {}

  // False: the kernel cannot watch all of it.
  [[nodiscard]] bool watch(MemoryRange range) noexcept;
  // Stops watching the parts of `range` that no region needs: others may cover the same pages.
  void stop_watching(MemoryRange range) noexcept;

  void deregister_retired() noexcept;
  // Deregisters regions that are idle, of that many bytes if there are. False: there are none.
  [[nodiscard]] bool make_room(uint64_t bytes) noexcept;
  // Deregisters all regions of the owner, which leaves the table. No operation uses them any more.
  void remove(RegionOwner& owner) noexcept;

 private:
  RegionTable& table_;
  MemoryWatch& watch_;
  // Keeps what is watched equal to what has to be. Taken before the lock of the table, and held
  // through system calls that wait for nothing but the kernel's own lock of the address space.
  Mutex lock_;
  std::atomic<uint32_t> done_{0};  // counts; a futex for those that wait for other threads
};

class RegionMaker {
 public:
  RegionMaker(RegionTable& table, const MemoryWatch& watch, Deregistration& deregistration) noexcept
      : table_(table), watch_(watch), deregistration_(deregistration) {}

  // A region that contains `wanted`, leased to the caller. `keep`: for others as well, if that can
  // be. nullptr: `error` is the errno.
  [[nodiscard]] Region* make(RegionOwner& owner, MemoryRange wanted, bool writable, bool keep,
                             int& error) noexcept;

 private:
  enum class Outcome : uint8_t { made, unwatchable, failed };

  [[nodiscard]] Outcome make_watched(Region& region, MemoryRange wanted, int& error) noexcept;
  [[nodiscard]] Outcome finish(Region& region, bool make_room, int& error) noexcept;
  [[nodiscard]] int register_memory(Region& region, bool make_room) noexcept;

  RegionTable& table_;
  const MemoryWatch& watch_;
  Deregistration& deregistration_;
};

}  // namespace lintel
