/* team_collectives.cc: starting and finishing calls. Message path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "coll/team_collectives.h"

#include <algorithm>
#include <cstring>

#include "job/job.h"
#include "job/neighbourhood.h"

namespace lintel::gasnet {
namespace {

constexpr uint32_t kHalf = kSlots / 2;
/* Number of calls in a row that never wait for each other. */
constexpr uint32_t kOverlap = 4;
constexpr unsigned int kLooksBeforePoll = 32;
/* Maximum of members of a node that read the contributions of all others. The reads of a member
 * increase with the number of members, those of all with its square. */
constexpr uint32_t kMostReaders = 8;

/* Open calls of all teams. */
std::atomic<size_t> g_open_calls{0};

bool ends_half(uint32_t number) { return number % kHalf == kHalf - 1; }

Schedule schedule_of(const CollectiveRequest& request, uint32_t place, uint32_t places,
                     uint32_t root_place) {
  switch (request.kind) {
    case CollectiveKind::kBroadcast:
      return from_root(place, places, root_place);
    case CollectiveKind::kReduceToOne:
      return to_root(place, places, root_place);
    default:
      return for_all(place, places, request.reduction.is_idempotent(), TeamPlaces::most_at_once());
  }
}

}  // namespace

TeamCollectives::TeamCollectives(gasneti_team& team, TeamPlaces places, void* memory,
                                 NodeMemoryOfTeam taken)
    : team_(team),
      places_(std::move(places)),
      taken_(std::move(taken)),
      own_memory_(memory ? nullptr : new char[NodeStage::bytes(1) + 64]()),
      node_(memory ? memory
                   : own_memory_.get() + (64 - reinterpret_cast<uintptr_t>(own_memory_.get()) % 64),
            places_.members(), places_.index()) {}

bool TeamCollectives::prepare() {
  if (places_.count() == 1 || !places_.is_leader()) return true;
  const LockGuard lock(mutex_);
  network_ = std::make_unique<NetworkStage>(team_.number, places_);
  return network_->prepare() && (places_.members() == 1 || network_->prepare_release(node_));
}

bool TeamCollectives::accepts(const CollectiveRequest& request) const {
  const Reduction& reduction = request.reduction;
  if (reduction.count > kSmallBytes || reduction.item_bytes > kSmallBytes ||
      reduction.bytes() > kSmallBytes)
    return false;
  // The network cannot run functions of the client.
  return request.kind == CollectiveKind::kBroadcast || !reduction.is_of_client() ||
         places_.count() == 1;
}

bool TeamCollectives::look(void* self) {
  auto* const collectives = static_cast<TeamCollectives*>(self);
  const LockGuard lock(collectives->mutex_);
  return collectives->advance_locked() != 0;
}

std::optional<AwaitedCount> TeamCollectives::awaited(void* self, const gasneti_event& event) {
  auto* const collectives = static_cast<TeamCollectives*>(self);
  const LockGuard lock(collectives->mutex_);
  for (const Call& call : collectives->calls_) {
    if (call.event != &event) continue;
    // A call that has not started waits for the first one.
    const Call& first = call.is_started ? call : collectives->calls_.front();
    if (!first.awaited || first.awaited->threshold == 0) break;
    return AwaitedCount{first.awaited->counter, first.awaited->threshold};
  }
  return std::nullopt;
}

void TeamCollectives::start(const CollectiveRequest& request, gasneti_event& event) {
  event.set_look(look, awaited, this, places_.members() > 1 ? kLooksBeforePoll : 0);
  const LockGuard lock(mutex_);
  if (places_.count() > 1 && ends_half(next_number_) &&
      request.kind != CollectiveKind::kReduceToAll)
    add_barrier_of_leaders();
  add_call(request, &event);
  advance_locked();
}

void TeamCollectives::add_call(const CollectiveRequest& request, gasneti_event* event) {
  Call& call = calls_.emplace_back();
  call.number = next_number_++;
  call.request = request;
  call.event = event;
}

void TeamCollectives::add_barrier_of_leaders() {
  if (places_.is_leader())
    add_call({}, nullptr);
  else
    ++next_number_;
}

void TeamCollectives::count_calls() {
  const size_t before = calls_count_.exchange(calls_.size(), std::memory_order_relaxed);
  g_open_calls.fetch_add(calls_.size() - before, std::memory_order_relaxed);
}

bool TeamCollectives::are_calls_open() { return g_open_calls.load(std::memory_order_relaxed) != 0; }

bool TeamCollectives::counts_halves(const Call& call) const {
  return places_.count() > 1 && places_.is_leader() && ends_half(call.number);
}

bool TeamCollectives::awaits_earlier_calls(const Call& call) const {
  return counts_halves(call) && call.number - calls_.front().number >= kOverlap;
}

bool TeamCollectives::has_free_slot(const Call& call) {
  // All leaders are done with the calls before the last kOverlap calls of the halves that are over.
  if (places_.count() > 1 && places_.is_leader() &&
      call.number - halves_over_ * kHalf >= kSlots - kOverlap)
    return false;
  return !call.event || node_.have_finished(call.number - kSlots + 1);
}

bool TeamCollectives::is_over() {
  const LockGuard lock(mutex_);
  // The memory of the slots belongs to the leader.
  return calls_.empty() && (!places_.is_leader() || node_.have_finished(next_number_));
}

unsigned int TeamCollectives::advance() {
  if (!mutex_.try_lock()) return 0;
  const LockGuard lock(mutex_, std::adopt_lock);
  return advance_locked();
}

unsigned int TeamCollectives::advance_locked() {
  unsigned int done = 0;
  for (size_t next = 0; next < calls_.size();) {
    Call& call = calls_[next];
    if (!call.is_started) {
      // The calls that follow do not wait for the earlier calls.
      if (awaits_earlier_calls(call)) {
        ++next;
        continue;
      }
      if (!has_free_slot(call)) break;
      start_call(call);
    }
    if (!call.is_done && is_over(call)) {
      finish(call);
      ++done;
    }
    if (calls_.front().is_done) {
      gasneti_assert(next == 0);
      calls_.pop_front();
    } else {
      ++next;
    }
  }
  node_.finish(calls_.empty() ? next_number_ : calls_.front().number);
  if (calls_.size() != calls_count_.load(std::memory_order_relaxed)) count_calls();
  return done;
}

bool TeamCollectives::have_all_contributed(Call& call) const {
  while (call.shown < places_.members() && node_.is_shown(slot_of(call), use_of(call), call.shown))
    ++call.shown;
  return call.shown == places_.members();
}

bool TeamCollectives::is_over(Call& call) {
  if (call.awaits_contributions) return have_all_contributed(call);
  if (call.awaits_release) return node_.is_released(slot_of(call), use_of(call));
  return !call.awaited || NetworkStage::is_reached(*call.awaited);
}

/** Each member combines them itself, so all in the same order. */
void TeamCollectives::combine_contributions(const Call& call) const {
  const Reduction& reduction = call.request.reduction;
  const size_t bytes = reduction.bytes();
  if (bytes == 0) return;
  alignas(16) char buffers[2][kSmallBytes];
  char* combined = buffers[0];
  char* next = buffers[1];
  std::memcpy(combined, node_.contribution(slot_of(call), 0).bytes, bytes);
  for (uint32_t member = 1; member < places_.members(); ++member) {
    std::memcpy(next, node_.contribution(slot_of(call), member).bytes, bytes);
    reduction.combine(combined, next, reduction.count);
    std::swap(combined, next);
  }
  std::memcpy(call.request.destination, combined, bytes);
}

void TeamCollectives::finish(Call& call) {
  gasneti_assert(call.is_started && !call.is_done);
  call.is_done = true;
  if (counts_halves(call)) ++halves_over_;
  if (!call.event) return;
  const size_t bytes = call.request.reduction.bytes();
  if (call.awaits_contributions)
    combine_contributions(call);
  else if (bytes != 0 && call.result && call.request.destination != call.result)
    std::memcpy(call.request.destination, call.result, bytes);
  call.event->signal();
}

void TeamCollectives::await_release(Call& call, bool wants_result) {
  call.awaits_release = true;
  if (wants_result) call.result = node_.slot(slot_of(call)).result;
}

void TeamCollectives::start_call(Call& call) {
  gasneti_assert(!call.is_started);
  call.is_started = true;
  if (!call.event) {
    const Schedule schedule = schedule_of(call.request, places_.own(), places_.count(), 0);
    call.awaited = network_->post(slot_of(call), schedule, call.request.reduction, {});
  } else if (call.request.kind == CollectiveKind::kBroadcast) {
    start_broadcast(call);
  } else {
    start_reduction(call);
  }
}

/** Called by the leader: starts the chain, and the release of its neighbours after it. */
void TeamCollectives::start_between_nodes(Call& call, const Schedule& schedule, Awaited own) {
  const CollectiveRequest& request = call.request;
  const unsigned int slot = slot_of(call);
  const Awaited result = network_->post(slot, schedule, request.reduction, own);
  const bool is_for_one = request.kind == CollectiveKind::kReduceToOne;
  const bool is_here = !is_for_one || places_.place_of(request.root) == places_.own();
  const bool releases =
      is_here && places_.members() > 1 && !(is_for_one && request.root == team_.view.rank);
  if (releases)
    call.awaited = network_->post_release(slot, use_of(call), result, request.reduction.bytes());
  else
    call.awaited = schedule.ends_with_arrival() ? result : network_->post_end(slot, result);
  if (!is_for_one || request.root == team_.view.rank) call.result = result.value;
}

void TeamCollectives::start_broadcast(Call& call) {
  const CollectiveRequest& request = call.request;
  const unsigned int slot = slot_of(call);
  const size_t bytes = request.reduction.bytes();
  const bool is_root = request.root == team_.view.rank;
  if (is_root && bytes != 0 && request.source != request.destination)
    std::memcpy(request.destination, request.source, bytes);
  if (places_.count() == 1) {
    if (!is_root) return await_release(call, true);
    if (bytes != 0) std::memcpy(node_.slot(slot).result, request.source, bytes);
    return node_.release(slot, use_of(call));
  }
  if (!places_.is_leader()) {
    if (!is_root) return await_release(call, true);
    NetworkStage::send_to_leader(places_.process_at(places_.own()), team_.number, slot,
                                 request.source, bytes);
    return;
  }
  const uint32_t root_place = places_.place_of(request.root);
  const bool starts_at_neighbour = root_place == places_.own() && !is_root;
  const Awaited own =
      starts_at_neighbour ? network_->value_of_neighbour(slot) : network_->own_value(slot);
  if (is_root && bytes != 0) std::memcpy(own.value, request.source, bytes);
  start_between_nodes(call, from_root(places_.own(), places_.count(), root_place), own);
}

void TeamCollectives::start_reduction(Call& call) {
  const CollectiveRequest& request = call.request;
  const Reduction& reduction = request.reduction;
  const unsigned int slot = slot_of(call);
  const size_t bytes = reduction.bytes();
  const bool is_for_one = request.kind == CollectiveKind::kReduceToOne;
  const bool is_receiver = !is_for_one || request.root == team_.view.rank;
  if (bytes != 0) std::memcpy(node_.own_contribution(slot).bytes, request.source, bytes);
  if (places_.count() == 1 && !is_for_one && places_.members() <= kMostReaders) {
    call.awaits_contributions = true;
    return node_.show(slot, use_of(call));
  }
  const bool is_last = node_.arrive(slot);
  // The combined value is in the contribution of the last rank.
  const char* const combined = node_.contribution(slot, places_.members() - 1).bytes;
  if (is_last)
    for (uint32_t member = 1; member < places_.members(); ++member)
      reduction.combine(node_.contribution(slot, member - 1).bytes,
                        node_.contribution(slot, member).bytes, reduction.count);
  if (places_.count() == 1) {
    if (!is_last) {
      if (is_receiver) await_release(call, bytes != 0);
      return;
    }
    if (is_receiver && bytes != 0) call.result = combined;
    if (places_.members() == 1) return;
    if (bytes != 0) std::memcpy(node_.slot(slot).result, combined, bytes);
    return node_.release(slot, use_of(call));
  }
  if (places_.is_leader()) {
    const Awaited value = is_last ? network_->own_value(slot) : network_->value_of_neighbour(slot);
    if (is_last && bytes != 0) std::memcpy(value.value, combined, bytes);
    const uint32_t root_place = is_for_one ? places_.place_of(request.root) : 0;
    return start_between_nodes(
        call, schedule_of(request, places_.own(), places_.count(), root_place), value);
  }
  if (is_last)
    NetworkStage::send_to_leader(places_.process_at(places_.own()), team_.number, slot, combined,
                                 bytes);
  if (is_receiver) await_release(call, bytes != 0);
}

}  // namespace lintel::gasnet
