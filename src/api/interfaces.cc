// Network interfaces, maps and identifiers (spec 3.6, 3.8, 3.9, 3.17, 3.18). Set-up path.
#include <algorithm>
#include <bit>
#include <mutex>

#include "api/resolve.h"
#include "core/library/status_registers.h"
#include "portals4.h"
#include "util/without_cancellation.h"
#include "wiring/registry.h"

using namespace lintel;
using namespace lintel::api;

namespace {

bool slot_of(unsigned options, unsigned* slot) noexcept {
  constexpr unsigned matching = PTL_NI_MATCHING | PTL_NI_NO_MATCHING;
  constexpr unsigned addressing = PTL_NI_LOGICAL | PTL_NI_PHYSICAL;
  if ((options & ~(matching | addressing)) != 0 || std::popcount(options & matching) != 1 ||
      std::popcount(options & addressing) != 1)
    return false;
  *slot = ((options & PTL_NI_MATCHING) != 0 ? slot_matching : 0) |
          ((options & PTL_NI_LOGICAL) != 0 ? slot_logical : 0);
  return true;
}

// The object behind a handle of any type exists.
bool object_exists(NetworkInterface& interface, uint64_t handle) noexcept {
  const HandleFields fields = decode_handle(handle);
  switch (fields.type) {
    case HandleType::interface:
      return fields.index == 0 && fields.generation == 0;
    case HandleType::memory_descriptor:
      return interface.find_descriptor(handle) != nullptr;
    case HandleType::counter:
      return interface.find_counter(handle) != nullptr;
    case HandleType::event_queue:
      return interface.find_event_queue(handle) != nullptr;
    case HandleType::entry: {
      const ListEntry* entry = interface.entry_slot(fields.index);
      return entry != nullptr && generation_is_live(fields.generation) &&
             (entry->generation.load(std::memory_order_acquire) & handle_generation_mask) ==
                 fields.generation;
    }
  }
  return false;
}

}  // namespace

extern "C" {

int PtlNIInit(ptl_interface_t iface, unsigned int options, ptl_pid_t pid,
              const ptl_ni_limits_t* desired, ptl_ni_limits_t* actual,
              ptl_handle_ni_t* ni_handle) noexcept {
  const WithoutCancellation scope;
  if (!library_is_initialized()) return PTL_NO_INIT;
  unsigned slot = 0;
  if (ni_handle == nullptr || !slot_of(options, &slot)) return PTL_ARG_INVALID;
  const ptl_lintel_hooks_t* const hooks = interface_hooks();
  if (hooks != nullptr) {
    if (const int code = hooks->opening(iface, options, &pid); code != PTL_OK) return code;
  }
  NetworkInterface* interface = nullptr;
  int code = open_interface(iface, slot, pid, desired, open_configured_transports, &interface);
  if (hooks != nullptr) {
    const int verdict =
        hooks->opened(code == PTL_OK ? interface->handle() : PTL_INVALID_HANDLE, code);
    if (code == PTL_OK && verdict != PTL_OK) {
      static_cast<void>(close_interface(interface->handle()));
      code = verdict;
    }
  }
  if (code != PTL_OK) return code;
  if (actual != nullptr) *actual = interface->limits();
  *ni_handle = interface->handle();
  return PTL_OK;
}

int PtlNIFini(ptl_handle_ni_t ni_handle) noexcept {
  const WithoutCancellation scope;
  if (!library_is_initialized()) return PTL_NO_INIT;
  return close_interface(ni_handle);
}

int PtlNIStatus(ptl_handle_ni_t ni_handle, ptl_sr_index_t status_register,
                ptl_sr_value_t* status) noexcept {
  NetworkInterface* interface = find_interface(ni_handle);
  if (interface == nullptr || status == nullptr) return code_of_bad_handle();
  return read_status_register(*interface, status_register, status) ? PTL_OK : PTL_ARG_INVALID;
}

int PtlNIHandle(ptl_handle_any_t handle, ptl_handle_ni_t* ni_handle) noexcept {
  const HandleFields fields = decode_handle(handle);
  NetworkInterface* interface = interface_of(fields);
  if (interface == nullptr || ni_handle == nullptr || !object_exists(*interface, handle))
    return code_of_bad_handle();
  *ni_handle = interface->handle();
  return PTL_OK;
}

int PtlSetMap(ptl_handle_ni_t ni_handle, ptl_size_t map_size,
              const ptl_process_t* mapping) noexcept {
  const WithoutCancellation scope;
  NetworkInterface* interface = find_interface(ni_handle);
  if (interface == nullptr || !interface->logical() || map_size == 0 || map_size >= PTL_RANK_ANY ||
      mapping == nullptr)
    return code_of_bad_handle();
  std::lock_guard guard(interface->setup_mutex);
  return interface->map.set(mapping, map_size, interface->physical().id()) ? PTL_OK : PTL_NO_SPACE;
}

int PtlGetMap(ptl_handle_ni_t ni_handle, ptl_size_t map_size, ptl_process_t* mapping,
              ptl_size_t* actual_map_size) noexcept {
  NetworkInterface* interface = find_interface(ni_handle);
  if (interface == nullptr || !interface->logical() || actual_map_size == nullptr ||
      (mapping == nullptr && map_size != 0))
    return code_of_bad_handle();
  if (!interface->map.is_set()) return PTL_IGNORED;
  const ptl_size_t size = interface->map.size();
  *actual_map_size = size;
  for (ptl_size_t rank = 0; rank < std::min(map_size, size); ++rank) {
    ProcessId id{};
    if (!interface->map.find(static_cast<uint32_t>(rank), &id)) break;
    mapping[rank].phys.nid = id.nid;
    mapping[rank].phys.pid = id.pid;
  }
  return PTL_OK;
}

int PtlGetUid(ptl_handle_ni_t ni_handle, ptl_uid_t* uid) noexcept {
  NetworkInterface* interface = find_interface(ni_handle);
  if (interface == nullptr || uid == nullptr) return code_of_bad_handle();
  *uid = interface->physical().uid();
  return PTL_OK;
}

int PtlGetId(ptl_handle_ni_t ni_handle, ptl_process_t* id) noexcept {
  NetworkInterface* interface = find_interface(ni_handle);
  if (interface == nullptr || id == nullptr) return code_of_bad_handle();
  // The rank is not known before the map is (spec 3.6.6).
  if (interface->logical() && !interface->map.is_set()) return PTL_ARG_INVALID;
  *id = interface->own_id();
  return PTL_OK;
}

int PtlGetPhysId(ptl_handle_ni_t ni_handle, ptl_process_t* id) noexcept {
  NetworkInterface* interface = find_interface(ni_handle);
  if (interface == nullptr || id == nullptr) return code_of_bad_handle();
  id->phys.nid = interface->physical().id().nid;
  id->phys.pid = interface->physical().id().pid;
  return PTL_OK;
}

// Bundling has nothing to defer: every operation is written to its queue at once, without barriers
// that a bundle could save (spec 3.17, implementation note 17). The calls are checked and counted.
int PtlStartBundle(ptl_handle_ni_t ni_handle) noexcept {
  NetworkInterface* interface = find_interface(ni_handle);
  if (interface == nullptr) return code_of_bad_handle();
  interface->bundles.fetch_add(1, std::memory_order_relaxed);
  return PTL_OK;
}

int PtlEndBundle(ptl_handle_ni_t ni_handle) noexcept {
  NetworkInterface* interface = find_interface(ni_handle);
  if (interface == nullptr) return code_of_bad_handle();
  uint32_t open = interface->bundles.load(std::memory_order_relaxed);
  do {
    if (open == 0) return PTL_ARG_INVALID;  // no bundle was started
  } while (!interface->bundles.compare_exchange_weak(open, open - 1, std::memory_order_relaxed));
  return PTL_OK;
}

int PtlHandleIsEqual(ptl_handle_any_t handle1, ptl_handle_any_t handle2) noexcept {
  return handle1 == handle2 ? 1 : 0;
}

}  // extern "C"
