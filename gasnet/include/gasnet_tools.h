/* gasnet_tools.h: portable tools: timers, atomics, locks, environment, errors. With a conduit,
 * include gasnetex.h first; alone, link libgasnet_tools-seq or libgasnet_tools-par.
 *
 * Every function may be called by any thread, before and after gex_Client_Init, unless it says
 * otherwise.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GASNET_TOOLS_H
#define GASNET_TOOLS_H

#ifndef GASNETI_INCLUDED_BY_HEADER
#define GASNETI_INCLUDED_BY_HEADER 1
#endif
#include <gasnet_config.h>

#if defined(GASNET_DEBUG) && defined(GASNET_NDEBUG)
#error "GASNET_DEBUG and GASNET_NDEBUG are both defined; this library was built with one of them"
#endif
#ifdef GASNET_DEBUG
#undef GASNET_DEBUG
#define GASNET_DEBUG 1
#else
#undef GASNET_NDEBUG
#define GASNET_NDEBUG 1
#endif

/* ------------------------------------------------------------------------------------- the mode */

#if (defined(GASNETT_THREAD_SAFE) + defined(GASNETT_THREAD_SINGLE) + defined(GASNETT_LITE_MODE)) > 1
#error "define at most one of GASNETT_THREAD_SAFE, GASNETT_THREAD_SINGLE and GASNETT_LITE_MODE"
#endif

#ifdef _GASNETEX_H
/* If there is a conduit, its mode is used. */
#ifdef GASNETT_LITE_MODE
#error "GASNETT_LITE_MODE cannot be used together with gasnetex.h"
#endif
#ifdef GASNET_PAR
#ifdef GASNETT_THREAD_SINGLE
#error "GASNETT_THREAD_SINGLE contradicts GASNET_PAR"
#endif
#undef GASNETT_THREAD_SAFE
#define GASNETT_THREAD_SAFE 1
#else
#ifdef GASNETT_THREAD_SAFE
#error "GASNETT_THREAD_SAFE contradicts GASNET_SEQ and GASNET_PARSYNC"
#endif
#undef GASNETT_THREAD_SINGLE
#define GASNETT_THREAD_SINGLE 1
#endif
#else /* the tools alone */
#if defined(GASNET_SEQ) || defined(GASNET_PAR) || defined(GASNET_PARSYNC)
#error "include gasnetex.h before gasnet_tools.h, or do not define GASNET_SEQ, _PAR or _PARSYNC"
#endif
#if defined(GASNETT_LITE_MODE)
#undef GASNETT_LITE_MODE
#define GASNETT_LITE_MODE 1
#elif defined(GASNETT_THREAD_SAFE) ||   \
    (!defined(GASNETT_THREAD_SINGLE) && \
     (defined(_REENTRANT) || defined(_THREAD_SAFE) || defined(_PTHREAD_H)))
#undef GASNETT_THREAD_SAFE
#define GASNETT_THREAD_SAFE 1
#else
#undef GASNETT_THREAD_SINGLE
#define GASNETT_THREAD_SINGLE 1
#endif
#endif

/* Whether several threads may use an object at once. */
#if defined(GASNETT_THREAD_SAFE) || defined(GASNET_PARSYNC)
#define GASNETI_TOOLS_THREADS 1
#endif

#include <gasneti_annotations.h>
#include <limits.h>
#include <portable_inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

GASNETT_BEGIN_EXTERNC
extern void gasneti_fatalerror(const char* function, const char* file, int line, const char* format,
                               ...) GASNETT_NORETURN __attribute__((format(printf, 4, 5)));
GASNETT_END_EXTERNC

#include <gasneti_ticks.h>

/* ----------------------------------------------------------------------------------- constants */

#define GASNETT_SPEC_VERSION_MAJOR GASNETI_TOOLS_SPEC_VERSION_MAJOR
#define GASNETT_SPEC_VERSION_MINOR GASNETI_TOOLS_SPEC_VERSION_MINOR
#define GASNETT_RELEASE_VERSION_MAJOR GASNET_RELEASE_VERSION_MAJOR
#define GASNETT_RELEASE_VERSION_MINOR GASNET_RELEASE_VERSION_MINOR
#define GASNETT_RELEASE_VERSION_PATCH GASNET_RELEASE_VERSION_PATCH
#define GASNETT_PAGESIZE GASNETI_PAGESIZE
#define GASNETT_PAGESHIFT GASNETI_PAGESHIFT
#define GASNETT_CACHE_LINE_BYTES GASNETI_CACHE_LINE_BYTES
#define GASNETT_SYSTEM_TUPLE GASNETI_SYSTEM_TUPLE

#ifdef GASNET_DEBUG
#define GASNETI_DEBUG_CONFIG_STRING "debug"
#else
#define GASNETI_DEBUG_CONFIG_STRING "nodebug"
#endif
#if defined(GASNETT_LITE_MODE)
#define GASNETI_THREAD_CONFIG_STRING "LITE"
#elif defined(GASNETT_THREAD_SAFE)
#define GASNETI_THREAD_CONFIG_STRING "PAR"
#else
#define GASNETI_THREAD_CONFIG_STRING "SEQ"
#endif
#define GASNETI_TOOLS_CONFIG_STRING \
  "timers_posixrt,membars_native,atomics_compiler,atomic32_compiler,atomic64_compiler"
#define GASNETT_CONFIG_STRING                                                                                    \
  "RELEASE=" _STRINGIFY(GASNETI_RELEASE_VERSION) ",SPEC=" _STRINGIFY(GASNETT_SPEC_VERSION_MAJOR) "." _STRINGIFY( \
      GASNETT_SPEC_VERSION_MINOR) ",PTR=64bit," GASNETI_DEBUG_CONFIG_STRING                                      \
                                  "," GASNETI_THREAD_CONFIG_STRING "," GASNETI_TOOLS_CONFIG_STRING

#ifndef GASNETT_LITE_MODE

#include <gasneti_atomics.h>
#include <gasneti_threads.h>
#include <sched.h>

#define gasnett_sched_yield() ((void)sched_yield())

GASNETT_BEGIN_EXTERNC

/* A program compiled for another mode than its library does not link. */
#ifdef _GASNETEX_H
#define GASNETI_TOOLS_LINK_NAME GASNETI_LINK_NAME
#elif defined(GASNETT_THREAD_SAFE)
#define GASNETI_TOOLS_LINK_NAME gasneti_link_tools_par
#else
#define GASNETI_TOOLS_LINK_NAME gasneti_link_tools_seq
#endif
extern const int GASNETI_TOOLS_LINK_NAME;
__attribute__((used)) static const int* const gasneti_tools_link_check = &GASNETI_TOOLS_LINK_NAME;

/* --------------------------------------------------------------------------------- environment */

/** The value of a variable in the environment of the job (that of rank 0). Before gex_Client_Init,
 * the value in the environment of the process. NULL if it is not set. The text is never freed. */
extern char* gasnett_getenv(const char* key);
/** The same with a default, which may be NULL. GASNET_VERBOSEENV reports each key once. */
extern char* gasnett_getenv_withdefault(const char* key, const char* dflt);
extern int gasnett_getenv_yesno_withdefault(const char* key, int dflt);
/** @param mem_mult  0: the value is a number. Else the value is a size in memory, and mem_mult is
 *                   the unit if the text has none. */
extern int64_t gasnett_getenv_int_withdefault(const char* key, int64_t dflt, uint64_t mem_mult);
/** The value may also be a fraction, such as 3/8. */
extern double gasnett_getenv_dbl_withdefault(const char* key, double dflt);
/** Changes the environment of this process only. It has priority over that of the job. */
extern void gasnett_setenv(const char* key, const char* val);
extern void gasnett_unsetenv(const char* key);
extern int gasnett_verboseenv(void);
extern void gasnett_envint_display(const char* key, int64_t val, int is_dflt, int is_mem_size);
extern void gasnett_envstr_display(const char* key, const char* val, int is_dflt);
extern void gasnett_envdbl_display(const char* key, double val, int is_dflt);
/** Returns `buf`. gasnett_parse_int can read the text. */
extern char* gasnett_format_number(int64_t val, char* buf, size_t bufsz, int is_mem_size);
extern int64_t gasnett_parse_int(const char* s, uint64_t mem_mult);

/* --------------------------------------------------------------------- errors and backtraces */

#define gasnett_fatalerror(...) gasneti_fatalerror(__func__, __FILE__, __LINE__, __VA_ARGS__)
extern void gasnett_fatalerror_nopos(const char* fmt, ...) GASNETT_NORETURN
    __attribute__((format(printf, 1, 2)));
/** Ends all threads at once, without exit handlers. */
extern void gasnett_killmyprocess(int code) GASNETT_NORETURN;

typedef void (*gasnett_sighandlerfn_t)(int);
/** Installs a handler and returns the previous one. */
extern gasnett_sighandlerfn_t gasnett_reghandler(int sig, gasnett_sighandlerfn_t handler);

typedef struct {
  const char* name; /* name in upper case, for GASNET_BACKTRACE_TYPE */
  int (*fnp)(int);  /* writes to a descriptor; returns 0 on success */
  int threadsupport;
} gasnett_backtrace_type_t;
/** A program may define this variable to add a mechanism of its own. */
extern gasnett_backtrace_type_t gasnett_backtrace_user __attribute__((visibility("default")));
extern void gasnett_backtrace_init(const char* argv0);
/** Writes a backtrace. Returns 0 on success. */
extern int gasnett_print_backtrace(int fd);
/** Called by fatal errors. */
extern int (*gasnett_print_backtrace_ifenabled)(int fd);

extern volatile int gasnet_frozen;
extern void gasnett_freezeForDebuggerNow(volatile int* flag, const char* flagname);
extern void gasnett_freezeForDebuggerErr(void);

extern char* gasneti_format_location(const char* function, const char* file,
                                     int line) GASNETT_MALLOC;
#define gasnett_current_loc gasneti_format_location(__func__, __FILE__, __LINE__)

extern void gasnett_flush_streams(void);
extern void gasnett_close_streams(void);

/* ----------------------------------------------------------------------- process and machine */

extern const char* gasnett_exe_name(void);
extern const char* gasnett_gethostname(void);
#define gasneti_gethostname gasnett_gethostname
extern int gasnett_cpu_count(void);
extern uint64_t gasnett_getPhysMemSz(int fail_fatal);
#define GASNETT_SET_AFFINITY_SUPPORT 1
extern int gasnett_set_affinity(int rank);
/** Returns nonzero on success. */
extern int gasnett_maximize_rlimits(void);
extern int gasnett_maximize_rlimit(int res, const char* name);
extern uint64_t gasnett_checksum(const void* data, int nbytes);
extern size_t gasnett_count0s(const void* src, size_t bytes);
extern size_t gasnett_count0s_copy(void* dst, const void* src, size_t bytes);
extern const char* gasnett_performance_warning_str(void);
/** The self-test of the tools. Returns the number of errors. Programs differ in what they pass
 * after the sections; none of it is read. */
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
extern int gasnett_run_diagnostics(int iters, int threads, const char* sections, ...);
#else
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
extern int gasnett_run_diagnostics(); /* compatible with a declaration of the program */
#pragma GCC diagnostic pop
#endif
extern uint64_t gasnett_release_version(void);
extern const char* gasnett_release_version_str(void);

GASNETT_END_EXTERNC

GASNETT_INLINE(gasnett_isLittleEndian) int gasnett_isLittleEndian(void) {
  return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
}
GASNETT_INLINE(gasnett_count0s_uint64_t) int gasnett_count0s_uint64_t(uint64_t v) {
  /* Sets the highest bit of each byte that is not zero, without carries between bytes. */
  const uint64_t low = UINT64_C(0x7f7f7f7f7f7f7f7f);
  return 8 - __builtin_popcountll((((v & low) + low) | v) & ~low);
}
GASNETT_INLINE(gasnett_count0s_uint32_t) int gasnett_count0s_uint32_t(uint32_t v) {
  return gasnett_count0s_uint64_t(v) - 4;
}
GASNETT_INLINE(gasnett_count0s_uintptr_t) int gasnett_count0s_uintptr_t(uintptr_t v) {
  return gasnett_count0s_uint64_t((uint64_t)v);
}

#include <gasneti_trace.h>

#ifdef _GASNETEX_H
#include <gasneti_conduit_tools.h>
#endif

#endif /* GASNETT_LITE_MODE */

#endif /* GASNET_TOOLS_H */
