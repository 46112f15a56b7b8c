/* memory_kind.cc: memory of devices. Set-up path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "segment/memory_kind.h"

#include <dlfcn.h>
#include <portals4_lintel.h>

#include <cstring>

#include "job/errors.h"
#include "job/thread.h"

using namespace lintel::gasnet;

namespace {

/* Level Zero allocates in a context of the client, so its own functions are called. */
struct ZeDeviceMemoryDescription {
  int type = 0x15; /* ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC */
  const void* next = nullptr;
  uint32_t flags = 0;
  uint32_t ordinal = 0;
};
using ZeAllocate = unsigned int (*)(void* context, const ZeDeviceMemoryDescription* description,
                                    size_t bytes, size_t alignment, void* device, void** pointer);
struct ZeMemoryProperties {
  int type = 0x17; /* ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES */
  void* next = nullptr;
  int memory_type = 0;
  uint64_t id = 0;
  uint64_t page_bytes = 0;
};
using ZeProperties = unsigned int (*)(void* context, const void* address,
                                      ZeMemoryProperties* properties, void** device);
using ZeFree = unsigned int (*)(void* context, void* pointer);

/** A function of Level Zero; NULL if the process has not loaded it. */
void* ze_function(const char* name) {
  void* const library = dlopen("libze_loader.so.1", RTLD_NOW | RTLD_NOLOAD);
  return library ? dlsym(library, name) : nullptr;
}

/** The driver of a class in PTL_DEVICE_MEMORY; NULL for other classes. */
const char* driver_of(gex_MK_Class_t mk_class) {
  switch (mk_class) {
    case GEX_MK_CLASS_CUDA_UVA:
      return "cuda";
    case GEX_MK_CLASS_HIP:
      return "hip";
    case GEX_MK_CLASS_ZE:
      return "ze";
    case GEX_MK_CLASS_HOST:
      break;
  }
  return nullptr;
}

int device_of(const gex_MK_Create_args_t& args) {
  switch (args.gex_class) {
    case GEX_MK_CLASS_CUDA_UVA:
      return args.gex_args.gex_class_cuda_uva.gex_CUdevice;
    case GEX_MK_CLASS_HIP:
      return args.gex_args.gex_class_hip.gex_hipDevice;
    default:
      return 0;
  }
}

}  // namespace

void* gasneti_memory_kind::allocate(size_t bytes) const {
  void* address = nullptr;
  if (args.gex_class != GEX_MK_CLASS_ZE) {
    const int code =
        PtlLintelDeviceAlloc(driver_of(args.gex_class), device_of(args), bytes, &address);
    return code == PTL_OK ? address : nullptr;
  }
  const auto& ze = args.gex_args.gex_class_ze;
  const auto allocate_of_ze = reinterpret_cast<ZeAllocate>(ze_function("zeMemAllocDevice"));
  constexpr size_t alignment = 4096;
  ZeDeviceMemoryDescription description;
  description.ordinal = ze.gex_zeMemoryOrdinal;
  if (!allocate_of_ze || allocate_of_ze(ze.gex_zeContext, &description, bytes, alignment,
                                        ze.gex_zeDevice, &address) != 0)
    return nullptr;
  return address;
}

void gasneti_memory_kind::release(void* address) const {
  if (args.gex_class != GEX_MK_CLASS_ZE) {
    PtlLintelDeviceFree(address);
    return;
  }
  const auto free_of_ze = reinterpret_cast<ZeFree>(ze_function("zeMemFree"));
  if (free_of_ze) free_of_ze(args.gex_args.gex_class_ze.gex_zeContext, address);
}

bool gasneti_memory_kind::owns(const void* address, size_t bytes) const {
  const char* driver = nullptr;
  unsigned int device = 0;
  if (PtlLintelDeviceOf(address, bytes, &driver, &device) != PTL_OK || !driver ||
      std::strcmp(driver, driver_of(args.gex_class)) != 0)
    return false;
  if (args.gex_class != GEX_MK_CLASS_ZE) return device == static_cast<unsigned>(device_of(args));
  const auto& ze = args.gex_args.gex_class_ze;
  const auto properties_of = reinterpret_cast<ZeProperties>(ze_function("zeMemGetAllocProperties"));
  ZeMemoryProperties properties;
  void* owner = nullptr;
  return properties_of && properties_of(ze.gex_zeContext, address, &properties, &owner) == 0 &&
         owner == ze.gex_zeDevice;
}

namespace lintel::gasnet {

bool is_memory_of_host(const void* address, size_t bytes) {
  const char* driver = nullptr;
  unsigned int device = 0;
  PtlLintelDeviceOf(address, bytes, &driver, &device);
  return !driver;
}

void use_kind(gex_MK_t kind) {
  if (is_device(kind)) ++kind->users;
}

void leave_kind(gex_MK_t kind) {
  if (is_device(kind) && --kind->users == 0) delete kind;
}

}  // namespace lintel::gasnet

int gex_MK_Create(gex_MK_t* memkind_p, gex_Client_t client, const gex_MK_Create_args_t* args,
                  gex_Flags_t flags) {
  check_may_communicate("gex_MK_Create");
  if (!memkind_p || !client || !args || flags != 0 || args->gex_flags != 0)
    return report_error(GASNET_ERR_BAD_ARG, "gex_MK_Create: flags must be 0");
  if (args->gex_class == GEX_MK_CLASS_HOST) {
    *memkind_p = GEX_MK_HOST;
    return GASNET_OK;
  }
  const char* const driver = driver_of(args->gex_class);
  if (!driver)
    return report_error(GASNET_ERR_BAD_ARG, "gex_MK_Create: there is no class %d",
                        static_cast<int>(args->gex_class));
  unsigned int devices = 0;
  if (PtlLintelDeviceCount(driver, &devices) != PTL_OK)
    return report_error(GASNET_ERR_RESOURCE,
                        "gex_MK_Create: the driver %s is not in use; `ptl_info --all` says why",
                        driver);
  if (devices == 0)
    return report_error(GASNET_ERR_RESOURCE, "gex_MK_Create: the driver %s has no device", driver);
  const int device = device_of(*args);
  if (device < 0 || static_cast<unsigned int>(device) >= devices)
    return report_error(GASNET_ERR_BAD_ARG, "gex_MK_Create: device %d; the driver %s has %u",
                        device, driver, devices);
  if (args->gex_class == GEX_MK_CLASS_ZE &&
      (!args->gex_args.gex_class_ze.gex_zeDevice || !args->gex_args.gex_class_ze.gex_zeContext))
    return report_error(GASNET_ERR_BAD_ARG, "gex_MK_Create: give a device and a context");
  *memkind_p = new gasneti_memory_kind(*args);
  return GASNET_OK;
}

void gex_MK_Destroy(gex_MK_t memkind, gex_Flags_t flags) {
  if (flags != 0) gasnett_fatalerror_nopos("gex_MK_Destroy: flags 0x%x, must be 0", flags);
  leave_kind(memkind);
}
