// A file system for shared memory that other processes of the machine cannot see.
#pragma once

#include "support/rank.h"

namespace lintel::test {

// Whether this process may mount one; if not, a test is skipped with this reason.
[[nodiscard]] bool can_own_shared_memory();
#ifdef __SANITIZE_THREAD__
inline constexpr const char* no_own_shared_memory =
    "the thread sanitizer has a thread of its own: such a process cannot enter another mount namespace";
#else
inline constexpr const char* no_own_shared_memory =
    "no right to mount a file system in a namespace (not root)";
#endif

// Gives all ranks one new file system at /dev/shm. Rank 0 mounts it with `options` of tmpfs and
// publishes its namespace in the given slot; the others enter that namespace. Every rank must call
// this before it starts threads.
void enter_own_shared_memory(Rank& rank, const char* options, int slot = 1);

// Gives this process a file system that no other process shares.
void enter_memory_of_its_own(const char* options);

// Changes the options of that file system.
void remount_shared_memory(const char* options);

}  // namespace lintel::test
