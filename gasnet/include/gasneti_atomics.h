/* gasneti_atomics.h: atomics of the tools. Private: include gasnet_tools.h.
 *
 * The plain families are atomic only if the program has threads. The strong families always are.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GASNETI_ATOMICS_H
#define GASNETI_ATOMICS_H

#include <gasneti_annotations.h>
#include <portable_inttypes.h>

#define GASNETT_ATOMIC_NONE 0
#define GASNETT_ATOMIC_RMB_PRE 0x01
#define GASNETT_ATOMIC_WMB_PRE 0x02
#define GASNETT_ATOMIC_REL GASNETT_ATOMIC_WMB_PRE
#define GASNETT_ATOMIC_RMB_POST 0x04
#define GASNETT_ATOMIC_ACQ GASNETT_ATOMIC_RMB_POST
#define GASNETT_ATOMIC_WMB_POST 0x08
#define GASNETT_ATOMIC_RMB_POST_IF_TRUE 0x10
#define GASNETT_ATOMIC_ACQ_IF_TRUE GASNETT_ATOMIC_RMB_POST_IF_TRUE
#define GASNETT_ATOMIC_RMB_POST_IF_FALSE 0x20
#define GASNETT_ATOMIC_ACQ_IF_FALSE GASNETT_ATOMIC_RMB_POST_IF_FALSE
#define GASNETT_ATOMIC_MB_PRE (GASNETT_ATOMIC_WMB_PRE | GASNETT_ATOMIC_RMB_PRE)
#define GASNETT_ATOMIC_MB_POST (GASNETT_ATOMIC_WMB_POST | GASNETT_ATOMIC_RMB_POST)

#define GASNETT_HAVE_ATOMIC_ADD_SUB 1
#define GASNETT_HAVE_ATOMIC_CAS 1
#define GASNETT_HAVE_STRONGATOMIC_ADD_SUB 1
#define GASNETT_HAVE_STRONGATOMIC_CAS 1

/* A fence as strong as the strongest flag. The compiler folds it if the flags are a constant. */
GASNETT_INLINE(gasneti_atomic_fence) void gasneti_atomic_fence(int flags) {
  if (flags != 0) __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
#define GASNETI_FENCE_BEFORE(flags) gasneti_atomic_fence((flags)&GASNETT_ATOMIC_MB_PRE)
#define GASNETI_FENCE_AFTER(flags) gasneti_atomic_fence((flags)&GASNETT_ATOMIC_MB_POST)
#define GASNETI_FENCE_AFTER_RESULT(flags, result) \
  gasneti_atomic_fence(                           \
      (flags) & (GASNETT_ATOMIC_MB_POST |         \
                 ((result) ? GASNETT_ATOMIC_RMB_POST_IF_TRUE : GASNETT_ATOMIC_RMB_POST_IF_FALSE)))

/* One family over compiler builtins. PREFIX_t has the natural size. */
#define GASNETI_ATOMIC_STRONG_FAMILY(P, V)                                                 \
  typedef struct {                                                                         \
    V volatile gasneti_value;                                                              \
  } P##_t;                                                                                 \
  GASNETT_INLINE(P##_read) V P##_read(P##_t* p, int flags) {                               \
    V value;                                                                               \
    GASNETI_FENCE_BEFORE(flags);                                                           \
    value = __atomic_load_n(&p->gasneti_value, __ATOMIC_RELAXED);                          \
    GASNETI_FENCE_AFTER(flags);                                                            \
    return value;                                                                          \
  }                                                                                        \
  GASNETT_INLINE(P##_set) void P##_set(P##_t* p, V v, int flags) {                         \
    GASNETI_FENCE_BEFORE(flags);                                                           \
    __atomic_store_n(&p->gasneti_value, v, __ATOMIC_RELAXED);                              \
    GASNETI_FENCE_AFTER(flags);                                                            \
  }                                                                                        \
  GASNETT_INLINE(P##_add) V P##_add(P##_t* p, V operand, int flags) {                      \
    V value;                                                                               \
    GASNETI_FENCE_BEFORE(flags);                                                           \
    value = __atomic_add_fetch(&p->gasneti_value, operand, __ATOMIC_RELAXED);              \
    GASNETI_FENCE_AFTER(flags);                                                            \
    return value;                                                                          \
  }                                                                                        \
  GASNETT_INLINE(P##_subtract) V P##_subtract(P##_t* p, V operand, int flags) {            \
    V value;                                                                               \
    GASNETI_FENCE_BEFORE(flags);                                                           \
    value = __atomic_sub_fetch(&p->gasneti_value, operand, __ATOMIC_RELAXED);              \
    GASNETI_FENCE_AFTER(flags);                                                            \
    return value;                                                                          \
  }                                                                                        \
  GASNETT_INLINE(P##_increment) void P##_increment(P##_t* p, int flags) {                  \
    (void)P##_add(p, 1, flags);                                                            \
  }                                                                                        \
  GASNETT_INLINE(P##_decrement) void P##_decrement(P##_t* p, int flags) {                  \
    (void)P##_subtract(p, 1, flags);                                                       \
  }                                                                                        \
  GASNETT_INLINE(P##_decrement_and_test) int P##_decrement_and_test(P##_t* p, int flags) { \
    int result;                                                                            \
    GASNETI_FENCE_BEFORE(flags);                                                           \
    result = __atomic_sub_fetch(&p->gasneti_value, (V)1, __ATOMIC_RELAXED) == 0;           \
    GASNETI_FENCE_AFTER_RESULT(flags, result);                                             \
    return result;                                                                         \
  }                                                                                        \
  GASNETT_INLINE(P##_compare_and_swap)                                                     \
  int P##_compare_and_swap(P##_t* p, V old_value, V new_value, int flags) {                \
    int result;                                                                            \
    GASNETI_FENCE_BEFORE(flags);                                                           \
    result = __atomic_compare_exchange_n(&p->gasneti_value, &old_value, new_value, 0,      \
                                         __ATOMIC_RELAXED, __ATOMIC_RELAXED);              \
    GASNETI_FENCE_AFTER_RESULT(flags, result);                                             \
    return result;                                                                         \
  }                                                                                        \
  GASNETT_INLINE(P##_swap) V P##_swap(P##_t* p, V new_value, int flags) {                  \
    V value;                                                                               \
    GASNETI_FENCE_BEFORE(flags);                                                           \
    value = __atomic_exchange_n(&p->gasneti_value, new_value, __ATOMIC_RELAXED);           \
    GASNETI_FENCE_AFTER(flags);                                                            \
    return value;                                                                          \
  }

/* One family by plain loads and stores, for programs without threads. */
#define GASNETI_ATOMIC_PLAIN_FAMILY(P, V)                                                  \
  typedef struct {                                                                         \
    V volatile gasneti_value;                                                              \
  } P##_t;                                                                                 \
  GASNETT_INLINE(P##_read) V P##_read(P##_t* p, int flags) {                               \
    (void)flags;                                                                           \
    return p->gasneti_value;                                                               \
  }                                                                                        \
  GASNETT_INLINE(P##_set) void P##_set(P##_t* p, V v, int flags) {                         \
    (void)flags;                                                                           \
    p->gasneti_value = v;                                                                  \
  }                                                                                        \
  GASNETT_INLINE(P##_add) V P##_add(P##_t* p, V operand, int flags) {                      \
    const V value = (V)(p->gasneti_value + operand);                                       \
    (void)flags;                                                                           \
    p->gasneti_value = value;                                                              \
    return value;                                                                          \
  }                                                                                        \
  GASNETT_INLINE(P##_subtract) V P##_subtract(P##_t* p, V operand, int flags) {            \
    return P##_add(p, (V)(0 - operand), flags);                                            \
  }                                                                                        \
  GASNETT_INLINE(P##_increment) void P##_increment(P##_t* p, int flags) {                  \
    (void)P##_add(p, 1, flags);                                                            \
  }                                                                                        \
  GASNETT_INLINE(P##_decrement) void P##_decrement(P##_t* p, int flags) {                  \
    (void)P##_subtract(p, 1, flags);                                                       \
  }                                                                                        \
  GASNETT_INLINE(P##_decrement_and_test) int P##_decrement_and_test(P##_t* p, int flags) { \
    return P##_subtract(p, 1, flags) == 0;                                                 \
  }                                                                                        \
  GASNETT_INLINE(P##_compare_and_swap)                                                     \
  int P##_compare_and_swap(P##_t* p, V old_value, V new_value, int flags) {                \
    (void)flags;                                                                           \
    if (p->gasneti_value != old_value) return 0;                                           \
    p->gasneti_value = new_value;                                                          \
    return 1;                                                                              \
  }                                                                                        \
  GASNETT_INLINE(P##_swap) V P##_swap(P##_t* p, V new_value, int flags) {                  \
    const V value = p->gasneti_value;                                                      \
    (void)flags;                                                                           \
    p->gasneti_value = new_value;                                                          \
    return value;                                                                          \
  }

typedef uint32_t gasnett_atomic_val_t;
typedef int32_t gasnett_atomic_sval_t;
#define gasnett_atomic_signed(v) ((gasnett_atomic_sval_t)(v))
#define GASNETT_ATOMIC_MAX ((gasnett_atomic_val_t)0xFFFFFFFFu)
#define GASNETT_ATOMIC_SIGNED_MIN ((gasnett_atomic_sval_t)(-0x7FFFFFFF - 1))
#define GASNETT_ATOMIC_SIGNED_MAX ((gasnett_atomic_sval_t)0x7FFFFFFF)

GASNETI_ATOMIC_STRONG_FAMILY(gasnett_strongatomic, gasnett_atomic_val_t)
GASNETI_ATOMIC_STRONG_FAMILY(gasnett_strongatomic32, uint32_t)
GASNETI_ATOMIC_STRONG_FAMILY(gasnett_strongatomic64, uint64_t)
#ifdef GASNETI_TOOLS_THREADS
GASNETI_ATOMIC_STRONG_FAMILY(gasnett_atomic, gasnett_atomic_val_t)
GASNETI_ATOMIC_STRONG_FAMILY(gasnett_atomic32, uint32_t)
GASNETI_ATOMIC_STRONG_FAMILY(gasnett_atomic64, uint64_t)
#else
GASNETI_ATOMIC_PLAIN_FAMILY(gasnett_atomic, gasnett_atomic_val_t)
GASNETI_ATOMIC_PLAIN_FAMILY(gasnett_atomic32, uint32_t)
GASNETI_ATOMIC_PLAIN_FAMILY(gasnett_atomic64, uint64_t)
#endif

#define GASNETI_ATOMIC_INIT(v) \
  { (v) }
#define gasnett_atomic_init(v) GASNETI_ATOMIC_INIT(v)
#define gasnett_atomic32_init(v) GASNETI_ATOMIC_INIT(v)
#define gasnett_atomic64_init(v) GASNETI_ATOMIC_INIT(v)
#define gasnett_strongatomic_init(v) GASNETI_ATOMIC_INIT(v)
#define gasnett_strongatomic32_init(v) GASNETI_ATOMIC_INIT(v)
#define gasnett_strongatomic64_init(v) GASNETI_ATOMIC_INIT(v)

#endif /* GASNETI_ATOMICS_H */
