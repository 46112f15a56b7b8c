/* portals4_ext.h: a name that other Portals 4 libraries have for such a header; here it includes
 * portals4_lintel.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <portals4_lintel.h>
