/* portable_inttypes.h: integer types and how to print them, in C and in C++.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GASNET_PORTABLE_INTTYPES_H
#define GASNET_PORTABLE_INTTYPES_H

#ifndef __STDC_FORMAT_MACROS
#define __STDC_FORMAT_MACROS 1
#endif
#ifndef __STDC_LIMIT_MACROS
#define __STDC_LIMIT_MACROS 1
#endif
#ifndef __STDC_CONSTANT_MACROS
#define __STDC_CONSTANT_MACROS 1
#endif
#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>

/* For size_t; not a standard name. */
#ifndef PRIuSZ
#define PRIuSZ "zu"
#endif

#endif /* GASNET_PORTABLE_INTTYPES_H */
