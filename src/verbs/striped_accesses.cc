#include "verbs/striped_accesses.h"

#include <algorithm>

#include "util/assert.h"
#include "util/clock.h"
#include "util/lock.h"

namespace lintel {

namespace {

constexpr uint32_t most_accesses = 1024;
constexpr unsigned no_port = UINT32_MAX;
// Numbers of exposures by further ports, with the place of the port above.
constexpr unsigned place_shift = 24;
static_assert(1u << place_shift > registration_bit);
// Chunks by the first port at a time while it is not known whether others will help.
constexpr unsigned chunks_alone = 2;
constexpr uint64_t measured_for_ns = 50'000;  // at least, unless nothing is left
constexpr uint64_t rate_lasts_ns = 1'000'000'000;

uint64_t total(const Piece* pieces, unsigned count) noexcept {
  uint64_t bytes = 0;
  for (unsigned i = 0; i < count; ++i) bytes += pieces[i].length;
  return bytes;
}

// The parts of pieces or ranges that hold these bytes. Returns their number.
template <typename Range, typename Part>
unsigned cut(const Range* ranges, unsigned count, StripedAccess::Span span, Range* out,
             const Part& part) noexcept {
  unsigned made = 0;
  for (unsigned i = 0; i < count && span.bytes != 0; ++i) {
    if (span.offset >= ranges[i].length) {
      span.offset -= ranges[i].length;
      continue;
    }
    const uint64_t bytes = std::min(ranges[i].length - span.offset, span.bytes);
    out[made++] = part(ranges[i], span.offset, bytes);
    span = {0, span.bytes - bytes};
  }
  return made;
}

}  // namespace

void PortRate::begin(uint64_t bytes, uint64_t now) noexcept {
  if (outstanding_ == 0) {
    since_ns_ = now;
    ended_ = 0;
  }
  outstanding_ += bytes;
}

void PortRate::end(uint64_t bytes, bool success, uint64_t now) noexcept {
  LINTEL_ASSERT(outstanding_ >= bytes);
  outstanding_ -= bytes;
  if (!success) return;
  ended_ += bytes;
  const uint64_t took_ns = now - since_ns_;
  if (took_ns == 0 || (took_ns < measured_for_ns && outstanding_ != 0)) return;
  const uint64_t sample = std::max<uint64_t>(ended_ * 1024 / took_ns, 1);
  rate_ = rate(now) == 0 ? sample : (3 * rate_ + sample) / 4;
  measured_ns_ = since_ns_ = now;
  ended_ = 0;
}

uint64_t PortRate::rate(uint64_t now) const noexcept {
  return elapsed_ns(measured_ns_, now) < rate_lasts_ns ? rate_ : 0;
}

StripedAccesses::StripedAccesses(const VerbsDevices& further, Transport& datagrams,
                                 ConnectedPort& first, const VerbsSettings& settings)
    : first_(first), rails_(further, datagrams, first, settings, *this) {}

StripedAccesses::~StripedAccesses() {
  while (!active_.empty()) release(*active_.back());
}

bool StripedAccesses::open() {
  active_.reserve(most_accesses);
  constexpr uint32_t chunks =
      most_accesses * StripedAccess::most_ports * StripedAccess::most_chunks;
  return accesses_.open(most_accesses) && chunks_.open(chunks);
}

// ---- exposed memory

void StripedAccesses::expose(VerbsLink& link, const Piece* pieces, unsigned count, bool write,
                             const RemoteMemory* told, uint32_t number) noexcept {
  if (count > MemoryNotice::most_ranges || total(pieces, count) < least_bytes) return;
  PeerRails* const peer = link.rails.load(std::memory_order_acquire);
  unsigned used = 0;
  for (unsigned i = 0; peer != nullptr && i < std::size(peer->rails); ++i) {
    VerbsLink& rail = peer->rails[i].link;
    ConnectedPort* port = nullptr;
    {
      const LockGuard guard(rail.lock);
      if (rail.path == Path::queue_pair) port = peer->rails[i].port;
    }
    if (port == nullptr) continue;
    ++used;
    RemoteMemory keys[MemoryNotice::most_ranges];
    const Exposure exposure = port->exposures.expose(rail, pieces, count, write, keys);
    if (exposure.count == 0) continue;
    MemoryNotice notice{MemoryNotice::current_version, static_cast<uint16_t>(count), 0, {}};
    for (unsigned j = 0; j < count; ++j) notice.keys[j] = {told[j].key, keys[j].key};
    MessageHeader header{};
    header.kind = MessageKind::connection;
    const Piece piece{reinterpret_cast<std::byte*>(&notice), sizeof notice};
    SendStatus status = SendStatus::connecting;
    {
      const LockGuard guard(rail.lock);
      if (rail.path == Path::queue_pair) status = port->sender.send(rail, header, &piece, 1);
    }
    if (status == SendStatus::sent) {
      first_.exposures.set_further(number, i,
                                   rails_.place_of(*port) << place_shift | exposure.number);
    } else {
      port->exposures.withdraw(rail, exposure.number, false);
    }
  }
  if (used < rails_.rails_to(link)) rails_.request(link);
}

void StripedAccesses::withdraw(VerbsLink& link, uint32_t number, bool peer_may_access) noexcept {
  PeerRails* const peer = link.rails.load(std::memory_order_acquire);
  for (unsigned i = 0; peer != nullptr && i < std::size(peer->rails); ++i)
    if (const uint32_t further = first_.exposures.take_further(number, i);
        further != Exposure::none)
      rails_.port(further >> place_shift)
          .exposures.withdraw(peer->rails[i].link, further & ((1u << place_shift) - 1),
                              peer_may_access);
}

// ---- accesses

bool StripedAccesses::suits(const VerbsLink& link, const Piece* local,
                            unsigned count) const noexcept {
  const PeerRails* const peer = link.rails.load(std::memory_order_relaxed);
  return peer != nullptr && count <= RemoteAccess::most_pieces &&
         std::any_of(std::begin(peer->rails), std::end(peer->rails),
                     [](const RailLink& rail) { return rail.link.channel != nullptr; }) &&
         total(local, count) >= least_bytes;
}

RemoteResult StripedAccesses::start(VerbsLink& link, const Piece* local, unsigned local_count,
                                    const RemoteMemory* remote, unsigned remote_count, bool writes,
                                    uint32_t token) noexcept {
  if (remote_count > RemoteAccess::most_pieces) return {RemoteStatus::unsupported, 0};
  const uint32_t index = accesses_.allocate();
  if (index == Arena<StripedAccess>::no_index) return {RemoteStatus::busy, 0};
  StripedAccess& access = accesses_.at(index);
  access.link = &link;
  access.token = token;
  access.writes = writes;
  access.outcome = RemoteStatus::done;
  access.excluded = access.fenced = access.acquired = 0;
  access.outstanding = access.repeat_count = 0;
  std::fill(std::begin(access.chunks), std::end(access.chunks), uint8_t{0});
  std::copy_n(local, access.local_count = local_count, access.local);
  std::copy_n(remote, access.remote_count = remote_count, access.remote);
  access.length = total(local, local_count);
  access.posted = 0;
  access.distant = distant_ports(local[0]);
  active_.push_back(&access);
  post_chunks(access);
  if (access.outstanding != 0) return {RemoteStatus::started, 0};
  const RemoteStatus status =
      access.outcome == RemoteStatus::done ? RemoteStatus::busy : access.outcome;
  release(access);
  return {status, 0};
}

// None if it is memory of the host.
uint8_t StripedAccesses::distant_ports(const Piece& memory) noexcept {
  const unsigned count = rails_.port_count() + 1;
  PciDistance distances[StripedAccess::most_ports];
  for (unsigned i = 0; i < count; ++i) distances[i] = port(i).distances.from(memory.base);
  const PciDistance nearest = *std::min_element(distances, distances + count);
  unsigned distant = 0;
  for (unsigned i = 0; i < count; ++i) distant |= (distances[i] != nearest ? 1u : 0u) << i;
  return static_cast<uint8_t>(distant);
}

RailLink* StripedAccesses::rail_by(const VerbsLink& link, unsigned number) const noexcept {
  PeerRails* const peer = link.rails.load(std::memory_order_relaxed);
  for (unsigned i = 0; peer != nullptr && i < std::size(peer->rails); ++i)
    if (RailLink& rail = peer->rails[i];
        rail.link.channel != nullptr && rail.port == &rails_.port(number - 1))
      return &rail;
  return nullptr;
}

// Registers whole pieces, so that their chunks find them registered.
bool StripedAccesses::acquire(StripedAccess& access, unsigned number) noexcept {
  const auto bit = static_cast<uint8_t>(1u << number);
  if ((access.acquired & bit) != 0) return true;
  for (unsigned i = 0; i < access.local_count; ++i) {
    access.regions[number][i] = port(number).memory.acquire(access.local[i], !access.writes);
    if (access.regions[number][i] != nullptr) continue;
    while (i != 0) port(number).memory.release(access.regions[number][--i]);
    return false;
  }
  access.acquired |= bit;
  return true;
}

// The queue pairs of both ends are gone when the peer has answered (ChannelChange).
bool StripedAccesses::is_fenced(StripedAccess& access) const noexcept {
  for (unsigned number = 1; number < StripedAccess::most_ports; ++number) {
    const auto bit = static_cast<uint8_t>(1u << number);
    if ((access.fenced & bit) == 0) continue;
    const RailLink* const rail = rail_by(*access.link, number);
    if (rail == nullptr || !rail->link.channel->stop.begun)
      access.fenced = static_cast<uint8_t>(access.fenced & ~bit);
  }
  return access.fenced != 0;
}

unsigned StripedAccesses::choose_port(StripedAccess& access) noexcept {
  bool all_known = true;
  unsigned best = first_to_end(access, access.distant, all_known);
  if (best == no_port) best = first_to_end(access, 0, all_known);
  if (!all_known && best == 0 && access.chunks[0] >= chunks_alone) {
    access.waits = true;
    return no_port;
  }
  return best != no_port && access.chunks[best] < StripedAccess::most_chunks ? best : no_port;
}

unsigned StripedAccesses::first_to_end(const StripedAccess& access, uint8_t without,
                                       bool& all_known) const noexcept {
  const uint64_t now = now_ns();
  uint64_t rates[StripedAccess::most_ports] = {};
  uint64_t fastest = 1;
  for (unsigned i = 0; i <= rails_.port_count(); ++i)
    fastest = std::max(fastest, rates[i] = rates_[i].rate(now));
  unsigned best = no_port;
  uint64_t earliest = UINT64_MAX;
  for (unsigned i = 0; i <= rails_.port_count(); ++i) {
    if (((access.excluded | without) >> i & 1) != 0) continue;
    if (i != 0) {
      const RailLink* const rail = rail_by(*access.link, i);
      if (rail == nullptr) continue;
      RemoteMemory keys[RemoteAccess::most_pieces];
      std::copy_n(access.remote, access.remote_count, keys);
      if (!rail->keys.translate(keys, access.remote_count)) {
        all_known = false;
        continue;
      }
    }
    // A port whose rate is not known is tried as if it were the fastest.
    const uint64_t end = (rates_[i].outstanding() + StripedAccesses::chunk_bytes) * 1024 /
                         (rates[i] != 0 ? rates[i] : fastest);
    if (end >= earliest) continue;
    earliest = end;
    best = i;
  }
  return best;
}

RemoteStatus StripedAccesses::post_chunk(StripedAccess& access, unsigned number,
                                         const StripedAccess::Span& span) noexcept {
  const uint32_t index = chunks_.allocate();
  if (index == Arena<Chunk>::no_index) return RemoteStatus::busy;
  Piece local[RemoteAccess::most_pieces];
  RemoteMemory remote[RemoteAccess::most_pieces];
  const unsigned local_count = cut(access.local, access.local_count, span, local,
                                   [](const Piece& piece, uint64_t offset, uint64_t bytes) {
                                     return Piece{piece.base + offset, bytes};
                                   });
  const unsigned remote_count = cut(access.remote, access.remote_count, span, remote,
                                    [](const RemoteMemory& range, uint64_t offset, uint64_t bytes) {
                                      return RemoteMemory{range.address + offset, bytes, range.key};
                                    });
  VerbsLink* link = access.link;
  RemoteStatus status = RemoteStatus::unsupported;
  RailLink* const rail = number == 0 ? nullptr : rail_by(*access.link, number);
  if (rail != nullptr) link = &rail->link;
  if (number == 0 || (rail != nullptr && rail->keys.translate(remote, remote_count)))
    if (acquire(access, number))
      status =
          port(number)
              .accesses
              .start(*link, local, local_count, remote, remote_count, access.writes, index, this)
              .status;
  if (status != RemoteStatus::started) {
    chunks_.release(index);
    return status;
  }
  Chunk& chunk = chunks_.at(index);
  chunk.access = accesses_.index_of(access);
  chunk.port = static_cast<uint8_t>(number);
  chunk.span = span;
  ++access.outstanding;
  ++access.chunks[number];
  rates_[number].begin(span.bytes, now_ns());
  return status;
}

void StripedAccesses::post_chunks(StripedAccess& access) noexcept {
  const bool fenced = is_fenced(access);
  access.waits = fenced;
  while (access.outcome == RemoteStatus::done && access.has_more()) {
    const bool repeats = access.repeat_count != 0 && !fenced;
    if (!repeats && access.posted == access.length) return;
    const unsigned number = choose_port(access);
    if (number == no_port) return;
    const StripedAccess::Span span =
        repeats ? access.repeats[access.repeat_count - 1]
                : StripedAccess::Span{access.posted,
                                      std::min(chunk_bytes, access.length - access.posted)};
    switch (post_chunk(access, number, span)) {
      case RemoteStatus::started:
        if (repeats)
          --access.repeat_count;
        else
          access.posted += span.bytes;
        break;
      case RemoteStatus::busy:
        access.waits = true;
        return;
      default:
        access.excluded |= static_cast<uint8_t>(1u << number);
        if (number == 0) access.outcome = RemoteStatus::unsupported;
    }
  }
}

// Goes on, or ends the access when nothing of it is left or under way.
void StripedAccesses::proceed(StripedAccess& access) noexcept {
  post_chunks(access);
  if (access.outstanding != 0 || access.fenced != 0 ||
      (access.outcome == RemoteStatus::done && access.has_more()))
    return;
  const RemoteResult result{access.outcome,
                            access.outcome == RemoteStatus::done ? access.length : 0};
  VerbsLink& link = *access.link;
  const uint32_t token = access.token;
  release(access);
  results_->on_remote_done(link, token, result);
}

void StripedAccesses::on_remote_done(Link&, uint32_t token, RemoteResult result) noexcept {
  const Chunk& chunk = chunks_.at(token);
  StripedAccess& access = accesses_.at(chunk.access);
  const unsigned number = chunk.port;
  const StripedAccess::Span span = chunk.span;
  chunks_.release(token);
  const bool success = result.status == RemoteStatus::done;
  rates_[number].end(span.bytes, success, now_ns());
  LINTEL_ASSERT(access.outstanding != 0 && access.chunks[number] != 0);
  --access.outstanding;
  --access.chunks[number];
  if (!success) {
    const auto bit = static_cast<uint8_t>(1u << number);
    access.excluded |= bit;
    if (number == 0) {
      access.outcome = result.status;
    } else {
      if (access.writes) access.fenced |= bit;
      LINTEL_ASSERT(access.repeat_count < std::size(access.repeats));
      access.repeats[access.repeat_count++] = span;
      repeated_.increment();
    }
  }
  proceed(access);
}

void StripedAccesses::serve() noexcept {
  for (size_t i = 0; i < active_.size(); ++i)
    if (active_[i]->waits) proceed(*active_[i]);
}

bool StripedAccesses::has_waiting() const noexcept {
  return std::any_of(active_.begin(), active_.end(),
                     [](const StripedAccess* access) { return access->waits; });
}

void StripedAccesses::fail(VerbsLink& link) noexcept {
  for (StripedAccess* const access : active_)
    if (access->link == &link && access->outcome == RemoteStatus::done)
      access->outcome = RemoteStatus::peer_failed;
  rails_.fail(link);
  // Those with chunks by the first port end with its queue pair.
  for (size_t i = 0; i < active_.size();) {
    StripedAccess& access = *active_[i];
    const size_t before = active_.size();
    if (access.link == &link && access.outstanding == 0) proceed(access);
    i = active_.size() == before ? i + 1 : 0;
  }
}

void StripedAccesses::release(StripedAccess& access) noexcept {
  LINTEL_ASSERT(std::find(active_.begin(), active_.end(), &access) != active_.end());
  for (unsigned number = 0; number < StripedAccess::most_ports; ++number)
    if ((access.acquired >> number & 1) != 0)
      for (unsigned i = 0; i < access.local_count; ++i)
        port(number).memory.release(access.regions[number][i]);
  active_.erase(std::find(active_.begin(), active_.end(), &access));
  accesses_.release(access);
}

}  // namespace lintel
