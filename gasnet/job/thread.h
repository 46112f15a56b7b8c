/* thread.h: the state of each thread that calls the library. Message path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_JOB_THREAD_H
#define LINTEL_GASNET_JOB_THREAD_H

#include <cstdint>

#include "tools/headers.h"

namespace lintel::gasnet {

/** State of a thread. In the mode SEQ there is one. A thread in a handler must not communicate; a
 * request handler may reply, however. */
struct ThreadState {
  uint32_t index = 0;       /* below max_threads(); used again after the thread has ended */
  bool in_request = false;  /* a request handler runs in this thread */
  bool in_reply = false;    /* a reply handler runs in this thread */
  bool is_prepared = false; /* between gex_AM_Prepare... and gex_AM_Commit... */
  int held_locks = 0;       /* handler-safe locks; counted in debug builds */
};

#ifdef GASNET_SEQ
#define LINTEL_GASNET_PER_THREAD
#else
#define LINTEL_GASNET_PER_THREAD thread_local
#endif

/** The state of the calling thread. Its first call takes one of GASNET_MAX_THREADS places. */
ThreadState& this_thread();

/** @return the number of threads that have called the library and may be in a call, or make one. */
uint32_t running_threads();

/** Notes that the calling thread makes no further call. Async-signal-safe. */
void retire_this_thread();

/** @return how many client threads that have called the library may be alive at once. */
uint64_t max_threads();

/** Whether two threads may handle or send messages at once. The thread that ends the process does
 * neither. */
#ifdef GASNET_PAR
constexpr bool kCallsAreConcurrent = true;
#else
constexpr bool kCallsAreConcurrent = false;
#endif

/** Ends the program if the calling thread must not communicate, in debug builds. */
#ifdef GASNET_DEBUG
void check_may_communicate(const char* call);
/** The same for a reply. */
void check_may_reply(const char* call, bool has_replied);
/** The same if a handler still holds a lock or a prepared message when it returns. */
void check_end_of_handler(unsigned int handler);
#else
inline void check_may_communicate(const char*) {}
inline void check_may_reply(const char*, bool) {}
inline void check_end_of_handler(unsigned int) {}
#endif

}  // namespace lintel::gasnet

#endif  // LINTEL_GASNET_JOB_THREAD_H
