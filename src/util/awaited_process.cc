#include "util/awaited_process.h"

#include <array>
#include <cstddef>

namespace lintel {

std::atomic<uint64_t> awaited_process{0};
namespace {

struct Refusal {
  std::atomic<uint64_t> key{0};
  std::atomic<const char*> why{nullptr};
};
std::array<Refusal, 16> refusals;
std::atomic<size_t> next_refusal{0};

}  // namespace

void note_refusal(uint32_t nid, uint32_t pid, const char* why) noexcept {
  if (refusal_of(nid, pid) == why) return;
  Refusal& refusal = refusals[next_refusal.fetch_add(1) % refusals.size()];
  refusal.key.store(0);
  refusal.why.store(why);
  refusal.key.store(awaited_key(nid, pid));
}

const char* refusal_of(uint32_t nid, uint32_t pid) noexcept {
  const uint64_t key = awaited_key(nid, pid);
  for (const Refusal& refusal : refusals) {
    if (refusal.key.load() != key) continue;
    const char* const why = refusal.why.load();
    if (refusal.key.load() == key) return why;
  }
  return nullptr;
}

}  // namespace lintel
