/* fork_spawner.h: a job of processes of this host, by hand.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_SPAWNER_FORK_SPAWNER_H
#define LINTEL_GASNET_SPAWNER_FORK_SPAWNER_H

#include "spawner/options.h"

namespace lintel::gasnet {

/** Starts the processes, waits for them and ends those that are left when one has failed.
 * @return the exit status of the job: the first that is not 0; 128 and the signal for a process
 * that a
 *       signal ended. */
int run_by_fork(const Options& options);

}  // namespace lintel::gasnet

#endif  // LINTEL_GASNET_SPAWNER_FORK_SPAWNER_H
