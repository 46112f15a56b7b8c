// Devices without hardware: what the stand-ins for the libraries of drivers (fake_cuda.cc,
// fake_hip.cc, fake_ze.cc) have in common.
//
// The memory of a device is a file in memory. At its address the processor may neither read nor
// write: a load or store there is a fault at once. Copies go through a second mapping, and happen
// in a thread, after random delays. Copies of a queue end in order, those of different queues do
// not. Freed addresses are used again, by allocations of other identifiers.
//
// Settings are environment variables FAKE_DEVICE_<NAME>, read at the first call, or set by
// fake_device_set(), which each stand-in exports:
//
//   COUNT      devices (1)
//   SEED       of the random numbers (1)
//   DELAY_US   longest delay of a copy (20)
//   NO_MEMORY  1: allocations fail
//   NO_PEER    1: allocations of other processes cannot be mapped
//   NO_EXPORT  1: allocations cannot be exported
//   MIB_PER_S  n: copies move nothing, cost the processor nothing, and take as long as at this
//              rate, for measurements of what else they cost (0: they are real)
//   LATENCY_NS n: with MIB_PER_S, what each copy takes besides (0)
//   LOSE_AFTER n: the n-th copy from now on fails, and everything after it (0: never)
#pragma once

#include <cstddef>
#include <cstdint>

namespace lintel::fake_devices {

enum class Result : uint8_t {
  ok,
  running,
  no_memory,
  invalid,
  lost,
  no_peer,
  unsupported,
  already
};

struct Allocation {
  uintptr_t base;
  size_t bytes;
  uint64_t id;
  int device;
  void* owner;  // context that the stand-in gave
};

// Names an allocation to other processes. `process` is `this_process` if the descriptor was passed
// to this one.
inline constexpr int this_process = 0;
struct Handle {
  int process;
  int descriptor;
  uint64_t inode;
  uint64_t bytes;
  int device;
};

class Queue;
class Event;

[[nodiscard]] int device_count();
[[nodiscard]] bool is_lost();

[[nodiscard]] Result allocate(int device, size_t bytes, void* owner, uintptr_t* base);
[[nodiscard]] Result release(uintptr_t base);  // waits for all copies
[[nodiscard]] bool find(uintptr_t address, Allocation* out);
// Managed memory, which the processor may access.
[[nodiscard]] bool mark_managed(uintptr_t base);
[[nodiscard]] bool is_managed(uintptr_t address);

// Queues and events live until the process ends.
[[nodiscard]] Queue* make_queue();
[[nodiscard]] Event* make_event();
// Either side may be memory of a device. From and to memory of the host that is not pinned, the
// call waits for the end.
[[nodiscard]] Result copy(Queue* queue, uintptr_t to, uintptr_t from, size_t bytes);
[[nodiscard]] Result record(Queue* queue, Event* event);
[[nodiscard]] Result state_of(Event* event);
[[nodiscard]] Result wait(Queue* queue);
[[nodiscard]] Result wait(Event* event);

[[nodiscard]] Result pin(uintptr_t host, size_t bytes);
[[nodiscard]] Result unpin(uintptr_t host);

[[nodiscard]] Result export_allocation(uintptr_t base, Handle* out);
[[nodiscard]] Result open(const Handle& handle, void* owner, uintptr_t* base);
[[nodiscard]] Result close(uintptr_t base);
// The file of an allocation, for which the caller gets a descriptor of its own.
[[nodiscard]] Result file_of(uintptr_t base, int* descriptor);

}  // namespace lintel::fake_devices

extern "C" {
// False: there is no such setting.
[[gnu::visibility("default")]] bool fake_device_set(const char* name, uint64_t value);
// The mapping through which copies reach an address of the device; nullptr: there is none.
[[gnu::visibility("default")]] void* fake_device_view(const void* address);
// A count since the process began: "allocations" and "imports" (now), "pinned" (ranges, now),
// "copies", "copied_bytes", "unpinned" (copies that waited), "questions" (find()).
[[gnu::visibility("default")]] uint64_t fake_device_count(const char* name);
}
