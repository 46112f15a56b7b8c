// Reading and writing memory of peers: cut into work requests as the device can take them, from memory that
// is registered for the time being. Message path of large payloads, the poller.
#include <algorithm>
#include <mutex>

#include "verbs/verbs_transport.h"

namespace lintel {

RemoteResult VerbsTransport::remote_read(Link& link, const Piece* local, unsigned local_count,
                                         const RemoteMemory* remote, unsigned remote_count,
                                         uint32_t token) noexcept {
  return start_access(link, local, local_count, remote, remote_count, false, token);
}

RemoteResult VerbsTransport::remote_write(Link& link, const Piece* local, unsigned local_count,
                                          const RemoteMemory* remote, unsigned remote_count,
                                          uint32_t token) noexcept {
  return start_access(link, local, local_count, remote, remote_count, true, token);
}

RemoteResult VerbsTransport::start_access(Link& base, const Piece* local, unsigned local_count,
                                          const RemoteMemory* remote, unsigned remote_count,
                                          bool writes, uint32_t token) noexcept {
  auto& link = static_cast<VerbsLink&>(base);
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
    const std::lock_guard guard(link.lock);
    Channel* const channel = link.channel;
    usable = channel != nullptr && channel->connected && !channel->stopping;
    for (unsigned i = 0; i < remote_count && usable; ++i) {
      access.remote[i] = remote[i];
      // Memory is told of for one queue pair, which may be gone.
      usable = is_key_of_channel(remote[i].key, channel->peer.number) && remote[i].length != 0;
    }
    if (usable) {
      add(counts_.remote_accesses);
      add(counts_.remote_bytes, access.length);
      *channel->waiting_tail = &access;
      channel->waiting_tail = &access.next;
      post_accesses(link);
      return {RemoteStatus::started, 0};
    }
  }
  for (unsigned i = 0; i < access.local_count; ++i) memory_.release(access.regions[i]);
  accesses_.release(index);
  return unsupported;
}

// As many as the send queue has room for. A few places are left for what ends exposures.
void VerbsTransport::post_accesses(VerbsLink& link) noexcept {
  Channel& channel = *link.channel;
  while (RemoteAccess* access = channel.waiting) {
    if (channel.room() <= Channel::reserved_requests / 2) return;
    const bool all_parts = access->next_remote == access->remote_count;
    if (!(all_parts ? post_proof(link, *access) : post_next_part(link, *access))) return;
    if (!access->is_posted()) continue;
    channel.waiting = access->next;
    if (channel.waiting == nullptr) channel.waiting_tail = &channel.waiting;
  }
}

// Where the device may report a read as done that it has given up (it has then given up the queue pair, too):
// once more the first bytes, which it cannot get wrong that way, and which fail with the queue pair.
bool VerbsTransport::post_proof(VerbsLink& link, RemoteAccess& access) noexcept {
  const RemoteMemory& remote = access.remote[0];
  const auto bytes =
      static_cast<uint32_t>(std::min({remote.length, access.local[0].length, uint64_t{8}}));
  ibv_sge piece{reinterpret_cast<uint64_t>(access.local[0].base), bytes,
                access.regions[0]->registration.lkey};
  access.proven = post_part(link, access, &piece, 1, remote, 0);
  return access.proven;
}

// To or from a peer's memory, `offset` bytes behind its start.
bool VerbsTransport::post_part(VerbsLink& link, RemoteAccess& access, ibv_sge* pieces,
                               unsigned count, const RemoteMemory& remote,
                               uint64_t offset) noexcept {
  ibv_send_wr request{};
  request.sg_list = pieces;
  request.num_sge = static_cast<int>(count);
  request.opcode = access.writes ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ;
  request.wr.rdma.remote_addr = remote.address + offset;
  request.wr.rdma.rkey = static_cast<uint32_t>(remote.key);
  if (!post(link, request, {RequestKind::remote_access, accesses_.index_of(access)}, true))
    return false;
  ++access.outstanding;
  ++link.channel->accesses;
  return true;
}

bool VerbsTransport::post_next_part(VerbsLink& link, RemoteAccess& access) noexcept {
  const RemoteMemory& remote = access.remote[access.next_remote];
  uint64_t most = std::min(remote.length - access.remote_offset, largest_part_);
  ibv_sge pieces[8];
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
  if (!post_part(link, access, pieces, count, remote, access.remote_offset)) return false;
  access.next_local = next_local;
  access.local_offset = local_offset;
  access.remote_offset += bytes;
  if (access.remote_offset == remote.length) {
    ++access.next_remote;
    access.remote_offset = 0;
  }
  return true;
}

// The device of the peer invalidates the windows when messages arrive that say so: without waiting for
// anything, as an invalidation by their owner would. That is the next message, at the latest the answer to the
// operation; further windows need messages of their own. Those for which there is no room are
// invalidated by their owner after the answer.
void VerbsTransport::forgo(Link& base, const RemoteMemory* remote, unsigned count) noexcept {
  auto& link = static_cast<VerbsLink&>(base);
  if (!memory_.has_windows()) return;
  const std::lock_guard guard(link.lock);
  for (unsigned i = 0; i < count; ++i) {
    if (link.path != Path::queue_pair ||
        !is_key_of_channel(remote[i].key, link.channel->peer.number))
      return;
    MessageHeader nothing{};
    nothing.kind = MessageKind::connection;
    if (link.channel->forgone != 0 && send_connected(link, nothing, nullptr, 0) != SendStatus::sent)
      return;
    link.channel->forgone = remote[i].key;
  }
}

void VerbsTransport::end_access(RemoteAccess& access) noexcept {
  access.next = nullptr;
  *ended_tail_ = &access;
  ended_tail_ = &access.next;
}

}  // namespace lintel
