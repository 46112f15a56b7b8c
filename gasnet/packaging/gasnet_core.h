/* gasnet_core.h: programs of GASNet-1 look for this file to learn which conduits are installed.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GASNET_PORTALS4_CORE_H
#define GASNET_PORTALS4_CORE_H

#include <gasnetex.h>

#endif /* GASNET_PORTALS4_CORE_H */
