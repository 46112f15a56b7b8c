// Opening and closing the shared-memory transport. Set-up path.
#include "shm/shm_transport.h"

#include "shm/segment_name.h"

namespace lintel {

OpenStatus ShmTransport::open(const ShmSettings& settings, std::unique_ptr<ShmTransport>& result,
                              std::string& reason) {
  std::unique_ptr<Segment> segment;
  const OpenStatus status = Segment::create(
      {settings.nid, settings.pid, job_hash_of(settings.job_key), settings.memory_bytes}, segment,
      reason);
  if (status == OpenStatus::opened) result.reset(new ShmTransport(std::move(segment), settings));
  return status;
}

ShmTransport::ShmTransport(std::unique_ptr<Segment> segment, const ShmSettings& settings)
    : segment_(std::move(segment)),
      job_hash_(job_hash_of(settings.job_key)),
      capabilities_{"shm", lane_max_payload_bytes, settings.cma, false,
                    settings.cma_threshold_bytes},
      lanes_(segment_->geometry().lane_count) {
  active_lanes_.reserve(lanes_.size());
}

ShmTransport::~ShmTransport() {
  // A forked child leaves the connections of its parent alone.
  if (!segment_->created_by_this_process()) return;
  for (const auto& link : owned_links_)
    if (link->send_lane != no_lane && !link->failed.load(std::memory_order_relaxed))
      link->segment->close_lane(link->send_lane, segment_->nonce());
}

ShmCounters ShmTransport::counters() const noexcept {
  ShmCounters sum;
  for (const ShmLink* link = all_links_.load(std::memory_order_acquire); link != nullptr;
       link = link->next) {
    sum.sent_messages += link->sent_messages.get();
    sum.sent_bytes += link->sent_bytes.get();
    sum.queue_full += link->queue_full.get();
  }
  sum.received_messages = received_messages_.get();
  sum.received_bytes = received_bytes_.get();
  sum.helped_chunks = helped_chunks_.get();
  sum.doorbell_rings = doorbell_rings_.get();
  sum.links_refused = links_refused_.get();
  sum.malformed = malformed_.get();
  sum.peers_failed = peers_failed_.get();
  return sum;
}

std::string ShmTransport::describe() const {
  const SegmentGeometry& geometry = segment_->geometry();
  return segment_->path() + ", " + std::to_string(geometry.lane_count) + " lanes in " +
         std::to_string(geometry.segment_bytes / 1024) + " KiB, " +
         (capabilities_.remote_access
              ? "large payloads by process_vm_readv where permitted, both processes taking part"
              : "large payloads through the segment (PTL_SHM_CMA=0)");
}

}  // namespace lintel
