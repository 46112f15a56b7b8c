/* handlers.h: calling a handler with its arguments. Message path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_AM_HANDLERS_H
#define LINTEL_GASNET_AM_HANDLERS_H

#include "tools/headers.h"

namespace lintel::gasnet {

/** @param count  at most GASNETI_AM_MAX_ARGS. */
void call_short(gex_AM_Fn_t handler, gex_Token_t token, const gex_AM_Arg_t* arguments,
                unsigned int count);
/** Calls the handler of a Medium or Long. */
void call_with_data(gex_AM_Fn_t handler, gex_Token_t token, void* data, size_t bytes,
                    const gex_AM_Arg_t* arguments, unsigned int count);

}  // namespace lintel::gasnet

#endif  // LINTEL_GASNET_AM_HANDLERS_H
