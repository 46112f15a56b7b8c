/* gasneti_trace.h: hooks for trace and statistics files. Private: include gasnet_tools.h.
 *
 * With a conduit they write to the files that GASNET_TRACEFILE and GASNET_STATSFILE name. If these
 * are not set, a hook costs one branch. The hooks of the tools alone do nothing.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GASNETI_TRACE_H
#define GASNETI_TRACE_H

#include <gasneti_annotations.h>

__attribute__((unused, format(printf, 1, 2))) static void _gasnett_trace_printf_noop(
    const char* format, ...) {
  (void)format;
}

#ifdef _GASNETEX_H

GASNETT_BEGIN_EXTERNC
/* Bit n is set if this process writes the category 'A' + n. */
extern unsigned int gasneti_trace_categories;
extern unsigned int gasneti_stats_categories;
extern void gasneti_trace_printf(char category, const char* format, ...)
    __attribute__((format(printf, 2, 3)));
extern void gasneti_stats_printf(char category, const char* format, ...)
    __attribute__((format(printf, 2, 3)));
extern const char* gasneti_trace_get_mask(void);
extern const char* gasneti_stats_get_mask(void);
extern void gasneti_trace_set_mask(const char* letters);
extern void gasneti_stats_set_mask(const char* letters);
extern int gasneti_trace_get_local(void);
extern void gasneti_trace_set_local(int enabled);
extern void gasneti_trace_set_source_line(const char* file, unsigned int line);
extern void gasneti_trace_get_source_line(const char** file, unsigned int* line);
extern void gasneti_trace_freeze_source_line(void);
extern void gasneti_trace_unfreeze_source_line(void);
extern int gasneti_stats_init(void (*callback)(void (*print)(const char* format, ...)));
extern void gasneti_stats_dump(int reset);
GASNETT_END_EXTERNC

#define GASNETI_CATEGORY_BIT(c) (1u << ((c) - 'A'))
#define GASNETI_TRACE_ON(c)                                                             \
  GASNETT_PREDICT_FALSE((__atomic_load_n(&gasneti_trace_categories, __ATOMIC_RELAXED) & \
                         GASNETI_CATEGORY_BIT(c)) != 0)
#define GASNETI_STATS_ON(c)                                                             \
  GASNETT_PREDICT_FALSE((__atomic_load_n(&gasneti_stats_categories, __ATOMIC_RELAXED) & \
                         GASNETI_CATEGORY_BIT(c)) != 0)

#define GASNETT_TRACE_ENABLED (GASNETI_TRACE_ON('H') ? 1 : 0)
#define GASNETT_TRACE_PRINTF(...) \
  (GASNETI_TRACE_ON('H') ? gasneti_trace_printf('H', __VA_ARGS__) : (void)0)
#define GASNETT_TRACE_PRINTF_FORCE(...) \
  (GASNETI_TRACE_ON('U') ? gasneti_trace_printf('U', __VA_ARGS__) : (void)0)
#define GASNETT_STATS_PRINTF(...) \
  (GASNETI_STATS_ON('H') ? gasneti_stats_printf('H', __VA_ARGS__) : (void)0)
#define GASNETT_STATS_PRINTF_FORCE(...) \
  (GASNETI_STATS_ON('U') ? gasneti_stats_printf('U', __VA_ARGS__) : (void)0)
#define GASNETT_TRACE_GETMASK() gasneti_trace_get_mask()
#define GASNETT_STATS_GETMASK() gasneti_stats_get_mask()
#define GASNETT_TRACE_SETMASK(letters) gasneti_trace_set_mask(letters)
#define GASNETT_STATS_SETMASK(letters) gasneti_stats_set_mask(letters)
#define GASNETT_TRACE_GET_TRACELOCAL() gasneti_trace_get_local()
#define GASNETT_TRACE_SET_TRACELOCAL(enabled) gasneti_trace_set_local(enabled)
#define GASNETT_TRACE_SETSOURCELINE(file, line) gasneti_trace_set_source_line(file, line)
#define GASNETT_TRACE_GETSOURCELINE(file, line) gasneti_trace_get_source_line(file, line)
#define GASNETT_TRACE_FREEZESOURCELINE() gasneti_trace_freeze_source_line()
#define GASNETT_TRACE_UNFREEZESOURCELINE() gasneti_trace_unfreeze_source_line()
#define GASNETT_STATS_INIT(callback) gasneti_stats_init(callback)
#define GASNETT_STATS_DUMP(reset) gasneti_stats_dump(reset)

#else

#define GASNETT_TRACE_ENABLED 0
#define GASNETT_TRACE_PRINTF _gasnett_trace_printf_noop
#define GASNETT_TRACE_PRINTF_FORCE _gasnett_trace_printf_noop
#define GASNETT_STATS_PRINTF _gasnett_trace_printf_noop
#define GASNETT_STATS_PRINTF_FORCE _gasnett_trace_printf_noop
#define GASNETT_TRACE_GETMASK() ""
#define GASNETT_STATS_GETMASK() ""
#define GASNETT_TRACE_SETMASK(letters) ((void)(letters))
#define GASNETT_STATS_SETMASK(letters) ((void)(letters))
#define GASNETT_TRACE_GET_TRACELOCAL() 0
#define GASNETT_TRACE_SET_TRACELOCAL(enabled) ((void)(enabled))
#define GASNETT_TRACE_SETSOURCELINE(file, line) ((void)(file), (void)(line))
#define GASNETT_TRACE_GETSOURCELINE(file, line) ((void)(file), (void)(line))
#define GASNETT_TRACE_FREEZESOURCELINE() ((void)0)
#define GASNETT_TRACE_UNFREEZESOURCELINE() ((void)0)
#define GASNETT_STATS_INIT(callback) ((void)(callback), 0)
#define GASNETT_STATS_DUMP(reset) ((void)(reset))

#endif

#endif /* GASNETI_TRACE_H */
