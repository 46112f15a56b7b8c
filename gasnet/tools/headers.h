/* headers.h: the tools inside of the library. The conduit libraries contain the tools, compiled in
 * the mode of the conduit.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_TOOLS_HEADERS_H
#define LINTEL_GASNET_TOOLS_HEADERS_H

#ifdef GASNETI_TOOLS_ALONE
#include <gasnet_tools.h>
#else
#include <gasnetex.h>
#endif

#endif  // LINTEL_GASNET_TOOLS_HEADERS_H
