/* pieces.h: each member sends pieces of memory to some others, by active messages. Message path.
 *
 * For scatter, gather and exchange of gasnet_coll.h. Makes progress in polls only.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_COLL_PIECES_H
#define LINTEL_GASNET_COLL_PIECES_H

#include <compare>
#include <map>
#include <vector>

#include "coll/message_tree.h"
#include "job/mutex.h"
#include "rma/event.h"
#include "team/team.h"

namespace lintel::gasnet {

struct OutgoingPiece {
  gex_Rank_t to;
  const char* data;
  size_t sent = 0;
  bool is_done = false;
};
struct IncomingPiece {
  gex_Rank_t from;
  char* place;
};

class PieceCalls {
 public:
  /** All pieces of a call have the same length. None is for this process.
   * @param call   number of the call in the team, the same in all members.
   * @param event  signalled when the part of this process is done. */
  void start(gasneti_team& team, uint32_t call, std::vector<OutgoingPiece> outgoing,
             std::vector<IncomingPiece> incoming, size_t bytes, gasneti_event& event);
  /** To be called by the handler. */
  void arrived(uint32_t team, uint32_t call, gex_Rank_t from, size_t offset, const void* part,
               size_t length);
  /** Makes progress. Never waits. @return the number of calls that are done. */
  unsigned int advance();

 private:
  struct Key {
    uint32_t team;
    uint32_t call;
    auto operator<=>(const Key&) const = default;
  };
  struct Call {
    std::map<gex_Rank_t, ArrivedVector> arrived;
    /* Valid once this process takes part. */
    gasneti_team* team = nullptr;
    gasneti_event* event = nullptr;
    size_t bytes = 0;
    std::vector<OutgoingPiece> outgoing;
    std::vector<IncomingPiece> incoming;
  };
  bool send(const Key& key, Call& call) LINTEL_GASNET_REQUIRES(mutex_);
  bool advance(const Key& key, Call& call) LINTEL_GASNET_REQUIRES(mutex_);

  Mutex mutex_;
  std::map<Key, Call> calls_ LINTEL_GASNET_GUARDED_BY(mutex_);
  std::atomic<size_t> started_{0}; /* may be read without the lock */
};

PieceCalls& piece_calls();

/** Set-up path. */
void start_pieces();

}  // namespace lintel::gasnet

#endif  // LINTEL_GASNET_COLL_PIECES_H
