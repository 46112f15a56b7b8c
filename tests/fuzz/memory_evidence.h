// Messages without events whose data are found in the memory of entries. For portals without an
// event queue, only this shows what happened. Set-up path.
#pragma once

#include <map>

#include "fuzz/evidence.h"

namespace lintel::fuzz {

class MemoryEvidence {
 public:
  // Constructed after the phase, when memory no longer changes. If the events leave no choice
  // (Evidence::is_decisive), memory is not searched, because the difference at the end is the
  // better explanation.
  MemoryEvidence(const PortalHistory& history, const Evidence& evidence);

  // Whether the data of the message are in some entry.
  [[nodiscard]] bool shows(const Message& message) const { return places_.count(message.id) != 0; }
  // Whether the message cannot have written `mlength` bytes at `offset` of `entry`. nullptr: it
  // matched no entry.
  [[nodiscard]] bool contradicts(const Message& message, const Entry* entry, uint64_t offset,
                                 uint64_t mlength) const;

 private:
  struct Place {
    uint32_t entry;
    uint64_t offset;
  };

  void look_for(const Message& message);
  // Whether the entry contains bytes of the message that have not been overwritten.
  [[nodiscard]] bool has_part(const Entry& entry, const Message& message, uint64_t offset) const;

  const Program& program_;
  const Portal& portal_;
  std::map<uint32_t, std::vector<std::byte>> contents_;  // contents of entries, in order of offsets
  std::map<uint32_t, Place> places_;                     // by message
};

}  // namespace lintel::fuzz
