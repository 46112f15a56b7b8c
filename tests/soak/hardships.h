// Adverse conditions for processes of an endurance run. Each function applies to the calling
// process and its children.
#pragma once

#include <cstdint>
#include <initializer_list>

namespace lintel::soak {

// These system calls fail with ENOSYS. Returns false if seccomp is not available.
[[nodiscard]] bool forbid_calls(std::initializer_list<int> numbers);

// Mounts a file system at /dev/shm that other processes cannot see. Returns false without the right
// to mount one.
[[nodiscard]] bool own_shared_memory(uint64_t bytes);
// Uses up all room there; free_shared_memory() releases it.
void fill_shared_memory();
void free_shared_memory();

}  // namespace lintel::soak
