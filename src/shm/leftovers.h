// Segments whose owner died without removing them. Set-up path.
#pragma once

#include <cstdint>
#include <string>

namespace lintel {

enum class LeftoverStatus : uint8_t {
  removed,  // or gone already: the name is free
  in_use,   // its owner lives
  foreign,  // not a segment of this user, and not to be touched
};

// Removes the segment at `path` if its owner is dead; never the one of a live process, even if both
// start and end meanwhile.
[[nodiscard]] LeftoverStatus remove_leftover(const std::string& path);

// Looks through the segments of this user, a bounded number of them, and removes those left over.
// Returns how many it removed.
unsigned sweep_leftovers();

// True if a live process of this user owns a segment with this nonce. Looks through all of them.
[[nodiscard]] bool nonce_is_alive(uint64_t nonce);

}  // namespace lintel
