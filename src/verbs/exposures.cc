#include "verbs/exposures.h"

#include <utility>

#include "util/assert.h"
#include "util/lock.h"
#include "verbs/channel.h"

namespace lintel {

namespace {

constexpr uint32_t most_exposures = registration_bit;
constexpr uint32_t most_windows = 1u << 20;

}  // namespace

bool Exposures::open() noexcept {
  return exposures_.open(most_exposures) && windows_.open(most_windows);
}

Exposures::~Exposures() {
  release_ended();
  for (uint32_t i = 0; i < windows_.high_water(); ++i) {
    Window& window = windows_.at(i);
    if (window.window != nullptr) ibv_dealloc_mw(window.window);
    if (window.registration != nullptr) ibv_dereg_mr(window.registration);
  }
}

Exposure Exposures::expose(VerbsLink& link, const Piece* pieces, unsigned count, bool write,
                           RemoteMemory* out) noexcept {
  constexpr Exposure by_messages{SendStatus::sent};
  if (!memory_.is_open() || count == 0 || count > ExposedMemory::most_pieces) return by_messages;
  {
    const LockGuard guard(link.lock);
    if (link.path == Path::datagrams) {
      requests_.request_channel(link);
      // If no queue pair is coming, the data travel in messages at once.
      if (!link.wants_channel && link.channel == nullptr) return by_messages;
    }
    if (link.path != Path::queue_pair) return {SendStatus::connecting};
    if (link.channel->queue.room() <= count + SendQueue::reserved) return {SendStatus::queue_full};
  }
  const uint32_t index = exposures_.allocate();
  if (index == Arena<ExposedMemory>::no_index) return by_messages;
  ExposedMemory& exposed = exposures_.at(index);
  if (!prepare(exposed, pieces, count, write)) {
    exposures_.release(index);
    return by_messages;
  }
  {
    const LockGuard guard(link.lock);
    if (link.path == Path::queue_pair && bind(*link.channel, exposed, pieces, write)) {
      Channel& channel = *link.channel;
      for (unsigned i = 0; i < count; ++i) {
        const uint32_t is_registration = exposed.regions[i] == nullptr ? registration_bit : 0;
        out[i] = {reinterpret_cast<uint64_t>(pieces[i].base), pieces[i].length,
                  exposure_key(index | is_registration, channel.number,
                               windows_.at(exposed.windows[i]).key)};
      }
      exposed.channel_number = channel.number;
      exposed.state = ExposedMemory::State::exposed;
      exposed.next = channel.exposures;
      exposed.previous = &channel.exposures;
      if (exposed.next != nullptr) exposed.next->previous = &exposed.next;
      channel.exposures = &exposed;
      exposed_.increment();
      return {SendStatus::sent, count, index + 1};
    }
  }
  end(exposed);
  return {SendStatus::connecting};
}

// Registers the pieces and finds windows for them. False: some of the memory cannot be exposed.
bool Exposures::prepare(ExposedMemory& exposed, const Piece* pieces, unsigned count,
                        bool write) noexcept {
  exposed.count = 0;
  exposed.outstanding = 0;
  exposed.invalid = 0;
  exposed.channel_number = 0;
  exposed.state = ExposedMemory::State::ended;
  for (unsigned i = 0; i < count; ++i) {
    const uint32_t index = windows_.allocate();
    if (index == Arena<Window>::no_index) break;
    Window& window = windows_.at(index);
    if (memory_.has_windows() && window.window == nullptr)
      window.window = ibv_alloc_mw(device_.pd, IBV_MW_TYPE_2);
    exposed.windows[i] = index;
    exposed.regions[i] = nullptr;
    ++exposed.count;
    if (window.window != nullptr)
      // Regions with bound windows must be writable, also for windows that the peer only reads.
      exposed.regions[i] = memory_.acquire_for_window(pieces[i]);
    if (exposed.regions[i] == nullptr) {
      window.registration = memory_.register_once(pieces[i], write);
      if (window.registration == nullptr) break;
      window.key = window.registration->rkey;
    }
    if (i + 1 == count) return true;
  }
  release_memory(exposed);
  return false;
}

bool Exposures::bind(Channel& channel, ExposedMemory& exposed, const Piece* pieces,
                     bool write) noexcept {
  for (unsigned i = 0; i < exposed.count; ++i) {
    if (exposed.regions[i] == nullptr) continue;  // has a registration of its own
    Window& window = windows_.at(exposed.windows[i]);
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
    // The binding is posted with the message that announces it. A refusal stops the queue pair,
    // which ends all bindings.
    if (!channel.queue.post(request, {RequestKind::bind, 0}, false, SendQueue::Posting::with_next))
      return false;
  }
  return true;
}

// A window that is invalidated by both ends breaks the queue pair. So if the peer has not answered,
// the queue pair is stopped, and the windows end with it.
void Exposures::withdraw(VerbsLink& link, uint32_t number, bool peer_may_access) noexcept {
  ExposedMemory& exposed = exposures_.at(number - 1);
  bool windows = false;
  {
    const LockGuard guard(link.lock);
    for (unsigned i = 0; i < exposed.count; ++i) windows |= exposed.is_bound(i);
    if (exposed.channel_number != 0 && windows) {
      exposed.state = ExposedMemory::State::to_withdraw;
      if (!peer_may_access || link.path == Path::stopping) {
        post_withdraw(link, exposed);
      } else {
        link.channel->queue_pair->stop();
        requests_.ask_to_stop(link, "an operation was abandoned whose memory the peer may access");
      }
      return;
    }
    if (exposed.channel_number != 0) unlink(exposed);
  }
  end(exposed);  // the queue pair is gone, or no window is bound
}

void Exposures::note_invalidated(VerbsLink& link, uint32_t index, uint32_t window_key) noexcept {
  if (!exposures_.contains(index)) return;
  ExposedMemory& exposed = exposures_.at(index);
  const LockGuard guard(link.lock);
  if (exposed.channel_number != link.channel->number ||
      exposed.state != ExposedMemory::State::exposed)
    return;
  for (unsigned i = 0; i < exposed.count; ++i)
    if (exposed.regions[i] != nullptr && windows_.at(exposed.windows[i]).key == window_key)
      exposed.invalid |= uint32_t{1} << i;
}

// Windows that the peer has not invalidated and will not. The regions stay registered until the
// device has done it.
void Exposures::post_withdraw(VerbsLink& link, ExposedMemory& exposed) noexcept {
  Channel& channel = *link.channel;
  if (link.path != Path::queue_pair || channel.queue.room() < exposed.count + 1) {
    ++channel.exposures_to_withdraw;
    return;
  }
  exposed.state = ExposedMemory::State::withdrawing;
  for (unsigned i = 0; i < exposed.count; ++i) {
    if (!exposed.is_bound(i)) continue;
    ibv_send_wr request{};
    request.opcode = IBV_WR_LOCAL_INV;
    request.invalidate_rkey = windows_.at(exposed.windows[i]).key;
    if (!channel.queue.post(request, {RequestKind::withdraw, exposures_.index_of(exposed)},
                            false)) {
      // A refusal stops the queue pair, which ends the exposure: retire() must not.
      exposed.state = ExposedMemory::State::to_withdraw;
      break;
    }
    ++exposed.outstanding;
  }
}

void Exposures::post_waiting(VerbsLink& link) noexcept {
  Channel& channel = *link.channel;
  channel.exposures_to_withdraw = 0;
  for (ExposedMemory* exposed = channel.exposures; exposed != nullptr; exposed = exposed->next)
    if (exposed->state == ExposedMemory::State::to_withdraw) post_withdraw(link, *exposed);
}

void Exposures::unlink(ExposedMemory& exposed) noexcept {
  *exposed.previous = exposed.next;
  if (exposed.next != nullptr) exposed.next->previous = exposed.previous;
  exposed.channel_number = 0;
}

void Exposures::end(ExposedMemory& exposed) noexcept {
  release_memory(exposed);
  exposures_.release(exposed);
}

void Exposures::release_memory(ExposedMemory& exposed) noexcept {
  for (unsigned i = 0; i < exposed.count; ++i) {
    Window& window = windows_.at(exposed.windows[i]);
    if (window.registration != nullptr) ibv_dereg_mr(std::exchange(window.registration, nullptr));
    if (exposed.regions[i] != nullptr) memory_.release(exposed.regions[i]);
    windows_.release(exposed.windows[i]);
  }
}

void Exposures::release_ended() noexcept {
  while (ExposedMemory* exposed = ended_) {
    ended_ = exposed->next;
    end(*exposed);
  }
}

void Exposures::retire(uint32_t index) noexcept {
  ExposedMemory& exposed = exposures_.at(index);
  LINTEL_ASSERT(exposed.outstanding != 0);
  if (--exposed.outstanding != 0 || exposed.state != ExposedMemory::State::withdrawing) return;
  exposed.state = ExposedMemory::State::ended;
  unlink(exposed);
  exposed.next = ended_;
  ended_ = &exposed;
}

void Exposures::abandon(Channel& channel) noexcept {
  while (ExposedMemory* exposed = channel.exposures) {
    unlink(*exposed);
    for (unsigned i = 0; i < exposed->count; ++i) {
      Window& window = windows_.at(exposed->windows[i]);
      if (window.window != nullptr) ibv_dealloc_mw(std::exchange(window.window, nullptr));
      if (window.registration != nullptr) ibv_dereg_mr(std::exchange(window.registration, nullptr));
    }
    const bool withdrawn = exposed->state != ExposedMemory::State::exposed;
    exposed->state = ExposedMemory::State::ended;
    if (!withdrawn) continue;
    exposed->next = ended_;
    ended_ = exposed;
  }
  channel.exposures_to_withdraw = 0;
}

}  // namespace lintel
