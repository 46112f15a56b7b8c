/* futex.h: sleeping until another process changes a word.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_JOB_FUTEX_H
#define LINTEL_GASNET_JOB_FUTEX_H

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>
#include <ctime>

namespace lintel::gasnet {

inline void futex_wait(std::atomic<uint32_t>& word, uint32_t expected, long milliseconds) {
  const timespec timeout{milliseconds / 1000, milliseconds % 1000 * 1'000'000};
  syscall(SYS_futex, &word, FUTEX_WAIT, expected, &timeout, nullptr, 0);
}

inline void futex_wake_all(std::atomic<uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace lintel::gasnet

#endif  // LINTEL_GASNET_JOB_FUTEX_H
