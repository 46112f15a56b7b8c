/* gasneti_ad.h: remote atomics. Private: include gasnet_ratomic.h.
 *
 * Neighbours are reached by instructions of the processor. These are atomic against what Portals
 * does to the same memory. Such an operation is complete when it returns. All other operations call
 * the library. In both cases MIN and MAX write the target only if the operand is less or greater.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GASNETI_AD_H
#define GASNETI_AD_H

#include <string.h>

/* The part of a domain that inline functions read: the beginning of the object behind a gex_AD_t.
 * If the processor and Portals are not atomic against each other, neither team has mapped ranks. */
struct gasneti_ad_view {
  gex_TM_t near_ranks;
  gex_TM_t near_jobranks;
};

#define GASNETI_OP_FETCHING_MASK (((gex_OP_t)0x1FFF) << 15)

GASNETT_BEGIN_EXTERNC

/* Called by the inline functions below: for neighbours if the operation is not a constant, and for
 * all other ranks. The operands are values of the type of the domain. */
extern void gasneti_ad_near(gex_DT_t dt, void* target, void* result, gex_OP_t op, const void* a,
                            const void* b, gex_Flags_t flags);
extern gex_Event_t gasneti_ad_far_nb(gex_AD_t ad, void* result, gex_Rank_t rank, void* address,
                                     gex_OP_t op, const void* a, const void* b, gex_Flags_t flags);
extern int gasneti_ad_far_nbi(gex_AD_t ad, void* result, gex_Rank_t rank, void* address,
                              gex_OP_t op, const void* a, const void* b, gex_Flags_t flags);
#ifdef GASNET_DEBUG
/* Ends the program if the domain does not have this type or operation, or if the address is not
 * aligned. */
extern void gasneti_ad_check(gex_AD_t ad, gex_DT_t dt, gex_OP_t op, const void* address);
#define GASNETI_AD_CHECK(ad, dt, op, address) gasneti_ad_check(ad, dt, op, address)
#else
#define GASNETI_AD_CHECK(ad, dt, op, address) ((void)0)
#endif

/** The address of the target in this process, or NULL if it is not mapped. */
GASNETT_INLINE(gasneti_ad_mapped)
void* gasneti_ad_mapped(gex_AD_t ad, gex_Rank_t rank, void* address, size_t nbytes,
                        gex_Flags_t flags) {
  const struct gasneti_ad_view* const view = (const struct gasneti_ad_view*)(const void*)ad;
  const gex_TM_t near_ranks =
      (flags & GEX_FLAG_RANK_IS_JOBRANK) ? view->near_jobranks : view->near_ranks;
  void* const mapped = gasneti_mapped_address(near_ranks, rank, address);
  GASNETI_TRACE_NEAR('O', mapped, near_ranks, rank, address, nbytes);
  return mapped;
}

/* A type T whose bits are the word W. Sums and products are computed in the type A. Each operation
 * that reads and writes is a fence in both directions. Loads and stores get the fences that the
 * flags specify. */
#define GASNETI_AD_TYPE(S, T, W, A, IS_INTEGER)                                                   \
  /* The value after an operation for which the processor has no instruction. */                  \
  GASNETT_INLINE(gasneti_ad_combine_##S)                                                          \
  T gasneti_ad_combine_##S(gex_OP_t op, T old, T a, T b) {                                        \
    switch (op) {                                                                                 \
      case GEX_OP_ADD:                                                                            \
        return (T)((A)old + (A)a);                                                                \
      case GEX_OP_SUB:                                                                            \
        return (T)((A)old - (A)a);                                                                \
      case GEX_OP_MULT:                                                                           \
        return (T)((A)old * (A)a);                                                                \
      case GEX_OP_MIN:                                                                            \
        return a < old ? a : old;                                                                 \
      case GEX_OP_MAX:                                                                            \
        return a > old ? a : old;                                                                 \
      default: /* GEX_OP_CAS */                                                                   \
        return old == a ? b : old;                                                                \
    }                                                                                             \
  }                                                                                               \
  GASNETT_INLINE(gasneti_ad_loop_##S)                                                             \
  W gasneti_ad_loop_##S(W* target, gex_OP_t op, T a, T b) {                                       \
    W old_bits = __atomic_load_n(target, __ATOMIC_RELAXED);                                       \
    for (;;) {                                                                                    \
      T old_value, new_value;                                                                     \
      W new_bits;                                                                                 \
      memcpy(&old_value, &old_bits, sizeof old_value);                                            \
      new_value = gasneti_ad_combine_##S(op, old_value, a, b);                                    \
      memcpy(&new_bits, &new_value, sizeof new_bits);                                             \
      if (__atomic_compare_exchange_n(target, &old_bits, new_bits, 0, __ATOMIC_ACQ_REL,           \
                                      __ATOMIC_RELAXED))                                          \
        return old_bits;                                                                          \
    }                                                                                             \
  }                                                                                               \
  GASNETT_INLINE(gasneti_ad_apply_##S)                                                            \
  void gasneti_ad_apply_##S(void* address, T* result, gex_OP_t op, T a, T b, gex_Flags_t flags) { \
    W* const target = (W*)address;                                                                \
    const int fetches = (op & GASNETI_OP_FETCHING_MASK) != 0;                                     \
    W old_bits = 0, a_bits, b_bits;                                                               \
    memcpy(&a_bits, &a, sizeof a_bits);                                                           \
    memcpy(&b_bits, &b, sizeof b_bits);                                                           \
    switch (fetches && op != GEX_OP_GET ? GEX_OP_TO_NONFETCHING(op) : op) {                       \
      case GEX_OP_GET:                                                                            \
        if (flags & GEX_FLAG_AD_REL)                                                              \
          old_bits = __atomic_fetch_or(target, (W)0, __ATOMIC_ACQ_REL);                           \
        else                                                                                      \
          old_bits = __atomic_load_n(target, __ATOMIC_ACQUIRE);                                   \
        break;                                                                                    \
      case GEX_OP_SET:                                                                            \
        if (fetches || (flags & GEX_FLAG_AD_ACQ))                                                 \
          old_bits = __atomic_exchange_n(target, a_bits, __ATOMIC_ACQ_REL);                       \
        else                                                                                      \
          __atomic_store_n(target, a_bits, __ATOMIC_RELEASE);                                     \
        break;                                                                                    \
      case GEX_OP_AND:                                                                            \
        old_bits = __atomic_fetch_and(target, a_bits, __ATOMIC_ACQ_REL);                          \
        break;                                                                                    \
      case GEX_OP_OR:                                                                             \
        old_bits = __atomic_fetch_or(target, a_bits, __ATOMIC_ACQ_REL);                           \
        break;                                                                                    \
      case GEX_OP_XOR:                                                                            \
        old_bits = __atomic_fetch_xor(target, a_bits, __ATOMIC_ACQ_REL);                          \
        break;                                                                                    \
      case GEX_OP_ADD:                                                                            \
        old_bits = IS_INTEGER ? __atomic_fetch_add(target, a_bits, __ATOMIC_ACQ_REL)              \
                              : gasneti_ad_loop_##S(target, GEX_OP_ADD, a, b);                    \
        break;                                                                                    \
      case GEX_OP_SUB:                                                                            \
        old_bits = IS_INTEGER ? __atomic_fetch_sub(target, a_bits, __ATOMIC_ACQ_REL)              \
                              : gasneti_ad_loop_##S(target, GEX_OP_SUB, a, b);                    \
        break;                                                                                    \
      case GEX_OP_INC:                                                                            \
        old_bits = IS_INTEGER ? __atomic_fetch_add(target, (W)1, __ATOMIC_ACQ_REL)                \
                              : gasneti_ad_loop_##S(target, GEX_OP_ADD, (T)1, b);                 \
        break;                                                                                    \
      case GEX_OP_DEC:                                                                            \
        old_bits = IS_INTEGER ? __atomic_fetch_sub(target, (W)1, __ATOMIC_ACQ_REL)                \
                              : gasneti_ad_loop_##S(target, GEX_OP_SUB, (T)1, b);                 \
        break;                                                                                    \
      case GEX_OP_CAS:                                                                            \
        if (IS_INTEGER) {                                                                         \
          old_bits = a_bits;                                                                      \
          (void)__atomic_compare_exchange_n(target, &old_bits, b_bits, 0, __ATOMIC_ACQ_REL,       \
                                            __ATOMIC_ACQUIRE);                                    \
          break;                                                                                  \
        }                                                                                         \
        old_bits = gasneti_ad_loop_##S(target, GEX_OP_CAS, a, b);                                 \
        break;                                                                                    \
      default: /* GEX_OP_MULT, GEX_OP_MIN, GEX_OP_MAX */                                          \
        old_bits = gasneti_ad_loop_##S(target, fetches ? GEX_OP_TO_NONFETCHING(op) : op, a, b);   \
        break;                                                                                    \
    }                                                                                             \
    if (fetches) memcpy(result, &old_bits, sizeof old_bits);                                      \
  }                                                                                               \
  GASNETT_INLINE(gasneti_ad_done_##S)                                                             \
  int gasneti_ad_done_##S(gex_AD_t ad, T* result, gex_Rank_t rank, void* address, gex_OP_t op,    \
                          T a, T b, gex_Flags_t flags) {                                          \
    void* const target = gasneti_ad_mapped(ad, rank, address, sizeof(T), flags);                  \
    GASNETI_AD_CHECK(ad, GEX_DT_##S, op, address);                                                \
    if (!target) return 0;                                                                        \
    if (__builtin_constant_p(op))                                                                 \
      gasneti_ad_apply_##S(target, result, op, a, b, flags);                                      \
    else                                                                                          \
      gasneti_ad_near(GEX_DT_##S, target, result, op, &a, &b, flags);                             \
    return 1;                                                                                     \
  }                                                                                               \
  GASNETT_INLINE(gex_AD_OpNB_##S)                                                                 \
  gex_Event_t gex_AD_OpNB_##S(gex_AD_t ad, T* result_p, gex_Rank_t tgt_rank, void* tgt_addr,      \
                              gex_OP_t opcode, T operand1, T operand2, gex_Flags_t flags) {       \
    if (gasneti_ad_done_##S(ad, result_p, tgt_rank, tgt_addr, opcode, operand1, operand2, flags)) \
      return GEX_EVENT_INVALID;                                                                   \
    return gasneti_ad_far_nb(ad, result_p, tgt_rank, tgt_addr, opcode, &operand1, &operand2,      \
                             flags);                                                              \
  }                                                                                               \
  GASNETT_INLINE(gex_AD_OpNBI_##S)                                                                \
  int gex_AD_OpNBI_##S(gex_AD_t ad, T* result_p, gex_Rank_t tgt_rank, void* tgt_addr,             \
                       gex_OP_t opcode, T operand1, T operand2, gex_Flags_t flags) {              \
    if (gasneti_ad_done_##S(ad, result_p, tgt_rank, tgt_addr, opcode, operand1, operand2, flags)) \
      return 0;                                                                                   \
    return gasneti_ad_far_nbi(ad, result_p, tgt_rank, tgt_addr, opcode, &operand1, &operand2,     \
                              flags);                                                             \
  }

GASNETI_AD_TYPE(I32, int32_t, uint32_t, uint32_t, 1)
GASNETI_AD_TYPE(U32, uint32_t, uint32_t, uint32_t, 1)
GASNETI_AD_TYPE(I64, int64_t, uint64_t, uint64_t, 1)
GASNETI_AD_TYPE(U64, uint64_t, uint64_t, uint64_t, 1)
GASNETI_AD_TYPE(FLT, float, uint32_t, float, 0)
GASNETI_AD_TYPE(DBL, double, uint64_t, double, 0)

GASNETT_END_EXTERNC

#endif /* GASNETI_AD_H */
