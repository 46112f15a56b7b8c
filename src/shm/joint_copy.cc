// Copying together with the peer (joint_copy.h): offering the work, and helping. Message path of
// large payloads; the poll token held on either side.
#include "shm/joint_copy.h"

#include <sched.h>

#include <algorithm>

#include "shm/shm_transport.h"
#include "util/peer_order.h"

namespace lintel {

namespace {

// Less than this is copied before another processor has noticed.
constexpr uint64_t joint_copy_min_bytes = uint64_t{1} << 17;
constexpr uint64_t chunk_min_bytes = uint64_t{1} << 16;
constexpr uint64_t chunk_max_bytes = uint64_t{1} << 26;  // a helper must not be away for long
constexpr uint64_t page_bytes = 4096;

// Both ends in one piece: cut into chunks.
void cut(const Piece& local, const RemoteMemory& remote, JointPlan& plan) noexcept {
  const uint64_t share = (local.length + joint_copy_max_chunks - 1) / joint_copy_max_chunks;
  const uint64_t step =
      (std::max(share, chunk_min_bytes) + page_bytes - 1) / page_bytes * page_bytes;
  if (step > chunk_max_bytes) return;
  for (uint64_t at = 0; at < local.length; at += step, ++plan.chunks) {
    const uint64_t bytes = std::min(step, local.length - at);
    plan.local[plan.chunks] = {local.base + at, bytes};
    plan.remote[plan.chunks] = {remote.address + at, bytes, remote.key};
  }
}

void publish_chunk(JointChunk& chunk, const Piece& local, const RemoteMemory& remote) noexcept {
  chunk.owner_address.store(reinterpret_cast<uint64_t>(local.base), std::memory_order_relaxed);
  chunk.helper_address.store(remote.address, std::memory_order_relaxed);
  chunk.bytes.store(local.length, std::memory_order_relaxed);
  chunk.key.store(remote.key, std::memory_order_relaxed);
}

}  // namespace

// How to share the work; no chunks if it is not worth it. Puts of a burst that are fetched together
// are not shared: they are short, and go to memory that one of the two processors has at hand.
JointPlan ShmTransport::plan_joint_copy(const Piece* local, unsigned local_count,
                                        const RemoteMemory* remote,
                                        unsigned remote_count) noexcept {
  JointPlan plan;
  if (local_count == 1 && remote_count == 1 && local->length == remote->length &&
      local->length >= joint_copy_min_bytes)
    cut(*local, *remote, plan);
  return plan;
}

// The plan stays in private memory: what peers write into the segment can spoil no more than this
// copy.
template <bool reading>
RemoteResult ShmTransport::copy_jointly(ShmLink& link, const JointPlan& plan) noexcept {
  offer_chunks(link, plan, reading);
  JointCopy& offer = segment_->header().joint_copy;
  RemoteResult result{RemoteStatus::done, 0};
  const auto copy_chunk = [&](unsigned index) {
    const RemoteResult copied =
        copy_alone<reading>(link, &plan.local[index], 1, &plan.remote[index], 1);
    result.status = copied.status;
    result.bytes += copied.bytes;
    return copied.status == RemoteStatus::done;
  };
  unsigned own = 0;
  while (own < plan.chunks && offer.claim_front() && copy_chunk(own)) ++own;
  const unsigned helped = std::min(offer.close(), plan.chunks - own);
  if (!await_helper(link, helped)) return {RemoteStatus::peer_failed, result.bytes};
  if (result.status != RemoteStatus::done) return result;
  helped_chunks_.add(helped);
  note_received();
  // What is wrong, if anything is, shows when the owner copies.
  const bool again = offer.helper_failed.load(std::memory_order_relaxed) != 0;
  for (unsigned index = own; index < plan.chunks; ++index) {
    if (again || index < plan.chunks - helped) {
      if (!copy_chunk(index)) break;
    } else {
      result.bytes += plan.local[index].length;
    }
  }
  return result;
}

template RemoteResult ShmTransport::copy_jointly<true>(ShmLink&, const JointPlan&) noexcept;
template RemoteResult ShmTransport::copy_jointly<false>(ShmLink&, const JointPlan&) noexcept;

void ShmTransport::offer_chunks(ShmLink& link, const JointPlan& plan, bool to_owner) noexcept {
  JointCopy& offer = segment_->header().joint_copy;
  for (unsigned i = 0; i < plan.chunks; ++i)
    publish_chunk(offer.chunk[i], plan.local[i], plan.remote[i]);
  offer.helper_nonce.store(link.nonce, std::memory_order_relaxed);
  offer.helper_finished.store(0, std::memory_order_relaxed);
  offer.helper_failed.store(0, std::memory_order_relaxed);
  offer.to_owner.store(to_owner ? 1 : 0, std::memory_order_relaxed);
  note_sending();
  offer.claims.store(JointClaims{++joint_offers_, static_cast<uint8_t>(plan.chunks), 0, 0}.pack(),
                     std::memory_order_release);
  // Nobody is woken: whoever sleeps has something better to do.
  link.segment->header().help_wanted.store(
      uint64_t{joint_offers_} << 32 | (link.send_lane.load(std::memory_order_relaxed) + 1),
      std::memory_order_release);
}

// Until the helper has no chunk in its hands; false: it died. It is within one copy of the end,
// unless it was made to stop there, or lost its processor.
bool ShmTransport::await_helper(const ShmLink& link, unsigned chunks) noexcept {
  // A chunk takes some ten microseconds; who gives the processor away beside one that computes gets it
  // back after milliseconds.
  constexpr unsigned looks_between_yields = 50'000;
  constexpr unsigned looks_between_checks = 1'000'000;
  const JointCopy& offer = segment_->header().joint_copy;
  for (unsigned looks = 1; offer.helper_finished.load(std::memory_order_acquire) < chunks;
       ++looks) {
    if (looks % looks_between_yields == 0) sched_yield();
    if (looks % looks_between_checks == 0 && !link.segment->owner_alive()) return false;
  }
  return true;
}

// A peer copies from or to memory of this process and would be glad of help. Returns the number of
// chunks: as long as there are any, it is too early to sleep.
unsigned ShmTransport::help(MessageSink& sink) noexcept {
  help_seen_ = segment_->header().help_wanted.load(std::memory_order_acquire);
  const auto lane = static_cast<uint32_t>(help_seen_) - 1;
  const auto number = static_cast<uint32_t>(help_seen_ >> 32);
  if (lane >= lanes_.size() || lanes_[lane].state != ReceiveState::active) return 0;
  ShmLink& link = *lanes_[lane].link;
  if (link.failed.load(std::memory_order_relaxed) || !reach_memory(link)) return 0;
  JointCopy& offer = link.segment->header().joint_copy;
  if (offer.helper_nonce.load(std::memory_order_relaxed) != segment_->nonce()) return 0;
  unsigned index = 0;
  unsigned copied = 0;
  for (; copied < joint_copy_max_chunks && offer.claim_back(number, index); ++copied) {
    note_received();
    const bool to_owner = offer.to_owner.load(std::memory_order_relaxed) != 0;
    if (!copy_for_owner(sink, link, offer.chunk[index], to_owner))
      offer.helper_failed.store(1, std::memory_order_relaxed);
    note_sending();
    offer.helper_finished.fetch_add(1, std::memory_order_release);
  }
  return copied;
}

// The owner says where in its own memory, which is its own affair; that our end is memory which it
// was told of for an operation that goes on, the core knows.
bool ShmTransport::copy_for_owner(MessageSink& sink, ShmLink& link, const JointChunk& chunk,
                                  bool to_owner) noexcept {
  const uint64_t own = chunk.helper_address.load(std::memory_order_relaxed);
  const uint64_t bytes = chunk.bytes.load(std::memory_order_relaxed);
  const uint64_t key = chunk.key.load(std::memory_order_relaxed);
  if (bytes > chunk_max_bytes || !sink.may_access(link, {own, bytes, key}, !to_owner)) return false;
  const Piece here{reinterpret_cast<std::byte*>(own), bytes};
  const RemoteMemory there{chunk.owner_address.load(std::memory_order_relaxed), bytes, 0};
  const RemoteResult copied = to_owner ? copy_alone<false>(link, &here, 1, &there, 1)
                                       : copy_alone<true>(link, &here, 1, &there, 1);
  return copied.status == RemoteStatus::done;
}

}  // namespace lintel
