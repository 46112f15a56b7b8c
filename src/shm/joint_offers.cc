// Offers chunks of a copy, copies from the front, ends the copy. Message path of large payloads.
#include "shm/joint_offers.h"

#include <sched.h>

#include <algorithm>
#include <utility>

#include "util/peer_order.h"

namespace lintel {

namespace {

// Minimum length of a joint copy. A shorter one ends before another processor has noticed the
// offer.
constexpr uint64_t joint_copy_min_bytes = uint64_t{1} << 17;
constexpr uint64_t chunk_min_bytes = uint64_t{1} << 16;
constexpr uint64_t page_bytes = 4096;

}  // namespace

// Puts of a burst that are fetched together are not shared: they are short, and their memory is
// likely in the cache of one of the two processors. Before the first answer to the peer, no offer
// can be made to it.
RemoteResult JointOffers::copy(ShmLink& link, CopyDirection direction, const Piece* local,
                               unsigned local_count, const RemoteMemory* remote,
                               unsigned remote_count, uint32_t token) noexcept {
  if (pending_ != nullptr || !link.memory.reached() || link.sender.lane() == no_lane ||
      local_count != 1 || remote_count != 1 || local->length != remote->length ||
      !plan(*local, *remote)) {
    return link.copy(direction, local, local_count, remote, remote_count);
  }
  direction_ = direction;
  result_ = {RemoteStatus::done, 0};
  publish(link);
  own_ = 0;
  while (own_ < chunks_ && offer_.claim_front() && copy_chunk(link, own_)) ++own_;
  helped_ = std::min(offer_.close(), chunks_ - own_);
  if (await_helper()) return finish(link);
  pending_ = &link;
  token_ = token;
  return {RemoteStatus::started, 0};
}

// Cuts a copy with one piece at both ends into chunks. False: it is too short, or too long.
bool JointOffers::plan(const Piece& local, const RemoteMemory& remote) noexcept {
  if (local.length < joint_copy_min_bytes) return false;
  const uint64_t share = (local.length + joint_copy_max_chunks - 1) / joint_copy_max_chunks;
  const uint64_t step =
      (std::max(share, chunk_min_bytes) + page_bytes - 1) / page_bytes * page_bytes;
  if (step > joint_chunk_max_bytes) return false;
  chunks_ = 0;
  for (uint64_t at = 0; at < local.length; at += step, ++chunks_) {
    const uint64_t bytes = std::min(step, local.length - at);
    local_[chunks_] = {local.base + at, bytes};
    remote_[chunks_] = {remote.address + at, bytes, remote.key};
  }
  return true;
}

// No thread is woken: a peer that sleeps takes no part.
void JointOffers::publish(ShmLink& link) noexcept {
  for (unsigned i = 0; i < chunks_; ++i) {
    JointChunk& chunk = offer_.chunk[i];
    chunk.owner_address.store(reinterpret_cast<uint64_t>(local_[i].base),
                              std::memory_order_relaxed);
    chunk.helper_address.store(remote_[i].address, std::memory_order_relaxed);
    chunk.bytes.store(local_[i].length, std::memory_order_relaxed);
    chunk.key.store(remote_[i].key, std::memory_order_relaxed);
  }
  offer_.helper_nonce.store(link.nonce, std::memory_order_relaxed);
  offer_.helper_finished.store(0, std::memory_order_relaxed);
  offer_.helper_failed.store(0, std::memory_order_relaxed);
  offer_.to_owner.store(direction_ == CopyDirection::to_here ? 1 : 0, std::memory_order_relaxed);
  note_sending();
  offer_.claims.store(JointClaims{++offers_, static_cast<uint8_t>(chunks_), 0, 0}.pack(),
                      std::memory_order_relaxed);
  link.segment->header().help_wanted.store(uint64_t{offers_} << 32 | (link.sender.lane() + 1),
                                           std::memory_order_release);
}

bool JointOffers::copy_chunk(ShmLink& link, unsigned index) noexcept {
  const RemoteResult copied = link.copy(direction_, &local_[index], 1, &remote_[index], 1);
  result_.status = copied.status;
  result_.bytes += copied.bytes;
  return copied.status == RemoteStatus::done;
}

// The helper needs some ten microseconds for its last chunk, unless it has lost its processor or
// was stopped. A thread that yields to one that computes gets the processor back after
// milliseconds.
bool JointOffers::await_helper() const noexcept {
  constexpr unsigned looks_between_yields = 50'000;
  constexpr unsigned looks_at_most = 200'000;
  for (unsigned looks = 1; looks <= looks_at_most; ++looks) {
    if (helper_done()) return true;
    if (looks % looks_between_yields == 0) sched_yield();
  }
  return false;
}

RemoteResult JointOffers::finish(ShmLink& link) noexcept {
  if (result_.status != RemoteStatus::done) return result_;
  helped_chunks_ += helped_;
  note_received();
  // If the helper failed, the owner copies these chunks, too, and gets the status.
  const bool again = offer_.helper_failed.load(std::memory_order_relaxed) != 0;
  for (unsigned index = own_; index < chunks_; ++index) {
    if (again || index < chunks_ - helped_) {
      if (!copy_chunk(link, index)) break;
    } else {
      result_.bytes += local_[index].length;
    }
  }
  return result_;
}

void JointOffers::settle(MessageSink& sink) noexcept {
  ShmLink& link = *std::exchange(pending_, nullptr);
  sink.on_remote_done(link, token_, finish(link));
}

void JointOffers::give_up(MessageSink& sink) noexcept {
  sink.on_remote_done(*std::exchange(pending_, nullptr), token_,
                      {RemoteStatus::peer_failed, result_.bytes});
}

}  // namespace lintel
