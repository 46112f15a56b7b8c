// Opening the transport (set-up path), and the order in which its parts work (message path).
#include "shm/shm_transport.h"

#include <utility>

#include "shm/segment_directory.h"
#include "util/clock.h"

namespace lintel {

OpenStatus ShmTransport::open(const ShmSettings& settings, std::unique_ptr<ShmTransport>& result,
                              std::string& reason) {
  std::unique_ptr<Segment> segment;
  const OpenStatus status =
      Segment::create({settings.nid, settings.pid, job_hash_of(settings.job_key),
                       settings.memory_bytes, settings.incarnation},
                      segment, reason);
  if (status == OpenStatus::opened) result.reset(new ShmTransport(std::move(segment), settings));
  return status;
}

ShmTransport::ShmTransport(std::unique_ptr<Segment> segment, const ShmSettings& settings)
    : segment_(std::move(segment)),
      capabilities_{.name = "shm",
                    .max_eager_bytes = lane_max_payload_bytes,
                    .remote_access = settings.cma,
                    .remote_asynchronous = false,
                    .remote_threshold_bytes = settings.cma_threshold_bytes,
                    .finds_at_once = true,
                    .wakes_progress = true},
      links_(*segment_, job_hash_of(settings.job_key), settings.cma),
      lanes_(*segment_,
             [this](MessageSink& sink, ShmLink& link) {
               polling.assert_held();
               failures_.fail(sink, link, LinkFailures::Cause::misbehaved);
             }),
      offers_(segment_->header()),
      failures_(links_, lanes_, offers_),
      claims_(*segment_, links_, lanes_, failures_),
      recalls_(*segment_, lanes_),
      returns_(*segment_, links_),
      help_(*segment_, lanes_),
      room_(links_),
      liveness_(*segment_, links_, lanes_, failures_) {}

Link* ShmTransport::connect(ProcessId peer, std::string* reason) {
  std::string ignored;
  return links_.connect(peer, reason != nullptr ? *reason : ignored);
}

SendStatus ShmTransport::send(Link& base, const MessageHeader& header, const Piece* pieces,
                              unsigned count) noexcept {
  ShmLink& link = static_cast<ShmLink&>(base);
  if (link.failed.load(std::memory_order_relaxed)) [[unlikely]]
    return SendStatus::peer_failed;
  if (!link.sender.attached()) [[unlikely]] {
    const SendStatus status = links_.attach(link);
    if (status != SendStatus::sent) return status;
  }
  const SendStatus status = link.sender.send(header, pieces, count);
  link.next_cell = link.sender.next_cell();
  return status;
}

void ShmTransport::publish(Link& base, uint64_t first_word, uint32_t payload_length) noexcept {
  LaneSender& sender = static_cast<ShmLink&>(base).sender;
  base.next_cell = sender.publish(*base.next_cell, first_word, payload_length);
}

unsigned ShmTransport::poll(MessageSink& sink, unsigned budget) noexcept {
  if (lanes_.begin_poll_of_one() && budget >= ReceiveLanes::burst) [[likely]] {
    ReceiveLanes::Lane& lane = lanes_.only_hot();
    // Functions of their own, so that this one saves no registers.
    if (lane.consumer.message_waits()) return lanes_.take_messages(sink, lane);
    if (lane.consumer.acks().ready()) return lanes_.take_acks(sink, lane);
  }
  return poll_all(sink, budget);
}

[[gnu::noinline]] unsigned ShmTransport::poll_all(MessageSink& sink, unsigned budget) noexcept {
  unsigned done = 0;
  if (claims_.anything_new() || recalls_.is_pending()) [[unlikely]]
    look_at_lanes(sink);
  if (help_.wanted()) [[unlikely]]
    done = help_.help(sink);
  if (offers_.pending() != nullptr && offers_.may_settle()) [[unlikely]]
    offers_.settle(sink);
  if (lanes_.empty()) return done;
  const unsigned got = lanes_.poll_hot(sink, budget);
  return done + got + (got < budget ? lanes_.poll_rest(sink, budget - got) : 0);
}

void ShmTransport::look_at_lanes(MessageSink& sink) noexcept {
  if (claims_.anything_new()) {
    claims_.look(sink);
    returns_.look(sink);
    liveness_.check_after_new(sink);
  }
  recalls_.look(now_ns());
}

// A lane that became free rings no doorbell, nor does one that was not returned.
int64_t ShmTransport::sleep_limit_ns() noexcept {
  if (senders_wait_ && links_.any_waits()) return int64_t{LaneWait::retry_ns};
  return recalls_.is_pending() ? int64_t{LaneRecalls::patience_ns} : -1;
}

// A peer that sleeps was woken by the message.
void ShmTransport::wake_progress(Link& base) noexcept {
  Doorbell* const doorbell = static_cast<ShmLink&>(base).peer_doorbell();
  if (doorbell != nullptr && doorbell->sleeping.load(std::memory_order_relaxed) == 0)
    doorbell->ring();
}

bool ShmTransport::arm(bool blocked_senders) noexcept {
  senders_wait_ = blocked_senders;
  if (claims_.anything_new() || offers_.may_settle() || !lanes_.arm()) return false;
  return !blocked_senders || room_.arm();
}

void ShmTransport::check_peers(MessageSink& sink, Link* const* watch, unsigned count) noexcept {
  liveness_.check(sink, watch, count);
  if (claims_.postponed()) claims_.look(sink);
  if (returns_.postponed()) returns_.look(sink);
}

std::string ShmTransport::device() const { return segment_root(); }

void ShmTransport::write_state(StateWriter& out) const noexcept {
  for (const ShmLink* link = links_.first(); link != nullptr; link = link->next)
    out.line(
        "    %08x/%u%s: sends by lane %d of its segment, %u of %u cells not released; receives by "
        "lane %d",
        link->peer.nid, link->peer.pid, link->failed.load() ? " (failed)" : "",
        static_cast<int>(link->sender.lane()), link->sender.cells_in_flight(), link->sender.cells(),
        static_cast<int>(link->receive_lane));
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
