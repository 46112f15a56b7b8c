// Initialisation and its end, forks, aborts. Set-up path.
#include "core/library/library.h"

#include <pthread.h>
#include <sys/mman.h>

#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>

#include "core/library/status_registers.h"
#include "core/operations/triggered_execution.h"
#include "core/progress/long_call.h"
#include "core/progress/wait.h"
#include "util/assert.h"
#include "util/asymmetric_fence.h"
#include "util/config.h"
#include "util/guarded_memory.h"
#include "util/job_key.h"
#include "util/local_rank.h"
#include "util/lock.h"
#include "util/log.h"
#include "util/never_destroyed.h"
#include "util/node_identity.h"
#include "util/prefault.h"

namespace lintel {

namespace library_detail {
constinit ProcessPage process{};
std::atomic<const ptl_lintel_hooks_t*> hooks{nullptr};
}  // namespace library_detail

namespace {

using library_detail::process;

// A physical interface is found by its number; PTL_IFACE_DEFAULT is number 0.
static_assert(physical_interfaces == interface_table_size / logical_interfaces);

struct Logical {
  Logical(PhysicalInterface& physical, unsigned slot, unsigned index, uint8_t incarnation) noexcept
      : interface(physical, physical.initiator(), physical.id(), slot, static_cast<uint8_t>(index),
                  incarnation) {
    interface.set_executor(triggers);
  }
  static void* operator new(size_t bytes, std::align_val_t alignment) {
    void* const memory = ::operator new(bytes, alignment);
    prefault(memory, bytes);
    return memory;
  }
  static void operator delete(void* memory, std::align_val_t alignment) noexcept {
    ::operator delete(memory, alignment);
  }
  NetworkInterface interface;
  TriggeredExecution triggers{interface};
};

struct Library {
  Mutex mutex;
  unsigned references LINTEL_GUARDED_BY(mutex) = 0;
  bool finalized LINTEL_GUARDED_BY(mutex) = false;
  // PtlInit was called in this process, or in one that it inherits from.
  std::atomic<bool> used{false};
  std::unique_ptr<PhysicalInterface> physical[physical_interfaces];
  std::unique_ptr<Logical> logical[interface_table_size];
  uint8_t incarnations[interface_table_size] = {};
};

// Never destroyed: threads may still be in the library while static objects go.
Library* library() noexcept {
  static NeverDestroyed<Library> instance;
  return &instance.get();
}

// A child has none of its parent's resources and may call PtlInit (spec 3.5). The parent's objects
// stay as they are: their threads do not exist in the child, and their segments are the parent's.
void abandon_in_child() noexcept LINTEL_UNCHECKED_LOCKS {
  LongCalls::forget_other_threads();
  Library* old = library();
  process.initialized.store(false, std::memory_order_relaxed);
  portals_aborted.store(false, std::memory_order_relaxed);
  for (auto& entry : process.interface_table) entry.store(nullptr, std::memory_order_relaxed);
  for (auto& entry : process.wakeable) entry.store(nullptr, std::memory_order_relaxed);
  for (auto& logical : old->logical) static_cast<void>(logical.release());
  for (auto& physical : old->physical) static_cast<void>(physical.release());
  old->references = 0;
  old->finalized = false;
  old->used.store(false, std::memory_order_relaxed);
  new (&old->mutex) Mutex;  // a thread of the parent may have held it
}

void install_fork_handler() noexcept {
  static std::once_flag once;
  std::call_once(once, [] { pthread_atfork(nullptr, nullptr, &abandon_in_child); });
}

// Opening an interface takes about so much of the heap.
void prefault_heap() noexcept {
  constexpr size_t bytes = size_t{40} << 10;
  void* const memory = std::malloc(bytes);
  if (memory != nullptr) prefault(memory, bytes);
  std::free(memory);
}

// Whether _Fork() or clone() has made this process from one that has used the library. Its objects
// are the parent's, and the parent's threads may have held any lock then. Takes no lock.
bool is_bare_child(const Library& lib) noexcept {
  return lib.used.load(std::memory_order_acquire) && !process.used.load(std::memory_order_acquire);
}

// False: the kernel does not offer this (it needs Linux 4.14), or its pages are longer than
// expected.
[[nodiscard]] bool keep_from_children(ProcessPage& page) noexcept {
  LINTEL_ASSERT(reinterpret_cast<uintptr_t>(&page) % process_page_bytes == 0);
  return process_page_bytes % system_page_bytes() == 0 &&
         madvise(&page, process_page_bytes, MADV_WIPEONFORK) == 0;
}

void note_use(Library& lib) noexcept {
  if (lib.used.load(std::memory_order_relaxed)) return;
  process.used.store(true, std::memory_order_release);
  if (!keep_from_children(process))
    log_message(LogLevel::info,
                "children that _Fork() or clone() makes must not call Portals: the kernel has no "
                "MADV_WIPEONFORK");
  lib.used.store(true, std::memory_order_release);
}

void close_physical(Library& lib, unsigned number) noexcept {
  process.wakeable[number].store(nullptr, std::memory_order_release);
  lib.physical[number]->close();
  if (config_bool(ConfigKey::stats)) report_statistics(*lib.physical[number]);
  lib.physical[number].reset();
}

bool any_logical(const Library& lib, unsigned number) noexcept {
  for (unsigned slot = 0; slot < logical_interfaces; ++slot)
    if (lib.logical[number * logical_interfaces + slot] != nullptr) return true;
  return false;
}

void close_logical(Library& lib, unsigned index) noexcept {
  NetworkInterface& interface = lib.logical[index]->interface;
  if (const ptl_lintel_hooks_t* hooks = interface_hooks(); hooks != nullptr)
    hooks->closed(interface.handle());
  process.interface_table[index].store(nullptr, std::memory_order_release);
  LongCalls::await_calls(index, logical_interfaces, interface.physical().poller());
  interface.physical().set_logical(interface.slot(), nullptr);
  lib.logical[index].reset();
  const unsigned number = index / logical_interfaces;
  if (!any_logical(lib, number)) close_physical(lib, number);
}

}  // namespace

bool library_was_used() noexcept { return library()->used.load(std::memory_order_acquire); }

int initialize_library() noexcept {
  install_fork_handler();
  Library& lib = *library();
  if (is_bare_child(lib)) {
    log_message(LogLevel::error,
                "PtlInit in a child that _Fork() or clone() made of a process with Portals: use "
                "fork(), or execute a program");
    return PTL_FAIL;
  }
  const LockGuard guard(lib.mutex);
  if (lib.finalized) {
    log_message(LogLevel::error,
                "PtlInit after the last PtlFini: a process can use Portals only once (3.5.1)");
    return PTL_FAIL;
  }
  if (lib.references++ != 0) return PTL_OK;
  find_standard_error();
  try {
    config_reload();
    set_log_level(static_cast<LogLevel>(config_choice(ConfigKey::log_level)));
    const std::optional<uint32_t> rank = find_job_rank();
    set_log_speaker(host_name().c_str(), rank ? std::to_string(*rank).c_str() : "");
    // Continuing without a requested key would open the process to those that it keeps out.
    if (!settle_job_key()) {
      lib.references = 0;
      return PTL_FAIL;
    }
  } catch (...) {
    lib.references = 0;
    return PTL_FAIL;
  }
  if (!register_asymmetric_fence())
    log_message(LogLevel::info,
                "no expedited membarrier here: every message pays for a full fence");
  if (config_bool(ConfigKey::segv_handler)) install_fault_handler();
  portals_aborted.store(false, std::memory_order_relaxed);
  note_use(lib);
  process.initialized.store(true, std::memory_order_release);
  return PTL_OK;
}

void finalize_library() noexcept {
  Library& lib = *library();
  if (is_bare_child(lib)) return;
  const LockGuard guard(lib.mutex);
  if (lib.references == 0 || --lib.references != 0) return;
  process.initialized.store(false, std::memory_order_release);
  for (unsigned index = 0; index < interface_table_size; ++index)
    if (lib.logical[index] != nullptr) close_logical(lib, index);
  lib.finalized = true;
}

void abort_waiting() noexcept {
  portals_aborted.store(true, std::memory_order_seq_cst);
  for (const auto& entry : process.wakeable)
    if (PhysicalInterface* physical = entry.load(std::memory_order_acquire); physical != nullptr)
      physical->poller().gate().wake_all();
}

int set_job_key(std::string key) noexcept {
  Library& lib = *library();
  if (is_bare_child(lib)) return PTL_NO_INIT;
  const LockGuard guard(lib.mutex);
  for (const auto& physical : lib.physical)
    if (physical != nullptr) return PTL_IN_USE;
  try {
    choose_job_key(std::move(key));
  } catch (...) {
    return PTL_NO_SPACE;
  }
  return PTL_OK;
}

int open_interface(uint32_t number, unsigned slot, uint32_t pid, const ptl_ni_limits_t* desired,
                   OpenTransports open_transports, NetworkInterface** interface) noexcept {
  if (number == PTL_IFACE_DEFAULT) number = 0;
  if (number >= physical_interfaces) return PTL_ARG_INVALID;
  Library& lib = *library();
  const LockGuard guard(lib.mutex);
  if (lib.references == 0) return PTL_NO_INIT;
  const unsigned index = number * logical_interfaces + slot;
  if (lib.logical[index] != nullptr) {
    // All calls that open the interface share the first one, whatever pid is requested (spec
    // 3.6.2).
    *interface = &lib.logical[index]->interface;
    ++(*interface)->references;
    return PTL_OK;
  }
  if (pid != PTL_PID_ANY && pid >= PTL_PID_MAX) return PTL_ARG_INVALID;
  try {
    if (lib.physical[number] == nullptr) {
      prefault_heap();
      auto physical = std::make_unique<PhysicalInterface>();
      if (const int code = physical->open(number, pid, open_transports); code != PTL_OK)
        return code;
      lib.physical[number] = std::move(physical);
      process.wakeable[number].store(lib.physical[number].get(), std::memory_order_release);
    } else if (pid != PTL_PID_ANY && pid != lib.physical[number]->id().pid) {
      // All interfaces over one physical interface share its pid (spec 3.6), and that is taken.
      return PTL_PID_IN_USE;
    }
    auto logical =
        std::make_unique<Logical>(*lib.physical[number], slot, index, ++lib.incarnations[index]);
    const int code = logical->interface.open(desired);
    if (code != PTL_OK) {
      if (!any_logical(lib, number)) close_physical(lib, number);
      return code;
    }
    logical->interface.references = 1;
    lib.logical[index] = std::move(logical);
  } catch (...) {
    return PTL_NO_SPACE;
  }
  *interface = &lib.logical[index]->interface;
  process.interface_table[index].store(*interface, std::memory_order_release);
  (*interface)->physical().set_logical(slot, *interface);
  return PTL_OK;
}

int close_interface(ptl_handle_ni_t handle) noexcept {
  Library& lib = *library();
  const LockGuard guard(lib.mutex);
  NetworkInterface* interface = find_interface(handle);
  if (interface == nullptr) return PTL_ARG_INVALID;
  if (--interface->references != 0) return PTL_OK;
  close_logical(lib, decode_handle(handle).interface_index);
  return PTL_OK;
}

}  // namespace lintel
