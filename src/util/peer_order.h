// Reports to the thread sanitizer the order that other processes establish: what this process did
// before it sent a message comes before what it does after it receives one that may follow from it.
// The sanitizer sees one process only, so each message sent and received is reported. Message path;
// nothing in other builds.
#pragma once

#if defined(__SANITIZE_THREAD__)
#include <unistd.h>

#include <sanitizer/tsan_interface.h>
#endif

namespace lintel {

#if defined(__SANITIZE_THREAD__)
// Stands for "the other processes": an address that both the library and programs built with it
// have.
inline void note_sending() noexcept { __tsan_release(&environ); }
inline void note_received() noexcept { __tsan_acquire(&environ); }
#else
inline void note_sending() noexcept {}
inline void note_received() noexcept {}
#endif

}  // namespace lintel
