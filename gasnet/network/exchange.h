/* exchange.h: each process gets the records of all processes. Set-up path.
 *
 * Records are gathered along a tree to rank 0, and all of them go back along it. A process
 * communicates with few others, since a new connection costs more than the messages. No process
 * returns before all have begun, so an exchange is a barrier as well.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_NETWORK_EXCHANGE_H
#define LINTEL_GASNET_NETWORK_EXCHANGE_H

#include <portals4.h>

#include <cstddef>
#include <vector>

#include "tools/headers.h"

namespace lintel::gasnet {

/** Match bits under which rank 0 exposes its environment, beside the exchanges. */
constexpr ptl_match_bits_t kEnvironmentMatchBits = 1u << 16;

/** Runs once. All processes call prepare(), then Network::meet(), then run(). If the job is one
 * neighbourhood before that, show(), Network::meet() and collect() do the same with one barrier
 * less. */
class Exchange {
 public:
  /** @param number        identifies the exchange; the same in all processes. Exchange 0 is the one
   *                      before neighbours share memory, unless the launcher gives them memory.
   * @param record_bytes  size of the record of each process. */
  Exchange(unsigned int number, size_t record_bytes);
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  /** Makes room for what arrives. */
  void prepare();
  /** Collective. @param mine  the record of this process. */
  void run(const void* mine);
  /** Before Network::meet(). The same parameter as run(). */
  void show(const void* mine) const;
  /** After Network::meet(). */
  void collect();
  /** The record of a rank, after run() or collect(). */
  const void* record(gex_Rank_t rank) const {
    gasneti_assert((rank + size_t{1}) * record_bytes_ <= records_.size());
    return records_.data() + rank * record_bytes_;
  }
  /** Frees the memory. The records are invalid afterwards. */
  void release();

 private:
  /* Towards rank 0, and back. */
  enum Direction : unsigned int { kUp, kDown };
  void await(Direction direction, ptl_size_t messages) const;
  void unlink_entries() const;
  void run_along_tree(const void* mine);

  unsigned int number_;
  size_t record_bytes_;
  std::vector<char> records_;
  ptl_handle_ct_t arrived_[2]{};
  ptl_handle_me_t entries_[2]{};
};

}  // namespace lintel::gasnet

#endif  // LINTEL_GASNET_NETWORK_EXCHANGE_H
