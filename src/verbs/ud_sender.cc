// Work requests for datagrams. Message path.
#include "verbs/ud_sender.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "util/clock.h"
#include "util/lock.h"
#include "util/log.h"
#include "verbs/device.h"

namespace lintel {

namespace {

constexpr unsigned signal_every = 64;  // work requests
constexpr unsigned completion_batch = 16;
constexpr uint64_t longest_finish_ns = 1'000'000;

}  // namespace

bool UdSender::open(uint32_t mtu, std::string& reason) {
  mtu_ = mtu;
  const LockGuard guard(lock_);
  for (unsigned i = 0; i < requests_.size(); ++i) {
    requests_[i].opcode = IBV_WR_SEND_WITH_IMM;
    requests_[i].imm_data = queue_pair_.q_key();
    requests_[i].sg_list = elements_[i].data();
  }
  return buffer_.open(queue_pair_.device().pd, size_t{UdQueuePair::send_depth} * mtu, 0,
                      "datagrams to send", reason);
}

unsigned UdSender::send(const OutboundFrame* frames, unsigned count) noexcept {
  unsigned taken = 0;
  const LockGuard guard(lock_);
  while (taken < count) {
    unsigned wanted = std::min(count - taken, PacketLink::largest_burst);
    if (free_slots() < wanted) {
      take_completions();
      wanted = std::min(wanted, free_slots());
    }
    if (queue_pair_.is_broken() && queue_pair_.device().is_one_of_several) [[unlikely]] {
      // Frames by other ports do not wait for the repair.
      counters_.send_errors.fetch_add(count - taken, std::memory_order_relaxed);
      return count;
    }
    if (wanted == 0 || queue_pair_.is_broken()) break;
    const unsigned sent = send_burst(frames + taken, wanted);
    taken += sent;
    if (sent < wanted) break;
  }
  if (taken < count) counters_.send_full.fetch_add(count - taken, std::memory_order_relaxed);
  return taken;
}

// Returns how many are sent or lost. There are as many free slots.
unsigned UdSender::send_burst(const OutboundFrame* frames, unsigned count) noexcept {
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
    bytes += frame_bytes(frames[i]);
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
  // Rare: the device took a part. Frames that were lost in between count as sent.
  uint64_t sent_bytes = 0;
  for (unsigned i = 0; i < sent; ++i) sent_bytes += frame_bytes(frames[i]);
  counters_.bytes_sent.fetch_add(sent_bytes, std::memory_order_relaxed);
  return sent;
}

// False: it can never be sent, or not before the resolver's thread has made an address handle.
bool UdSender::prepare(const OutboundFrame& frame, ibv_send_wr& request, ibv_sge* elements,
                       bool& ask) noexcept {
  const auto to = std::bit_cast<UdAddress>(*frame.to);
  const uint64_t length = frame_bytes(frame);
  if (!hosts_.contains(to.host) || length > mtu_) [[unlikely]]
    return false;
  ibv_ah* const handle = hosts_.handle(rail_, to.host);
  if (handle == nullptr) [[unlikely]] {
    ask |= hosts_.want_handle(rail_, to.host);
    return false;
  }
  request.wr.ud.ah = handle;
  request.wr.ud.remote_qpn = to.queue_pair;
  request.wr.ud.remote_qkey = to.q_key;
  request.send_flags = 0;
  if (length <= queue_pair_.inline_bytes() && frame.count <= UdQueuePair::most_elements) {
    for (unsigned i = 0; i < frame.count; ++i)
      elements[i] = {reinterpret_cast<uintptr_t>(frame.pieces[i].base),
                     static_cast<uint32_t>(frame.pieces[i].length), 0};
    request.num_sge = static_cast<int>(frame.count);
    request.send_flags = IBV_SEND_INLINE;
    return true;
  }
  if (frame.count == 1 && refer(frame.pieces[0], request, elements, ask)) return true;
  std::byte* const slot = buffer_.data() + request.wr_id % UdQueuePair::send_depth * mtu_;
  size_t filled = 0;
  for (unsigned i = 0; i < frame.count; ++i) {
    std::memcpy(slot + filled, frame.pieces[i].base, frame.pieces[i].length);
    filled += frame.pieces[i].length;
  }
  elements[0] = {reinterpret_cast<uintptr_t>(slot), static_cast<uint32_t>(filled),
                 buffer_.local_key()};
  request.num_sge = 1;
  return true;
}

// Sends from the place of a piece, without a copy, if its memory is registered.
bool UdSender::refer(const Piece& piece, ibv_send_wr& request, ibv_sge* elements,
                     bool& ask) noexcept {
  if (!memory_.contains(piece.base, piece.length)) return false;
  uint32_t key = 0;
  if (!memory_.key_of(piece.base, key, ask)) return false;
  const size_t first = std::min<size_t>(piece.length, memory_.rest_of_part(piece.base));
  elements[0] = {reinterpret_cast<uintptr_t>(piece.base), static_cast<uint32_t>(first), key};
  request.num_sge = 1;
  if (first == piece.length) return true;
  if (!memory_.key_of(piece.base + first, key, ask)) return false;
  elements[1] = {reinterpret_cast<uintptr_t>(piece.base + first),
                 static_cast<uint32_t>(piece.length - first), key};
  request.num_sge = 2;
  return true;
}

// The first `count` of requests_ as one chain. Returns how many the device took.
unsigned UdSender::post(unsigned count) noexcept {
  for (unsigned i = 0; i < count; ++i) {
    requests_[i].next = i + 1 < count ? &requests_[i + 1] : nullptr;
    if (posted_ + i + 1 - last_signalled_ < signal_every) continue;
    requests_[i].send_flags |= IBV_SEND_SIGNALED;
    last_signalled_ = posted_ + i + 1;
  }
  ibv_send_wr* refused = nullptr;
  const int error = ibv_post_send(queue_pair_.get(), &requests_[0], &refused);
  if (error == 0) [[likely]] {
    posted_ += count;
    return count;
  }
  // Some drivers do not say which one they refuse.
  const auto sent = refused == nullptr ? 0 : static_cast<unsigned>(refused - &requests_[0]);
  posted_ += sent;
  last_signalled_ = std::min(last_signalled_, posted_);
  // Anything but a full queue means that the queue pair is in no state to send.
  if (error != ENOMEM && error != EAGAIN) queue_pair_.note_broken();
  return sent;
}

// A completion is one of all work requests before it as well.
void UdSender::take_completions() noexcept {
  ibv_wc completions[completion_batch];
  int count = 0;
  do {
    count = ibv_poll_cq(queue_pair_.sends(), completion_batch, completions);
    for (int i = 0; i < count; ++i) {
      completed_ = std::max(completed_, completions[i].wr_id + 1);
      if (completions[i].status == IBV_WC_SUCCESS) [[likely]]
        continue;
      counters_.send_errors.fetch_add(1, std::memory_order_relaxed);
      queue_pair_.note_broken();
    }
  } while (count == static_cast<int>(completion_batch));
}

void UdSender::look_for_failures() noexcept {
  const LockGuard guard(lock_);
  if (posted_ != completed_) take_completions();
}

bool UdSender::all_ended() noexcept {
  const LockGuard guard(lock_);
  take_completions();
  return posted_ == completed_;
}

void UdSender::forget_sent() noexcept {
  const LockGuard guard(lock_);
  take_completions();
  completed_ = last_signalled_ = posted_;
}

void UdSender::post_last(const UdAddress& self) noexcept {
  const LockGuard guard(lock_);
  if (free_slots() == 0) return;
  requests_[0].num_sge = 0;
  requests_[0].wr_id = posted_;
  requests_[0].send_flags = IBV_SEND_SIGNALED;
  requests_[0].wr.ud = {hosts_.handle(rail_, self.host), self.queue_pair, self.q_key};
  post(1);
}

// The device works off its queue in order: when a last datagram to ourselves is sent, all others
// are.
void UdSender::finish(const UdAddress& self) noexcept {
  if (queue_pair_.get() == nullptr || all_ended()) return;
  if (!hosts_.contains(self.host) || hosts_.handle(rail_, self.host) == nullptr) return;
  const uint64_t deadline = now_ns() + longest_finish_ns;
  post_last(self);
  while (!all_ended() && !queue_pair_.is_broken() && now_ns() < deadline) continue;
}

// Registering parts of offered memory. In a thread that may wait.
UdMemory::~UdMemory() {
  for (size_t i = 0; i < part_count_; ++i)
    if (ibv_mr* const region = parts_[i].region.load(std::memory_order_relaxed); region != nullptr)
      ibv_dereg_mr(region);
}

bool UdMemory::offer(ibv_pd* pd, std::byte* start, size_t bytes) noexcept {
  if (parts_ != nullptr) return false;
  const size_t count = (bytes + part_bytes - 1) / part_bytes;
  parts_.reset(new (std::nothrow) Part[count]);
  if (parts_ == nullptr) return false;
  pd_ = pd;
  part_count_ = count;
  start_ = start;
  bytes_ = bytes;
  return true;
}

void UdMemory::register_wanted() noexcept {
  for (size_t i = 0; i < part_count_ && !refused(); ++i) {
    Part& part = parts_[i];
    if (!part.wanted.load(std::memory_order_acquire) ||
        part.region.load(std::memory_order_relaxed) != nullptr)
      continue;
    const size_t bytes = std::min(part_bytes, bytes_ - i * part_bytes);
    ibv_mr* const region = ibv_reg_mr(pd_, start_ + i * part_bytes, bytes, 0);
    if (region == nullptr) {
      const int error = errno;
      refused_.store(true, std::memory_order_relaxed);
      log_message(
          LogLevel::info, "verbs: %s; frames are copied instead",
          registration_failure("frames that wait for acknowledgement", bytes, error).c_str());
      return;
    }
    part.region.store(region, std::memory_order_release);
  }
}

}  // namespace lintel
