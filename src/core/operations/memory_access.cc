#include "core/operations/memory_access.h"

namespace lintel {

bool may_access(const OperationTable& operations, const Peer* peer, const RemoteMemory& memory,
                bool write) noexcept {
  const Operation* operation = operations.find(static_cast<uint32_t>(memory.key));
  if (operation == nullptr || operation->peer.load(std::memory_order_relaxed) != peer ||
      operation->stage.load(std::memory_order_acquire) == Operation::Stage::queued ||
      (operation->header.flags & flag_remote_memory) == 0 || operation->streaming)
    return false;
  // The end of sending has not been reported, or the reply has not: the descriptor is in use.
  const bool put = operation->header.kind == MessageKind::put;
  if (put == write || !(put ? operation->send_due : operation->answer_due)) return false;
  const MemoryDescriptor* descriptor = put ? operation->put.get() : operation->get.get();
  if (descriptor == nullptr) return false;
  Piece pieces[transfer_remote_pieces];
  uint64_t covered = 0;
  const unsigned count = descriptor->region.pieces(
      put ? operation->put_offset : operation->get_offset, operation->header.length(), pieces,
      transfer_remote_pieces, &covered);
  for (unsigned i = 0; i < count; ++i) {
    const uint64_t offset = memory.address - reinterpret_cast<uint64_t>(pieces[i].base);
    if (offset <= pieces[i].length && memory.length <= pieces[i].length - offset) return true;
  }
  return false;
}

}  // namespace lintel
