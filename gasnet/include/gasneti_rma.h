/* gasneti_rma.h: remote memory access. Private: include gasnetex.h.
 *
 * Segments of neighbours are mapped in this process. Puts and gets there are loads and stores; they
 * are complete when they return. All other transfers call the library.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GASNETI_RMA_H
#define GASNETI_RMA_H

#include <string.h>

GASNETT_BEGIN_EXTERNC

/* Called by the inline functions below for ranks that are no neighbours. */
extern int gasneti_rma_put_blocking(gex_TM_t tm, gex_Rank_t rank, void* dest, const void* src,
                                    size_t nbytes, gex_Flags_t flags);
extern int gasneti_rma_put_nbi(gex_TM_t tm, gex_Rank_t rank, void* dest, const void* src,
                               size_t nbytes, gex_Event_t* lc_opt, gex_Flags_t flags);
extern gex_Event_t gasneti_rma_put_nb(gex_TM_t tm, gex_Rank_t rank, void* dest, const void* src,
                                      size_t nbytes, gex_Event_t* lc_opt, gex_Flags_t flags);
extern int gasneti_rma_get_blocking(gex_TM_t tm, void* dest, gex_Rank_t rank, void* src,
                                    size_t nbytes, gex_Flags_t flags);
extern int gasneti_rma_get_nbi(gex_TM_t tm, void* dest, gex_Rank_t rank, void* src, size_t nbytes,
                               gex_Flags_t flags);
extern gex_Event_t gasneti_rma_get_nb(gex_TM_t tm, void* dest, gex_Rank_t rank, void* src,
                                      size_t nbytes, gex_Flags_t flags);
extern gex_RMA_Value_t gasneti_rma_get_value(gex_TM_t tm, gex_Rank_t rank, void* src, size_t nbytes,
                                             gex_Flags_t flags);
extern int gasneti_rma_put_value_blocking(gex_TM_t tm, gex_Rank_t rank, void* dest,
                                          gex_RMA_Value_t value, size_t nbytes, gex_Flags_t flags);
extern int gasneti_rma_put_value_nbi(gex_TM_t tm, gex_Rank_t rank, void* dest,
                                     gex_RMA_Value_t value, size_t nbytes, gex_Flags_t flags);
extern gex_Event_t gasneti_rma_put_value_nb(gex_TM_t tm, gex_Rank_t rank, void* dest,
                                            gex_RMA_Value_t value, size_t nbytes,
                                            gex_Flags_t flags);

/* Debug builds check that the caller may communicate, and that GEX_FLAG_PEER_NEVER_... are true. */
#ifdef GASNET_DEBUG
extern void gasneti_rma_check(gex_TM_t tm, gex_Rank_t rank, gex_Flags_t flags);
#define GASNETI_RMA_CHECK(tm, rank, flags) gasneti_rma_check(tm, rank, flags)
#else
#define GASNETI_RMA_CHECK(tm, rank, flags) ((void)0)
#endif

/** The address at which the memory of a neighbour is mapped. NULL for other ranks, and if a flag
 * says that the peer is no neighbour. */
GASNETT_INLINE(gasneti_rma_mapped)
void* gasneti_rma_mapped(char category, gex_TM_t tm, gex_Rank_t rank, void* address, size_t nbytes,
                         gex_Flags_t flags) {
  void* mapped;
  GASNETI_RMA_CHECK(tm, rank, flags);
  if (__builtin_constant_p(flags & GEX_FLAG_PEER_NEVER_NBRHD) &&
      (flags & GEX_FLAG_PEER_NEVER_NBRHD) != 0)
    return (void*)0;
  mapped = gasneti_mapped_address(tm, rank, address);
  GASNETI_TRACE_NEAR(category, mapped, tm, rank, address, nbytes);
  return mapped;
}
/** Copies; one load and store where the length is a constant or a power of two up to 8. */
GASNETT_INLINE(gasneti_rma_copy) void gasneti_rma_copy(void* to, const void* from, size_t nbytes) {
  switch (nbytes) {
    case 1:
      memcpy(to, from, 1);
      break;
    case 2:
      memcpy(to, from, 2);
      break;
    case 4:
      memcpy(to, from, 4);
      break;
    case 8:
      memcpy(to, from, 8);
      break;
    default:
      memcpy(to, from, nbytes);
      break;
  }
}
/** Sets the leaf event of an operation that is complete. */
GASNETT_INLINE(gasneti_rma_leaf_done) void gasneti_rma_leaf_done(gex_Event_t* lc_opt) {
  if ((uintptr_t)lc_opt > (uintptr_t)GEX_EVENT_GROUP) *lc_opt = GEX_EVENT_INVALID;
}
/** Stores the low bytes of a value, in the byte order of this machine. */
GASNETT_INLINE(gasneti_rma_store_value)
void gasneti_rma_store_value(void* to, gex_RMA_Value_t value, size_t nbytes) {
#ifdef PLATFORM_ARCH_LITTLE_ENDIAN
  gasneti_rma_copy(to, &value, nbytes);
#else
  gasneti_rma_copy(to, (const char*)&value + (sizeof value - nbytes), nbytes);
#endif
}
GASNETT_INLINE(gasneti_rma_load_value)
gex_RMA_Value_t gasneti_rma_load_value(const void* from, size_t nbytes) {
  gex_RMA_Value_t value = 0;
#ifdef PLATFORM_ARCH_LITTLE_ENDIAN
  gasneti_rma_copy(&value, from, nbytes);
#else
  gasneti_rma_copy((char*)&value + (sizeof value - nbytes), from, nbytes);
#endif
  return value;
}

GASNETT_INLINE(gex_RMA_PutBlocking)
int gex_RMA_PutBlocking(gex_TM_t tm, gex_Rank_t rank, void* dest, const void* src, size_t nbytes,
                        gex_Flags_t flags) {
  void* const mapped = gasneti_rma_mapped('P', tm, rank, dest, nbytes, flags);
  if (!mapped) return gasneti_rma_put_blocking(tm, rank, dest, src, nbytes, flags);
  gasneti_rma_copy(mapped, src, nbytes);
  return 0;
}
GASNETT_INLINE(gex_RMA_PutNBI)
int gex_RMA_PutNBI(gex_TM_t tm, gex_Rank_t rank, void* dest, const void* src, size_t nbytes,
                   gex_Event_t* lc_opt, gex_Flags_t flags) {
  void* const mapped = gasneti_rma_mapped('P', tm, rank, dest, nbytes, flags);
  if (!mapped) return gasneti_rma_put_nbi(tm, rank, dest, src, nbytes, lc_opt, flags);
  gasneti_rma_copy(mapped, src, nbytes);
  return 0;
}
GASNETT_INLINE(gex_RMA_PutNB)
gex_Event_t gex_RMA_PutNB(gex_TM_t tm, gex_Rank_t rank, void* dest, const void* src, size_t nbytes,
                          gex_Event_t* lc_opt, gex_Flags_t flags) {
  void* const mapped = gasneti_rma_mapped('P', tm, rank, dest, nbytes, flags);
  if (!mapped) return gasneti_rma_put_nb(tm, rank, dest, src, nbytes, lc_opt, flags);
  gasneti_rma_copy(mapped, src, nbytes);
  gasneti_rma_leaf_done(lc_opt);
  return GEX_EVENT_INVALID;
}
GASNETT_INLINE(gex_RMA_GetBlocking)
int gex_RMA_GetBlocking(gex_TM_t tm, void* dest, gex_Rank_t rank, void* src, size_t nbytes,
                        gex_Flags_t flags) {
  const void* const mapped = gasneti_rma_mapped('G', tm, rank, src, nbytes, flags);
  if (!mapped) return gasneti_rma_get_blocking(tm, dest, rank, src, nbytes, flags);
  gasneti_rma_copy(dest, mapped, nbytes);
  return 0;
}
GASNETT_INLINE(gex_RMA_GetNBI)
int gex_RMA_GetNBI(gex_TM_t tm, void* dest, gex_Rank_t rank, void* src, size_t nbytes,
                   gex_Flags_t flags) {
  const void* const mapped = gasneti_rma_mapped('G', tm, rank, src, nbytes, flags);
  if (!mapped) return gasneti_rma_get_nbi(tm, dest, rank, src, nbytes, flags);
  gasneti_rma_copy(dest, mapped, nbytes);
  return 0;
}
GASNETT_INLINE(gex_RMA_GetNB)
gex_Event_t gex_RMA_GetNB(gex_TM_t tm, void* dest, gex_Rank_t rank, void* src, size_t nbytes,
                          gex_Flags_t flags) {
  const void* const mapped = gasneti_rma_mapped('G', tm, rank, src, nbytes, flags);
  if (!mapped) return gasneti_rma_get_nb(tm, dest, rank, src, nbytes, flags);
  gasneti_rma_copy(dest, mapped, nbytes);
  return GEX_EVENT_INVALID;
}
GASNETT_INLINE(gex_RMA_GetBlockingVal)
gex_RMA_Value_t gex_RMA_GetBlockingVal(gex_TM_t tm, gex_Rank_t rank, void* src, size_t nbytes,
                                       gex_Flags_t flags) {
  const void* const mapped = gasneti_rma_mapped('G', tm, rank, src, nbytes, flags);
  if (!mapped) return gasneti_rma_get_value(tm, rank, src, nbytes, flags);
  return gasneti_rma_load_value(mapped, nbytes);
}
GASNETT_INLINE(gex_RMA_PutBlockingVal)
int gex_RMA_PutBlockingVal(gex_TM_t tm, gex_Rank_t rank, void* dest, gex_RMA_Value_t value,
                           size_t nbytes, gex_Flags_t flags) {
  void* const mapped = gasneti_rma_mapped('P', tm, rank, dest, nbytes, flags);
  if (!mapped) return gasneti_rma_put_value_blocking(tm, rank, dest, value, nbytes, flags);
  gasneti_rma_store_value(mapped, value, nbytes);
  return 0;
}
GASNETT_INLINE(gex_RMA_PutNBIVal)
int gex_RMA_PutNBIVal(gex_TM_t tm, gex_Rank_t rank, void* dest, gex_RMA_Value_t value,
                      size_t nbytes, gex_Flags_t flags) {
  void* const mapped = gasneti_rma_mapped('P', tm, rank, dest, nbytes, flags);
  if (!mapped) return gasneti_rma_put_value_nbi(tm, rank, dest, value, nbytes, flags);
  gasneti_rma_store_value(mapped, value, nbytes);
  return 0;
}
GASNETT_INLINE(gex_RMA_PutNBVal)
gex_Event_t gex_RMA_PutNBVal(gex_TM_t tm, gex_Rank_t rank, void* dest, gex_RMA_Value_t value,
                             size_t nbytes, gex_Flags_t flags) {
  void* const mapped = gasneti_rma_mapped('P', tm, rank, dest, nbytes, flags);
  if (!mapped) return gasneti_rma_put_value_nb(tm, rank, dest, value, nbytes, flags);
  gasneti_rma_store_value(mapped, value, nbytes);
  return GEX_EVENT_INVALID;
}

GASNETT_END_EXTERNC

#endif /* GASNETI_RMA_H */
