// Initialization, network interfaces, maps and identifiers (spec 3.5, 3.6, 3.8, 3.9, 3.17, 3.18).
// Set-up path.
#include <algorithm>
#include <atomic>
#include <bit>

#include "api/refusal.h"
#include "api/resolve.h"
#include "core/library/library.h"
#include "core/library/status_registers.h"
#include "memory_kind/memory_kind.h"
#include "portals4.h"
#include "util/lock.h"
#include "util/log.h"
#include "util/node_identity.h"
#include "util/without_cancellation.h"
#include "wiring/registry.h"

using namespace lintel;
using namespace lintel::api;

namespace {

constexpr Call ni_init{"PtlNIInit", "spec 3.6.2", true};
constexpr Call ni_fini{"PtlNIFini", "spec 3.6.3"};
constexpr Call ni_status{"PtlNIStatus", "spec 3.6.4"};
constexpr Call ni_handle_of{"PtlNIHandle", "spec 3.6.5"};
constexpr Call set_map{"PtlSetMap", "spec 3.6.6"};
constexpr Call get_map{"PtlGetMap", "spec 3.6.7", true};
constexpr Call get_uid{"PtlGetUid", "spec 3.8.1"};
constexpr Call get_id{"PtlGetId", "spec 3.9.2"};
constexpr Call get_phys_id{"PtlGetPhysId", "spec 3.9.3", true};
constexpr Call start_bundle{"PtlStartBundle", "spec 3.17.1"};
constexpr Call end_bundle{"PtlEndBundle", "spec 3.17.2"};

// Reports the refusal by open_interface(), with the argument concerned.
int refuse_interface(int code, ptl_interface_t iface, ptl_pid_t pid) noexcept {
  switch (code) {
    case PTL_ARG_INVALID:
      return pid != PTL_PID_ANY && pid >= PTL_PID_MAX
                 ? refuse(code, ni_init, "pid", pid, "must be PTL_PID_ANY or below PTL_PID_MAX")
                 : refuse(code, ni_init, "iface", iface, "must name an interface (ptl_info)");
    case PTL_PID_IN_USE:
      return refuse(code, ni_init, "pid", pid,
                    "must be free on this node, and the same for all interfaces over one network");
    case PTL_NO_INIT:
      return refuse_before_init(ni_init);
    case PTL_FAIL:
      return refuse(code, ni_init, "iface", iface, "cannot be opened; a line above says why");
    default:
      return refuse(code, ni_init, "iface", iface,
                    "memory, a device or a thread is missing; a line above may say which");
  }
}

// Legal, but what is meant for another process comes back (spec 2.3: a nid names one node).
void warn_of_own_ranks(const RankMap& map, ProcessId own) noexcept {
  const uint32_t second = map.second_own_rank();
  if (second == PTL_RANK_ANY) return;
  static std::atomic<bool> said{false};
  log_once(said, LogLevel::warn,
           "PtlSetMap: ranks %u and %u are both this process, %s, which gets the messages for "
           "either. If they are processes of two nodes, both nodes have this nid: set PTL_NID on "
           "each (ptl_info shows it)",
           map.own_rank(), second, ProcessText(own.nid, own.pid).c_str());
}

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

}  // namespace

extern "C" {

int PtlInit(void) noexcept {
  const WithoutCancellation scope;
  return initialize_library();
}

void PtlFini(void) noexcept {
  const WithoutCancellation scope;
  finalize_library();
}

void PtlAbort(void) noexcept { abort_waiting(); }

int PtlNIInit(ptl_interface_t iface, unsigned int options, ptl_pid_t pid,
              const ptl_ni_limits_t* desired, ptl_ni_limits_t* actual,
              ptl_handle_ni_t* ni_handle) noexcept {
  const WithoutCancellation scope;
  if (!library_is_initialized()) return refuse_before_init(ni_init);
  unsigned slot = 0;
  if (ni_handle == nullptr) return refuse_null(ni_init, "ni_handle");
  look_for_drivers();
  if (!slot_of(options, &slot))
    return refuse_bits(PTL_ARG_INVALID, ni_init, "options", options,
                       "must be one of PTL_NI_MATCHING and PTL_NI_NO_MATCHING, with one of "
                       "PTL_NI_LOGICAL and PTL_NI_PHYSICAL");
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
  if (code != PTL_OK) return refuse_interface(code, iface, pid);
  if (actual != nullptr) *actual = interface->limits();
  *ni_handle = interface->handle();
  return PTL_OK;
}

int PtlNIFini(ptl_handle_ni_t ni_handle) noexcept {
  const WithoutCancellation scope;
  if (!library_is_initialized()) return refuse_before_init(ni_fini);
  const int code = close_interface(ni_handle);
  return code == PTL_OK ? code : refuse_interface_handle(ni_fini, ni_handle);
}

int PtlNIStatus(ptl_handle_ni_t ni_handle, ptl_sr_index_t status_register,
                ptl_sr_value_t* status) noexcept {
  const LongCall call(interface_index_of(ni_handle));
  NetworkInterface* interface = find_interface(ni_handle);
  if (interface == nullptr) return refuse_interface_handle(ni_status, ni_handle);
  if (status == nullptr) return refuse_null(ni_status, "status");
  if (!read_status_register(*interface, status_register, status))
    return refuse(PTL_ARG_INVALID, ni_status, "status_register", status_register,
                  "must be a register of 3.3.7 or portals4_lintel.h");
  return PTL_OK;
}

int PtlNIHandle(ptl_handle_any_t handle, ptl_handle_ni_t* ni_handle) noexcept {
  const HandleFields fields = decode_handle(handle);
  NetworkInterface* interface = interface_of(fields);
  if (interface == nullptr || !object_exists(*interface, handle))
    return refuse_handle(ni_handle_of, "handle", handle, fields.type);
  if (ni_handle == nullptr) return refuse_null(ni_handle_of, "ni_handle");
  *ni_handle = interface->handle();
  return PTL_OK;
}

int PtlSetMap(ptl_handle_ni_t ni_handle, ptl_size_t map_size,
              const ptl_process_t* mapping) noexcept {
  const LongCall call(interface_index_of(ni_handle));
  const WithoutCancellation scope;
  NetworkInterface* interface = find_interface(ni_handle);
  if (interface == nullptr) return refuse_interface_handle(set_map, ni_handle);
  if (!interface->logical())
    return refuse_bits(PTL_ARG_INVALID, set_map, "ni_handle", ni_handle, logical_only);
  if (map_size == 0 || map_size >= PTL_RANK_ANY)
    return refuse(PTL_ARG_INVALID, set_map, "map_size", map_size,
                  "must be 1 or more, and below PTL_RANK_ANY");
  if (mapping == nullptr) return refuse_null(set_map, "mapping");
  const LockGuard guard(interface->setup_mutex);
  if (!interface->map.set(mapping, map_size, interface->physical().id()))
    return refuse(PTL_NO_SPACE, set_map, "map_size", map_size, "there is no memory for the map");
  warn_of_own_ranks(interface->map, interface->physical().id());
  return PTL_OK;
}

int PtlGetMap(ptl_handle_ni_t ni_handle, ptl_size_t map_size, ptl_process_t* mapping,
              ptl_size_t* actual_map_size) noexcept {
  const LongCall call(interface_index_of(ni_handle));
  NetworkInterface* interface = find_interface(ni_handle);
  if (interface == nullptr) return refuse_interface_handle(get_map, ni_handle);
  if (!interface->logical())
    return refuse_bits(PTL_ARG_INVALID, get_map, "ni_handle", ni_handle, logical_only);
  if (actual_map_size == nullptr) return refuse_null(get_map, "actual_map_size");
  if (mapping == nullptr && map_size != 0) return refuse_null(get_map, "mapping");
  if (!interface->map.is_set())
    return refuse_bits(PTL_IGNORED, get_map, "ni_handle", ni_handle, map_needed);
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
  if (interface == nullptr) return refuse_interface_handle(get_uid, ni_handle);
  if (uid == nullptr) return refuse_null(get_uid, "uid");
  *uid = interface->physical().uid();
  return PTL_OK;
}

int PtlGetId(ptl_handle_ni_t ni_handle, ptl_process_t* id) noexcept {
  NetworkInterface* interface = find_interface(ni_handle);
  if (interface == nullptr) return refuse_interface_handle(get_id, ni_handle);
  if (id == nullptr) return refuse_null(get_id, "id");
  // The rank is not known before the map is (spec 3.6.6).
  if (interface->logical() && !interface->map.is_set())
    return refuse_bits(PTL_ARG_INVALID, get_id, "ni_handle", ni_handle, map_needed);
  *id = interface->own_id();
  return PTL_OK;
}

int PtlGetPhysId(ptl_handle_ni_t ni_handle, ptl_process_t* id) noexcept {
  NetworkInterface* interface = find_interface(ni_handle);
  if (interface == nullptr) return refuse_interface_handle(get_phys_id, ni_handle);
  if (id == nullptr) return refuse_null(get_phys_id, "id");
  id->phys.nid = interface->physical().id().nid;
  id->phys.pid = interface->physical().id().pid;
  return PTL_OK;
}

// Bundling has nothing to defer: every operation is written to its queue at once, without barriers
// that a bundle could save (spec 3.17, implementation note 17). The calls are checked and counted.
int PtlStartBundle(ptl_handle_ni_t ni_handle) noexcept {
  NetworkInterface* interface = find_interface(ni_handle);
  if (interface == nullptr) return refuse_interface_handle(start_bundle, ni_handle);
  interface->bundles.fetch_add(1, std::memory_order_relaxed);
  return PTL_OK;
}

int PtlEndBundle(ptl_handle_ni_t ni_handle) noexcept {
  NetworkInterface* interface = find_interface(ni_handle);
  if (interface == nullptr) return refuse_interface_handle(end_bundle, ni_handle);
  uint32_t open = interface->bundles.load(std::memory_order_relaxed);
  do {
    if (open == 0)
      return refuse_bits(PTL_ARG_INVALID, end_bundle, "ni_handle", ni_handle,
                         "PtlStartBundle must have been called before");
  } while (!interface->bundles.compare_exchange_weak(open, open - 1, std::memory_order_relaxed));
  return PTL_OK;
}

int PtlHandleIsEqual(ptl_handle_any_t handle1, ptl_handle_any_t handle2) noexcept {
  return handle1 == handle2 ? 1 : 0;
}

}  // extern "C"
