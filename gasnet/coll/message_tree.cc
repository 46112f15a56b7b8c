/* message_tree.cc: segments on their way up and down the tree. Message path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "coll/message_tree.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "client/client.h"
#include "coll/handlers.h"
#include "endpoint/endpoint.h"
#include "network/poll.h"

namespace lintel::gasnet {
namespace {

constexpr size_t kPartBytes = 8192;
constexpr size_t kSegmentBytes = size_t{64} << 10;
constexpr unsigned int kLevelShift = 24;
constexpr uint32_t kMostSegments = uint32_t{1} << kLevelShift;
constexpr size_t kWindowBytes = size_t{1} << 20;
/* Memory of a call in addition to its vector. */
constexpr size_t kCallBytes = 1024;

/* Segments of all teams that this process takes part in. */
std::atomic<size_t> g_started{0};

void on_part(gex_Token_t, void* part, size_t length, gex_AM_Arg_t team, gex_AM_Arg_t call,
             gex_AM_Arg_t segment, gex_AM_Arg_t offset) {
  const auto word = static_cast<uint32_t>(segment);
  message_trees().arrived(static_cast<uint32_t>(team), static_cast<uint32_t>(call),
                          word % kMostSegments, word >> kLevelShift, static_cast<uint32_t>(offset),
                          part, length);
}

/** The rank that is `steps` above in the order that begins at the root of the tree. */
gex_Rank_t above(const gasneti_team& team, gex_Rank_t base, uint64_t steps) {
  return static_cast<gex_Rank_t>((base + steps) % team.view.size);
}

uint64_t place_in_tree(const gasneti_team& team, gex_Rank_t base) {
  return (team.view.rank + uint64_t{team.view.size} - base) % team.view.size;
}

}  // namespace

void ArrivedVector::add(size_t offset, const void* part, size_t length) {
  if (offset + length > capacity) {
    const size_t larger = std::max(offset + length, 2 * capacity);
    std::unique_ptr<char[]> grown(new char[larger]);
    if (bytes) std::memcpy(grown.get(), bytes.get(), capacity);
    bytes = std::move(grown);
    capacity = larger;
  }
  if (length != 0) std::memcpy(bytes.get() + offset, part, length);
  received += length;
  ++messages;
}

void TeamTrees::start(gasneti_team& team, const CollectiveRequest& request, gasneti_event& event) {
  const size_t bytes = request.reduction.bytes() + kCallBytes;
  const LockGuard lock(mutex_);
  if (window_bytes_ + bytes > kWindowBytes && team.view.size != 1) {
    ++window_;
    window_bytes_ = 0;
    add(team, {}, {nullptr, window_, 0, 0});
  }
  window_bytes_ += bytes;
  const bool is_long = bytes > kWindowBytes;
  add(team, request, {&event, window_, window_ - (is_long || window_ == 0 ? 0 : 1), 0});
}

void TeamTrees::add(gasneti_team& team, const CollectiveRequest& request, Whole counts) {
  const Reduction& reduction = request.reduction;
  // A segment consists of whole items.
  const size_t items_at_once = std::max<size_t>(1, kSegmentBytes / reduction.item_bytes);
  const size_t count = std::max<size_t>(1, (reduction.count + items_at_once - 1) / items_at_once);
  if (count > kMostSegments || items_at_once * reduction.item_bytes > UINT32_MAX)
    gasnett_fatalerror_nopos("a collective call of %zu items of %zu bytes is too large",
                             reduction.count, reduction.item_bytes);
  const bool has_value = request.kind != CollectiveKind::kBroadcast;
  counts.segments_left = static_cast<uint32_t>(count);
  auto whole = std::make_shared<Whole>(counts);
  const uint32_t call = next_call_++;
  for (uint32_t number = 0; number < count; ++number) {
    const Key key{call, number};
    Segment& segment = segments_[key];
    gasneti_assert(!segment.team);
    segment.team = &team;
    segment.whole = whole;
    segment.request = request;
    const size_t offset = number * items_at_once * reduction.item_bytes;
    if (request.source) segment.request.source = static_cast<const char*>(request.source) + offset;
    if (request.destination)
      segment.request.destination = static_cast<char*>(request.destination) + offset;
    Reduction& part = segment.request.reduction;
    part.count = std::min(items_at_once, reduction.count - number * items_at_once);
    // Operations that do not commute combine in the order of ranks.
    const bool is_rooted = request.kind != CollectiveKind::kReduceToAll;
    segment.base = is_rooted && reduction.is_commutative() ? request.root : 0;
    segment.is_up = !has_value;
    if (has_value && part.count != 0) {
      segment.value.reset(new char[part.bytes()]);
      std::memcpy(segment.value.get(), segment.request.source, part.bytes());
    }
    g_started.fetch_add(1, std::memory_order_relaxed);
    if (advance(key, segment)) segments_.erase(key);
  }
}

void TeamTrees::arrived(uint32_t call, uint32_t segment, uint32_t level, size_t offset,
                        const void* part, size_t length) {
  const LockGuard lock(mutex_);
  Segment& into = segments_[{call, segment}];
  ArrivedVector& vector = level == kFromParent ? into.from_parent : into.from_children[level];
  vector.add(offset, part, length);
}

/** @return whether everything is sent. */
bool TeamTrees::send(const Key& key, Segment& segment) {
  const size_t bytes = segment.request.reduction.bytes();
  const char* const value =
      segment.value ? segment.value.get() : static_cast<const char*>(segment.request.source);
  for (Sending& sending : segment.sendings) {
    while (!sending.is_done) {
      const size_t length = std::min(kPartBytes, bytes - sending.sent);
      if (gex_AM_RequestMedium4(
              segment.team, sending.rank, kTreeHandler, value + sending.sent, length, GEX_EVENT_NOW,
              GEX_FLAG_IMMEDIATE, static_cast<gex_AM_Arg_t>(segment.team->number),
              static_cast<gex_AM_Arg_t>(key.call),
              static_cast<gex_AM_Arg_t>(key.segment | sending.level << kLevelShift),
              static_cast<gex_AM_Arg_t>(sending.sent)) != 0)
        return false;
      sending.sent += length;
      sending.is_done = sending.sent == bytes;
    }
  }
  segment.sendings.clear();
  return true;
}

/** @return false if a child has not sent everything. */
bool TeamTrees::combine_children(Segment& segment) {
  const gasneti_team& team = *segment.team;
  const Reduction& reduction = segment.request.reduction;
  const uint64_t place = place_in_tree(team, segment.base);
  for (;; ++segment.level) {
    const uint64_t distance = uint64_t{1} << segment.level;
    if (distance >= team.view.size) break;
    if (place & distance) {
      segment.sendings.push_back({above(team, segment.base, place - distance), segment.level});
      break;
    }
    if (place + distance >= team.view.size) continue;
    const auto child = segment.from_children.find(segment.level);
    if (child == segment.from_children.end() || !child->second.has(reduction.bytes())) return false;
    if (reduction.count != 0) {
      reduction.combine(segment.value.get(), child->second.bytes.get(), reduction.count);
      segment.value = std::move(child->second.bytes);
    }
    segment.from_children.erase(child);
  }
  segment.is_up = true;
  return true;
}

/** @return false if the result has not arrived. */
bool TeamTrees::turn_downwards(Segment& segment) {
  const gasneti_team& team = *segment.team;
  const CollectiveRequest& request = segment.request;
  const size_t bytes = request.reduction.bytes();
  const uint64_t place = place_in_tree(team, segment.base);
  const bool is_for_one = request.kind == CollectiveKind::kReduceToOne;
  const bool is_receiver = !is_for_one || team.view.rank == request.root;
  if (is_receiver && place != 0) {
    if (!segment.from_parent.has(bytes)) return false;
    segment.value = std::move(segment.from_parent.bytes);
  }
  if (is_receiver && bytes != 0) {
    const void* const value = segment.value ? segment.value.get() : request.source;
    if (value != request.destination) std::memcpy(request.destination, value, bytes);
  }
  if (is_for_one) {
    if (place == 0 && !is_receiver) segment.sendings.push_back({request.root, kFromParent});
  } else {
    const unsigned int below = place == 0 ? std::bit_width(team.view.size - 1)
                                          : static_cast<unsigned int>(std::countr_zero(place));
    for (unsigned int k = below; k-- > 0;)
      if (place + (uint64_t{1} << k) < team.view.size)
        segment.sendings.push_back(
            {above(team, segment.base, place + (uint64_t{1} << k)), kFromParent});
  }
  segment.is_down = true;
  return true;
}

/** @return whether the segment is done. */
bool TeamTrees::advance(const Key& key, Segment& segment) {
  if (segment.whole->meetings > meetings_over_) return false;
  for (;;) {
    if (!segment.sendings.empty() && !send(key, segment)) return false;
    if (!segment.is_up) {
      if (!combine_children(segment)) return false;
    } else if (!segment.is_down) {
      if (!turn_downwards(segment)) return false;
    } else {
      gasneti_assert(segment.whole->segments_left != 0);
      if (--segment.whole->segments_left == 0) finish(*segment.whole);
      g_started.fetch_sub(1, std::memory_order_relaxed);
      return true;
    }
  }
}

void TeamTrees::finish(const Whole& whole) {
  if (whole.event)
    whole.event->signal();
  else
    meetings_over_ = std::max(meetings_over_, whole.window);
}

unsigned int TeamTrees::advance() {
  if (!mutex_.try_lock()) return 0;
  const LockGuard lock(mutex_, std::adopt_lock);
  unsigned int done = 0;
  for (auto next = segments_.begin(); next != segments_.end();) {
    const auto here = next++;
    if (here->second.team && advance(here->first, here->second)) {
      segments_.erase(here);
      ++done;
    }
  }
  return done;
}

bool TeamTrees::has_calls() {
  const LockGuard lock(mutex_);
  return std::any_of(segments_.begin(), segments_.end(),
                     [](const auto& entry) { return entry.second.team != nullptr; });
}

TeamTrees& MessageTrees::of(uint32_t team) {
  {
    const SharedLockGuard lock(mutex_);
    const auto found = teams_.find(team);
    if (found != teams_.end()) return found->second;
  }
  const LockGuard lock(mutex_);
  return teams_[team];
}

void MessageTrees::start(gasneti_team& team, const CollectiveRequest& request,
                         gasneti_event& event) {
  of(team.number).start(team, request, event);
}

void MessageTrees::arrived(uint32_t team, uint32_t call, uint32_t segment, uint32_t level,
                           size_t offset, const void* part, size_t length) {
  of(team).arrived(call, segment, level, offset, part, length);
}

unsigned int MessageTrees::advance() {
  if (g_started.load(std::memory_order_relaxed) == 0) return 0;
  if (!mutex_.try_lock_shared()) return 0;
  const SharedLockGuard lock(mutex_, std::adopt_lock);
  unsigned int done = 0;
  for (auto& [number, team] : teams_) done += team.advance();
  return done;
}

void MessageTrees::end(const gasneti_team& team) {
  const LockGuard lock(mutex_);
  teams_.erase(team.number);
}

MessageTrees& message_trees() {
  static MessageTrees& instance = *new MessageTrees;
  return instance;
}

void start_message_trees() {
  the_client()->endpoint(0)->set_internal_handler(kTreeHandler,
                                                  reinterpret_cast<gex_AM_Fn_t>(on_part), "tree");
  add_poll_function([] { return message_trees().advance(); });
}

}  // namespace lintel::gasnet
