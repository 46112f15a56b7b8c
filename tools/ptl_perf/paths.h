// Transports by which the processes of a measurement reach each other. Set-up path.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <portals4.h>

#include <string>
#include <vector>

#include "ptl_perf/session.h"

namespace lintel::perf {

/** Path by which one rank sends to another. */
struct PathFacts {
  unsigned from = 0;
  unsigned to = 0;
  std::string transport;
  std::string device;
  std::string reason;  // why none of the transports that are tried before it
};

/** Throws if no transport reaches the process, with the reason. */
void require_path(ptl_handle_ni_t interface, ptl_process_t process, unsigned rank);

/** Why a peer of a failed operation cannot be reached; empty if nothing more is known. */
std::string why_unreachable(Session& session, const Endpoint& endpoint);

/** Collective: the paths of the pairs, from initiator to target, at rank 0. Throws everywhere
 *  if one does not exist. */
std::vector<PathFacts> gather_paths(Session& session, const Endpoint& endpoint);

/** "shm (/dev/shm)", or with the pairs if they differ. */
std::string describe_paths(const std::vector<PathFacts>& paths);

/** "shm", or "shm+udp" if they differ. */
std::string transports_of(const std::vector<PathFacts>& paths);
std::string devices_of(const std::vector<PathFacts>& paths);

}  // namespace lintel::perf
