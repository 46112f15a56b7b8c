// Where the memory of the entries shows the data of messages that no event tells of. It is what
// decides about portals without an event queue. Set-up path.
#pragma once

#include <map>

#include "fuzz/evidence.h"

namespace lintel::fuzz {

class MemoryEvidence {
 public:
  // After the phase: nothing is written there any more. Nothing is looked for where the events
  // leave no choice (Evidence::is_decisive): there the end tells more.
  MemoryEvidence(const PortalHistory& history, const Evidence& evidence);

  // Its data are in some entry.
  [[nodiscard]] bool shows(const Message& message) const { return places_.count(message.id) != 0; }
  // The message cannot have put `mlength` bytes at `offset` of `entry`. nullptr: it went nowhere.
  [[nodiscard]] bool contradicts(const Message& message, const Entry* entry, uint64_t offset,
                                 uint64_t mlength) const;

 private:
  struct Place {
    uint32_t entry;
    uint64_t offset;
  };

  void look_for(const Message& message);
  // Whether the entry has bytes of the message that others have not overwritten.
  [[nodiscard]] bool has_part(const Entry& entry, const Message& message, uint64_t offset) const;

  const Program& program_;
  const Portal& portal_;
  std::map<uint32_t, std::vector<std::byte>> contents_;  // of entries, in the order of offsets
  std::map<uint32_t, Place> places_;                     // by message
};

}  // namespace lintel::fuzz
