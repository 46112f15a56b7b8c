// Devices without hardware.
#include "support/fake_devices/engine.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace lintel::fake_devices {

using Clock = std::chrono::steady_clock;

// Work of a queue: a copy, or an event that tells that all before it has ended.
struct Work {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  size_t bytes = 0;
  Event* event = nullptr;
};

class Queue {
 public:
  std::deque<Work> work;
  bool is_busy = false;      // the thread has taken work
  Clock::time_point ends{};  // with a rate: when all copies have ended
};

class Event {
 public:
  bool ended = true;  // one that was never recorded has ended
  Clock::time_point ends{};
};

namespace {

constexpr size_t granule = 4096;
constexpr size_t address_space = size_t{64} << 30;

struct Memory {
  Allocation allocation;
  size_t mapped_bytes;
  int descriptor;
  std::byte* second;  // mapping through which copies go
  bool is_import;
  bool is_managed;
};

struct Setting {
  const char* name;
  uint64_t value;
};

struct Counts {
  uint64_t copies = 0;
  uint64_t copied_bytes = 0;
  uint64_t unpinned = 0;
  uint64_t questions = 0;
};

class Machine {
 public:
  Machine();

  std::mutex lock;
  std::condition_variable changed;
  std::map<uintptr_t, Memory> memories;  // by address
  std::map<uintptr_t, size_t> pinned;    // ranges of the host
  std::vector<std::unique_ptr<Queue>> queues;
  std::vector<std::unique_ptr<Event>> events;
  Counts counts;
  bool is_lost = false;

  [[nodiscard]] uint64_t setting(const char* name) const;
  bool set(const char* name, uint64_t value);

  // The following with the lock held.
  [[nodiscard]] Memory* find(uintptr_t address);
  [[nodiscard]] uintptr_t free_address(size_t bytes);
  [[nodiscard]] Result map(int device, size_t bytes, int descriptor, bool is_import, void* owner,
                           uintptr_t* base);
  void unmap(uintptr_t base);
  // The mapping of the processor for a range of a device or of the host.
  [[nodiscard]] Result reach(uintptr_t address, size_t bytes, std::byte** out, bool* is_host);
  [[nodiscard]] bool is_pinned(uintptr_t address, size_t bytes) const;
  [[nodiscard]] bool loses_copy();
  void wait_until_empty(std::unique_lock<std::mutex>& held, Queue* queue);

 private:
  void work();

  std::array<Setting, 9> settings_{{{"COUNT", 1},
                                    {"SEED", 1},
                                    {"DELAY_US", 20},
                                    {"NO_MEMORY", 0},
                                    {"NO_PEER", 0},
                                    {"NO_EXPORT", 0},
                                    {"MIB_PER_S", 0},
                                    {"LATENCY_NS", 0},
                                    {"LOSE_AFTER", 0}}};
  uintptr_t space_;
  uint64_t next_id_ = 1;
  std::mt19937_64 random_;
};

Machine& machine() {
  static Machine& machine = *new Machine;
  return machine;
}

size_t rounded(size_t bytes) { return (bytes + granule - 1) & ~(granule - 1); }

Machine::Machine() {
  for (Setting& setting : settings_)
    if (const char* const text = std::getenv((std::string("FAKE_DEVICE_") + setting.name).c_str()))
      setting.value = std::strtoull(text, nullptr, 0);
  random_.seed(setting("SEED"));
  void* const space =
      mmap(nullptr, address_space, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (space == MAP_FAILED) std::abort();
  space_ = reinterpret_cast<uintptr_t>(space);
  std::thread([this] { work(); }).detach();
}

uint64_t Machine::setting(const char* name) const {
  for (const Setting& setting : settings_)
    if (std::strcmp(setting.name, name) == 0) return setting.value;
  std::abort();
}

bool Machine::set(const char* name, uint64_t value) {
  for (Setting& setting : settings_)
    if (strcasecmp(setting.name, name) == 0) {
      setting.value = value;
      return true;
    }
  return false;
}

Memory* Machine::find(uintptr_t address) {
  auto next = memories.upper_bound(address);
  if (next == memories.begin()) return nullptr;
  Memory& memory = std::prev(next)->second;
  return address - memory.allocation.base < memory.allocation.bytes ? &memory : nullptr;
}

// The first gap, so that freed addresses are used again soon.
uintptr_t Machine::free_address(size_t bytes) {
  uintptr_t address = space_;
  for (const auto& [base, memory] : memories) {
    if (base - address >= bytes) break;
    address = base + memory.mapped_bytes;
  }
  return address + bytes <= space_ + address_space ? address : 0;
}

Result Machine::map(int device, size_t bytes, int descriptor, bool is_import, void* owner,
                    uintptr_t* base) {
  const size_t mapped = rounded(bytes);
  const uintptr_t address = free_address(mapped);
  if (address == 0) return Result::no_memory;
  void* const second = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (second == MAP_FAILED) return Result::no_memory;
  // Nothing may be read or written here, by whatever means.
  if (mmap(reinterpret_cast<void*>(address), mapped, PROT_NONE, MAP_SHARED | MAP_FIXED, descriptor,
           0) == MAP_FAILED)
    std::abort();
  memories[address] = {{address, bytes, next_id_++, device, owner},
                       mapped,
                       descriptor,
                       static_cast<std::byte*>(second),
                       is_import,
                       false};
  *base = address;
  return Result::ok;
}

void Machine::unmap(uintptr_t base) {
  const auto found = memories.find(base);
  const Memory& memory = found->second;
  munmap(memory.second, memory.mapped_bytes);
  if (mmap(reinterpret_cast<void*>(base), memory.mapped_bytes, PROT_NONE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
    std::abort();
  ::close(memory.descriptor);
  memories.erase(found);
}

Result Machine::reach(uintptr_t address, size_t bytes, std::byte** out, bool* is_host) {
  Memory* const memory = find(address);
  *is_host = memory == nullptr;
  if (memory == nullptr) {
    // Addresses of devices that are not in use.
    if (address - space_ < address_space) return Result::invalid;
    *out = reinterpret_cast<std::byte*>(address);
    return Result::ok;
  }
  const size_t offset = address - memory->allocation.base;
  if (bytes > memory->allocation.bytes - offset) return Result::invalid;
  *out = memory->second + offset;
  return Result::ok;
}

bool Machine::is_pinned(uintptr_t address, size_t bytes) const {
  auto next = pinned.upper_bound(address);
  if (next == pinned.begin()) return false;
  const auto& [base, length] = *std::prev(next);
  return address + bytes <= base + length;
}

bool Machine::loses_copy() {
  for (Setting& setting : settings_)
    if (std::strcmp(setting.name, "LOSE_AFTER") == 0 && setting.value != 0 && --setting.value == 0)
      is_lost = true;
  return is_lost;
}

void Machine::wait_until_empty(std::unique_lock<std::mutex>& held, Queue* queue) {
  changed.wait(held, [&] { return queue->work.empty() && !queue->is_busy; });
}

void Machine::work() {
  std::unique_lock held(lock);
  for (;;) {
    std::vector<Queue*> ready;
    for (const std::unique_ptr<Queue>& queue : queues)
      if (!queue->work.empty()) ready.push_back(queue.get());
    if (ready.empty()) {
      changed.wait(held);
      continue;
    }
    Queue& queue = *ready[random_() % ready.size()];
    const Work work = queue.work.front();
    queue.work.pop_front();
    if (work.event != nullptr) {
      work.event->ended = true;
      changed.notify_all();
      continue;
    }
    queue.is_busy = true;
    const uint64_t delay_us = random_() % (setting("DELAY_US") + 1);
    held.unlock();
    if (delay_us != 0) std::this_thread::sleep_for(std::chrono::microseconds(delay_us));
    std::memmove(work.to, work.from, work.bytes);
    held.lock();
    queue.is_busy = false;
    ++counts.copies;
    counts.copied_bytes += work.bytes;
    changed.notify_all();
  }
}

}  // namespace

int device_count() { return static_cast<int>(machine().setting("COUNT")); }

bool is_lost() {
  const std::lock_guard held(machine().lock);
  return machine().is_lost;
}

Result allocate(int device, size_t bytes, void* owner, uintptr_t* base) {
  Machine& all = machine();
  const std::lock_guard held(all.lock);
  if (all.is_lost) return Result::lost;
  if (bytes == 0 || device < 0 || device >= device_count()) return Result::invalid;
  if (all.setting("NO_MEMORY") != 0 || bytes > address_space) return Result::no_memory;
  const int descriptor = memfd_create("device memory", MFD_CLOEXEC);
  if (descriptor < 0) return Result::no_memory;
  Result result = Result::no_memory;
  if (ftruncate(descriptor, static_cast<off_t>(rounded(bytes))) == 0)
    result = all.map(device, bytes, descriptor, false, owner, base);
  if (result != Result::ok) ::close(descriptor);
  return result;
}

Result release(uintptr_t base) {
  Machine& all = machine();
  std::unique_lock held(all.lock);
  for (const std::unique_ptr<Queue>& queue : all.queues) all.wait_until_empty(held, queue.get());
  Memory* const memory = all.find(base);
  if (memory == nullptr || memory->allocation.base != base || memory->is_import)
    return Result::invalid;
  all.unmap(base);
  return Result::ok;
}

bool find(uintptr_t address, Allocation* out) {
  Machine& all = machine();
  const std::lock_guard held(all.lock);
  const Memory* const memory = all.find(address);
  ++all.counts.questions;
  if (memory == nullptr) return false;
  *out = memory->allocation;
  return true;
}

bool mark_managed(uintptr_t base) {
  Machine& all = machine();
  const std::lock_guard held(all.lock);
  Memory* const memory = all.find(base);
  if (memory == nullptr) return false;
  memory->is_managed = true;
  return mprotect(reinterpret_cast<void*>(base), memory->mapped_bytes, PROT_READ | PROT_WRITE) == 0;
}

bool is_managed(uintptr_t address) {
  Machine& all = machine();
  const std::lock_guard held(all.lock);
  const Memory* const memory = all.find(address);
  return memory != nullptr && memory->is_managed;
}

Queue* make_queue() {
  Machine& all = machine();
  const std::lock_guard held(all.lock);
  all.queues.push_back(std::make_unique<Queue>());
  return all.queues.back().get();
}

Event* make_event() {
  Machine& all = machine();
  const std::lock_guard held(all.lock);
  all.events.push_back(std::make_unique<Event>());
  return all.events.back().get();
}

Result copy(Queue* queue, uintptr_t to, uintptr_t from, size_t bytes) {
  Machine& all = machine();
  std::unique_lock held(all.lock);
  if (all.loses_copy()) return Result::lost;
  Work work;
  std::byte* source = nullptr;
  bool to_host = false;
  bool from_host = false;
  if (all.reach(to, bytes, &work.to, &to_host) != Result::ok ||
      all.reach(from, bytes, &source, &from_host) != Result::ok)
    return Result::invalid;
  if (const uint64_t rate = all.setting("MIB_PER_S"); rate != 0) {
    queue->ends =
        std::max(queue->ends, Clock::now()) +
        std::chrono::nanoseconds(all.setting("LATENCY_NS") + bytes * 1'000'000'000 / (rate << 20));
    return Result::ok;
  }
  work.from = source;
  work.bytes = bytes;
  queue->work.push_back(work);
  all.changed.notify_all();
  if ((to_host && !all.is_pinned(to, bytes)) || (from_host && !all.is_pinned(from, bytes))) {
    ++all.counts.unpinned;
    all.wait_until_empty(held, queue);
  }
  return Result::ok;
}

Result record(Queue* queue, Event* event) {
  Machine& all = machine();
  const std::lock_guard held(all.lock);
  if (all.is_lost) return Result::lost;
  event->ends = queue->ends;
  if (all.setting("MIB_PER_S") != 0) return Result::ok;
  event->ended = false;
  Work work;
  work.event = event;
  queue->work.push_back(work);
  all.changed.notify_all();
  return Result::ok;
}

Result state_of(Event* event) {
  Machine& all = machine();
  const std::lock_guard held(all.lock);
  if (all.is_lost) return Result::lost;
  return event->ended && Clock::now() >= event->ends ? Result::ok : Result::running;
}

Result wait(Queue* queue) {
  Machine& all = machine();
  std::unique_lock held(all.lock);
  all.wait_until_empty(held, queue);
  while (Clock::now() < queue->ends) continue;
  return all.is_lost ? Result::lost : Result::ok;
}

Result wait(Event* event) {
  Machine& all = machine();
  std::unique_lock held(all.lock);
  all.changed.wait(held, [&] { return event->ended; });
  return all.is_lost ? Result::lost : Result::ok;
}

Result pin(uintptr_t host, size_t bytes) {
  Machine& all = machine();
  const std::lock_guard held(all.lock);
  if (all.is_lost) return Result::lost;
  if (bytes == 0 || all.find(host) != nullptr) return Result::invalid;
  if (all.is_pinned(host, 1)) return Result::already;
  all.pinned[host] = bytes;
  return Result::ok;
}

Result unpin(uintptr_t host) {
  Machine& all = machine();
  const std::lock_guard held(all.lock);
  return all.pinned.erase(host) == 1 ? Result::ok : Result::invalid;
}

Result export_allocation(uintptr_t base, Handle* out) {
  Machine& all = machine();
  const std::lock_guard held(all.lock);
  if (all.is_lost) return Result::lost;
  if (all.setting("NO_EXPORT") != 0) return Result::unsupported;
  const Memory* const memory = all.find(base);
  struct stat status {};
  if (memory == nullptr || memory->is_import || fstat(memory->descriptor, &status) != 0)
    return Result::invalid;
  *out = {getpid(), memory->descriptor, status.st_ino, memory->allocation.bytes,
          memory->allocation.device};
  return Result::ok;
}

Result open(const Handle& handle, void* owner, uintptr_t* base) {
  Machine& all = machine();
  const std::lock_guard held(all.lock);
  if (all.is_lost) return Result::lost;
  if (all.setting("NO_PEER") != 0) return Result::no_peer;
  if (handle.process == getpid()) return Result::invalid;  // as the drivers do
  const int process = handle.process == this_process ? getpid() : handle.process;
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/fd/%d", process, handle.descriptor);
  const int descriptor = ::open(path, O_RDWR | O_CLOEXEC);
  if (descriptor < 0) return Result::invalid;
  // The number may be that of another file by now.
  struct stat status {};
  Result result = Result::invalid;
  if (fstat(descriptor, &status) == 0 && status.st_ino == handle.inode && handle.bytes != 0 &&
      status.st_size == static_cast<off_t>(rounded(handle.bytes)))
    result = all.map(handle.device, handle.bytes, descriptor, true, owner, base);
  if (result != Result::ok) ::close(descriptor);
  return result;
}

Result close(uintptr_t base) {
  Machine& all = machine();
  std::unique_lock held(all.lock);
  for (const std::unique_ptr<Queue>& queue : all.queues) all.wait_until_empty(held, queue.get());
  const Memory* const memory = all.find(base);
  if (memory == nullptr || memory->allocation.base != base || !memory->is_import)
    return Result::invalid;
  all.unmap(base);
  return Result::ok;
}

Result file_of(uintptr_t base, int* descriptor) {
  Machine& all = machine();
  const std::lock_guard held(all.lock);
  const Memory* const memory = all.find(base);
  if (memory == nullptr || memory->allocation.base != base) return Result::unsupported;
  *descriptor = fcntl(memory->descriptor, F_DUPFD_CLOEXEC, 3);
  return *descriptor < 0 ? Result::unsupported : Result::ok;
}

}  // namespace lintel::fake_devices

using lintel::fake_devices::machine;

bool fake_device_set(const char* name, uint64_t value) {
  const std::lock_guard held(machine().lock);
  return machine().set(name, value);
}

void* fake_device_view(const void* address) {
  const std::lock_guard held(machine().lock);
  std::byte* view = nullptr;
  bool is_host = false;
  const bool found = machine().reach(reinterpret_cast<uintptr_t>(address), 1, &view, &is_host) ==
                     lintel::fake_devices::Result::ok;
  return found && !is_host ? view : nullptr;
}

uint64_t fake_device_count(const char* name) {
  const std::lock_guard held(machine().lock);
  const auto memories = [](bool imports) {
    return static_cast<uint64_t>(
        std::count_if(machine().memories.begin(), machine().memories.end(),
                      [&](const auto& memory) { return memory.second.is_import == imports; }));
  };
  const std::pair<const char*, uint64_t> counts[] = {
      {"allocations", memories(false)},
      {"imports", memories(true)},
      {"pinned", machine().pinned.size()},
      {"copies", machine().counts.copies},
      {"copied_bytes", machine().counts.copied_bytes},
      {"unpinned", machine().counts.unpinned},
      {"questions", machine().counts.questions}};
  for (const auto& [known, count] : counts)
    if (std::strcmp(known, name) == 0) return count;
  return ~uint64_t{0};
}
