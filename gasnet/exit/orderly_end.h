/* orderly_end.h: nobody leaves while others still expect something of it.
 *
 * The processes meet twice. First all know that the job ends, and their threads start nothing more;
 * then each waits until what it has sent is answered. Without that, an acknowledgement that a
 * process has not sent yet would make its peers report that it is gone.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_EXIT_ORDERLY_END_H
#define LINTEL_GASNET_EXIT_ORDERLY_END_H

namespace lintel::gasnet {

/** Set-up path: where other neighbourhoods say that they have come. */
void expose_end();

/** Called once in each process, by the thread that ends it.
 * @param seconds  at most; a process that has died meanwhile does not come. */
void end_in_order(double seconds);

}  // namespace lintel::gasnet

#endif  // LINTEL_GASNET_EXIT_ORDERLY_END_H
