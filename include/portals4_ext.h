/* portals4_ext.h: an earlier name of portals4_lintel.h, which headers of other Portals 4 libraries have, too.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <portals4_lintel.h>
