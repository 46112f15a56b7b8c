/* portals.h: the same interface as portals4.h (spec 3.1).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef PORTALS_H
#define PORTALS_H

#include <portals4.h>

#endif /* PORTALS_H */
