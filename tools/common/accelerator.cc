// Memory of a device, through the functions of its driver. Set-up path.
// SPDX-License-Identifier: BSD-3-Clause
#include "common/accelerator.h"

#include <dlfcn.h>

#include <mutex>
#include <stdexcept>
#include <vector>

#include "memory_kind/cuda_functions.h"
#include "memory_kind/hip_functions.h"
#include "memory_kind/ze_functions.h"

namespace lintel::tools {

namespace {

void check(int result, const char* function) {
  if (result != 0)
    throw std::runtime_error(std::string(function) + " failed with " + std::to_string(result));
}

class CudaAccelerator final : public Accelerator {
 public:
  CudaAccelerator(void* library, int device) : Accelerator(library) {
    find("cuCtxSynchronize", synchronize_);
    find("cuMemAllocManaged", allocate_managed_);
    find("cuMemcpy", copy_);
    find("cuInit", call_.init);
    find("cuDevicePrimaryCtxRetain", call_.retain_primary);
    find("cuCtxPushCurrent_v2", call_.push_context);
    find("cuCtxPopCurrent_v2", call_.pop_context);
    find("cuMemAlloc_v2", call_.allocate);
    find("cuMemFree_v2", call_.free);
    check(call_.init(0), "cuInit");
    check(call_.retain_primary(&context_, device), "cuDevicePrimaryCtxRetain");
  }

  void* allocate(size_t bytes) override {
    cuda::DevicePointer pointer = 0;
    within("cuMemAlloc", [&] { return call_.allocate(&pointer, bytes); });
    return reinterpret_cast<void*>(pointer);
  }
  void* allocate_managed(size_t bytes) override {
    cuda::DevicePointer pointer = 0;
    constexpr unsigned attach_global = 1;
    within("cuMemAllocManaged", [&] { return allocate_managed_(&pointer, bytes, attach_global); });
    return reinterpret_cast<void*>(pointer);
  }
  void release(void* base) override {
    within("cuMemFree", [&] { return call_.free(reinterpret_cast<cuda::DevicePointer>(base)); });
  }
  void copy(void* to, const void* from, size_t bytes) override {
    within("cuMemcpy", [&] {
      const cuda::Result result = copy_(reinterpret_cast<cuda::DevicePointer>(to),
                                        reinterpret_cast<cuda::DevicePointer>(from), bytes);
      return result == cuda::success ? synchronize_() : result;
    });
  }
  void copy_by_driver(void* to, const void* from, size_t bytes) override {
    within("cuMemcpy", [&] {
      return copy_(reinterpret_cast<cuda::DevicePointer>(to),
                   reinterpret_cast<cuda::DevicePointer>(from), bytes);
    });
  }

 private:
  template <typename Call>
  void within(const char* function, const Call& call) {
    check(call_.push_context(context_), "cuCtxPushCurrent");
    const cuda::Result result = call();
    cuda::Context popped = nullptr;
    check(call_.pop_context(&popped), "cuCtxPopCurrent");
    check(result, function);
  }

  cuda::Functions call_{};
  cuda::Result (*synchronize_)() = nullptr;
  cuda::Result (*allocate_managed_)(cuda::DevicePointer* pointer, size_t bytes,
                                    unsigned flags) = nullptr;
  cuda::Result (*copy_)(cuda::DevicePointer to, cuda::DevicePointer from, size_t bytes) = nullptr;
  cuda::Context context_ = nullptr;
};

class HipAccelerator final : public Accelerator {
 public:
  HipAccelerator(void* library, int device) : Accelerator(library), device_(device) {
    find("hipSetDevice", call_.set_device);
    find("hipMalloc", call_.allocate);
    find("hipFree", call_.free);
    find("hipMemcpy", copy_);
    find("hipMallocManaged", allocate_managed_);
    find("hipDeviceSynchronize", synchronize_);
    check(call_.set_device(device_), "hipSetDevice");
  }

  void* allocate(size_t bytes) override {
    void* pointer = nullptr;
    check(call_.set_device(device_), "hipSetDevice");
    check(call_.allocate(&pointer, bytes), "hipMalloc");
    return pointer;
  }
  void* allocate_managed(size_t bytes) override {
    void* pointer = nullptr;
    constexpr unsigned attach_global = 1;
    check(call_.set_device(device_), "hipSetDevice");
    check(allocate_managed_(&pointer, bytes, attach_global), "hipMallocManaged");
    return pointer;
  }
  void release(void* base) override { check(call_.free(base), "hipFree"); }
  void copy(void* to, const void* from, size_t bytes) override {
    check(call_.set_device(device_), "hipSetDevice");
    check(copy_(to, from, bytes, hip::copy_default), "hipMemcpy");
    check(synchronize_(), "hipDeviceSynchronize");
  }
  void copy_by_driver(void* to, const void* from, size_t bytes) override {
    check(copy_(to, from, bytes, hip::copy_default), "hipMemcpy");
  }

 private:
  hip::Functions call_{};
  hip::Result (*copy_)(void* to, const void* from, size_t bytes, int kind) = nullptr;
  hip::Result (*allocate_managed_)(void** pointer, size_t bytes, unsigned flags) = nullptr;
  hip::Result (*synchronize_)() = nullptr;
  int device_;
};

// The first driver of Level Zero.
class ZeAccelerator final : public Accelerator {
 public:
  ZeAccelerator(void* library, int device) : Accelerator(library) {
    find("zeInit", call_.init);
    find("zeDriverGet", call_.get_drivers);
    find("zeDeviceGet", call_.get_devices);
    find("zeContextCreate", call_.create_context);
    find("zeMemAllocDevice", call_.allocate);
    find("zeMemAllocShared", allocate_shared_);
    find("zeMemFree", call_.free);
    find("zeCommandListCreateImmediate", call_.create_list);
    find("zeCommandListAppendMemoryCopy", call_.append_copy);
    check(call_.init(0), "zeInit");
    uint32_t count = 1;
    ze::Driver driver = nullptr;
    check(call_.get_drivers(&count, &driver), "zeDriverGet");
    count = static_cast<uint32_t>(device) + 1;
    std::vector<ze::Device> devices(count);
    check(call_.get_devices(driver, &count, devices.data()), "zeDeviceGet");
    device_ = devices[static_cast<size_t>(device)];
    const ze::ContextDescription description;
    check(call_.create_context(driver, &description, &context_), "zeContextCreate");
    ze::QueueDescription queue;
    queue.mode = ze::queue_synchronous;
    check(call_.create_list(context_, device_, &queue, &list_), "zeCommandListCreateImmediate");
  }

  void* allocate(size_t bytes) override {
    void* pointer = nullptr;
    const ze::DeviceMemoryDescription description;
    check(call_.allocate(context_, &description, bytes, 0, device_, &pointer), "zeMemAllocDevice");
    return pointer;
  }
  void* allocate_managed(size_t bytes) override {
    void* pointer = nullptr;
    const ze::DeviceMemoryDescription description;
    const ze::HostMemoryDescription host;
    check(allocate_shared_(context_, &description, &host, bytes, 0, device_, &pointer),
          "zeMemAllocShared");
    return pointer;
  }
  void release(void* base) override { check(call_.free(context_, base), "zeMemFree"); }
  void copy(void* to, const void* from, size_t bytes) override {
    const std::lock_guard guard(copying_);
    check(call_.append_copy(list_, to, from, bytes, nullptr, 0, nullptr),
          "zeCommandListAppendMemoryCopy");
  }

 private:
  static void check(ze::Result result, const char* function) {
    tools::check(static_cast<int>(result), function);
  }

  ze::Functions call_{};
  ze::Result (*allocate_shared_)(ze::Context context,
                                 const ze::DeviceMemoryDescription* description,
                                 const ze::HostMemoryDescription* host, size_t bytes,
                                 size_t alignment, ze::Device device, void** pointer) = nullptr;
  std::mutex copying_;
  ze::Device device_ = nullptr;
  ze::Context context_ = nullptr;
  ze::CommandList list_ = nullptr;
};

}  // namespace

std::string driver_library(const std::string& kind) {
  if (kind == "cuda") return "libcuda.so.1";
  if (kind == "hip") return "libamdhip64.so";
  if (kind == "ze") return "libze_loader.so.1";
  throw std::runtime_error("no driver is called " + kind + ": cuda, hip, ze");
}

void* load_driver(const std::string& path) {
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) throw std::runtime_error(dlerror());
  return library;
}

std::unique_ptr<Accelerator> open_accelerator(const std::string& kind, int device, void* library) {
  if (kind == "hip") return std::make_unique<HipAccelerator>(library, device);
  if (kind == "ze") return std::make_unique<ZeAccelerator>(library, device);
  return std::make_unique<CudaAccelerator>(library, device);
}

void* Accelerator::symbol(const char* name) const {
  void* const found = dlsym(library_, name);
  if (found == nullptr) throw std::runtime_error(std::string("the driver lacks ") + name);
  return found;
}

}  // namespace lintel::tools
