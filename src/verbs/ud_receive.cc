// Receiving bursts of frames, each looked at before anything in it is believed. Message path; arm() lies
// on the path into sleep.
#include <algorithm>
#include <cstring>
#include <mutex>

#include "verbs/ud_link.h"

namespace lintel {

namespace {

// RoCE version 2 over IPv4: the header of IP lies in the second half of the room for a global route.
constexpr size_t ipv4_at = 20;
constexpr std::byte ipv4_without_options{0x45};
constexpr size_t ipv4_source_at = ipv4_at + 12;
constexpr size_t ipv4_destination_at = ipv4_at + 16;
constexpr size_t ipv4_bytes = 4;
constexpr size_t ipv4_in_gid_at = 12;
// Everything else has a global route header.
constexpr size_t source_gid_at = 8;
constexpr size_t destination_gid_at = 24;

}  // namespace

unsigned UdLink::receive(InboundFrame* frames, unsigned max) noexcept {
  handed_out_ = 0;
  if (broken_.load(std::memory_order_relaxed)) [[unlikely]]
    repair();
  if (to_post_.size() >= repost_batch) repost();
  ibv_wc completions[largest_burst];
  unsigned got = 0;
  if (has_early_) {
    completions[got++] = early_;
    has_early_ = false;
  }
  const int more = ibv_poll_cq(receive_queue_, static_cast<int>(std::min(max, largest_burst) - got),
                               completions + got);
  if (more > 0) got += static_cast<unsigned>(more);
  if (got != 0) return take(completions, got, frames);
  if (!to_post_.empty()) repost();
  if (++idle_receives_ % idle_receives_between_looks == 0) look_at_sends();
  return 0;
}

// A send that failed shows nowhere else, and the queue may not become full for a long time.
void UdLink::look_at_sends() noexcept {
  const std::lock_guard guard(send_lock_);
  if (posted_ != completed_) reap_sends();
}

// The slots of frames that are handed out are posted again after the next call of receive().
unsigned UdLink::take(const ibv_wc* completions, unsigned count, InboundFrame* frames) noexcept {
  unsigned taken = 0;
  uint64_t bytes = 0;
  for (unsigned i = 0; i < count; ++i)
    __builtin_prefetch(receive_slot(static_cast<uint32_t>(completions[i].wr_id)) +
                       global_route_bytes);
  for (unsigned i = 0; i < count; ++i) {
    const ibv_wc& completion = completions[i];
    if (static_cast<uint32_t>(completion.wr_id >> 32) != epoch_) [[unlikely]]
      continue;
    const auto slot = static_cast<uint32_t>(completion.wr_id);
    to_post_.push_back(slot);
    if (completion.status != IBV_WC_SUCCESS) [[unlikely]] {
      broken_.store(true, std::memory_order_relaxed);
      continue;
    }
    const std::byte* const buffer = receive_slot(slot);
    if (!source_of(completion, buffer, from_[taken])) [[unlikely]] {
      counters_.frames_malformed.fetch_add(1, std::memory_order_relaxed);
      continue;
    }
    const uint32_t length = completion.byte_len - global_route_bytes;
    frames[taken] = {&from_[taken], buffer + global_route_bytes, length};
    bytes += length;
    ++taken;
  }
  handed_out_ = count;
  counters_.frames_received.fetch_add(taken, std::memory_order_relaxed);
  counters_.bytes_received.fetch_add(bytes, std::memory_order_relaxed);
  return taken;
}

// False: it is none of ours, or from nowhere.
bool UdLink::source_of(const ibv_wc& completion, const std::byte* buffer,
                       LinkAddress& from) noexcept {
  if (completion.byte_len <= global_route_bytes ||
      completion.byte_len > global_route_bytes + properties_.mtu ||
      (completion.wc_flags & IBV_WC_WITH_IMM) == 0)
    return false;
  const ibv_gid& own = device_->gid;
  ibv_gid source{};
  if (device_->is_roce && buffer[ipv4_at] == ipv4_without_options &&
      std::memcmp(buffer + ipv4_destination_at, own.raw + ipv4_in_gid_at, ipv4_bytes) == 0) {
    source.raw[10] = source.raw[11] = 0xff;
    std::memcpy(source.raw + ipv4_in_gid_at, buffer + ipv4_source_at, ipv4_bytes);
  } else if (device_->is_roce || (completion.wc_flags & IBV_WC_GRH) != 0) {
    if (std::memcmp(buffer + destination_gid_at, own.raw, sizeof own.raw) != 0) return false;
    std::memcpy(source.raw, buffer + source_gid_at, sizeof source.raw);
  } else {
    source.global.subnet_prefix = own.global.subnet_prefix;
  }
  const uint32_t host = hosts_.number_of(hosts_.key_of(source, completion.slid));
  if (host == UdHosts::none) return false;
  from = pack({completion.src_qp, completion.imm_data, host, {}});
  return true;
}

// All slots that the device does not have and that nobody looks at.
void UdLink::repost() noexcept {
  if (flushing_) return;
  const size_t available = to_post_.size() - handed_out_;
  size_t done = 0;
  while (done < available) {
    const auto count = static_cast<unsigned>(std::min<size_t>(available - done, repost_batch));
    for (unsigned i = 0; i < count; ++i) {
      const uint32_t slot = to_post_[done + i];
      receive_requests_[i].wr_id = uint64_t{epoch_} << 32 | slot;
      receive_elements_[i].addr = reinterpret_cast<uintptr_t>(receive_slot(slot));
      receive_requests_[i].next = i + 1 < count ? &receive_requests_[i + 1] : nullptr;
    }
    ibv_recv_wr* refused = nullptr;
    const int error = ibv_post_recv(queue_pair_, &receive_requests_[0], &refused);
    done += error == 0 ? count : static_cast<size_t>(refused - &receive_requests_[0]);
    if (error != 0) break;
  }
  to_post_.erase(to_post_.begin(), to_post_.begin() + static_cast<std::ptrdiff_t>(done));
}

// One completion that came before the queue was armed makes no event.
bool UdLink::arm() noexcept {
  if (has_early_ || broken_.load(std::memory_order_relaxed)) return false;
  repost();
  look_at_sends();
  if (broken_.load(std::memory_order_relaxed)) return false;
  device_->events.drain();
  if (!device_->events.arm(receive_queue_)) return false;
  has_early_ = ibv_poll_cq(receive_queue_, 1, &early_) > 0;
  return !has_early_;
}

}  // namespace lintel
