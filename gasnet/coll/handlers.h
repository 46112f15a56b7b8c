/* handlers.h: indexes of the internal handlers of the library, below GEX_AM_INDEX_BASE.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_COLL_HANDLERS_H
#define LINTEL_GASNET_COLL_HANDLERS_H

#include "tools/headers.h"

namespace lintel::gasnet {

constexpr gex_AM_Index_t kGatherHandler = 1;
constexpr gex_AM_Index_t kTreeHandler = 2;
constexpr gex_AM_Index_t kPieceHandler = 3;

}  // namespace lintel::gasnet

#endif  // LINTEL_GASNET_COLL_HANDLERS_H
