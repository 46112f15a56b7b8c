/* gathered.cc: lists of pieces. Message path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "vis/gathered.h"

namespace lintel::gasnet {
namespace {

/* A shorter list takes longer to make than it saves, measured over UDP. */
constexpr size_t kLeastPieces = 4;
/* A longer list brings no further gain. */
constexpr size_t kMostPieces = 16384;

size_t bytes_of(const Run& run) { return run.bytes * run.count; }

}  // namespace

bool GatheredRows::is_one_range(const Row& row) {
  return (row.far.count == 1 || row.far.stride == static_cast<ptrdiff_t>(row.far.bytes)) &&
         row.far.count <= kMostPieces;
}

bool GatheredRows::is_continued_by(const Row& row) const {
  return size_ != 0 && size_ < kMostRows && is_one_range(row) &&
         begin() + bytes_ == row.far.address && pieces_ + row.far.count <= kMostPieces;
}

void GatheredRows::add(const Row& row) {
  rows_[size_++] = row;
  pieces_ += row.far.count;
  bytes_ += bytes_of(row.far);
}

bool GatheredRows::start(gasneti_event& event, const Place& place, bool is_put) const {
  if (pieces_ < kLeastPieces) return false;
  std::unique_ptr<ptl_iovec_t[]> list(new ptl_iovec_t[pieces_]);
  size_t used = 0;
  for_each([&](const Row& row) {
    for (size_t i = 0; i < row.near.count; ++i) list[used++] = {row.near.piece(i), row.near.bytes};
  });
  return is_put ? event.put_pieces(place, std::move(list), pieces_, bytes_)
                : event.get_pieces(place, std::move(list), pieces_, bytes_);
}

}  // namespace lintel::gasnet
