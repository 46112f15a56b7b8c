/* choices.h: variables of the environment that name one of several ways. Set-up path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_START_CHOICES_H
#define LINTEL_GASNET_START_CHOICES_H

#include <cstdint>

namespace lintel::gasnet {

/** What tells hosts apart (GASNET_HOST_DETECT): 0, the launcher; 1, gethostid(); 2, the name of the
 * host. Another word ends the program. */
uint32_t host_detection();

/** What this process shows of its host: equal on one host. */
uint64_t host_key(uint32_t detection);

/** Ends the program if GASNET_BARRIER or GASNET_COLL_SCRATCH_SIZE make no sense. */
void check_choices();

}  // namespace lintel::gasnet

#endif  // LINTEL_GASNET_START_CHOICES_H
