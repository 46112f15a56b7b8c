/* pid_blocks.h: Portals pids for the processes of a job on this host.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_SPAWNER_PID_BLOCKS_H
#define LINTEL_GASNET_SPAWNER_PID_BLOCKS_H

#include <vector>

namespace lintel::gasnet {

/** Pids that no other gasnetrun_portals4 of this host uses. They come in blocks, each reserved
 * until this process ends by the name of an abstract socket. Any user can take such names: blocks
 * that another user has reserved are searched for pids that no process uses. To be called once.
 * @return at most `count` pids; fewer if there are no more. */
std::vector<unsigned int> take_pids(unsigned int count);

}  // namespace lintel::gasnet

#endif  // LINTEL_GASNET_SPAWNER_PID_BLOCKS_H
