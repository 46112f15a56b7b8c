/* rank_list.h: lists of ranks in the environment.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_JOB_RANK_LIST_H
#define LINTEL_GASNET_JOB_RANK_LIST_H

#include "tools/headers.h"

namespace lintel::gasnet {

/** Whether a list such as "0,2-4", or "*", contains the rank. */
bool lists_rank(const char* text, gex_Rank_t rank);

}  // namespace lintel::gasnet

#endif  // LINTEL_GASNET_JOB_RANK_LIST_H
