/* message_tree.h: broadcasts and reductions by active messages, in a binomial tree. Message path.
 *
 * For vectors of any length, and for functions of the client, which only a processor can run.
 * Vectors are cut into segments, which move through the tree one after the other. Segments make
 * progress in polls only. The order of a reduction is fixed. Each node combines a range of ranks
 * that begins with its own, and appends the ranks that follow on the right.
 *
 * Messages that arrive before this process takes part in the call are kept, so their size needs a
 * limit. Successive calls whose vectors are together below the limit form a window. With the first
 * call of a window a process enters a meeting of all members. The calls of a window make progress
 * when the meeting of the window before is over. A call that exceeds the limit by itself waits for
 * the meeting of its own window.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_COLL_MESSAGE_TREE_H
#define LINTEL_GASNET_COLL_MESSAGE_TREE_H

#include <compare>
#include <map>
#include <memory>
#include <vector>

#include "coll/reduction.h"
#include "job/mutex.h"
#include "rma/event.h"
#include "team/team.h"

namespace lintel::gasnet {

enum class CollectiveKind : uint8_t { kBroadcast, kReduceToOne, kReduceToAll };

/** The call of the client. */
struct CollectiveRequest {
  CollectiveKind kind = CollectiveKind::kReduceToAll;
  gex_Rank_t root = 0;
  void* destination = nullptr;
  const void* source = nullptr;
  Reduction reduction; /* the items of a broadcast are bytes */
};

/** The parts of a vector that have arrived. */
struct ArrivedVector {
  std::unique_ptr<char[]> bytes;
  size_t capacity = 0;
  size_t received = 0;
  unsigned int messages = 0;

  void add(size_t offset, const void* part, size_t length);
  bool has(size_t whole) const {
    gasneti_assert(received <= whole);
    return messages != 0 && received >= whole;
  }
};

/** The calls of one team. */
class TeamTrees {
 public:
  /** @param event  signalled when the part of this process is done. */
  void start(gasneti_team& team, const CollectiveRequest& request, gasneti_event& event);
  /** To be called by the handler of a message of a member.
   * @param level  level of the child in the tree that sent it, or kFromParent. */
  void arrived(uint32_t call, uint32_t segment, uint32_t level, size_t offset, const void* part,
               size_t length);
  /** Makes all progress that is possible now. Never waits.
   * @return the number of segments that have ended. */
  unsigned int advance();
  /** Whether this process takes part in a call or a meeting that is not over. */
  bool has_calls();

  static constexpr uint32_t kFromParent = 255;

 private:
  struct Key {
    uint32_t call; /* number, the same in all members */
    uint32_t segment;
    auto operator<=>(const Key&) const = default;
  };
  /** A call. Counts its segments that are not done. */
  struct Whole {
    gasneti_event* event; /* NULL: a meeting */
    uint32_t window;
    uint32_t meetings; /* number of meetings that must be over before it makes progress */
    uint32_t segments_left;
  };
  struct Sending {
    gex_Rank_t rank;
    uint32_t level;
    size_t sent = 0;
    bool is_done = false;
  };
  struct Segment {
    std::map<uint32_t, ArrivedVector> from_children; /* by level */
    ArrivedVector from_parent;
    /* Valid once this process takes part. */
    gasneti_team* team = nullptr;
    CollectiveRequest request; /* restricted to this segment */
    std::shared_ptr<Whole> whole;
    gex_Rank_t base = 0; /* the root of the tree */
    uint32_t level = 0;  /* children of lower levels have been combined */
    bool is_up = false;  /* the reduction is over for this process */
    bool is_down = false;
    std::unique_ptr<char[]> value;
    std::vector<Sending> sendings;
  };

  void add(gasneti_team& team, const CollectiveRequest& request, Whole whole)
      LINTEL_GASNET_REQUIRES(mutex_);
  bool send(const Key& key, Segment& segment) LINTEL_GASNET_REQUIRES(mutex_);
  bool combine_children(Segment& segment) LINTEL_GASNET_REQUIRES(mutex_);
  bool turn_downwards(Segment& segment) LINTEL_GASNET_REQUIRES(mutex_);
  bool advance(const Key& key, Segment& segment) LINTEL_GASNET_REQUIRES(mutex_);
  void finish(const Whole& whole) LINTEL_GASNET_REQUIRES(mutex_);

  Mutex mutex_;
  std::map<Key, Segment> segments_ LINTEL_GASNET_GUARDED_BY(mutex_);
  uint32_t next_call_ LINTEL_GASNET_GUARDED_BY(mutex_) = 0;
  /* Window of the newest call. */
  uint32_t window_ LINTEL_GASNET_GUARDED_BY(mutex_) = 0;
  size_t window_bytes_ LINTEL_GASNET_GUARDED_BY(mutex_) = 0;
  /* The meetings of the windows up to this number are over. */
  uint32_t meetings_over_ LINTEL_GASNET_GUARDED_BY(mutex_) = 0;
};

/** The trees of all teams. */
class MessageTrees {
 public:
  void start(gasneti_team& team, const CollectiveRequest& request, gasneti_event& event);
  void arrived(uint32_t team, uint32_t call, uint32_t segment, uint32_t level, size_t offset,
               const void* part, size_t length);
  unsigned int advance();
  bool has_calls_of(const gasneti_team& team) { return of(team.number).has_calls(); }
  /** To be called before the team is deleted, when it has no calls. */
  void end(const gasneti_team& team);

 private:
  /** Valid until end(). */
  TeamTrees& of(uint32_t team);

  SharedMutex mutex_;
  /* Messages may arrive before the team is made here. */
  std::map<uint32_t, TeamTrees> teams_ LINTEL_GASNET_GUARDED_BY(mutex_);
};

MessageTrees& message_trees();

/** Set-up path. */
void start_message_trees();

}  // namespace lintel::gasnet

#endif  // LINTEL_GASNET_COLL_MESSAGE_TREE_H
