// The functions of portals4_lintel.h. Set-up path, except PtlLintelGetMapEntry and
// PtlLintelDeviceCopy.
#include <cstring>
#include <string>
#include <string_view>

#include "api/refusal.h"
#include "api/resolve.h"
#include "memory_kind/memory_kind.h"
#include "portals4_lintel.h"
#include "util/config.h"
#include "util/local_rank.h"
#include "util/without_cancellation.h"

using namespace lintel;
using namespace lintel::api;

namespace {
constexpr Call set_job_key_call{"PtlLintelSetJobKey", "portals4_lintel.h"};
constexpr Call get_job_key{"PtlLintelGetJobKey", "portals4_lintel.h"};
constexpr Call set_hooks{"PtlLintelSetHooks", "portals4_lintel.h"};
constexpr Call get_map_entry{"PtlLintelGetMapEntry", "portals4_lintel.h"};
constexpr Call device_count{"PtlLintelDeviceCount", "portals4_lintel.h"};
constexpr Call device_alloc{"PtlLintelDeviceAlloc", "portals4_lintel.h"};
constexpr Call device_free{"PtlLintelDeviceFree", "portals4_lintel.h"};
constexpr Call device_of{"PtlLintelDeviceOf", "portals4_lintel.h"};
constexpr Call device_copy{"PtlLintelDeviceCopy", "portals4_lintel.h"};
constexpr const char* no_driver =
    "must be cuda, hip or ze, in PTL_DEVICE_MEMORY, and its library there";
constexpr Call get_path{"PtlLintelGetPath", "portals4_lintel.h"};

template <size_t size>
void copy_text(char (&to)[size], std::string_view from) noexcept {
  to[from.copy(to, size - 1)] = '\0';
}
}  // namespace

extern "C" {

int PtlLintelSetJobKey(const char* key) noexcept {
  if (key == nullptr)
    return refuse_bits(PTL_ARG_INVALID, set_job_key_call, "key", 0, "must not be NULL");
  try {
    const int code = set_job_key(key);
    return code == PTL_OK
               ? code
               : refuse_bits(code, set_job_key_call, "key", reinterpret_cast<uintptr_t>(key),
                             "must be set before the first PtlNIInit");
  } catch (...) {
    return refuse(PTL_NO_SPACE, set_job_key_call, "key", 0, "there is no memory for it");
  }
}

int PtlLintelGetJobKey(char* key, size_t size, size_t* length) noexcept {
  if (!library_is_initialized()) return refuse_before_init(get_job_key);
  if (length == nullptr) return refuse_null(get_job_key, "length");
  if (key == nullptr && size > 0) return refuse_null(get_job_key, "key");
  const std::string& secret = config_string(ConfigKey::job_key);
  *length = secret.size();
  if (size == 0) return PTL_OK;
  if (secret.size() >= size)
    return refuse(PTL_NO_SPACE, get_job_key, "size", size, "must be more than *length");
  std::memcpy(key, secret.c_str(), secret.size() + 1);
  return PTL_OK;
}

int PtlLintelSetLocalRank(unsigned int local_rank) noexcept {
  choose_local_rank(local_rank);
  return PTL_OK;
}

int PtlLintelDeviceCount(const char* driver, unsigned int* devices) noexcept {
  if (!library_is_initialized()) return refuse_before_init(device_count);
  if (driver == nullptr) return refuse_null(device_count, "driver");
  if (devices == nullptr) return refuse_null(device_count, "devices");
  MemoryKind* const kind = find_driver(driver);
  if (kind == nullptr) return refuse_bits(PTL_FAIL, device_count, "driver", 0, no_driver);
  *devices = static_cast<unsigned>(kind->device_count());
  return PTL_OK;
}

int PtlLintelDeviceAlloc(const char* driver, unsigned int device, ptl_size_t bytes,
                         void** start) noexcept {
  if (!library_is_initialized()) return refuse_before_init(device_alloc);
  if (driver == nullptr) return refuse_null(device_alloc, "driver");
  if (start == nullptr) return refuse_null(device_alloc, "start");
  if (bytes == 0) return refuse(PTL_ARG_INVALID, device_alloc, "bytes", 0, "must be more than 0");
  MemoryKind* const kind = find_driver(driver);
  if (kind == nullptr) return refuse_bits(PTL_FAIL, device_alloc, "driver", 0, no_driver);
  if (device >= static_cast<unsigned>(kind->device_count()))
    return refuse(PTL_ARG_INVALID, device_alloc, "device", device,
                  "must be less than the number of devices");
  *start = kind->allocate(static_cast<int>(device), bytes);
  if (*start != nullptr) return PTL_OK;
  return refuse(PTL_NO_SPACE, device_alloc, "bytes", bytes, "the device has no memory for it");
}

int PtlLintelDeviceFree(void* start) noexcept {
  if (!library_is_initialized()) return refuse_before_init(device_free);
  DeviceAllocation allocation;
  MemoryKind* const kind = kind_of(start, &allocation);
  if (kind == nullptr || allocation.base != reinterpret_cast<uintptr_t>(start))
    return refuse_bits(PTL_ARG_INVALID, device_free, "start", reinterpret_cast<uintptr_t>(start),
                       "must be the start of memory of a device");
  kind->release(start);
  return PTL_OK;
}

int PtlLintelDeviceOf(const void* start, ptl_size_t bytes, const char** driver,
                      unsigned int* device) noexcept {
  if (!library_is_initialized()) return refuse_before_init(device_of);
  if (driver == nullptr) return refuse_null(device_of, "driver");
  if (device == nullptr) return refuse_null(device_of, "device");
  if (bytes == 0) return refuse(PTL_ARG_INVALID, device_of, "bytes", 0, "must be more than 0");
  look_for_drivers();
  DeviceAllocation first;
  MemoryKind* const kind = kind_of(start, &first);
  *driver = kind != nullptr ? kind->name() : nullptr;
  if (kind == nullptr) return PTL_OK;
  *device = static_cast<unsigned>(first.device);
  // Memory of virtual memory management may consist of several allocations.
  const auto begin = reinterpret_cast<uintptr_t>(start);
  DeviceAllocation part = first;
  for (uint64_t end = 0; (end = part.base + part.length - begin) < bytes;)
    if (!kind->describe(reinterpret_cast<const void*>(begin + end), &part) ||
        part.device != first.device)
      return refuse_bits(PTL_FAIL, device_of, "start", begin, "must be memory of one device");
  return PTL_OK;
}

int PtlLintelDeviceCopy(void* to, const void* from, ptl_size_t bytes) noexcept {
  if (!library_is_initialized()) return refuse_before_init(device_copy);
  if (bytes == 0) return PTL_OK;
  DeviceAllocation allocation;
  MemoryKind* const kind_to = kind_of(to, &allocation);
  MemoryKind* const kind_from = kind_of(from, &allocation);
  if (kind_to == nullptr && kind_from == nullptr) [[likely]] {
    std::memcpy(to, from, bytes);
    return PTL_OK;
  }
  if (kind_to != nullptr && kind_from != nullptr && kind_to != kind_from)
    return refuse_bits(PTL_FAIL, device_copy, "from", reinterpret_cast<uintptr_t>(from),
                       "is memory of another driver than `to`");
  MemoryKind* const kind = kind_to != nullptr ? kind_to : kind_from;
  return kind->copy(to, from, bytes) == CopyStatus::done ? PTL_OK : PTL_FAIL;
}

int PtlLintelSetHooks(const ptl_lintel_hooks_t* hooks) noexcept {
  if (hooks == nullptr || hooks->opening == nullptr || hooks->opened == nullptr ||
      hooks->closed == nullptr)
    return refuse_bits(PTL_ARG_INVALID, set_hooks, "hooks", reinterpret_cast<uintptr_t>(hooks),
                       "must not be NULL and must have all functions");
  const ptl_lintel_hooks_t* before = nullptr;
  if (!library_detail::hooks.compare_exchange_strong(before, hooks) && before != hooks)
    return refuse_bits(PTL_IN_USE, set_hooks, "hooks", reinterpret_cast<uintptr_t>(hooks),
                       "another library has set hooks");
  return PTL_OK;
}

int PtlLintelGetMapEntry(ptl_handle_ni_t ni_handle, ptl_rank_t rank, ptl_process_t* id) noexcept {
  NetworkInterface* interface = find_interface(ni_handle);
  if (interface == nullptr) return refuse_interface_handle(get_map_entry, ni_handle);
  if (!interface->logical())
    return refuse_bits(PTL_ARG_INVALID, get_map_entry, "ni_handle", ni_handle, logical_only);
  if (id == nullptr) return refuse_null(get_map_entry, "id");
  if (!interface->map.is_set())
    return refuse_bits(PTL_IGNORED, get_map_entry, "ni_handle", ni_handle, map_needed);
  ProcessId process{};
  if (!interface->map.find(rank, &process))
    return refuse(PTL_ARG_INVALID, get_map_entry, "rank", rank, "must be a rank of the map");
  id->phys.nid = process.nid;
  id->phys.pid = process.pid;
  return PTL_OK;
}

int PtlLintelGetPath(ptl_handle_ni_t ni_handle, ptl_process_t target,
                     ptl_lintel_path_t* path) noexcept {
  const LongCall call(interface_index_of(ni_handle));
  const WithoutCancellation scope;
  NetworkInterface* interface = find_interface(ni_handle);
  if (interface == nullptr) return refuse_interface_handle(get_path, ni_handle);
  if (path == nullptr) return refuse_null(get_path, "path");
  ProcessId process{target.phys.nid, target.phys.pid};
  if (interface->logical() && !interface->map.find(target.rank, &process))
    return refuse(PTL_ARG_INVALID, get_path, "target.rank", target.rank,
                  "must be a rank of the map");
  try {
    const PeerPath found = interface->physical().peers().path_to(process);
    copy_text(path->transport, found.transport == nullptr ? "" : found.transport);
    copy_text(path->device, found.device);
    copy_text(path->reason, found.reason);
    return found.transport == nullptr ? PTL_FAIL : PTL_OK;
  } catch (...) {
    return refuse_bits(PTL_NO_SPACE, get_path, "ni_handle", ni_handle, "there is no memory");
  }
}

}  // extern "C"
