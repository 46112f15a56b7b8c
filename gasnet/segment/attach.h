/* attach.h: the parts of gex_Segment_Attach that gex_Client_Init uses. Set-up path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_SEGMENT_ATTACH_H
#define LINTEL_GASNET_SEGMENT_ATTACH_H

#include <cstddef>

namespace lintel::gasnet {

/** Bytes that each process contributes to the exchange of segments. */
size_t attach_record_bytes();

/** Makes all memory of this process the segment of its primordial endpoint, without pinning it. */
void open_everything();

}  // namespace lintel::gasnet

#endif  // LINTEL_GASNET_SEGMENT_ATTACH_H
