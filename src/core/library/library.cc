// Initialisation and its end, forks, aborts. Set-up path.
#include "core/library/library.h"

#include <pthread.h>

#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>

#include "core/library/status_registers.h"
#include "core/operations/triggered_execution.h"
#include "core/progress/wait.h"
#include "util/asymmetric_fence.h"
#include "util/config.h"
#include "util/guarded_memory.h"
#include "util/job_key.h"
#include "util/local_rank.h"
#include "util/log.h"
#include "util/never_destroyed.h"
#include "util/node_identity.h"
#include "util/prefault.h"

namespace lintel {

namespace library_detail {
std::atomic<bool> initialized{false};
std::atomic<NetworkInterface*> interface_table[interface_table_size] = {};
std::atomic<const ptl_lintel_hooks_t*> hooks{nullptr};
}  // namespace library_detail

namespace {

using library_detail::interface_table;

// A physical interface is found by its number; PTL_IFACE_DEFAULT is number 0.
constexpr unsigned physical_interfaces = interface_table_size / logical_interfaces;

struct Logical {
  Logical(PhysicalInterface& physical, unsigned slot, unsigned index, uint8_t incarnation) noexcept
      : interface(physical, physical.id(), slot, static_cast<uint8_t>(index), incarnation) {
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
  std::mutex mutex;
  unsigned references = 0;
  bool finalized = false;
  std::unique_ptr<PhysicalInterface> physical[physical_interfaces];
  // Physical interfaces that PtlAbort must wake, for use in signal handlers.
  std::atomic<PhysicalInterface*> wakeable[physical_interfaces] = {};
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
void abandon_in_child() noexcept {
  Library* old = library();
  library_detail::initialized.store(false, std::memory_order_relaxed);
  portals_aborted.store(false, std::memory_order_relaxed);
  for (auto& entry : interface_table) entry.store(nullptr, std::memory_order_relaxed);
  for (auto& entry : old->wakeable) entry.store(nullptr, std::memory_order_relaxed);
  for (auto& logical : old->logical) static_cast<void>(logical.release());
  for (auto& physical : old->physical) static_cast<void>(physical.release());
  old->references = 0;
  old->finalized = false;
  new (&old->mutex) std::mutex;  // a thread of the parent may have held it
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

void close_physical(Library& lib, unsigned number) noexcept {
  lib.wakeable[number].store(nullptr, std::memory_order_release);
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
  interface_table[index].store(nullptr, std::memory_order_release);
  interface.physical().set_logical(interface.slot(), nullptr);
  lib.logical[index].reset();
  const unsigned number = index / logical_interfaces;
  if (!any_logical(lib, number)) close_physical(lib, number);
}

}  // namespace

int initialize_library() noexcept {
  install_fork_handler();
  Library& lib = *library();
  std::lock_guard guard(lib.mutex);
  if (lib.finalized) {
    log_message(LogLevel::error,
                "PtlInit after the last PtlFini: a process can use Portals only once (3.5.1)");
    return PTL_FAIL;
  }
  if (lib.references++ != 0) return PTL_OK;
  try {
    config_reload();
    set_log_level(static_cast<LogLevel>(config_choice(ConfigKey::log_level)));
    const std::optional<uint32_t> rank = find_job_rank();
    set_log_speaker(host_name().c_str(), rank ? std::to_string(*rank).c_str() : "");
    // Going on without a key that was asked for would open the process to those that it keeps out.
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
  library_detail::initialized.store(true, std::memory_order_release);
  return PTL_OK;
}

void finalize_library() noexcept {
  Library& lib = *library();
  std::lock_guard guard(lib.mutex);
  if (lib.references == 0 || --lib.references != 0) return;
  library_detail::initialized.store(false, std::memory_order_release);
  for (unsigned index = 0; index < interface_table_size; ++index)
    if (lib.logical[index] != nullptr) close_logical(lib, index);
  lib.finalized = true;
}

void abort_waiting() noexcept {
  portals_aborted.store(true, std::memory_order_seq_cst);
  for (const auto& entry : library()->wakeable)
    if (PhysicalInterface* physical = entry.load(std::memory_order_acquire); physical != nullptr)
      physical->poller().gate().wake_all();
}

int set_job_key(std::string key) noexcept {
  Library& lib = *library();
  std::lock_guard guard(lib.mutex);
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
  std::lock_guard guard(lib.mutex);
  if (lib.references == 0) return PTL_NO_INIT;
  const unsigned index = number * logical_interfaces + slot;
  if (lib.logical[index] != nullptr) {
    // All who open the interface share the first one's, whatever pid is asked for (spec 3.6.2).
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
      lib.wakeable[number].store(lib.physical[number].get(), std::memory_order_release);
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
  interface_table[index].store(*interface, std::memory_order_release);
  (*interface)->physical().set_logical(slot, *interface);
  return PTL_OK;
}

int close_interface(ptl_handle_ni_t handle) noexcept {
  Library& lib = *library();
  std::lock_guard guard(lib.mutex);
  NetworkInterface* interface = find_interface(handle);
  if (interface == nullptr) return PTL_ARG_INVALID;
  if (--interface->references != 0) return PTL_OK;
  close_logical(lib, decode_handle(handle).interface_index);
  return PTL_OK;
}

}  // namespace lintel
