/* choices.h: variables of the environment that select one of several methods. Set-up path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_START_CHOICES_H
#define LINTEL_GASNET_START_CHOICES_H

#include <cstdint>

namespace lintel::gasnet {

/** @return how hosts are distinguished (GASNET_HOST_DETECT). 0: by the launcher; 1: by gethostid();
 *         2: by the name of the host. Another word ends the program. */
uint32_t host_detection();

/** A key of the host of this process. It is equal for all processes of a host. */
uint64_t host_key(uint32_t detection);

/** Ends the program if GASNET_BARRIER or GASNET_COLL_SCRATCH_SIZE is not valid. */
void check_choices();

}  // namespace lintel::gasnet

#endif  // LINTEL_GASNET_START_CHOICES_H
