// Telling a peer of memory, for one operation: a memory window that covers exactly these bytes in one
// direction and can be used through the queue pair of that peer alone; where the device has none, or the
// memory is read-only, a registration of exactly these bytes. Message path of large payloads: a window
// costs a work request; a registration of its own costs system calls.
#include <cerrno>
#include <mutex>
#include <utility>

#include "verbs/verbs_transport.h"

namespace lintel {

namespace {

bool is_bound(const ExposedMemory& exposed, unsigned i) noexcept {
  return exposed.regions[i] != nullptr && (exposed.invalid >> i & 1) == 0;
}

}  // namespace

Exposure VerbsTransport::expose(Link& base, const Piece* pieces, unsigned count, bool write,
                                uint32_t, RemoteMemory* out) noexcept {
  auto& link = static_cast<VerbsLink&>(base);
  constexpr Exposure by_messages{SendStatus::sent};
  constexpr unsigned most_windows_at_once = 16;
  if (!memory_.is_open() || count == 0 || count > most_windows_at_once) return by_messages;
  {
    const std::lock_guard guard(link.lock);
    if (link.path == Path::datagrams) {
      wish_channel(link);
      // What is long does not wait for long.
      if (!link.wishes && link.channel == nullptr) return by_messages;
    }
    if (link.path != Path::queue_pair) return {SendStatus::connecting};
    if (link.channel->room() <= count + Channel::reserved_requests) return {SendStatus::queue_full};
  }
  const uint32_t index = exposures_.allocate();
  if (index == Arena<ExposedMemory>::no_index) return by_messages;
  ExposedMemory& exposed = exposures_.at(index);
  if (!prepare(exposed, pieces, count, write)) {
    exposures_.release(index);
    return by_messages;
  }
  {
    const std::lock_guard guard(link.lock);
    if (link.path == Path::queue_pair && bind(link, exposed, pieces, write)) {
      Channel& channel = *link.channel;
      for (unsigned i = 0; i < count; ++i) {
        out[i] = {reinterpret_cast<uint64_t>(pieces[i].base), pieces[i].length,
                  exposure_key(index, channel.number, windows_.at(exposed.windows[i]).key)};
      }
      exposed.channel_number = channel.number;
      exposed.state = ExposedMemory::State::exposed;
      exposed.next = channel.exposures;
      exposed.previous = &channel.exposures;
      if (exposed.next != nullptr) exposed.next->previous = &exposed.next;
      channel.exposures = &exposed;
      add(counts_.exposures);
      return {SendStatus::sent, count, index + 1};
    }
  }
  end_exposure(exposed);
  return {SendStatus::connecting};
}

// Registers the pieces and finds windows for them. False: some of the memory cannot be exposed.
bool VerbsTransport::prepare(ExposedMemory& exposed, const Piece* pieces, unsigned count,
                             bool write) noexcept {
  exposed.count = 0;
  exposed.outstanding = 0;
  exposed.invalid = 0;
  exposed.channel_number = 0;
  exposed.state = ExposedMemory::State::ended;
  for (unsigned i = 0; i < count; ++i) {
    const uint32_t index = acquire_window();
    if (index == Arena<MemoryWindow>::no_index) break;
    MemoryWindow& window = windows_.at(index);
    exposed.windows[i] = index;
    exposed.regions[i] = nullptr;
    ++exposed.count;
    if (window.window != nullptr)
      // What windows are bound to must be writable, whatever they are for.
      exposed.regions[i] = memory_.acquire(pieces[i], true);
    if (exposed.regions[i] == nullptr) {
      window.registration = memory_.register_once(pieces[i], write);
      if (window.registration == nullptr) break;
      window.key = window.registration->rkey;
    }
    if (i + 1 == count) return true;
  }
  // Nothing has been bound.
  for (unsigned i = 0; i < exposed.count; ++i) {
    if (exposed.regions[i] != nullptr) memory_.release(exposed.regions[i]);
    MemoryWindow& window = windows_.at(exposed.windows[i]);
    if (window.registration != nullptr) ibv_dereg_mr(std::exchange(window.registration, nullptr));
    windows_.release(exposed.windows[i]);
  }
  return false;
}

uint32_t VerbsTransport::acquire_window() noexcept {
  const uint32_t index = windows_.allocate();
  if (index == Arena<MemoryWindow>::no_index) return index;
  MemoryWindow& window = windows_.at(index);
  if (memory_.has_windows() && window.window == nullptr)
    window.window = ibv_alloc_mw(device_->pd, IBV_MW_TYPE_2);
  return index;
}

bool VerbsTransport::bind(VerbsLink& link, ExposedMemory& exposed, const Piece* pieces,
                          bool write) noexcept {
  for (unsigned i = 0; i < exposed.count; ++i) {
    if (exposed.regions[i] == nullptr) continue;  // has a registration of its own
    MemoryWindow& window = windows_.at(exposed.windows[i]);
    window.key = ibv_inc_rkey(window.window->rkey);
    ibv_send_wr request{};
    request.opcode = IBV_WR_BIND_MW;
    request.bind_mw.mw = window.window;
    request.bind_mw.rkey = window.key;
    request.bind_mw.bind_info.mr = static_cast<ibv_mr*>(exposed.regions[i]->registration.handle);
    request.bind_mw.bind_info.addr = reinterpret_cast<uint64_t>(pieces[i].base);
    request.bind_mw.bind_info.length = pieces[i].length;
    request.bind_mw.bind_info.mw_access_flags =
        write ? IBV_ACCESS_REMOTE_WRITE : IBV_ACCESS_REMOTE_READ;
    // With the message that tells of it. After a refusal the queue pair is given up, and all that was bound.
    if (!post(link, request, {RequestKind::bind, 0}, false, Posting::with_next)) return false;
  }
  return true;
}

// A window that the peer may invalidate must not be invalidated here as well: queue pairs break by that. So if the
// peer has not answered, the queue pair is given up, and the windows with it.
void VerbsTransport::conceal(Link& base, uint32_t number, bool peer_may_access) noexcept {
  auto& link = static_cast<VerbsLink&>(base);
  ExposedMemory& exposed = exposures_.at(number - 1);
  bool windows = false;
  {
    const std::lock_guard guard(link.lock);
    for (unsigned i = 0; i < exposed.count; ++i) windows |= is_bound(exposed, i);
    if (exposed.channel_number != 0 && windows) {
      exposed.state = ExposedMemory::State::to_conceal;
      if (!peer_may_access || link.path == Path::stopping) {
        post_conceal(link, exposed);
      } else {
        link.channel->queue_pair->stop();
        ask_to_stop(link, "an operation was abandoned whose memory the peer may access");
      }
      return;
    }
    if (exposed.channel_number != 0) unlink(exposed);
  }
  end_exposure(exposed);  // its queue pair is gone, or has nothing to do with it
}

// The peer has read or written what it wanted, and invalidated the window with the same message.
void VerbsTransport::note_invalidated(VerbsLink& link, uint32_t index,
                                      uint32_t window_key) noexcept {
  if (!exposures_.contains(index)) return;
  ExposedMemory& exposed = exposures_.at(index);
  const std::lock_guard guard(link.lock);
  if (exposed.channel_number != link.channel->number ||
      exposed.state != ExposedMemory::State::exposed)
    return;
  for (unsigned i = 0; i < exposed.count; ++i)
    if (exposed.regions[i] != nullptr && windows_.at(exposed.windows[i]).key == window_key)
      exposed.invalid |= uint32_t{1} << i;
}

// What the peer did not invalidate itself, because it had no use for it, and will not. Windows are withdrawn
// by the device, in order. The regions, and registrations that go with them, last until it has done so.
void VerbsTransport::post_conceal(VerbsLink& link, ExposedMemory& exposed) noexcept {
  Channel& channel = *link.channel;
  if (link.path != Path::queue_pair || channel.room() < exposed.count + 1) {
    ++channel.exposures_to_conceal;
    return;
  }
  exposed.state = ExposedMemory::State::concealing;
  for (unsigned i = 0; i < exposed.count; ++i) {
    if (!is_bound(exposed, i)) continue;
    ibv_send_wr request{};
    request.opcode = IBV_WR_LOCAL_INV;
    request.invalidate_rkey = windows_.at(exposed.windows[i]).key;
    // After a refusal the queue pair is given up, and everything with it.
    if (!post(link, request, {RequestKind::conceal, exposures_.index_of(exposed)}, false)) break;
    ++exposed.outstanding;
  }
}

void VerbsTransport::post_conceals(VerbsLink& link) noexcept {
  Channel& channel = *link.channel;
  channel.exposures_to_conceal = 0;
  for (ExposedMemory* exposed = channel.exposures; exposed != nullptr; exposed = exposed->next)
    if (exposed->state == ExposedMemory::State::to_conceal) post_conceal(link, *exposed);
}

void VerbsTransport::unlink(ExposedMemory& exposed) noexcept {
  *exposed.previous = exposed.next;
  if (exposed.next != nullptr) exposed.next->previous = exposed.previous;
  exposed.channel_number = 0;
}

// Nobody can use it any more: regions and windows go back.
void VerbsTransport::end_exposure(ExposedMemory& exposed) noexcept {
  for (unsigned i = 0; i < exposed.count; ++i) {
    MemoryWindow& window = windows_.at(exposed.windows[i]);
    if (window.registration != nullptr) ibv_dereg_mr(std::exchange(window.registration, nullptr));
    if (exposed.regions[i] != nullptr) memory_.release(exposed.regions[i]);
    windows_.release(exposed.windows[i]);
  }
  exposures_.release(exposures_.index_of(exposed));
}

// The queue pair goes: windows that are bound through it are destroyed. What operations still refer to
// ends with conceal().
void VerbsTransport::abandon_exposures(Channel& channel) noexcept {
  while (ExposedMemory* exposed = channel.exposures) {
    unlink(*exposed);
    for (unsigned i = 0; i < exposed->count; ++i) {
      MemoryWindow& window = windows_.at(exposed->windows[i]);
      if (window.window != nullptr) ibv_dealloc_mw(std::exchange(window.window, nullptr));
      if (window.registration != nullptr) ibv_dereg_mr(std::exchange(window.registration, nullptr));
    }
    const bool concealed = exposed->state != ExposedMemory::State::exposed;
    exposed->state = ExposedMemory::State::ended;
    if (!concealed) continue;
    exposed->next = ended_exposures_;
    ended_exposures_ = exposed;
  }
  channel.exposures_to_conceal = 0;
}

}  // namespace lintel
