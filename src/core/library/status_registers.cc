// Reading status registers. Any thread; values may lag behind by the message in hand.
#include "core/library/status_registers.h"

#include "core/operations/physical_interface.h"
#include "portals4_lintel.h"

namespace lintel {

namespace {

// The message kinds that a register of a group adds up.
struct KindGroup {
  MessageKind first;
  MessageKind second;  // none: only the first
};
constexpr KindGroup kind_groups[PTL_SR_LINTEL_KINDS] = {
    {MessageKind::put, MessageKind::none},    {MessageKind::get, MessageKind::none},
    {MessageKind::atomic, MessageKind::none}, {MessageKind::fetch_atomic, MessageKind::swap},
    {MessageKind::reply, MessageKind::none},  {MessageKind::ack, MessageKind::ack_batch},
};

uint64_t sum_over_kinds(const PhysicalInterface& physical, unsigned group, bool sent,
                        bool bytes) noexcept {
  uint64_t sum = 0;
  for (const MessageKind kind : {kind_groups[group].first, kind_groups[group].second}) {
    if (kind == MessageKind::none) continue;
    const auto index = static_cast<unsigned>(kind);
    if (sent) {
      sum += physical.peers().sent(kind, bytes);
    } else {
      sum += (bytes ? physical.received.bytes : physical.received.messages)[index].get();
    }
  }
  return sum;
}

uint64_t sum_over_transports(const PhysicalInterface& physical,
                             uint64_t NetworkCounters::*counter) noexcept {
  uint64_t sum = 0;
  for (const auto& transport : physical.transports()) sum += transport->network_counters().*counter;
  return sum;
}

}  // namespace

bool read_status_register(const NetworkInterface& interface, ptl_sr_index_t index,
                          ptl_sr_value_t* value) noexcept {
  const PhysicalInterface& physical = interface.physical();
  const InterfaceStatus& status = interface.status;
  uint64_t read = 0;
  if (index >= PTL_SR_LINTEL_MESSAGES_SENT && index < PTL_SR_LINTEL_SENDS_QUEUED) {
    const unsigned at = index - PTL_SR_LINTEL_MESSAGES_SENT;
    const unsigned table = at / PTL_SR_LINTEL_KINDS;
    read = sum_over_kinds(physical, at % PTL_SR_LINTEL_KINDS, table % 2 == 0, table >= 2);
  } else {
    switch (index) {
      case PTL_SR_DROP_COUNT:
        read = status.dropped.get();
        break;
      case PTL_SR_PERMISSION_VIOLATIONS:
        read = status.permission_violations.get();
        break;
      case PTL_SR_OPERATION_VIOLATIONS:
        read = status.operation_violations.get();
        break;
      case PTL_SR_LINTEL_SENDS_QUEUED:
        read = physical.queues().queued.get();
        break;
      case PTL_SR_LINTEL_LANE_FULL_RETRIES:
        read = physical.queues().retries.get();
        break;
      case PTL_SR_LINTEL_UNEXPECTED_DEPTH:
        read = status.unexpected_depth.load(std::memory_order_relaxed);
        break;
      case PTL_SR_LINTEL_UNEXPECTED_PEAK:
        read = status.unexpected_peak.load(std::memory_order_relaxed);
        break;
      case PTL_SR_LINTEL_POLLS:
        read = physical.poller().counters.polls.get();
        break;
      case PTL_SR_LINTEL_POLLS_WITH_WORK:
        read = physical.poller().counters.polls_with_work.get();
        break;
      case PTL_SR_LINTEL_SLEEPS:
        read = physical.poller().counters.sleeps.get();
        break;
      case PTL_SR_LINTEL_WAKEUPS:
        read = physical.poller().counters.wakeups.get();
        break;
      case PTL_SR_LINTEL_FRAMES_REFUSED:
        read = physical.messages_refused.get();
        break;
      case PTL_SR_LINTEL_PEERS_FAILED:
        read = physical.peers_failed.get();
        break;
      case PTL_SR_LINTEL_RETRANSMISSIONS:
        read = sum_over_transports(physical, &NetworkCounters::retransmissions);
        break;
      case PTL_SR_LINTEL_FRAMES_DROPPED:
        read = sum_over_transports(physical, &NetworkCounters::frames_dropped);
        break;
      case PTL_SR_LINTEL_UNRELIABLE_SENT:
        read = sum_over_transports(physical, &NetworkCounters::unreliable_sent);
        break;
      case PTL_SR_LINTEL_CONNECTIONS_REFUSED:
        read = sum_over_transports(physical, &NetworkCounters::connections_refused);
        break;
      default:
        return false;
    }
  }
  *value = static_cast<ptl_sr_value_t>(read);
  return true;
}

}  // namespace lintel
