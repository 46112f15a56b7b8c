/* vectors.cc: vector, indexed and strided puts and gets of GASNet-1.
 *
 * In a strided call count[0] is the length of a piece. Strides are unsigned here; that makes no
 * difference modulo the size of the address space.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <gasnet_vis.h>

#include "client/client.h"

namespace {

gex_TM_t everybody() { return lintel::gasnet::the_client()->team; }

const gex_Memvec_t* pieces(const gasnet_memvec_t* list) {
  static_assert(sizeof(gasnet_memvec_t) == sizeof(gex_Memvec_t) &&
                offsetof(gasnet_memvec_t, len) == offsetof(gex_Memvec_t, gex_len));
  return reinterpret_cast<const gex_Memvec_t*>(list);
}

const ptrdiff_t* with_sign(const size_t* strides) {
  return reinterpret_cast<const ptrdiff_t*>(strides);
}

}  // namespace

/* RESULT NAME calls EX. RETURN is `return` if there is a result. */
#define LINTEL_GASNET_LEGACY_VIS(RESULT, RETURN, SUFFIX, EX)                                     \
  RESULT gasnet_putv_##SUFFIX(gex_Rank_t dstnode, size_t dstcount,                               \
                              gasnet_memvec_t const dstlist[], size_t srccount,                  \
                              gasnet_memvec_t const srclist[]) {                                 \
    RETURN gex_VIS_VectorPut##EX(everybody(), dstnode, dstcount, pieces(dstlist), srccount,      \
                                 pieces(srclist), 0);                                            \
  }                                                                                              \
  RESULT gasnet_getv_##SUFFIX(size_t dstcount, gasnet_memvec_t const dstlist[],                  \
                              gex_Rank_t srcnode, size_t srccount,                               \
                              gasnet_memvec_t const srclist[]) {                                 \
    RETURN gex_VIS_VectorGet##EX(everybody(), dstcount, pieces(dstlist), srcnode, srccount,      \
                                 pieces(srclist), 0);                                            \
  }                                                                                              \
  RESULT gasnet_puti_##SUFFIX(gex_Rank_t dstnode, size_t dstcount, void* const dstlist[],        \
                              size_t dstlen, size_t srccount, void* const srclist[],             \
                              size_t srclen) {                                                   \
    RETURN gex_VIS_IndexedPut##EX(everybody(), dstnode, dstcount, dstlist, dstlen, srccount,     \
                                  srclist, srclen, 0);                                           \
  }                                                                                              \
  RESULT gasnet_geti_##SUFFIX(size_t dstcount, void* const dstlist[], size_t dstlen,             \
                              gex_Rank_t srcnode, size_t srccount, void* const srclist[],        \
                              size_t srclen) {                                                   \
    RETURN gex_VIS_IndexedGet##EX(everybody(), dstcount, dstlist, dstlen, srcnode, srccount,     \
                                  srclist, srclen, 0);                                           \
  }                                                                                              \
  RESULT gasnet_puts_##SUFFIX(gex_Rank_t dstnode, void* dstaddr, const size_t dststrides[],      \
                              void* srcaddr, const size_t srcstrides[], const size_t count[],    \
                              size_t stridelevels) {                                             \
    RETURN gex_VIS_StridedPut##EX(everybody(), dstnode, dstaddr, with_sign(dststrides), srcaddr, \
                                  with_sign(srcstrides), count[0], count + 1, stridelevels, 0);  \
  }                                                                                              \
  RESULT gasnet_gets_##SUFFIX(void* dstaddr, const size_t dststrides[], gex_Rank_t srcnode,      \
                              void* srcaddr, const size_t srcstrides[], const size_t count[],    \
                              size_t stridelevels) {                                             \
    RETURN gex_VIS_StridedGet##EX(everybody(), dstaddr, with_sign(dststrides), srcnode, srcaddr, \
                                  with_sign(srcstrides), count[0], count + 1, stridelevels, 0);  \
  }

LINTEL_GASNET_LEGACY_VIS(void, (void), bulk, Blocking)
LINTEL_GASNET_LEGACY_VIS(gex_Event_t, return, nb_bulk, NB)
LINTEL_GASNET_LEGACY_VIS(void, (void), nbi_bulk, NBI)
