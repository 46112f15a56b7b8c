// Faults on demand. For tests.
#include "reliable/faulty_link.h"

#include <charconv>
#include <clocale>
#include <cstdlib>
#include <utility>

#include "util/assert.h"
#include "util/guarded_memory.h"
#include "util/lock.h"
#include "util/text.h"

namespace lintel {

namespace {

constexpr uint64_t most_overtaking = 4;

// Copies the pieces one after the other. What cannot be read stays as it was: the frame is damaged.
uint32_t flatten(const OutboundFrame& frame, std::byte* to) noexcept {
  std::byte* end = to;
  for (unsigned i = 0; i < frame.count; ++i) {
    if (frame.pieces[i].length == 0) continue;
    static_cast<void>(guarded_copy(end, frame.pieces[i].base, frame.pieces[i].length));
    end += frame.pieces[i].length;
  }
  return static_cast<uint32_t>(end - to);
}

// std::from_chars() for double would need libm, which every program would then load.
bool parse_probability(std::string_view text, double& value) {
  if (text.find_first_not_of("0123456789.e-") != text.npos) return false;
  const std::string copy(text);
  char* end = nullptr;
  const locale_t with_points = newlocale(LC_ALL_MASK, "C", nullptr);
  value = strtod_l(copy.c_str(), &end, with_points);
  freelocale(with_points);
  return !copy.empty() && *end == '\0' && value >= 0 && value <= 1;
}

}  // namespace

bool Faults::parse(std::string_view text, Faults& faults, std::string& reason) {
  faults = Faults{};
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    const std::string_view item = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    const size_t equals = std::min(item.find('='), item.size());
    const std::string_view name = item.substr(0, equals);
    const std::string_view value = equals < item.size() ? item.substr(equals + 1) : "";
    bool good = false;
    if (name == "drop") good = parse_probability(value, faults.drop);
    if (name == "dup") good = parse_probability(value, faults.dup);
    if (name == "reorder") good = parse_probability(value, faults.reorder);
    if (name == "corrupt") good = parse_probability(value, faults.corrupt);
    if (name == "seed") {
      const auto [end, error] =
          std::from_chars(value.data(), value.data() + value.size(), faults.seed);
      good = error == std::errc{} && end == value.data() + value.size();
    }
    if (!good) return explained(false, reason, std::string(item));
  }
  return true;
}

FaultyLink::FaultyLink(std::unique_ptr<PacketLink> link, const Faults& faults) noexcept
    : link_(std::move(link)), faults_(faults), state_(faults.seed) {
  properties_ = link_->properties();
  if (faults.corrupt > 0 || faults.reorder > 0) properties_.keeps_frames_of_node = false;
}

FaultyLink::~FaultyLink() = default;

// SplitMix64.
uint64_t FaultyLink::roll() noexcept {
  uint64_t z = state_ += 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

bool FaultyLink::happens(double probability) noexcept {
  return probability > 0 && static_cast<double>(roll() >> 11) * 0x1p-53 < probability;
}

FaultyLink::Fault FaultyLink::next_fault() noexcept {
  if (happens(faults_.drop)) return Fault::drop;
  if (happens(faults_.corrupt)) return Fault::corrupt;
  if (happens(faults_.reorder)) return Fault::reorder;
  return happens(faults_.dup) ? Fault::dup : Fault::none;
}

void FaultyLink::apply(Fault fault, const OutboundFrame& frame) noexcept {
  switch (fault) {
    case Fault::drop:
      ++counters_.dropped;
      break;
    case Fault::corrupt:
      ++counters_.corrupted;
      corrupt(frame);
      break;
    case Fault::reorder:
      ++counters_.reordered;
      hold(frame);
      break;
    case Fault::dup:
      ++counters_.doubled;
      pass(frame);
      pass(frame);
      break;
    case Fault::none:
      pass(frame);
  }
}

// The receiver must see what it would see of a bad cable, so the sender hears of no fault. Frames
// between two faults stay together: the link sends them as cheaply as without faults.
unsigned FaultyLink::send(const OutboundFrame* frames, unsigned count) noexcept {
  const LockGuard guard(lock_);
  unsigned first = 0;  // of those that wait to be passed together
  for (unsigned i = 0; i < count; ++i) {
    const Fault fault = next_fault();
    if (fault == Fault::none && held_frames_ == 0) continue;
    if (i != first) first += link_->send(frames + first, i - first);
    if (first != i) return first;  // the link is full
    apply(fault, frames[i]);
    let_overtaken_go();
    first = i + 1;
  }
  return first == count ? count : first + link_->send(frames + first, count - first);
}

void FaultyLink::pass(const OutboundFrame& frame) noexcept {
  static_cast<void>(link_->send(&frame, 1));
}

void FaultyLink::hold(const OutboundFrame& frame) noexcept {
  for (Held& held : held_) {
    if (held.length != 0) continue;
    if (held.bytes == nullptr) held.bytes.reset(new (std::nothrow) std::byte[link_->mtu()]);
    if (held.bytes == nullptr) break;
    held.to = *frame.to;
    held.length = flatten(frame, held.bytes.get());
    held.overtaken_by = 1 + static_cast<unsigned>(roll() % most_overtaking);
    held_frames_ += held.length != 0;
    return;
  }
  pass(frame);
}

void FaultyLink::let_overtaken_go() noexcept {
  if (held_frames_ == 0) return;
  for (Held& held : held_) {
    if (held.length == 0 || held.overtaken_by-- != 0) continue;
    const Piece piece{held.bytes.get(), held.length};
    pass({&held.to, &piece, 1});
    held.length = 0;
    LINTEL_ASSERT(held_frames_ != 0);
    --held_frames_;
  }
}

// Changes one bit of the frame.
void FaultyLink::corrupt(const OutboundFrame& frame) noexcept {
  if (scratch_ == nullptr) scratch_.reset(new (std::nothrow) std::byte[link_->mtu()]);
  if (scratch_ == nullptr) return;
  const uint32_t length = flatten(frame, scratch_.get());
  if (length == 0) return;
  const uint64_t bit = roll() % (uint64_t{length} * 8);
  scratch_[bit / 8] ^= static_cast<std::byte>(1u << (bit % 8));
  const Piece piece{scratch_.get(), length};
  pass({frame.to, &piece, 1});
}

FaultCounters FaultyLink::fault_counters() const noexcept {
  const LockGuard guard(lock_);
  return counters_;
}

std::string FaultyLink::describe() const {
  return link_->describe() + ", with faults on purpose (PTL_FAULTS)";
}

}  // namespace lintel
