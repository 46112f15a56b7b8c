/* orderly_end.h: no process ends while others still expect a message of it.
 *
 * The processes meet twice. After the first meeting no thread of any process starts anything more.
 * Then each process waits until all that it has sent is answered. Without the second meeting a
 * process could end before it has sent an acknowledgement, and its peers would report it as gone.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_EXIT_ORDERLY_END_H
#define LINTEL_GASNET_EXIT_ORDERLY_END_H

namespace lintel::gasnet {

/** Set-up path: exposes the words into which other neighbourhoods put their arrival. */
void expose_end();

/** Called once in each process, by the thread that ends it.
 * @param seconds  at most. A process that has died does not arrive. */
void end_in_order(double seconds);

}  // namespace lintel::gasnet

#endif  // LINTEL_GASNET_EXIT_ORDERLY_END_H
