/* barrier.cc: the rounds, gex_Coll_Barrier... and gasnet_barrier... Message path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "coll/barrier.h"

#include <algorithm>

#include "client/client.h"
#include "coll/handlers.h"
#include "endpoint/endpoint.h"
#include "job/thread.h"
#include "network/poll.h"

namespace lintel::gasnet {
namespace {

/* The third argument of a message. */
constexpr unsigned int kStateShift = 8;
constexpr unsigned int kKindShift = 16;

unsigned int rounds_of(const gasneti_team& team) {
  unsigned int rounds = 0;
  while (uint64_t{1} << rounds < team.view.size) ++rounds;
  return rounds;
}

void on_barrier(gex_Token_t, gex_AM_Arg_t team, gex_AM_Arg_t call, gex_AM_Arg_t word,
                gex_AM_Arg_t id) {
  const auto bits = static_cast<uint32_t>(word);
  const Agreement theirs{static_cast<Agreement::State>(bits >> kStateShift & 0xFF), id};
  barriers().arrived(static_cast<uint32_t>(team), static_cast<BarrierKind>(bits >> kKindShift),
                     static_cast<uint32_t>(call), bits & 0xFF, theirs);
}

}  // namespace

Barriers::Call& Barriers::find(uint32_t team, BarrierKind kind, uint32_t number) {
  for (Call& call : calls_)
    if (call.team_number == team && call.kind == kind && call.number == number) return call;
  Call& call = calls_.emplace_back();
  call.team_number = team;
  call.kind = kind;
  call.number = number;
  count_.store(calls_.size(), std::memory_order_relaxed);
  return call;
}

void Barriers::start(gasneti_team& team, BarrierKind kind, uint32_t number, const Agreement& mine,
                     gasneti_event& event) {
  const std::lock_guard lock(mutex_);
  Call& call = find(team.number, kind, number);
  call.team = &team;
  call.event = &event;
  call.agreement.join(mine);
  advance(call);
}

Agreement Barriers::finish(const gasneti_team& team, BarrierKind kind, uint32_t number) {
  const std::lock_guard lock(mutex_);
  Call& call = find(team.number, kind, number);
  const Agreement agreement = call.agreement;
  call = calls_.back();
  calls_.pop_back();
  count_.store(calls_.size(), std::memory_order_relaxed);
  return agreement;
}

void Barriers::arrived(uint32_t team, BarrierKind kind, uint32_t number, unsigned int round,
                       const Agreement& theirs) {
  const std::lock_guard lock(mutex_);
  Call& call = find(team, kind, number);
  call.rounds_arrived |= 1u << round;
  call.agreement.join(theirs);
}

bool Barriers::advance(Call& call) {
  if (!call.event) return false;
  const unsigned int rounds = rounds_of(*call.team);
  bool has_sent = false;
  for (;;) {
    const unsigned int round = call.rounds_sent;
    const uint32_t before = (1u << round) - 1;
    if ((call.rounds_arrived & before) != before) return has_sent;
    if (round == rounds) {
      gasneti_event* const event = call.event;
      call.event = nullptr;
      if (call.kind == BarrierKind::kEx) {
        call = calls_.back();
        calls_.pop_back();
        count_.store(calls_.size(), std::memory_order_relaxed);
      }
      event->signal();
      return true;
    }
    const gasneti_team_view& view = call.team->view;
    const auto above = static_cast<gex_Rank_t>((view.rank + (uint64_t{1} << round)) % view.size);
    const uint32_t word = round | static_cast<uint32_t>(call.agreement.state) << kStateShift |
                          static_cast<uint32_t>(call.kind) << kKindShift;
    if (gex_AM_RequestShort4(call.team, above, kBarrierHandler, GEX_FLAG_IMMEDIATE,
                             static_cast<gex_AM_Arg_t>(call.team_number),
                             static_cast<gex_AM_Arg_t>(call.number),
                             static_cast<gex_AM_Arg_t>(word), call.agreement.id) != 0)
      return has_sent;
    ++call.rounds_sent;
    has_sent = true;
  }
}

unsigned int Barriers::advance() {
  if (count_.load(std::memory_order_relaxed) == 0) return 0;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return 0;
  unsigned int done = 0;
  // One that is over is replaced by the last one.
  for (size_t i = 0; i < calls_.size();) {
    const size_t before = calls_.size();
    if (advance(calls_[i])) ++done;
    if (calls_.size() == before) ++i;
  }
  return done;
}

Barriers& barriers() {
  static Barriers& instance = *new Barriers;
  return instance;
}

void start_barriers() {
  the_client()->endpoints[0]->set_internal_handler(
      kBarrierHandler, reinterpret_cast<gex_AM_Fn_t>(on_barrier), "barrier");
  add_poll_function([] { return barriers().advance(); });
}

}  // namespace lintel::gasnet

using namespace lintel::gasnet;

gex_Event_t gex_Coll_BarrierNB(gex_TM_t tm, gex_Flags_t flags) {
  check_may_communicate("gex_Coll_BarrierNB");
  if (flags != 0) gasnett_fatalerror_nopos("gex_Coll_BarrierNB: flags 0x%x, must be 0", flags);
  gasneti_event& event = take_signalled_event();
  barriers().start(*tm, BarrierKind::kEx, tm->barriers++, {}, event);
  return &event;
}

void gex_Coll_BarrierBlocking(gex_TM_t tm, gex_Flags_t flags) {
  gex_Event_Wait(gex_Coll_BarrierNB(tm, flags));
}

/* ------------------------------------------------------------------------------------- GASNet-1 */

namespace {

using State = Agreement::State;

/** Of the team of all processes. One thread of a process uses it. */
struct NamedBarrier {
  uint32_t calls = 0;
  gasneti_event* event = nullptr; /* between notify and wait */
  Agreement notified;
  Agreement result;
};
NamedBarrier g_barrier;

Agreement agreement_of(int id, int flags) {
  if (flags & GASNET_BARRIERFLAG_MISMATCH) return {State::kMismatch, 0};
  if (flags & GASNET_BARRIERFLAG_ANONYMOUS) return {State::kAnonymous, 0};
  return {State::kNamed, id};
}

int finish_named(int id, int flags) {
  gex_Event_Wait(g_barrier.event);
  g_barrier.event = nullptr;
  g_barrier.result =
      barriers().finish(*the_client()->team, BarrierKind::kNamed, g_barrier.calls - 1);
  // What this rank says in both calls must agree, too.
  Agreement own = g_barrier.notified;
  own.join(agreement_of(id, flags));
  if (own.state == State::kMismatch) g_barrier.result.state = State::kMismatch;
  return g_barrier.result.state == State::kMismatch ? GASNET_ERR_BARRIER_MISMATCH : GASNET_OK;
}

void check_notified(const char* call) {
  if (!g_barrier.event) gasnett_fatalerror_nopos("%s without gasnet_barrier_notify", call);
}

}  // namespace

void gasnet_barrier_notify(int id, int flags) {
  check_may_communicate("gasnet_barrier_notify");
  if (g_barrier.event) gasnett_fatalerror_nopos("gasnet_barrier_notify: a second time before wait");
  g_barrier.notified = agreement_of(id, flags);
  g_barrier.event = &take_signalled_event();
  barriers().start(*the_client()->team, BarrierKind::kNamed, g_barrier.calls++, g_barrier.notified,
                   *g_barrier.event);
}

int gasnet_barrier_wait(int id, int flags) {
  check_may_communicate("gasnet_barrier_wait");
  check_notified("gasnet_barrier_wait");
  return finish_named(id, flags);
}

int gasnet_barrier_try(int id, int flags) {
  check_may_communicate("gasnet_barrier_try");
  check_notified("gasnet_barrier_try");
  poll();
  return g_barrier.event->is_complete() ? finish_named(id, flags) : GASNET_ERR_NOT_READY;
}

int gasnet_barrier(int id, int flags) {
  gasnet_barrier_notify(id, flags);
  return gasnet_barrier_wait(id, flags);
}

int gasnet_barrier_result(int* id) {
  if (g_barrier.result.state != State::kNamed) return 1;
  *id = g_barrier.result.id;
  return 0;
}
