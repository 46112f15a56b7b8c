// Taking chunks from the back of a peer's offer. Message path of large payloads.
#include "shm/joint_help.h"

#include "util/peer_order.h"

namespace lintel {

unsigned JointHelp::help(MessageSink& sink) noexcept {
  seen_ = own_.header().help_wanted.load(std::memory_order_acquire);
  const auto lane = static_cast<uint32_t>(seen_) - 1;
  const auto number = static_cast<uint32_t>(seen_ >> 32);
  if (lane >= lanes_.count() || lanes_.state(lane) != ReceiveLanes::State::active) return 0;
  ShmLink& link = *lanes_.link(lane);
  if (link.failed.load(std::memory_order_relaxed) || !link.memory.reach()) return 0;
  JointCopy& offer = link.segment->header().joint_copy;
  if (offer.helper_nonce.load(std::memory_order_relaxed) != own_.nonce()) return 0;
  unsigned index = 0;
  unsigned copied = 0;
  for (; copied < joint_copy_max_chunks && offer.claim_back(number, index); ++copied) {
    note_received();
    const bool to_owner = offer.to_owner.load(std::memory_order_relaxed) != 0;
    if (!copy(sink, link, offer.chunk[index], to_owner))
      offer.helper_failed.store(1, std::memory_order_relaxed);
    note_sending();
    offer.helper_finished.fetch_add(1, std::memory_order_release);
  }
  // An owner that went to sleep because the help took long.
  if (copied != 0) link.segment->doorbell().ring_if_sleeping();
  return copied;
}

// The owner names the address in its own memory, and the kernel checks the access. The core checks
// that this end is memory that was exposed to the owner for an operation in flight.
bool JointHelp::copy(MessageSink& sink, ShmLink& link, const JointChunk& chunk,
                     bool to_owner) noexcept {
  const uint64_t own = chunk.helper_address.load(std::memory_order_relaxed);
  const uint64_t bytes = chunk.bytes.load(std::memory_order_relaxed);
  const uint64_t key = chunk.key.load(std::memory_order_relaxed);
  if (bytes > joint_chunk_max_bytes || !sink.may_access(link, {own, bytes, key}, !to_owner))
    return false;
  const Piece here{reinterpret_cast<std::byte*>(own), bytes};
  const RemoteMemory there{chunk.owner_address.load(std::memory_order_relaxed), bytes, 0};
  const CopyDirection direction = to_owner ? CopyDirection::to_peer : CopyDirection::to_here;
  return link.copy(direction, &here, 1, &there, 1).status == RemoteStatus::done;
}

}  // namespace lintel
