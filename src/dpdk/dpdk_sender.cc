// Making buffers of frames, and handing them to the driver. Message path.
#include "dpdk/dpdk_sender.h"

#include <algorithm>
#include <cstring>

#include "dpdk/eal.h"
#include "util/guarded_memory.h"
#include "util/lock.h"

namespace lintel {

namespace {

constexpr unsigned burst = 32;
// Shorter frames are copied in less time than it takes to refer to them.
constexpr uint32_t shortest_reference = 256;
// No page is smaller.
constexpr size_t page_bytes = 4096;
// Ethernet has no shorter frames; hardware may refuse them.
constexpr uint32_t shortest_ethernet_frame = 60;

void set_length(rte_mbuf& buffer, uint32_t bytes) noexcept {
  buffer.data_len = static_cast<uint16_t>(bytes);
  buffer.pkt_len = bytes;
}

// A byte of each page.
void touch_pages(const std::byte* start, size_t bytes) noexcept {
  if (bytes == 0) return;
  const volatile std::byte* const from = start;
  for (size_t at = 0; at < bytes; at += page_bytes) static_cast<void>(from[at]);
  static_cast<void>(from[bytes - 1]);
}

struct Look {
  const OutboundFrame* frames;
  unsigned count;
  volatile unsigned readable;  // counted before and after faults
};

void look_at_payloads(void* argument) noexcept {
  Look& look = *static_cast<Look*>(argument);
  for (unsigned i = 0; i < look.count; ++i) {
    const OutboundFrame& frame = look.frames[i];
    for (unsigned piece = 1; piece < frame.count; ++piece)
      touch_pages(frame.pieces[piece].base, frame.pieces[piece].length);
    look.readable = i + 1;
  }
}

void nothing_to_free(void*, void*) noexcept {}

}  // namespace

DpdkSender::DpdkSender(Port& port, uint32_t mtu, AtomicLinkCounters& counters) noexcept
    : port_(port), mtu_(mtu), counters_(counters) {
  referred_.free_cb = nothing_to_free;
  rte_mbuf_ext_refcnt_set(&referred_, 1);
}

bool DpdkSender::offer_memory(std::byte* start, size_t bytes) noexcept {
  if (offered_ != nullptr || !port_.register_memory(start, bytes)) return false;
  offered_ = start;
  offered_bytes_ = bytes;
  return true;
}

void DpdkSender::set_state(State state) noexcept {
  const LockGuard guard(lock_);
  state_ = state;
}

void DpdkSender::attach(rte_mbuf& buffer, std::byte* start, uint32_t bytes) noexcept {
  rte_mbuf_ext_refcnt_update(&referred_, 1);
  rte_pktmbuf_attach_extbuf(&buffer, start, reinterpret_cast<uintptr_t>(start),
                            static_cast<uint16_t>(bytes), &referred_);
  set_length(buffer, bytes);
}

// Returns how many of the frames, from the first one on, have readable payloads. The driver copies
// them a moment later, and a fault in the driver would leave its ring in disorder. That happens
// only if an application unmaps memory of an operation under way in that moment.
unsigned DpdkSender::readable(const OutboundFrame* frames, unsigned count) const noexcept {
  const auto is_whole = [](const OutboundFrame& frame) { return frame.count == 1; };
  if (!port_.sends_from_anywhere() || std::all_of(frames, frames + count, is_whole)) return count;
  Look look{frames, count, 0};
  return guarded_call(look_at_payloads, &look) ? count : look.readable;
}

bool DpdkSender::can_chain(const OutboundFrame& frame) const noexcept {
  return port_.sends_from_anywhere() && frame.count == 2 &&
         frame.pieces[1].length >= shortest_reference;
}

// The headers are copied, the payload stays with the application.
void DpdkSender::make_chain(rte_mbuf& buffer, rte_mbuf& payload,
                            const OutboundFrame& frame) noexcept {
  const auto held = static_cast<uint32_t>(frame.pieces[0].length);
  const auto length = static_cast<uint32_t>(frame.pieces[1].length);
  const EthernetHeader header =
      make_ethernet_header(mac_of(*frame.to), port_.mac(), EthernetKind::frame, held + length);
  auto* const to = rte_pktmbuf_mtod(&buffer, std::byte*);
  std::memcpy(to, &header, sizeof header);
  std::memcpy(to + sizeof header, frame.pieces[0].base, held);
  set_length(buffer, static_cast<uint32_t>(sizeof header) + held);
  attach(payload, frame.pieces[1].base, length);
  buffer.next = &payload;
  buffer.nb_segs = 2;
  buffer.pkt_len += length;
}

bool DpdkSender::can_refer_to(const OutboundFrame& frame) const noexcept {
  const Piece& piece = frame.pieces[0];
  return offered_ != nullptr && frame.count == 1 && piece.length >= shortest_reference &&
         piece.base >= offered_ + PacketLink::headroom &&
         static_cast<size_t>(piece.base - offered_) + piece.length <= offered_bytes_;
}

// The header goes into the room in front of the frame, and the port reads both from there.
void DpdkSender::make_reference(rte_mbuf& buffer, const OutboundFrame& frame) noexcept {
  const Piece& piece = frame.pieces[0];
  const auto length = static_cast<uint32_t>(piece.length);
  const EthernetHeader header =
      make_ethernet_header(mac_of(*frame.to), port_.mac(), EthernetKind::frame, length);
  std::byte* const start = piece.base - sizeof header;
  std::memcpy(start, &header, sizeof header);
  attach(buffer, start, static_cast<uint32_t>(sizeof header) + length);
}

void DpdkSender::make_copy(rte_mbuf& buffer, const OutboundFrame& frame, EthernetKind kind,
                           uint32_t length) noexcept {
  auto* to = rte_pktmbuf_mtod(&buffer, std::byte*);
  const EthernetHeader header = make_ethernet_header(mac_of(*frame.to), port_.mac(), kind, length);
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

unsigned DpdkSender::send(const OutboundFrame* frames, unsigned count) noexcept {
  register_eal_thread();
  unsigned taken = 0;
  const LockGuard guard(lock_);
  while (taken < count) {
    const unsigned wanted = readable(frames + taken, std::min(count - taken, burst));
    if (wanted == 0) {
      counters_.send_errors.fetch_add(1, std::memory_order_relaxed);
      ++taken;
      continue;
    }
    const unsigned sent = send_burst(frames + taken, wanted);
    taken += sent;
    if (sent < wanted) break;
  }
  if (taken < count) counters_.send_full.fetch_add(count - taken, std::memory_order_relaxed);
  return taken;
}

// Takes over the buffers; returns how many were sent.
unsigned DpdkSender::transmit(rte_mbuf** buffers, unsigned count) noexcept {
  if (!port_.may_free_untaken()) {
    const unsigned sent = rte_eth_tx_burst(port_.id(), 0, buffers, static_cast<uint16_t>(count));
    if (sent < count) rte_pktmbuf_free_bulk(buffers + sent, count - sent);
    return sent;
  }
  // Additional references to each part of a chain prevent that the driver frees buffers earlier.
  for (unsigned i = 0; i < count; ++i)
    for (rte_mbuf* part = buffers[i]; part != nullptr; part = part->next)
      rte_mbuf_refcnt_update(part, 1);
  const unsigned sent = rte_eth_tx_burst(port_.id(), 0, buffers, static_cast<uint16_t>(count));
  for (unsigned i = sent; i < count; ++i)
    for (rte_mbuf* part = buffers[i]; part != nullptr; part = part->next)
      if (rte_mbuf_refcnt_read(part) == 2) rte_mbuf_refcnt_update(part, -1);
  rte_pktmbuf_free_bulk(buffers, count);
  return sent;
}

unsigned DpdkSender::send_burst(const OutboundFrame* frames, unsigned count) noexcept {
  if (state_ == State::resting) return 0;
  if (state_ == State::down) {
    counters_.send_errors.fetch_add(count, std::memory_order_relaxed);
    return count;
  }
  rte_mbuf* buffers[2 * burst];  // the frames', then those of payloads
  unsigned chains = 0;
  for (unsigned i = 0; i < count; ++i) chains += can_chain(frames[i]) ? 1 : 0;
  if (rte_pktmbuf_alloc_bulk(port_.send_pool(), buffers, count + chains) != 0) return 0;
  rte_mbuf** payload = buffers + count;
  uint64_t bytes = 0;
  for (unsigned i = 0; i < count; ++i) {
    const uint64_t length = frame_bytes(frames[i]);
    // Never happens: every frame was cut to what the route takes.
    if (length > mtu_) [[unlikely]] {
      rte_pktmbuf_free_bulk(buffers + i, count - i);
      rte_pktmbuf_free_bulk(payload, static_cast<unsigned>(buffers + count + chains - payload));
      counters_.send_errors.fetch_add(1, std::memory_order_relaxed);
      count = i;
      break;
    }
    if (can_chain(frames[i]))
      make_chain(*buffers[i], **payload++, frames[i]);
    else if (can_refer_to(frames[i]))
      make_reference(*buffers[i], frames[i]);
    else
      make_copy(*buffers[i], frames[i], EthernetKind::frame, static_cast<uint32_t>(length));
    bytes += length;
  }
  const unsigned sent = transmit(buffers, count);
  for (unsigned i = sent; i < count; ++i) bytes -= frame_bytes(frames[i]);
  AtomicLinkCounters::add_alone(counters_.frames_sent, sent);
  AtomicLinkCounters::add_alone(counters_.bytes_sent, bytes);
  return sent;
}

void DpdkSender::send_discovery(const DiscoveryMessage& message) noexcept {
  if (!message.wanted) return;
  const LinkAddress to = link_address_of(message.to);
  DiscoveryBody body = message.body;
  const Piece piece{reinterpret_cast<std::byte*>(&body), sizeof body};
  const OutboundFrame frame{&to, &piece, 1};
  const LockGuard guard(lock_);
  if (state_ != State::up) return;
  rte_mbuf* buffer = rte_pktmbuf_alloc(port_.send_pool());
  if (buffer == nullptr) return;
  make_copy(*buffer, frame, EthernetKind::discovery, sizeof body);
  static_cast<void>(transmit(&buffer, 1));
}

}  // namespace lintel
