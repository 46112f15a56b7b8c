/* rows.h: vector, indexed and strided descriptions as pieces of memory at both sides. Message
 * path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_VIS_ROWS_H
#define LINTEL_GASNET_VIS_ROWS_H

#include <gasnet_vis.h>

#include <array>

namespace lintel::gasnet {

/** `count` pieces of the same length, at a constant distance. */
struct Run {
  char* address;
  ptrdiff_t stride; /* not read if count is 1 */
  size_t bytes;
  size_t count;

  char* piece(size_t index) const { return address + stride * static_cast<ptrdiff_t>(index); }
  /** Whether all pieces are in the range. */
  bool is_inside(uintptr_t start, uintptr_t length) const;
};

/** Pieces of this process and of the peer. Length and count are the same at both sides. */
struct Row {
  Run near;
  Run far;
};

/** The rows of a call, in any order. */
class Rows {
 public:
  virtual ~Rows() = default;
  /** @return false at the end. Lists whose lengths differ end the program. */
  virtual bool next(Row* row) = 0;
  /** About how many pieces there are; 0 if there is nothing to do. */
  virtual size_t pieces() const = 0;
  /** Whether the call names a peer. A strided call without pieces may have none. */
  virtual bool has_peer() const { return true; }
};

/** Two lists of pieces, both cut at the boundaries of either list. */
template <typename Side>
class ListRows final : public Rows {
 public:
  ListRows(Side near, Side far) : near_(near), far_(far) {}
  bool next(Row* row) override {
    const bool has_near = near_.find();
    if (has_near != far_.find())
      gasnett_fatalerror_nopos("gex_VIS: source and destination have different lengths");
    if (!has_near) return false;
    size_t bytes = near_.left() < far_.left() ? near_.left() : far_.left();
    row->near = {near_.take(bytes), 0, bytes, 1};
    row->far = {far_.take(bytes), 0, bytes, 1};
    // Pieces that are adjacent at both sides become one.
    while (near_.find() && far_.find() && near_.address() == row->near.address + row->near.bytes &&
           far_.address() == row->far.address + row->far.bytes) {
      bytes = near_.left() < far_.left() ? near_.left() : far_.left();
      near_.take(bytes);
      far_.take(bytes);
      row->near.bytes = row->far.bytes += bytes;
    }
    return true;
  }
  size_t pieces() const override {
    return near_.count() > far_.count() ? near_.count() : far_.count();
  }

 private:
  Side near_;
  Side far_;
};

/** One side of a vector or indexed call. */
template <typename List>
class ListSide {
 public:
  explicit ListSide(List list) : list_(list) {}
  /** Moves to the next piece that has bytes left. @return false at the end. */
  bool find() {
    while (index_ < list_.count && used_ == list_.bytes(index_)) {
      ++index_;
      used_ = 0;
    }
    return index_ < list_.count;
  }
  size_t left() const { return list_.bytes(index_) - used_; }
  char* address() const { return list_.address(index_) + used_; }
  char* take(size_t bytes) {
    char* const taken = address();
    used_ += bytes;
    return taken;
  }
  size_t count() const { return list_.count; }

 private:
  List list_;
  size_t index_ = 0;
  size_t used_ = 0; /* bytes of the current piece */
};

struct VectorList {
  size_t count;
  const gex_Memvec_t* pieces;
  size_t bytes(size_t index) const { return pieces[index].gex_len; }
  char* address(size_t index) const { return static_cast<char*>(pieces[index].gex_addr); }
};
struct IndexedList {
  size_t count;
  void* const* pieces;
  size_t length;
  size_t bytes(size_t) const { return length; }
  char* address(size_t index) const { return static_cast<char*>(pieces[index]); }
};
using VectorRows = ListRows<ListSide<VectorList>>;
using IndexedRows = ListRows<ListSide<IndexedList>>;

/** Both sides of a strided call. Reads the arrays of the client in its constructor only. */
class StridedRows final : public Rows {
 public:
  StridedRows(void* near, const ptrdiff_t* near_strides, void* far, const ptrdiff_t* far_strides,
              size_t bytes, const size_t* count, size_t levels);
  bool next(Row* row) override;
  size_t pieces() const override { return pieces_; }
  bool has_peer() const override { return pieces_ != 0; }

 private:
  struct Level {
    ptrdiff_t near_stride;
    ptrdiff_t far_stride;
    size_t count;
    size_t index;
  };
  void add_level(const Level& level);

  Row row_{};
  size_t pieces_ = 0;
  bool is_at_end_ = false;
  /* The levels beyond the row. Each counts at least two pieces, so there are at most 64. */
  std::array<Level, 64> levels_;
  size_t level_count_ = 0;
};

}  // namespace lintel::gasnet

#endif  // LINTEL_GASNET_VIS_ROWS_H
