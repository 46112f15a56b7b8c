/* gathered.h: pieces of this process that are one range at the peer: one put or get with a list of
 * pieces (PTL_IOVEC). Message path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_VIS_GATHERED_H
#define LINTEL_GASNET_VIS_GATHERED_H

#include "rma/event.h"
#include "vis/rows.h"

namespace lintel::gasnet {

class GatheredRows {
 public:
  /** Whether the pieces of the row follow, at the peer, those that were added. */
  bool is_continued_by(const Row& row) const;
  /** The pieces are one range at the peer, and follow those that were added. */
  void add(const Row& row);
  static bool is_one_range(const Row& row);

  char* begin() const { return rows_[0].far.address; }
  /** Starts the transfer.
   * @return false if there are too few pieces for a gain, or Portals has no room for a list. */
  bool start(gasneti_event& event, const Place& place, bool is_put) const;
  template <typename Use>
  void for_each(Use&& use) const {
    for (size_t i = 0; i < size_; ++i) use(rows_[i]);
  }
  bool is_empty() const { return size_ == 0; }
  void clear() { size_ = pieces_ = bytes_ = 0; }

 private:
  static constexpr size_t kMostRows = 256;
  Row rows_[kMostRows];
  size_t size_ = 0;
  size_t pieces_ = 0;
  size_t bytes_ = 0;
};

}  // namespace lintel::gasnet

#endif  // LINTEL_GASNET_VIS_GATHERED_H
