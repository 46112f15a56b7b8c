// What makes life hard for a process of an endurance run. Each is for the process that calls it and
// its children.
#pragma once

#include <cstdint>
#include <initializer_list>

namespace lintel::soak {

// Those system calls fail with ENOSYS. False: seccomp is not to be had.
[[nodiscard]] bool forbid_calls(std::initializer_list<int> numbers);

// A file system at /dev/shm that no other process sees. False: no right to mount one.
[[nodiscard]] bool own_shared_memory(uint64_t bytes);
// Takes all room there, and gives it back.
void fill_shared_memory();
void free_shared_memory();

}  // namespace lintel::soak
