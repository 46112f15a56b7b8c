// A file system for shared memory that other processes of the machine do not see.
#pragma once

#include "support/rank.h"

namespace lintel::test {

// Whether this process may have one; the reason to skip if not.
[[nodiscard]] bool can_own_shared_memory();
#ifdef __SANITIZE_THREAD__
inline constexpr const char* no_own_shared_memory =
    "the thread sanitizer has a thread of its own: such a process cannot enter another mount namespace";
#else
inline constexpr const char* no_own_shared_memory =
    "no right to mount a file system in a namespace (not root)";
#endif

// Gives all ranks one new file system at /dev/shm: rank 0 mounts it with `options` of tmpfs, and
// the others enter the namespace of rank 0, which they find in the given slot of what it publishes.
// To be called by every rank, before it starts threads.
void enter_own_shared_memory(Rank& rank, const char* options, int slot = 1);

// Gives this process one of its own.
void enter_memory_of_its_own(const char* options);

// Changes the options of that file system.
void remount_shared_memory(const char* options);

}  // namespace lintel::test
