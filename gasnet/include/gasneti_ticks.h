/* gasneti_ticks.h: timers, sleep and memory barriers of the tools. Private: include gasnet_tools.h.
 *
 * A tick is one nanosecond of CLOCK_MONOTONIC, which the C library reads without a system call.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GASNETI_TICKS_H
#define GASNETI_TICKS_H

#include <errno.h>
#include <gasneti_annotations.h>
#include <portable_inttypes.h>
#include <sched.h>
#include <sys/time.h>
#include <time.h>

typedef uint64_t gasnett_tick_t;
#define GASNETT_TICK_MIN ((gasnett_tick_t)0)
#define GASNETT_TICK_MAX ((gasnett_tick_t)-1)

GASNETT_INLINE(gasnett_ticks_now) gasnett_tick_t gasnett_ticks_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
GASNETT_INLINE(gasnett_ticks_to_ns) uint64_t gasnett_ticks_to_ns(gasnett_tick_t ticks) {
  return ticks;
}
GASNETT_INLINE(gasnett_ticks_to_us) uint64_t gasnett_ticks_to_us(gasnett_tick_t ticks) {
  return ticks / 1000u;
}
GASNETT_INLINE(gasnett_gettimeofday_us) uint64_t gasnett_gettimeofday_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u;
}

/** The smallest step seen between two readings, in microseconds. */
GASNETT_INLINE(gasnett_tick_granularityus) double gasnett_tick_granularityus(void) {
  gasnett_tick_t smallest = GASNETT_TICK_MAX;
  int i;
  for (i = 0; i < 1000; i++) {
    const gasnett_tick_t before = gasnett_ticks_now();
    gasnett_tick_t after = gasnett_ticks_now();
    while (after == before) after = gasnett_ticks_now();
    if (after - before < smallest) smallest = after - before;
  }
  return (double)smallest / 1000.0;
}

/** The time that one reading takes, in microseconds. */
GASNETT_INLINE(gasnett_tick_overheadus) double gasnett_tick_overheadus(void) {
  const int readings = 10000;
  const gasnett_tick_t start = gasnett_ticks_now();
  gasnett_tick_t last = start;
  int i;
  for (i = 0; i < readings; i++) last = gasnett_ticks_now();
  return (double)(last - start + 1) / (1000.0 * readings);
}

/** Sleeps for at least `ns` nanoseconds. Returns nonzero with errno EINTR if a signal came. */
GASNETT_INLINE(gasnett_nsleep) int gasnett_nsleep(uint64_t ns) {
  struct timespec span;
  if (ns == 0) return 0;
  span.tv_sec = (time_t)(ns / 1000000000u);
  span.tv_nsec = (long)(ns % 1000000000u);
  return nanosleep(&span, (struct timespec*)0);
}

#define gasnett_compiler_fence() __asm__ __volatile__("" ::: "memory")
#define gasnett_local_wmb() __atomic_thread_fence(__ATOMIC_RELEASE)
#define gasnett_local_rmb() __atomic_thread_fence(__ATOMIC_ACQUIRE)
#define gasnett_local_mb() __atomic_thread_fence(__ATOMIC_SEQ_CST)
#ifdef GASNETI_TOOLS_THREADS
#define gasnett_weak_wmb() gasnett_local_wmb()
#define gasnett_weak_rmb() gasnett_local_rmb()
#define gasnett_weak_mb() gasnett_local_mb()
#else
#define gasnett_weak_wmb() ((void)0)
#define gasnett_weak_rmb() ((void)0)
#define gasnett_weak_mb() ((void)0)
#endif

GASNETT_INLINE(gasnett_spinloop_hint) void gasnett_spinloop_hint(void) {
#if defined(__x86_64__) || defined(__i386__)
  __asm__ __volatile__("pause" ::: "memory");
#elif defined(__aarch64__)
  /* Longer than yield, which most processors take for nothing. */
  __asm__ __volatile__("isb" ::: "memory");
#else
  gasnett_compiler_fence();
#endif
}

#endif /* GASNETI_TICKS_H */
