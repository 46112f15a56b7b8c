// Registered memory: what a transport with remote memory access needs before a device may touch
// memory of the application, and the cache that saves most of the effort. Abstract, so that modules
// can use it: the implementation (src/registration) is in the main library. Message path: acquire()
// of memory that is registered already, release(). The first acquire() of a piece of memory
// registers it and takes as long as the device and the kernel need.
#pragma once

#include <cerrno>
#include <cstdint>
#include <memory>
#include <string>

#include "util/descriptor.h"

namespace lintel {

// The key of a device for one piece of registered memory.
struct Registration {
  uint32_t lkey = 0;
  void* handle = nullptr;  // the registrar's own, such as an ibv_mr
};

// A range of memory of an accelerator, for one registration.
struct AcceleratorRange {
  void* address = nullptr;
  uint64_t length = 0;  // bytes; 0: the device does not register this memory
  Descriptor dmabuf;    // not open: its driver gives none
  uint64_t offset = 0;  // of the range in the dmabuf
};

// Returns advice about the limit of locked memory, which registration runs into: "the limit of
// locked memory (RLIMIT_MEMLOCK) is 8192 KiB for this process: raise it with ...". Set-up path.
[[nodiscard, gnu::visibility("default")]] std::string locked_memory_advice();

// A protection domain of a device. All functions may be called by any thread, several at once, and
// by threads of the cache; they may allocate memory and may not call the cache. They are called
// without any lock of the cache, but for that of the memory of accelerators.
class Registrar {
 public:
  // Makes [address, address + length) accessible to the device, for writing as well if `writable`,
  // and fills `registration`. Returns 0 or the errno: EFAULT when some of it is not mapped, or not
  // with these rights; ENOMEM when the limit of locked memory is in the way.
  [[nodiscard]] virtual int register_memory(void* address, uint64_t length, bool writable,
                                            Registration& registration) noexcept = 0;
  // The same for memory of an accelerator, always for writing.
  [[nodiscard]] virtual int register_accelerator(const AcceleratorRange& /*range*/,
                                                 Registration& /*registration*/) noexcept {
    return EOPNOTSUPP;
  }
  virtual void deregister_memory(Registration& registration) noexcept = 0;

 protected:
  ~Registrar() = default;
};

// A piece of registered memory, in whole pages or a whole allocation of an accelerator; often
// larger than requested.
struct RegisteredRegion {
  uint64_t address = 0;
  uint64_t length = 0;
  bool writable = false;
  bool of_accelerator = false;
  Registration registration;
};

// The registered memory of one registrar. Any thread.
class RegisteredMemory {
 public:
  // Deregisters everything. No operation of the device may be under way any more, and nobody may
  // hold a region. The registrar must still exist.
  virtual ~RegisteredMemory() = default;

  // A region that contains [address, address + length), registered for writing as well if
  // `writable` (it may be in any case). It stays registered, with the pages that it has now, until
  // it is given to release(), as often as it was acquired. nullptr: `error` is the errno; EFAULT:
  // some of the memory is not there. A fault that only the administrator can mend (the limit of
  // locked memory) is logged once. The caller must know that the application keeps this memory
  // mapped until release(), as it must for memory of operations under way; if not, the device moves
  // bytes of pages that are mapped nowhere.
  [[nodiscard]] virtual const RegisteredRegion* acquire(const void* address, uint64_t length,
                                                        bool writable, int& error) noexcept = 0;
  // Ends the use of a region. It is deregistered here, with a system call, only if it could not be
  // kept.
  virtual void release(const RegisteredRegion* region) noexcept = 0;

  // For registrations that the caller makes itself. False: memory of the host.
  [[nodiscard]] virtual bool find_accelerator(const void* address, uint64_t length,
                                              AcceleratorRange* out) noexcept = 0;
  // Deregisters memory of accelerators that the program has freed; looks at most ten times a
  // second. Returns whether some is registered. Then the caller calls again soon: as long as memory
  // is registered, its device does not give it to others.
  virtual bool end_freed() noexcept = 0;
};

struct RegistrationCounters {
  uint64_t hits = 0;         // look-ups served without registering
  uint64_t misses = 0;       // memory registered and kept
  uint64_t single_uses = 0;  // memory registered for one operation, as it cannot be watched or kept
  uint64_t evictions = 0;    // deregistered to make room
  uint64_t invalidations = 0;  // deregistered because the application unmapped or discarded memory
  uint64_t failures = 0;       // acquire() that returned nullptr
  uint64_t regions = 0;        // kept now
  uint64_t bytes = 0;          // kept now
};

// The registration cache of a process, for all its transports.
class RegistrationCache {
 public:
  // Set-up path. The registrar must live as long as what is returned. nullptr: no memory.
  [[nodiscard]] virtual std::unique_ptr<RegisteredMemory> attach(Registrar& registrar) noexcept = 0;
  [[nodiscard]] virtual RegistrationCounters counters() const noexcept = 0;

 protected:
  ~RegistrationCache() = default;
};

}  // namespace lintel
