// Sending bursts of frames. Message path.
#include <algorithm>
#include <cstring>
#include <mutex>

#include "dpdk/dpdk_link.h"
#include "dpdk/eal.h"

namespace lintel {

namespace {

// Shorter frames are copied in less time than it takes to refer to them.
constexpr uint32_t shortest_reference = 256;
// Ethernet knows no shorter frames; hardware may refuse them.
constexpr uint32_t shortest_ethernet_frame = 60;

uint32_t length_of(const OutboundFrame& frame) noexcept {
  uint64_t length = 0;
  for (unsigned i = 0; i < frame.count; ++i) length += frame.pieces[i].length;
  return static_cast<uint32_t>(std::min<uint64_t>(length, UINT32_MAX));
}

void set_length(rte_mbuf& buffer, uint32_t bytes) noexcept {
  buffer.data_len = static_cast<uint16_t>(bytes);
  buffer.pkt_len = bytes;
}

}  // namespace

bool DpdkLink::can_refer_to(const OutboundFrame& frame) const noexcept {
  const Piece& piece = frame.pieces[0];
  return offered_ != nullptr && frame.count == 1 && piece.length >= shortest_reference &&
         piece.base >= offered_ + headroom &&
         static_cast<size_t>(piece.base - offered_) + piece.length <= offered_bytes_;
}

// The header goes into the room in front of the frame, and the port reads both from there.
void DpdkLink::make_reference(rte_mbuf& buffer, const OutboundFrame& frame) noexcept {
  const Piece& piece = frame.pieces[0];
  const auto length = static_cast<uint32_t>(piece.length);
  const EthernetHeader header =
      make_ethernet_header(mac_of(*frame.to), port_->mac(), EthernetKind::frame, length);
  std::byte* const start = piece.base - sizeof header;
  std::memcpy(start, &header, sizeof header);
  const auto bytes = static_cast<uint16_t>(sizeof header + length);
  rte_mbuf_ext_refcnt_update(&offered_info_, 1);
  rte_pktmbuf_attach_extbuf(&buffer, start, reinterpret_cast<uintptr_t>(start), bytes, &offered_info_);
  set_length(buffer, bytes);
}

void DpdkLink::make_copy(rte_mbuf& buffer, const OutboundFrame& frame, EthernetKind kind,
                         uint32_t length) noexcept {
  auto* to = rte_pktmbuf_mtod(&buffer, std::byte*);
  const EthernetHeader header = make_ethernet_header(mac_of(*frame.to), port_->mac(), kind, length);
  std::memcpy(to, &header, sizeof header);
  uint32_t filled = sizeof header;
  for (unsigned i = 0; i < frame.count; ++i) {
    std::memcpy(to + filled, frame.pieces[i].base, frame.pieces[i].length);
    filled += static_cast<uint32_t>(frame.pieces[i].length);
  }
  if (filled < shortest_ethernet_frame) {
    std::memset(to + filled, 0, shortest_ethernet_frame - filled);
    filled = shortest_ethernet_frame;
  }
  set_length(buffer, filled);
}

unsigned DpdkLink::send(const OutboundFrame* frames, unsigned count) noexcept {
  register_eal_thread();
  unsigned taken = 0;
  const std::lock_guard guard(send_lock_);
  while (taken < count) {
    const unsigned wanted = std::min(count - taken, burst);
    const unsigned sent = send_burst(frames + taken, wanted);
    taken += sent;
    if (sent < wanted) break;
  }
  if (taken < count) counters_.send_full.fetch_add(count - taken, std::memory_order_relaxed);
  return taken;
}

// Takes over the buffers; returns how many were sent.
unsigned DpdkLink::transmit(rte_mbuf** buffers, unsigned count) noexcept {
  if (!port_->may_free_untaken()) {
    const unsigned sent = rte_eth_tx_burst(port_->id(), 0, buffers, static_cast<uint16_t>(count));
    if (sent < count) rte_pktmbuf_free_bulk(buffers + sent, count - sent);
    return sent;
  }
  // With a reference of our own there is no doubt about who frees what.
  for (unsigned i = 0; i < count; ++i) rte_mbuf_refcnt_update(buffers[i], 1);
  const unsigned sent = rte_eth_tx_burst(port_->id(), 0, buffers, static_cast<uint16_t>(count));
  for (unsigned i = sent; i < count; ++i)
    if (rte_mbuf_refcnt_read(buffers[i]) == 2) rte_mbuf_refcnt_update(buffers[i], -1);
  rte_pktmbuf_free_bulk(buffers, count);
  return sent;
}

unsigned DpdkLink::send_burst(const OutboundFrame* frames, unsigned count) noexcept {
  if (state_ == State::resting) return 0;
  if (state_ == State::down) {
    counters_.send_errors.fetch_add(count, std::memory_order_relaxed);
    return count;
  }
  rte_mbuf* buffers[burst];
  if (rte_pktmbuf_alloc_bulk(port_->send_pool(), buffers, count) != 0) return 0;
  uint64_t bytes = 0;
  for (unsigned i = 0; i < count; ++i) {
    const uint32_t length = length_of(frames[i]);
    // Never happens: every frame was cut to what the route takes.
    if (length > mtu_) [[unlikely]] {
      rte_pktmbuf_free_bulk(buffers + i, count - i);
      counters_.send_errors.fetch_add(1, std::memory_order_relaxed);
      count = i;
      break;
    }
    if (can_refer_to(frames[i]))
      make_reference(*buffers[i], frames[i]);
    else
      make_copy(*buffers[i], frames[i], EthernetKind::frame, length);
    bytes += length;
  }
  const unsigned sent = transmit(buffers, count);
  for (unsigned i = sent; i < count; ++i) bytes -= length_of(frames[i]);
  AtomicLinkCounters::add_alone(counters_.frames_sent, sent);
  AtomicLinkCounters::add_alone(counters_.bytes_sent, bytes);
  return sent;
}

// One that is lost here is repeated like one that is lost on the way.
void DpdkLink::send_discovery(const DiscoveryMessage& message) noexcept {
  const LinkAddress to = link_address_of(message.to);
  DiscoveryBody body = message.body;
  const Piece piece{reinterpret_cast<std::byte*>(&body), sizeof body};
  const OutboundFrame frame{&to, &piece, 1};
  const std::lock_guard guard(send_lock_);
  if (state_ != State::up) return;
  rte_mbuf* buffer = rte_pktmbuf_alloc(port_->send_pool());
  if (buffer == nullptr) return;
  make_copy(*buffer, frame, EthernetKind::discovery, sizeof body);
  static_cast<void>(transmit(&buffer, 1));
}

}  // namespace lintel
