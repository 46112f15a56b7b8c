/* pieces.cc: sending pieces, and storing them at their destination. Message path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "coll/pieces.h"

#include <algorithm>
#include <cstring>

#include "client/client.h"
#include "coll/handlers.h"
#include "endpoint/endpoint.h"
#include "network/poll.h"

namespace lintel::gasnet {
namespace {

constexpr size_t kPartBytes = 8192;

void on_part(gex_Token_t, void* part, size_t length, gex_AM_Arg_t team, gex_AM_Arg_t call,
             gex_AM_Arg_t from, gex_AM_Arg_t offset) {
  piece_calls().arrived(static_cast<uint32_t>(team), static_cast<uint32_t>(call),
                        static_cast<gex_Rank_t>(from), static_cast<uint32_t>(offset), part, length);
}

}  // namespace

void PieceCalls::start(gasneti_team& team, uint32_t call_number,
                       std::vector<OutgoingPiece> outgoing, std::vector<IncomingPiece> incoming,
                       size_t bytes, gasneti_event& event) {
  if (bytes > UINT32_MAX)
    gasnett_fatalerror_nopos("a collective call of %zu bytes for each rank is too large", bytes);
  const Key key{team.number, call_number};
  const LockGuard lock(mutex_);
  Call& call = calls_[key];
  gasneti_assert(!call.team);
  call.team = &team;
  call.event = &event;
  call.bytes = bytes;
  call.outgoing = std::move(outgoing);
  call.incoming = std::move(incoming);
  started_.fetch_add(1, std::memory_order_relaxed);
  if (advance(key, call)) calls_.erase(key);
}

void PieceCalls::arrived(uint32_t team, uint32_t call, gex_Rank_t from, size_t offset,
                         const void* part, size_t length) {
  const LockGuard lock(mutex_);
  calls_[{team, call}].arrived[from].add(offset, part, length);
}

/** @return whether everything is sent. */
bool PieceCalls::send(const Key& key, Call& call) {
  for (OutgoingPiece& piece : call.outgoing) {
    while (!piece.is_done) {
      const size_t length = std::min(kPartBytes, call.bytes - piece.sent);
      if (gex_AM_RequestMedium4(
              call.team, piece.to, kPieceHandler, piece.data + piece.sent, length, GEX_EVENT_NOW,
              GEX_FLAG_IMMEDIATE, static_cast<gex_AM_Arg_t>(key.team),
              static_cast<gex_AM_Arg_t>(key.call), static_cast<gex_AM_Arg_t>(call.team->view.rank),
              static_cast<gex_AM_Arg_t>(piece.sent)) != 0)
        return false;
      piece.sent += length;
      piece.is_done = piece.sent == call.bytes;
    }
  }
  call.outgoing.clear();
  return true;
}

bool PieceCalls::advance(const Key& key, Call& call) {
  std::erase_if(call.incoming, [&](const IncomingPiece& piece) {
    const auto arrival = call.arrived.find(piece.from);
    if (arrival == call.arrived.end() || !arrival->second.has(call.bytes)) return false;
    if (call.bytes != 0) std::memcpy(piece.place, arrival->second.bytes.get(), call.bytes);
    call.arrived.erase(arrival);
    return true;
  });
  if (!send(key, call) || !call.incoming.empty()) return false;
  call.event->signal();
  gasneti_assert(started_.load(std::memory_order_relaxed) != 0);
  started_.fetch_sub(1, std::memory_order_relaxed);
  return true;
}

unsigned int PieceCalls::advance() {
  if (started_.load(std::memory_order_relaxed) == 0) return 0;
  if (!mutex_.try_lock()) return 0;
  const LockGuard lock(mutex_, std::adopt_lock);
  unsigned int done = 0;
  for (auto next = calls_.begin(); next != calls_.end();) {
    const auto here = next++;
    if (here->second.team && advance(here->first, here->second)) {
      calls_.erase(here);
      ++done;
    }
  }
  return done;
}

PieceCalls& piece_calls() {
  static PieceCalls& instance = *new PieceCalls;
  return instance;
}

void start_pieces() {
  the_client()->endpoint(0)->set_internal_handler(kPieceHandler,
                                                  reinterpret_cast<gex_AM_Fn_t>(on_part), "piece");
  add_poll_function([] { return piece_calls().advance(); });
}

}  // namespace lintel::gasnet
