/* gasneti_annotations.h: attributes, hints and small macros of the tools. Private: include
 * gasnet_tools.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GASNETI_ANNOTATIONS_H
#define GASNETI_ANNOTATIONS_H

#include <gasnet_portable_platform.h>

#ifndef _STRINGIFY
#define _STRINGIFY_HELPER(x) #x
#define _STRINGIFY(x) _STRINGIFY_HELPER(x)
#endif
#ifndef _CONCAT
#define _CONCAT_HELPER(a, b) a##b
#define _CONCAT(a, b) _CONCAT_HELPER(a, b)
#endif
#ifndef MIN
#define MIN(x, y) ((x) < (y) ? (x) : (y))
#endif
#ifndef MAX
#define MAX(x, y) ((x) > (y) ? (x) : (y))
#endif

#ifdef __cplusplus
#define GASNETT_EXTERNC extern "C"
#define GASNETT_BEGIN_EXTERNC extern "C" {
#define GASNETT_END_EXTERNC }
#else
#define GASNETT_EXTERNC extern
#define GASNETT_BEGIN_EXTERNC
#define GASNETT_END_EXTERNC
#endif

/* Before the definition of a function. */
#define GASNETT_INLINE(fn) static __inline__ __attribute__((always_inline, unused))
/* Around the head of a definition. */
#define GASNETT_NEVER_INLINE(fn, declarator) __attribute__((noinline)) declarator

/* The positions count from 1. */
#define GASNETT_FORMAT_PRINTF(fn, format_index, first_index, declarator) \
  __attribute__((format(printf, format_index, first_index))) declarator
#define GASNETT_FORMAT_PRINTF_FUNCPTR(fn, format_index, first_index, declarator) \
  __attribute__((format(printf, format_index, first_index))) declarator

#define GASNETT_NORETURN __attribute__((noreturn))
#define GASNETT_NORETURNP(fn)
#define GASNETT_MALLOC __attribute__((malloc))
#define GASNETT_MALLOCP(fn)
#define GASNETT_PURE __attribute__((pure))
#define GASNETT_PUREP(fn)
#define GASNETT_CONST __attribute__((const))
#define GASNETT_CONSTP(fn)
#define GASNETT_HOT __attribute__((hot))
#define GASNETT_COLD __attribute__((cold))
#define GASNETT_DEPRECATED __attribute__((deprecated))
#define GASNETT_WARN_UNUSED_RESULT __attribute__((warn_unused_result))
#define GASNETT_USED __attribute__((used))
#define GASNETT_RESTRICT __restrict__

/* A statement, written without a semicolon. */
#if defined(__cplusplus) && __cplusplus >= 201703L
#define GASNETT_FALLTHROUGH [[fallthrough]];
#elif defined(__GNUC__) && (!defined(__clang__) || !defined(__cplusplus))
#define GASNETT_FALLTHROUGH __attribute__((fallthrough));
#else
#define GASNETT_FALLTHROUGH [[clang::fallthrough]];
#endif

#define GASNETT_PREDICT_TRUE(e) __builtin_expect(!!(e), 1)
#define GASNETT_PREDICT_FALSE(e) __builtin_expect(!!(e), 0)
#ifndef if_pf
#define if_pf(cond) if (GASNETT_PREDICT_FALSE(cond))
#endif
#ifndef if_pt
#define if_pt(cond) if (GASNETT_PREDICT_TRUE(cond))
#endif

/* Keeps a text in the program file. `ident` and `strings` find it there. */
#ifdef __cplusplus
#define GASNETT_IDENT(id, text)           \
  extern "C" {                            \
  extern char id[];                       \
  __attribute__((used)) char id[] = text; \
  }                                       \
  extern "C" char id[]
#else
#define GASNETT_IDENT(id, text) \
  extern char id[];             \
  __attribute__((used)) char id[] = text
#endif

#define GASNETT_UNUSED_ARGS1(a) ((void)(a))
#define GASNETT_UNUSED_ARGS2(a, b) ((void)(a), (void)(b))
#define GASNETT_UNUSED_ARGS3(a, b, c) ((void)(a), (void)(b), (void)(c))
#define GASNETT_UNUSED_ARGS4(a, b, c, d) ((void)(a), (void)(b), (void)(c), (void)(d))
#define GASNETT_UNUSED_ARGS5(a, b, c, d, e) ((void)(a), (void)(b), (void)(c), (void)(d), (void)(e))
#define GASNETT_UNUSED_ARGS6(a, b, c, d, e, f) \
  ((void)(a), (void)(b), (void)(c), (void)(d), (void)(e), (void)(f))
#define GASNETT_UNUSED_ARGS7(a, b, c, d, e, f, g) \
  ((void)(a), (void)(b), (void)(c), (void)(d), (void)(e), (void)(f), (void)(g))
#define GASNETT_UNUSED_ARGS8(a, b, c, d, e, f, g, h) \
  ((void)(a), (void)(b), (void)(c), (void)(d), (void)(e), (void)(f), (void)(g), (void)(h))

#define GASNETT_USE_PRAGMA_GCC_DIAGNOSTIC 1

#define gasnett_constant_p(e) __builtin_constant_p(e)
#define gasnett_unreachable() __builtin_unreachable()
#ifdef GASNET_DEBUG
#define gasneti_assert(e) \
  ((e) ? (void)0 : gasneti_fatalerror(__func__, __FILE__, __LINE__, "assertion failed: %s", #e))
#define gasnett_assume(cond) gasneti_assert(cond)
#else
#define gasneti_assert(e) ((void)0)
#define gasnett_assume(cond)              \
  do {                                    \
    if (!(cond)) __builtin_unreachable(); \
  } while (0)
#endif

/* Attribute of functions that this library does not have: programs test for their declarations. */
#define GASNETI_MISSING \
  __attribute__((error("this release of GASNet-EX over Portals does not have this call")))

#define GASNETT_CURRENT_FUNCTION __func__

#endif /* GASNETI_ANNOTATIONS_H */
