// Finding the data of messages in memory. Set-up path.
#include "fuzz/memory_evidence.h"

#include <algorithm>
#include <array>

#include "fuzz/kinds.h"

namespace lintel::fuzz {

namespace {
// This many equal bytes are not a coincidence.
constexpr uint64_t telling_bytes = 8;
// At both ends of a message, because contradicts() is called very often.
constexpr uint64_t compared_bytes = 32;
}  // namespace

MemoryEvidence::MemoryEvidence(const PortalHistory& history, const Evidence& evidence)
    : program_(*history.program), portal_(program_.portal(history.endpoint, history.portal)) {
  if (evidence.is_decisive()) return;
  for (const Entry& e : program_.entries) {
    if (e.endpoint != history.endpoint || e.portal != history.portal || e.is_search) continue;
    std::vector<std::byte>& content = contents_[e.id];
    e.memory.for_each(0, e.memory.length(), [&](uint64_t start, uint64_t bytes, uint64_t) {
      content.insert(content.end(), history.memory + start, history.memory + start + bytes);
    });
  }
  for (const Message& m : program_.messages)
    if (m.target == history.endpoint && m.portal == history.portal && m.kind == Kind::put &&
        m.length >= telling_bytes && evidence.arrival_of(m.id) == nullptr)
      look_for(m);
}

void MemoryEvidence::look_for(const Message& m) {
  std::array<std::byte, telling_bytes> beginning{};
  for (uint64_t i = 0; i < telling_bytes; ++i) beginning[i] = payload_at(m.id, i);
  for (const auto& [id, content] : contents_) {
    const Entry& e = program_.entries[id];
    if (e.has(PTL_ME_MANAGE_LOCAL)) {
      const auto found =
          std::search(content.begin(), content.end(), beginning.begin(), beginning.end());
      if (found == content.end()) continue;
      places_[m.id] = {id, static_cast<uint64_t>(found - content.begin())};
      return;
    }
    if (!has_part(e, m, m.remote_offset)) continue;
    places_[m.id] = {id, m.remote_offset};
    return;
  }
}

bool MemoryEvidence::has_part(const Entry& e, const Message& m, uint64_t offset) const {
  const std::vector<std::byte>& content = contents_.at(e.id);
  uint64_t equal = 0;
  for (uint64_t i = 0; i < m.length && offset + i < content.size(); ++i) {
    equal = content[offset + i] == payload_at(m.id, i) ? equal + 1 : 0;
    if (equal == telling_bytes) return true;
  }
  return false;
}

bool MemoryEvidence::contradicts(const Message& m, const Entry* entry, uint64_t offset,
                                 uint64_t mlength) const {
  if (const auto found = places_.find(m.id); found != places_.end())
    return entry == nullptr || entry->id != found->second.entry || offset != found->second.offset;
  // An entry with a locally managed offset is never overwritten.
  if (entry == nullptr || !entry->has(PTL_ME_MANAGE_LOCAL) || !stores(m, *entry, portal_))
    return false;
  const auto known = contents_.find(entry->id);
  if (known == contents_.end()) return false;
  const std::vector<std::byte>& content = known->second;
  const auto differs = [&](uint64_t i) { return content[offset + i] != data_at(m, i); };
  for (uint64_t i = 0; i < std::min(mlength, compared_bytes); ++i)
    if (differs(i) || differs(mlength - 1 - i)) return true;
  return false;
}

}  // namespace lintel::fuzz
