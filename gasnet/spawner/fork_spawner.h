/* fork_spawner.h: starts a job on this host without a launcher.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_SPAWNER_FORK_SPAWNER_H
#define LINTEL_GASNET_SPAWNER_FORK_SPAWNER_H

#include "spawner/supervisor.h"

namespace lintel::gasnet {

/** To be called by run_supervised(). Starts the processes and waits for them. When one has failed,
 * ends those that are left.
 * @return the exit status of the job: the first that is not 0. For a process that a signal ended,
 *         128 plus the signal. */
int run_by_fork(const Options& options, const AwaitedSignals& signals);

}  // namespace lintel::gasnet

#endif  // LINTEL_GASNET_SPAWNER_FORK_SPAWNER_H
