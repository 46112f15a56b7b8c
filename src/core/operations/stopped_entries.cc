#include "core/operations/stopped_entries.h"

#include "util/assert.h"

namespace lintel {

void StoppedEntries::add(StoppedChain& chain, uint32_t name) noexcept {
  if (chain.count == most_of_peer || find(chain, name) != nullptr) return;
  const uint32_t index = entries_.allocate();
  if (index == Arena<StoppedEntry>::no_index) return;
  StoppedEntry& entry = entries_.at(index);
  entry.name = name;
  entry.count = 0;
  entry.head = nullptr;
  entry.tail = &entry.head;
  entry.next = chain.first;
  chain.first = &entry;
  ++chain.count;
}

void StoppedEntries::remove(StoppedChain& chain, StoppedEntry& entry) noexcept {
  LINTEL_ASSERT(chain.count != 0);
  StoppedEntry** link = &chain.first;
  while (*link != &entry) link = &(*link)->next;
  *link = entry.next;
  --chain.count;
  entries_.release(entry);
}

}  // namespace lintel
