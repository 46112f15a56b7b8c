// Work requests for datagrams that arrive. Message path.
#include "verbs/ud_receiver.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <numeric>

#include "util/assert.h"

namespace lintel {

namespace {

constexpr uint32_t global_route_bytes = 40;  // room in front of every datagram that arrives
constexpr uint32_t slot_alignment = 64;

// RoCE version 2 over IPv4: the header of IP lies in the second half of the room for a global
// route.
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

bool UdReceiver::open(uint32_t slots, uint32_t mtu, std::string& reason) {
  slots_ = slots;
  mtu_ = mtu;
  slot_bytes_ = (global_route_bytes + mtu + slot_alignment - 1) & ~(slot_alignment - 1);
  if (!buffer_.open(queue_pair_.device().pd, size_t{slots_} * slot_bytes_, IBV_ACCESS_LOCAL_WRITE,
                    "datagrams that arrive (PTL_VERBS_RECEIVE_BUFFERS)", reason))
    return false;
  to_post_.resize(slots_);
  std::iota(to_post_.begin(), to_post_.end(), 0u);
  for (unsigned i = 0; i < batch; ++i) {
    elements_[i] = {0, global_route_bytes + mtu, buffer_.local_key()};
    requests_[i].sg_list = &elements_[i];
    requests_[i].num_sge = 1;
  }
  return true;
}

unsigned UdReceiver::receive(InboundFrame* frames, unsigned max) noexcept {
  handed_out_ = 0;
  if (to_post_.size() >= batch) post();
  ibv_wc completions[PacketLink::largest_burst];
  unsigned got = 0;
  if (has_early_) {
    completions[got++] = early_;
    has_early_ = false;
  }
  const unsigned wanted = std::min(max, PacketLink::largest_burst) - got;
  const int more = ibv_poll_cq(queue_pair_.receives(), static_cast<int>(wanted), completions + got);
  if (more > 0) got += static_cast<unsigned>(more);
  if (got != 0) return take(completions, got, frames);
  if (!to_post_.empty()) post();
  return 0;
}

// The slots of frames that are handed out are posted again after the next call of receive().
unsigned UdReceiver::take(const ibv_wc* completions, unsigned count,
                          InboundFrame* frames) noexcept {
  unsigned taken = 0;
  uint64_t bytes = 0;
  handed_out_ = 0;
  for (unsigned i = 0; i < count; ++i)
    __builtin_prefetch(slot(static_cast<uint32_t>(completions[i].wr_id)) + global_route_bytes);
  for (unsigned i = 0; i < count; ++i) {
    const ibv_wc& completion = completions[i];
    if (static_cast<uint32_t>(completion.wr_id >> 32) != epoch_) [[unlikely]]
      continue;
    const auto index = static_cast<uint32_t>(completion.wr_id);
    to_post_.push_back(index);
    ++handed_out_;
    if (completion.status != IBV_WC_SUCCESS) [[unlikely]] {
      queue_pair_.note_broken();
      continue;
    }
    std::byte* const buffer = slot(index);
    if (!source_of(completion, buffer, from_[taken])) [[unlikely]] {
      counters_.frames_malformed.fetch_add(1, std::memory_order_relaxed);
      continue;
    }
    const uint32_t length = completion.byte_len - global_route_bytes;
    frames[taken] = {&from_[taken], buffer + global_route_bytes, length};
    bytes += length;
    ++taken;
  }
  counters_.frames_received.fetch_add(taken, std::memory_order_relaxed);
  counters_.bytes_received.fetch_add(bytes, std::memory_order_relaxed);
  return taken;
}

// False: it is no frame of this library, or its sender cannot be found.
bool UdReceiver::source_of(const ibv_wc& completion, const std::byte* buffer,
                           LinkAddress& from) noexcept {
  if (completion.byte_len <= global_route_bytes ||
      completion.byte_len > global_route_bytes + mtu_ ||
      (completion.wc_flags & IBV_WC_WITH_IMM) == 0)
    return false;
  const VerbsDevice& device = queue_pair_.device();
  const ibv_gid& own = device.gid;
  ibv_gid source{};
  if (device.is_roce && buffer[ipv4_at] == ipv4_without_options &&
      std::memcmp(buffer + ipv4_destination_at, own.raw + ipv4_in_gid_at, ipv4_bytes) == 0) {
    source.raw[10] = source.raw[11] = 0xff;
    std::memcpy(source.raw + ipv4_in_gid_at, buffer + ipv4_source_at, ipv4_bytes);
  } else if (device.is_roce || (completion.wc_flags & IBV_WC_GRH) != 0) {
    if (std::memcmp(buffer + destination_gid_at, own.raw, sizeof own.raw) != 0) return false;
    std::memcpy(source.raw, buffer + source_gid_at, sizeof source.raw);
  } else {
    source.global.subnet_prefix = own.global.subnet_prefix;
  }
  const uint32_t host = hosts_.number_of(hosts_.key_of(rail_, source, completion.slid));
  if (host == UdHosts::none) return false;
  from = std::bit_cast<LinkAddress>(UdAddress{completion.src_qp, completion.imm_data, host, {}});
  from.set_rail(rail_);
  return true;
}

// All slots that the device does not have and that hold no frame that was handed out.
void UdReceiver::post() noexcept {
  if (queue_pair_.is_broken()) return;
  LINTEL_ASSERT(handed_out_ <= to_post_.size());
  const size_t available = to_post_.size() - handed_out_;
  size_t done = 0;
  while (done < available) {
    const auto count = static_cast<unsigned>(std::min<size_t>(available - done, batch));
    for (unsigned i = 0; i < count; ++i) {
      const uint32_t index = to_post_[done + i];
      requests_[i].wr_id = uint64_t{epoch_} << 32 | index;
      elements_[i].addr = reinterpret_cast<uintptr_t>(slot(index));
      requests_[i].next = i + 1 < count ? &requests_[i + 1] : nullptr;
    }
    ibv_recv_wr* refused = nullptr;
    const int error = ibv_post_recv(queue_pair_.get(), &requests_[0], &refused);
    // Some drivers do not say which one they refuse, and take none.
    if (error == 0)
      done += count;
    else if (refused != nullptr)
      done += static_cast<size_t>(refused - &requests_[0]);
    if (error == 0) continue;
    if (error != ENOMEM) queue_pair_.note_broken();
    break;
  }
  to_post_.erase(to_post_.begin(), to_post_.begin() + static_cast<std::ptrdiff_t>(done));
}

// Arms the queue. A completion that came before that makes no event.
bool UdReceiver::arm() noexcept {
  if (has_early_) return false;
  post();
  CompletionEvents& events = queue_pair_.device().events;
  events.drain();
  if (!events.arm(queue_pair_.receives())) return false;
  has_early_ = ibv_poll_cq(queue_pair_.receives(), 1, &early_) > 0;
  return !has_early_;
}

void UdReceiver::resume() noexcept {
  ++epoch_;
  has_early_ = false;
  handed_out_ = 0;
  to_post_.resize(slots_);
  std::iota(to_post_.begin(), to_post_.end(), 0u);
}

}  // namespace lintel
