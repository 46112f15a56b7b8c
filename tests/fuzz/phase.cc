// Set-up path.
#include "fuzz/phase.h"

#include <cstring>

namespace lintel::fuzz {

namespace {
constexpr std::byte result_canary{0xa5};
}

void EndpointMemory::prepare(const Program& program, int endpoint) {
  for (const Entry& e : program.entries) {
    if (e.endpoint != endpoint || e.is_search) continue;
    for (const Layout::Piece& piece : e.memory.pieces)
      for (uint64_t i = piece.start; i < piece.start + piece.length; ++i)
        entries[i] = background_at(endpoint, i);
  }
  for (const Message& m : program.messages) {
    if (m.endpoint != endpoint) continue;
    const Layout& layout = program.descriptors[m.descriptor].memory;
    layout.for_each(m.source, m.length, [&](uint64_t start, uint64_t bytes, uint64_t done) {
      for (uint64_t i = 0; i < bytes; ++i)
        sends[start + i] = m.kind >= Kind::atomic ? m.item[done + i] : payload_at(m.id, done + i);
    });
    layout.for_each(m.result, m.length, [&](uint64_t start, uint64_t bytes, uint64_t) {
      std::memset(sends.data() + start, static_cast<int>(result_canary), bytes);
    });
  }
}

}  // namespace lintel::fuzz
