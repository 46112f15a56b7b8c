/* reduction.h: what a reduction does with two vectors. Message path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_COLL_REDUCTION_H
#define LINTEL_GASNET_COLL_REDUCTION_H

#include <gasnet_coll.h>
#include <portals4.h>

#include <cstddef>

namespace lintel::gasnet {

/** An operation and the format of its vectors. A reduction of no items is a barrier. */
struct Reduction {
  gex_DT_t type = GEX_DT_I64;
  gex_OP_t operation = GEX_OP_MAX;
  size_t item_bytes = 8;
  size_t count = 0;
  gex_Coll_ReduceFn_t function = nullptr; /* function of the client */
  const void* client_data = nullptr;

  size_t bytes() const { return item_bytes * count; }
  bool is_of_client() const { return (operation & (GEX_OP_USER | GEX_OP_USER_NC)) != 0; }
  bool is_commutative() const { return operation != GEX_OP_USER_NC; }
  /** Whether a contribution may be taken into account twice. */
  bool is_idempotent() const {
    return count == 0 || (operation & (GEX_OP_MIN | GEX_OP_MAX | GEX_OP_AND | GEX_OP_OR)) != 0;
  }

  /** Sets `right` to left (+) right for so many items. Both are aligned to 16 bytes. */
  void combine(const void* left, void* right, size_t items) const;
  /** The operation of Portals. Not for functions of the client. */
  ptl_op_t portals_operation() const;
  ptl_datatype_t portals_type() const;
};

/** Ends the program if the arguments of a call are not legal. */
void check_reduction(const char* call, const Reduction& reduction);

}  // namespace lintel::gasnet

#endif  // LINTEL_GASNET_COLL_REDUCTION_H
