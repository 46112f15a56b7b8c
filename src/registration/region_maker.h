// Registers memory that no look-up finds. Connection path: takes as long as the device and the
// kernel need.
#pragma once

#include "registration/deregistration.h"

namespace lintel {

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
