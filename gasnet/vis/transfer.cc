/* transfer.cc: how rows travel: copied, one by one, or packed. Message path.
 *
 * Pieces of neighbours are copied. For other peers there are three ways. Pieces that are one range
 * at the peer are one put or get. Each large piece is a put or get. Small pieces are packed into
 * active messages. One event counts all of them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "vis/transfer.h"

#include <algorithm>
#include <utility>

#include "job/thread.h"
#include "rma/remote.h"
#include "segment/segment.h"
#include "team/team.h"
#include "trace/trace.h"
#include "vis/copy.h"
#include "vis/gathered.h"
#include "vis/packed.h"

namespace lintel::gasnet {
namespace {

/* Fewer pieces are transferred one by one: puts and gets need no progress by the target. */
constexpr size_t kLeastPacked = 4;
/* Larger pieces are faster one by one, measured over UDP. */
constexpr size_t kLargestPackedPiece = 1024;

/** The settings of the environment for packing. */
struct Settings {
  bool packs = gasnett_getenv_yesno_withdefault("GASNET_VIS_AMPIPE", 1) != 0;
  size_t put_bytes = message_bytes("GASNET_VIS_PUT_MAXCHUNK");
  size_t get_bytes = message_bytes("GASNET_VIS_GET_MAXCHUNK");

 private:
  static size_t message_bytes(const char* name) {
    const int64_t both = gasnett_getenv_int_withdefault("GASNET_VIS_MAXCHUNK", kLargestData, 1);
    const int64_t bytes = gasnett_getenv_int_withdefault(name, both, 1);
    return static_cast<size_t>(std::clamp<int64_t>(bytes, 256, kLargestData));
  }
};

const Settings& settings() {
  static const Settings instance;
  return instance;
}

/** Handler that gex_VIS_SetPeerCompletionHandler has set in this thread. */
struct PeerCompletion {
  gex_AM_Index_t handler = 0; /* 0: none */
  const void* source = nullptr;
  size_t bytes = 0;
};

PeerCompletion& peer_completion() {
  static PeerCompletion* const by_place = new PeerCompletion[max_threads()];
  return by_place[this_thread().index];
}

/** The memory of the peer. */
class Peer {
 public:
  explicit Peer(const Transfer& transfer)
      : name_(endpoint_of(transfer.tm, transfer.rank)),
        segment_(segment_table().of(name_.jobrank, name_.index)) {}
  gex_Rank_t jobrank() const { return name_.jobrank; }
  bool has_messages() const { return name_.index == 0; }
  void check_range(const Run& run) const {
    if (!run.is_inside(segment_.address, segment_.bytes))
      gasnett_fatalerror_nopos(
          "gex_VIS: %zu times %zu bytes from %p on are not in a segment of endpoint %u of rank %u "
          "that this process can reach",
          run.count, run.bytes, static_cast<void*>(run.address), name_.index, name_.jobrank);
  }
  Place place_of(const char* address) const {
    return {name_.jobrank, name_.index, reinterpret_cast<uintptr_t>(address) - segment_.address};
  }

 private:
  EndpointName name_;
  SegmentTable::Entry segment_;
};

void start_alone(gasneti_event& event, const Peer& peer, bool is_put, const Row& row) {
  for (size_t i = 0; i < row.far.count; ++i) {
    if (is_put)
      event.put(peer.place_of(row.far.piece(i)), row.near.piece(i), row.far.bytes);
    else
      event.get(peer.place_of(row.far.piece(i)), row.near.piece(i), row.far.bytes);
  }
}

/** @param row  the first row, which the caller has read already. */
template <typename Packed>
void start_rows(gasneti_event& event, const Transfer& transfer, Row row, Rows& rows,
                size_t message_bytes) {
  const Peer peer(transfer);
  const bool packs = settings().packs && peer.has_messages() && !has_device_memory(transfer.tm) &&
                     rows.pieces() >= kLeastPacked;
  const size_t largest_packed = packs ? std::min(kLargestPackedPiece, message_bytes / 2) : 0;
  Packed packed(event, peer.jobrank(), message_bytes);
  const auto start_row = [&](const Row& one) {
    if (one.far.bytes <= largest_packed)
      packed.add(one);
    else
      start_alone(event, peer, transfer.is_put, one);
  };
  GatheredRows gathered;
  const auto start_gathered = [&] {
    if (!gathered.is_empty() &&
        !gathered.start(event, peer.place_of(gathered.begin()), transfer.is_put))
      gathered.for_each(start_row);
    gathered.clear();
  };
  do {
    peer.check_range(row.far);
    if (!gathered.is_continued_by(row)) start_gathered();
    if (GatheredRows::is_one_range(row))
      gathered.add(row);
    else
      start_row(row);
  } while (rows.next(&row));
  start_gathered();
  packed.flush();
}

void start(gasneti_event& event, const Transfer& transfer, const Row& first, Rows& rows) {
  if (transfer.is_put)
    start_rows<PackedPuts>(event, transfer, first, rows, settings().put_bytes);
  else
    start_rows<PackedGets>(event, transfer, first, rows, settings().get_bytes);
}

void copy_rows(const Transfer& transfer, Row row, Rows& rows, ptrdiff_t distance) {
#ifdef GASNET_DEBUG
  const Peer peer(transfer);
#endif
  do {
#ifdef GASNET_DEBUG
    peer.check_range(row.far);
#endif
    row.far.address += distance;
    if (transfer.is_put)
      copy_run(row.far, row.near);
    else
      copy_run(row.near, row.far);
  } while (rows.next(&row));
}

/** If the memory of the peer is mapped here, copies. Otherwise reads the first row.
 * @return whether the call is complete. */
bool is_complete_at_once(const Transfer& transfer, Rows& rows, Row* first) {
  check_may_communicate("gex_VIS");
  if (rows.pieces() == 0 || !rows.next(first)) return true;
  LINTEL_GASNET_TRACE_TRANSFER(transfer.is_put ? 'P' : 'G',
                               endpoint_of(transfer.tm, transfer.rank).jobrank,
                               "about %zu pieces, rank %u", rows.pieces(), transfer.rank);
  void* const mapped = mapped_range(transfer.tm, transfer.rank, first->far.address, 1);
  if (!mapped) return false;
  copy_rows(transfer, *first, rows, static_cast<char*>(mapped) - first->far.address);
  return true;
}

gasneti_event* ThreadEvents::*category_of(const Transfer& transfer) {
  if (!transfer.is_put) return &ThreadEvents::gets;
  return transfer.flags & GEX_FLAG_ENABLE_LEAF_LC ? &ThreadEvents::group_puts : &ThreadEvents::puts;
}

gex_Event_t start_nb(const Transfer& transfer, Rows& rows) {
  Row first;
  if (is_complete_at_once(transfer, rows, &first)) return GEX_EVENT_INVALID;
  return start_explicit(category_of(transfer),
                        [&](gasneti_event& event) { start(event, transfer, first, rows); });
}

/** A put with a message to the peer after its completion. Waits for the completion. */
void put_and_tell(const Transfer& transfer, Rows& rows) {
  const PeerCompletion told = std::exchange(peer_completion(), {});
  gex_Event_Wait(start_nb(transfer, rows));
  if (!rows.has_peer()) return;
  send_peer_completion(endpoint_of(transfer.tm, transfer.rank).jobrank, told.handler, told.source,
                       told.bytes);
}

bool tells_peer(const Transfer& transfer) {
  return transfer.is_put && peer_completion().handler != 0;
}

}  // namespace

gex_Event_t transfer_nb(const Transfer& transfer, Rows& rows) {
  if (!tells_peer(transfer)) return start_nb(transfer, rows);
  put_and_tell(transfer, rows);
  return GEX_EVENT_INVALID;
}

int transfer_nbi(const Transfer& transfer, Rows& rows) {
  if (tells_peer(transfer)) {
    put_and_tell(transfer, rows);
    return 0;
  }
  Row first;
  if (is_complete_at_once(transfer, rows, &first)) return 0;
  ThreadEvents& events = this_threads_events();
  start(implicit(events, events.*category_of(transfer)), transfer, first, rows);
  return 0;
}

int transfer_blocking(const Transfer& transfer, Rows& rows) {
  gex_Event_Wait(transfer_nb(transfer, rows));
  return 0;
}

void start_transfers() { settings(); }

}  // namespace lintel::gasnet

using namespace lintel::gasnet;

void gex_VIS_SetPeerCompletionHandler(gex_AM_Index_t handler, const void* source_addr,
                                      size_t nbytes, gex_Flags_t /*flags*/) {
  check_may_communicate("gex_VIS_SetPeerCompletionHandler");
  if (nbytes > GEX_VIS_MAX_PEERCOMPLETION)
    gasnett_fatalerror_nopos("gex_VIS_SetPeerCompletionHandler: %zu bytes, at most %zu", nbytes,
                             GEX_VIS_MAX_PEERCOMPLETION);
  peer_completion() = {handler, source_addr, handler == 0 ? 0 : nbytes};
}
