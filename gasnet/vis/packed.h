/* packed.h: many small pieces in one active message. Message path.
 *
 * A put is a request with the data and their destination. A get is a request with the list of what
 * it reads, and a reply with the data. The event of the operation counts the answer like an
 * acknowledgement of Portals.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_VIS_PACKED_H
#define LINTEL_GASNET_VIS_PACKED_H

#include "am/send.h"
#include "rma/event.h"
#include "vis/rows.h"

namespace lintel::gasnet {

/** A run of the target in a message. */
struct PackedRun {
  uint64_t address;
  int64_t stride;
  uint32_t bytes;
  uint32_t count;
};
static_assert(sizeof(PackedRun) == 24);

constexpr size_t kLargestRunList = 256;

/** Puts of small pieces into the segment of a primordial endpoint. */
class PackedPuts {
 public:
  /** @param largest  bytes of data and runs in a message. */
  PackedPuts(gasneti_event& event, gex_Rank_t target, size_t largest)
      : event_(event), target_(target), largest_(largest) {}
  /** The pieces have at most half as many bytes as a message. */
  void add(const Row& row);
  void flush();

 private:
  gasneti_event& event_;
  gex_Rank_t target_;
  size_t largest_;
  SendRecord* record_ = nullptr;
  char* data_ = nullptr;
  size_t data_bytes_ = 0;
  size_t run_count_ = 0;
  Run runs_[kLargestRunList];
};

/** Gets of small pieces. */
class PackedGets {
 public:
  PackedGets(gasneti_event& event, gex_Rank_t target, size_t largest)
      : event_(event), target_(target), largest_(largest) {}
  void add(const Row& row);
  void flush();

 private:
  gasneti_event& event_;
  gex_Rank_t target_;
  size_t largest_;
  size_t data_bytes_ = 0;
  size_t run_count_ = 0;
  Run far_runs_[kLargestRunList];
  Run near_runs_[kLargestRunList];
};

/** Sends the message that gex_VIS_SetPeerCompletionHandler requested. */
void send_peer_completion(gex_Rank_t target, gex_AM_Index_t handler, const void* source,
                          size_t bytes);

/** Set-up path. */
void start_vis();

}  // namespace lintel::gasnet

#endif  // LINTEL_GASNET_VIS_PACKED_H
