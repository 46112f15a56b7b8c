#include "verbs/remote_accesses.h"

#include <algorithm>

#include "util/lock.h"
#include "verbs/channel.h"

namespace lintel {

namespace {

// Long enough for the cost of a work request not to count, short enough to be split on any device.
constexpr uint64_t longest_part = uint64_t{16} << 20;
constexpr unsigned most_elements = 8;  // maximum number of elements of a work request
constexpr uint32_t most_accesses = 4096;

}  // namespace

// When rxe repeats a read, an answer to the first attempt may make it give up the queue pair and
// report the read as done (check_ack() in rxe_comp.c of Linux 6.1 leaves its status as it was).
RemoteAccesses::RemoteAccesses(const VerbsDevice& device, DeviceMemory& memory) noexcept
    : memory_(memory),
      pieces_(static_cast<uint32_t>(
          std::clamp(device.attributes.max_sge, 1, static_cast<int>(most_elements)))),
      largest_part_(std::min<uint64_t>(longest_part, device.max_message_bytes)),
      reads_need_proof_(device.attributes.vendor_id == vendor_of_rxe) {}

RemoteAccesses::~RemoteAccesses() {
  while (RemoteAccess* access = take_ended()) release(*access);
}

bool RemoteAccesses::open() noexcept { return accesses_.open(most_accesses); }

RemoteResult RemoteAccesses::start(VerbsLink& link, const Piece* local, unsigned local_count,
                                   const RemoteMemory* remote, unsigned remote_count, bool writes,
                                   uint32_t token, MessageSink* owner) noexcept {
  constexpr RemoteResult unsupported{RemoteStatus::unsupported, 0};
  if (!memory_.is_open() || local_count > RemoteAccess::most_pieces ||
      remote_count > RemoteAccess::most_pieces)
    return unsupported;
  const uint32_t index = accesses_.allocate();
  if (index == Arena<RemoteAccess>::no_index) return {RemoteStatus::busy, 0};
  RemoteAccess& access = accesses_.at(index);
  access.link = &link;
  access.next = nullptr;
  access.token = token;
  access.owner = owner;
  access.writes = writes;
  access.outcome = RemoteStatus::done;
  access.next_local = access.next_remote = 0;
  access.local_offset = access.remote_offset = 0;
  access.outstanding = 0;
  access.proven = writes || !reads_need_proof_ || local_count == 0;
  access.length = 0;
  access.local_count = 0;
  access.remote_count = remote_count;
  bool usable = true;
  for (unsigned i = 0; i < local_count && usable; ++i) {
    access.local[i] = local[i];
    access.regions[i] = memory_.acquire(local[i], !writes);
    usable = access.regions[i] != nullptr;
    if (usable) ++access.local_count;
    access.length += local[i].length;
  }
  if (usable) {
    const LockGuard guard(link.lock);
    Channel* const channel = link.channel;
    usable = channel != nullptr && channel->connected && !channel->stop.begun;
    for (unsigned i = 0; i < remote_count && usable; ++i) {
      access.remote[i] = remote[i];
      // The peer announced memory for one queue pair, which may be gone.
      usable = is_key_of_channel(remote[i].key, channel->peer.number) && remote[i].length != 0;
    }
    if (usable) {
      started_.increment();
      bytes_.add(access.length);
      *channel->accesses.waiting_tail = &access;
      channel->accesses.waiting_tail = &access.next;
      post_waiting(link);
      return {RemoteStatus::started, 0};
    }
  }
  release(access);
  return unsupported;
}

// A few places of the send queue are left for what ends exposures.
void RemoteAccesses::post_waiting(VerbsLink& link) noexcept {
  Channel& channel = *link.channel;
  while (RemoteAccess* access = channel.accesses.waiting) {
    if (channel.queue.room() <= SendQueue::reserved / 2) return;
    const bool all_parts = access->next_remote == access->remote_count;
    if (!(all_parts ? post_proof(channel, *access) : post_next_part(channel, *access))) return;
    if (!access->is_posted()) continue;
    channel.accesses.waiting = access->next;
    if (channel.accesses.waiting == nullptr)
      channel.accesses.waiting_tail = &channel.accesses.waiting;
  }
}

// Reads the first bytes again: that fails if the device has given up the read before and, with it,
// the queue pair.
bool RemoteAccesses::post_proof(Channel& channel, RemoteAccess& access) noexcept {
  const RemoteMemory& remote = access.remote[0];
  const auto bytes =
      static_cast<uint32_t>(std::min({remote.length, access.local[0].length, uint64_t{8}}));
  ibv_sge piece{reinterpret_cast<uint64_t>(access.local[0].base), bytes,
                access.regions[0]->registration.lkey};
  access.proven = post_part(channel, access, &piece, 1, remote, 0);
  return access.proven;
}

bool RemoteAccesses::post_part(Channel& channel, RemoteAccess& access, ibv_sge* pieces,
                               unsigned count, const RemoteMemory& remote,
                               uint64_t offset) noexcept {
  ibv_send_wr request{};
  request.sg_list = pieces;
  request.num_sge = static_cast<int>(count);
  request.opcode = access.writes ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ;
  request.wr.rdma.remote_addr = remote.address + offset;
  request.wr.rdma.rkey = static_cast<uint32_t>(remote.key);
  if (!channel.queue.post(request, {RequestKind::remote_access, accesses_.index_of(access)}, true))
    return false;
  ++access.outstanding;
  ++channel.accesses.posted;
  return true;
}

bool RemoteAccesses::post_next_part(Channel& channel, RemoteAccess& access) noexcept {
  const RemoteMemory& remote = access.remote[access.next_remote];
  uint64_t most = std::min(remote.length - access.remote_offset, largest_part_);
  ibv_sge pieces[most_elements];
  unsigned count = 0;
  uint64_t bytes = 0;
  unsigned next_local = access.next_local;
  uint64_t local_offset = access.local_offset;
  while (most != 0 && count < pieces_ && next_local < access.local_count) {
    const Piece& local = access.local[next_local];
    const uint64_t length = std::min(local.length - local_offset, most);
    if (length != 0)
      pieces[count++] = {reinterpret_cast<uint64_t>(local.base) + local_offset,
                         static_cast<uint32_t>(length),
                         access.regions[next_local]->registration.lkey};
    bytes += length;
    most -= length;
    local_offset += length;
    if (local_offset == local.length) {
      ++next_local;
      local_offset = 0;
    }
  }
  if (!post_part(channel, access, pieces, count, remote, access.remote_offset)) return false;
  access.next_local = next_local;
  access.local_offset = local_offset;
  access.remote_offset += bytes;
  if (access.remote_offset == remote.length) {
    ++access.next_remote;
    access.remote_offset = 0;
  }
  return true;
}

void RemoteAccesses::retire(Channel& channel, uint32_t index, bool success) noexcept {
  RemoteAccess& access = accesses_.at(index);
  --channel.accesses.posted;
  if (!success) access.outcome = RemoteStatus::unsupported;
  if (--access.outstanding == 0 && access.is_posted()) end(access);
}

void RemoteAccesses::abandon(Channel& channel) noexcept {
  while (RemoteAccess* access = channel.accesses.waiting) {
    channel.accesses.waiting = access->next;
    access->outcome = RemoteStatus::unsupported;
    end(*access);
  }
  channel.accesses.waiting_tail = &channel.accesses.waiting;
}

void RemoteAccesses::set_failure(const VerbsLink& link, RemoteStatus outcome) noexcept {
  for (RemoteAccess* access = ended_; access != nullptr; access = access->next)
    if (access->link == &link && access->outcome != RemoteStatus::done) access->outcome = outcome;
}

void RemoteAccesses::report(MessageSink& sink) noexcept {
  while (RemoteAccess* access = take_ended()) {
    const RemoteResult result{access->outcome,
                              access->outcome == RemoteStatus::done ? access->length : 0};
    VerbsLink& link = *access->link;
    const uint32_t token = access->token;
    MessageSink& owner = access->owner != nullptr ? *access->owner : sink;
    release(*access);
    owner.on_remote_done(link, token, result);
  }
}

void RemoteAccesses::end(RemoteAccess& access) noexcept {
  access.next = nullptr;
  *ended_tail_ = &access;
  ended_tail_ = &access.next;
}

RemoteAccess* RemoteAccesses::take_ended() noexcept {
  RemoteAccess* const access = ended_;
  if (access == nullptr) return nullptr;
  ended_ = access->next;
  if (ended_ == nullptr) ended_tail_ = &ended_;
  return access;
}

void RemoteAccesses::release(RemoteAccess& access) noexcept {
  for (unsigned i = 0; i < access.local_count; ++i) memory_.release(access.regions[i]);
  accesses_.release(access);
}

}  // namespace lintel
