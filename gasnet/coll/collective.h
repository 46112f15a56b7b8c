/* collective.h: starting a collective call; named barriers. Message path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_COLL_COLLECTIVE_H
#define LINTEL_GASNET_COLL_COLLECTIVE_H

#include "coll/message_tree.h"

namespace lintel::gasnet {

/** Small calls go through shared memory and triggered operations if the team has them. Other calls
 * go through the tree of messages. The choice depends on single-valued arguments only.
 * @return the event that the client waits for. */
gasneti_event& start_collective(gasneti_team& team, const CollectiveRequest& request);

/** A barrier of GASNet-1: its members must agree on a name. It computes the maximum of the names
 * and of their negatives. One thread of a process uses it. */
class NamedBarrier {
 public:
  void notify(const char* call, gasneti_team& team, int id, int flags);
  /** @return GASNET_OK or GASNET_ERR_BARRIER_MISMATCH. */
  int wait(const char* call, int id, int flags);
  /** @return as wait(), and GASNET_ERR_NOT_READY. */
  int try_wait(const char* call, int id, int flags);
  /** @return 0 if the last barrier had a name. */
  int result(int* id) const;

 private:
  struct alignas(16) Name {
    int64_t bound[2];
    bool is_agreed() const;
  };
  static Name name_of(int id, int flags);
  int finish(int id, int flags);

  gasneti_event* event_ = nullptr; /* between notify and wait */
  Name notified_{};
  Name result_{};
};

/** The named barrier of a team. It is made at its first use. One thread of a process uses it. */
NamedBarrier& named_barrier_of(gasneti_team& team);

}  // namespace lintel::gasnet

#endif  // LINTEL_GASNET_COLL_COLLECTIVE_H
