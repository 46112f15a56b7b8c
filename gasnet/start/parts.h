/* parts.h: the rooms that have something to set up at the end of gex_Client_Init. Set-up path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_START_PARTS_H
#define LINTEL_GASNET_START_PARTS_H

namespace lintel::gasnet {

/** Calls the start function of each room. Job, neighbourhood, environment, endpoint and team exist.
 * Other processes send nothing before the call has returned in all of them.
 * @return whether this process can run the collectives of coll/team_collectives.h. */
bool start_parts();
/** To be called with the result of all processes. */
void all_parts_started(bool all_can);

}  // namespace lintel::gasnet

#endif  // LINTEL_GASNET_START_PARTS_H
