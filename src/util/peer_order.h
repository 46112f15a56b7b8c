// Tells the thread sanitizer of order that goes through other processes: what this process did before
// it sent a message comes before what it does after receiving one that may have been caused by it.
// The sanitizer sees one process only, so it is told of every message sent and received. Message path;
// nothing in other builds.
#pragma once

#if defined(__SANITIZE_THREAD__)
#include <unistd.h>

#include <sanitizer/tsan_interface.h>
#endif

namespace lintel {

#if defined(__SANITIZE_THREAD__)
// Stands for "the other processes". An address that the library and programs built with it both know.
inline void note_sending() noexcept { __tsan_release(&environ); }
inline void note_received() noexcept { __tsan_acquire(&environ); }
#else
inline void note_sending() noexcept {}
inline void note_received() noexcept {}
#endif

}  // namespace lintel
