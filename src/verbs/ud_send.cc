// Sending bursts of frames. Message path: no system call of our own; what needs one is left to the
// resolver's thread, which is woken once for it.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>

#include "verbs/ud_link.h"

namespace lintel {

namespace {

uint64_t length_of(const OutboundFrame& frame) noexcept {
  uint64_t length = 0;
  for (unsigned i = 0; i < frame.count; ++i) length += frame.pieces[i].length;
  return length;
}

}  // namespace

unsigned UdLink::send(const OutboundFrame* frames, unsigned count) noexcept {
  unsigned taken = 0;
  const std::lock_guard guard(send_lock_);
  while (taken < count) {
    unsigned wanted = std::min(count - taken, largest_burst);
    if (free_slots() < wanted) {
      reap_sends();
      wanted = std::min(wanted, free_slots());
    }
    if (wanted == 0 || sending_stopped_) break;
    const unsigned sent = send_burst(frames + taken, wanted);
    taken += sent;
    if (sent < wanted) break;
  }
  if (taken < count) counters_.send_full.fetch_add(count - taken, std::memory_order_relaxed);
  return taken;
}

// Returns how many are sent or lost. There are as many free slots.
unsigned UdLink::send_burst(const OutboundFrame* frames, unsigned count) noexcept {
  unsigned prepared = 0;
  uint64_t bytes = 0;
  unsigned lost = 0;
  bool ask = false;
  for (unsigned i = 0; i < count; ++i) {
    ibv_send_wr& request = requests_[prepared];
    request.wr_id = posted_ + prepared;
    if (!prepare(frames[i], request, elements_[prepared].data(), ask)) {
      ++lost;
      continue;
    }
    bytes += length_of(frames[i]);
    ++prepared;
  }
  if (ask) [[unlikely]]
    resolver_.wake();
  if (lost != 0) [[unlikely]]
    counters_.send_errors.fetch_add(lost, std::memory_order_relaxed);
  if (prepared == 0) return count;
  const unsigned sent = post(prepared);
  counters_.frames_sent.fetch_add(sent, std::memory_order_relaxed);
  if (sent == prepared) [[likely]] {
    counters_.bytes_sent.fetch_add(bytes, std::memory_order_relaxed);
    return count;
  }
  // Rare: the device took a part. Those that were lost in between count as sent, which they might be.
  uint64_t sent_bytes = 0;
  for (unsigned i = 0; i < sent; ++i) sent_bytes += length_of(frames[i]);
  counters_.bytes_sent.fetch_add(sent_bytes, std::memory_order_relaxed);
  return sent;
}

// False: it can never be sent, or not before the resolver's thread has made an address handle.
bool UdLink::prepare(const OutboundFrame& frame, ibv_send_wr& request, ibv_sge* elements,
                     bool& ask) noexcept {
  const Address to = unpack(*frame.to);
  const uint64_t length = length_of(frame);
  if (!hosts_.contains(to.host) || length > properties_.mtu) [[unlikely]]
    return false;
  ibv_ah* const handle = hosts_.handle(to.host);
  if (handle == nullptr) [[unlikely]] {
    ask |= hosts_.want_handle(to.host);
    return false;
  }
  request.wr.ud.ah = handle;
  request.wr.ud.remote_qpn = to.queue_pair;
  request.wr.ud.remote_qkey = to.q_key;
  request.send_flags = 0;
  if (length <= inline_bytes_ && frame.count <= most_elements) {
    for (unsigned i = 0; i < frame.count; ++i)
      elements[i] = {reinterpret_cast<uintptr_t>(frame.pieces[i].base),
                     static_cast<uint32_t>(frame.pieces[i].length), 0};
    request.num_sge = static_cast<int>(frame.count);
    request.send_flags = IBV_SEND_INLINE;
    return true;
  }
  if (frame.count == 1 && refer(frame.pieces[0], request, elements, ask)) return true;
  std::byte* const slot = send_slot(request.wr_id);
  size_t filled = 0;
  for (unsigned i = 0; i < frame.count; ++i) {
    std::memcpy(slot + filled, frame.pieces[i].base, frame.pieces[i].length);
    filled += frame.pieces[i].length;
  }
  elements[0] = {reinterpret_cast<uintptr_t>(slot), static_cast<uint32_t>(filled),
                 send_buffer_.local_key()};
  request.num_sge = 1;
  return true;
}

// Without a copy, if the memory is registered.
bool UdLink::refer(const Piece& piece, ibv_send_wr& request, ibv_sge* elements,
                   bool& ask) noexcept {
  if (!offered_.contains(piece.base, piece.length)) return false;
  uint32_t key = 0;
  if (!offered_.key_of(piece.base, key, ask)) return false;
  const size_t first = std::min<size_t>(piece.length, offered_.rest_of_part(piece.base));
  elements[0] = {reinterpret_cast<uintptr_t>(piece.base), static_cast<uint32_t>(first), key};
  request.num_sge = 1;
  if (first == piece.length) return true;
  if (!offered_.key_of(piece.base + first, key, ask)) return false;
  elements[1] = {reinterpret_cast<uintptr_t>(piece.base + first),
                 static_cast<uint32_t>(piece.length - first), key};
  request.num_sge = 2;
  return true;
}

// The first `count` of requests_ as one chain. Returns how many the device took.
unsigned UdLink::post(unsigned count) noexcept {
  for (unsigned i = 0; i < count; ++i) {
    requests_[i].next = i + 1 < count ? &requests_[i + 1] : nullptr;
    if (posted_ + i + 1 - last_signalled_ < signal_every) continue;
    requests_[i].send_flags |= IBV_SEND_SIGNALED;
    last_signalled_ = posted_ + i + 1;
  }
  ibv_send_wr* refused = nullptr;
  const int error = ibv_post_send(queue_pair_, &requests_[0], &refused);
  if (error == 0) [[likely]] {
    posted_ += count;
    return count;
  }
  const auto sent = static_cast<unsigned>(refused - &requests_[0]);
  posted_ += sent;
  last_signalled_ = std::min(last_signalled_, posted_);
  // Anything but a full queue means that the queue pair is in no state to send.
  if (error != ENOMEM && error != EAGAIN) broken_.store(true, std::memory_order_relaxed);
  return sent;
}

// A completion tells of all work requests before it as well.
void UdLink::reap_sends() noexcept {
  ibv_wc completions[completion_batch];
  int count = 0;
  do {
    count = ibv_poll_cq(send_queue_, completion_batch, completions);
    for (int i = 0; i < count; ++i) {
      completed_ = std::max(completed_, completions[i].wr_id + 1);
      if (completions[i].status == IBV_WC_SUCCESS) [[likely]]
        continue;
      counters_.send_errors.fetch_add(1, std::memory_order_relaxed);
      broken_.store(true, std::memory_order_relaxed);
    }
  } while (count == static_cast<int>(completion_batch));
}

}  // namespace lintel
