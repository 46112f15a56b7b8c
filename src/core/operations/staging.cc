#include "core/operations/staging.h"

#include <sched.h>

#include <utility>

#include "util/address_space.h"
#include "util/assert.h"

namespace lintel {

namespace {
// Address space until used.
constexpr uint32_t most_streams = 1u << 16;
}  // namespace

void Staging::List::append(ListedStream& stream) noexcept {
  LINTEL_ASSERT(!stream.listed);
  stream.listed = true;
  stream.next = nullptr;
  (first == nullptr ? first : last->next) = &stream;
  last = &stream;
}

bool Staging::open() noexcept {
  return streams_.open(fitting_capacity(most_streams, sizeof(ListedStream)));
}

Staging::~Staging() {
  polling.assert_held();
  while (busy_.first != nullptr || waiting_.first != nullptr) {
    static_cast<void>(advance());
    sched_yield();
  }
  LINTEL_ASSERT(in_use_ == 0);
}

StagedStream* Staging::begin(const StagedStream::Settings& settings) noexcept {
  const uint32_t index = streams_.allocate();
  if (index == Arena<ListedStream>::no_index) return nullptr;
  ListedStream& stream = streams_.at(index);
  ++in_use_;
  stream.ended = false;
  stream.open(settings,
              settings.direction == StagedStream::Direction::to_device ? to_device_ : from_device_);
  return &stream;
}

void Staging::watch(StagedStream& stream) noexcept {
  auto& listed = static_cast<ListedStream&>(stream);
  if (!listed.listed && stream.is_copying()) {
    busy_.append(listed);
    work_due_.set();
  } else if (!listed.listed && stream.lacks_buffer()) {
    waiting_.append(listed);
    // Nothing to wait for: the client is told in the next round.
    if (stream.fail() != PTL_NI_OK) seen_given_back_ = UINT64_MAX;
  }
  if (may_serve_waiting()) work_due_.set();
}

void Staging::end(StagedStream& stream) noexcept {
  auto& ended = static_cast<ListedStream&>(stream);
  ended.cancel();
  ended.ended = true;
  LINTEL_ASSERT(!stream.is_writing());
  if (&ended == current_) return;
  if (ended.listed && !ended.is_copying()) seen_given_back_ = UINT64_MAX;  // advance() finds it
  watch(stream);
  if (!ended.listed) release(ended);
}

void Staging::release(ListedStream& stream) noexcept {
  LINTEL_ASSERT(stream.ended && !stream.is_copying() && in_use_ != 0);
  --in_use_;
  stream.close();
  streams_.release(stream);
}

unsigned Staging::advance_all(ListedStream* stream, bool has_room) noexcept {
  unsigned advanced = 0;
  for (ListedStream* next; stream != nullptr; stream = next) {
    next = stream->next;
    stream->listed = false;
    current_ = stream;
    const bool changed = stream->advance() || has_room;
    if (changed && !stream->ended) {
      ++advanced;
      stream->client().on_staged(*stream);
    }
    watch(*stream);
    if (stream->ended && !stream->listed) release(*stream);
  }
  current_ = nullptr;
  return advanced;
}

unsigned Staging::advance() noexcept {
  unsigned advanced = advance_all(std::exchange(busy_, {}).first, false);
  if (may_serve_waiting()) {
    seen_given_back_ = given_back();
    advanced += advance_all(std::exchange(waiting_, {}).first, true);
  }
  if (is_busy()) work_due_.set();
  return advanced;
}

}  // namespace lintel
