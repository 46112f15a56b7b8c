/* calls.cc: gex_VIS_{Vector,Indexed,Strided}{Put,Get}{NB,NBI,Blocking}. Message path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "vis/rows.h"
#include "vis/transfer.h"

using namespace lintel::gasnet;

namespace {

VectorRows vector_rows(size_t near_count, const gex_Memvec_t* near, size_t far_count,
                       const gex_Memvec_t* far) {
  return {ListSide(VectorList{near_count, near}), ListSide(VectorList{far_count, far})};
}

IndexedRows indexed_rows(size_t near_count, void* const* near, size_t near_length, size_t far_count,
                         void* const* far, size_t far_length) {
  return {ListSide(IndexedList{near_count, near, near_length}),
          ListSide(IndexedList{far_count, far, far_length})};
}

}  // namespace

/* The three calls for one kind of description.
 * ROWS  a declaration of `rows`. */
#define LINTEL_GASNET_VIS_CALLS(NAME, PARAMETERS, RANK, IS_PUT, ROWS) \
  gex_Event_t gex_VIS_##NAME##NB PARAMETERS {                         \
    ROWS;                                                             \
    return transfer_nb({tm, RANK, flags, IS_PUT}, rows);              \
  }                                                                   \
  int gex_VIS_##NAME##NBI PARAMETERS {                                \
    ROWS;                                                             \
    return transfer_nbi({tm, RANK, flags, IS_PUT}, rows);             \
  }                                                                   \
  int gex_VIS_##NAME##Blocking PARAMETERS {                           \
    ROWS;                                                             \
    return transfer_blocking({tm, RANK, flags, IS_PUT}, rows);        \
  }

LINTEL_GASNET_VIS_CALLS(VectorPut,
                        (gex_TM_t tm, gex_Rank_t dstrank, size_t dstcount,
                         gex_Memvec_t const dstlist[], size_t srccount,
                         gex_Memvec_t const srclist[], gex_Flags_t flags),
                        dstrank, true,
                        VectorRows rows = vector_rows(srccount, srclist, dstcount, dstlist))
LINTEL_GASNET_VIS_CALLS(VectorGet,
                        (gex_TM_t tm, size_t dstcount, gex_Memvec_t const dstlist[],
                         gex_Rank_t srcrank, size_t srccount, gex_Memvec_t const srclist[],
                         gex_Flags_t flags),
                        srcrank, false,
                        VectorRows rows = vector_rows(dstcount, dstlist, srccount, srclist))
LINTEL_GASNET_VIS_CALLS(IndexedPut,
                        (gex_TM_t tm, gex_Rank_t dstrank, size_t dstcount, void* const dstlist[],
                         size_t dstlen, size_t srccount, void* const srclist[], size_t srclen,
                         gex_Flags_t flags),
                        dstrank, true,
                        IndexedRows rows = indexed_rows(srccount, srclist, srclen, dstcount,
                                                        dstlist, dstlen))
LINTEL_GASNET_VIS_CALLS(IndexedGet,
                        (gex_TM_t tm, size_t dstcount, void* const dstlist[], size_t dstlen,
                         gex_Rank_t srcrank, size_t srccount, void* const srclist[], size_t srclen,
                         gex_Flags_t flags),
                        srcrank, false,
                        IndexedRows rows = indexed_rows(dstcount, dstlist, dstlen, srccount,
                                                        srclist, srclen))
LINTEL_GASNET_VIS_CALLS(StridedPut,
                        (gex_TM_t tm, gex_Rank_t dstrank, void* dstaddr,
                         const ptrdiff_t dststrides[], void* srcaddr, const ptrdiff_t srcstrides[],
                         size_t elemsz, const size_t count[], size_t stridelevels,
                         gex_Flags_t flags),
                        dstrank, true,
                        StridedRows rows(srcaddr, srcstrides, dstaddr, dststrides, elemsz, count,
                                         stridelevels))
LINTEL_GASNET_VIS_CALLS(StridedGet,
                        (gex_TM_t tm, void* dstaddr, const ptrdiff_t dststrides[],
                         gex_Rank_t srcrank, void* srcaddr, const ptrdiff_t srcstrides[],
                         size_t elemsz, const size_t count[], size_t stridelevels,
                         gex_Flags_t flags),
                        srcrank, false,
                        StridedRows rows(dstaddr, dststrides, srcaddr, srcstrides, elemsz, count,
                                         stridelevels))
