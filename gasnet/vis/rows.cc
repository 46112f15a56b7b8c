/* rows.cc: strided descriptions. Message path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "vis/rows.h"

namespace lintel::gasnet {

bool Run::is_inside(uintptr_t start, uintptr_t length) const {
  // All pieces lie between the first and the last.
  ptrdiff_t span = 0;
  if (count > 1 && (count > PTRDIFF_MAX ||
                    __builtin_mul_overflow(stride, static_cast<ptrdiff_t>(count - 1), &span)))
    return false;
  const auto first = reinterpret_cast<uintptr_t>(address);
  for (const uintptr_t piece : {first, first + static_cast<uintptr_t>(span)})
    if (piece - start > length || bytes > length - (piece - start)) return false;
  return true;
}

StridedRows::StridedRows(void* near, const ptrdiff_t* near_strides, void* far,
                         const ptrdiff_t* far_strides, size_t bytes, const size_t* count,
                         size_t levels) {
  is_at_end_ = true;
  if (bytes == 0) return;
  for (size_t i = 0; i < levels; ++i)
    if (count[i] == 0) return;
  is_at_end_ = false;
  pieces_ = 1;
  row_.near = {static_cast<char*>(near), 0, bytes, 1};
  row_.far = {static_cast<char*>(far), 0, bytes, 1};
  for (size_t i = 0; i < levels; ++i)
    if (count[i] > 1) add_level({near_strides[i], far_strides[i], count[i], 0});
}

void StridedRows::add_level(const Level& level) {
  const auto bytes = static_cast<ptrdiff_t>(row_.near.bytes);
  if (row_.near.count == 1 && level.near_stride == bytes && level.far_stride == bytes) {
    row_.near.bytes = row_.far.bytes *= level.count;
    return;
  }
  pieces_ *= level.count;
  const auto row_count = static_cast<ptrdiff_t>(row_.near.count);
  if (row_.near.count == 1) {
    row_.near.stride = level.near_stride;
    row_.far.stride = level.far_stride;
    row_.near.count = row_.far.count = level.count;
  } else if (level_count_ == 0 && level.near_stride == row_.near.stride * row_count &&
             level.far_stride == row_.far.stride * row_count) {
    row_.near.count = row_.far.count *= level.count;
  } else {
    levels_[level_count_++] = level;
  }
}

bool StridedRows::next(Row* row) {
  if (is_at_end_) return false;
  *row = row_;
  is_at_end_ = true;
  for (size_t i = 0; i < level_count_ && is_at_end_; ++i) {
    Level& level = levels_[i];
    row_.near.address += level.near_stride;
    row_.far.address += level.far_stride;
    if (++level.index < level.count) {
      is_at_end_ = false;
    } else {
      row_.near.address -= level.near_stride * static_cast<ptrdiff_t>(level.count);
      row_.far.address -= level.far_stride * static_cast<ptrdiff_t>(level.count);
      level.index = 0;
    }
  }
  return true;
}

}  // namespace lintel::gasnet
