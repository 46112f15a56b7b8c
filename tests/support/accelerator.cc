// A device in tests. Set-up path.
#include "support/accelerator.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>

#include "memory_kind/cuda_functions.h"

namespace lintel::test {

namespace {

std::string library_name(const std::string& kind) {
  if (kind == "cuda") return "libcuda.so.1";
  throw std::runtime_error("no driver is called " + kind);
}

// The stand-ins lie beside the libraries of the build.
std::string stand_in(const std::string& name) {
  char path[4096];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  if (length <= 0) throw std::runtime_error("/proc/self/exe cannot be read");
  const std::string program(path, static_cast<size_t>(length));
  return program.substr(0, program.rfind('/')) + "/../lib/fake_drivers/" + name;
}

void* open_library(const std::string& kind) {
  const std::string name = library_name(kind);
  const std::string path = Accelerator::is_fake() ? stand_in(name) : name;
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) throw std::runtime_error(dlerror());
  return library;
}

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

}  // namespace

Accelerator& Accelerator::load(const std::string& kind, int device) {
  // Never destroyed: the driver may be used until the process ends.
  return *new CudaAccelerator(open_library(kind), device);
}

void Accelerator::load_library(const std::string& kind) { open_library(kind); }

bool Accelerator::is_fake() {
  const char* const driver = std::getenv("LINTEL_TEST_DRIVER");
  return driver == nullptr || std::string(driver) != "real";
}

void* Accelerator::symbol(const char* name) const {
  void* const found = dlsym(library_, name);
  if (found == nullptr) throw std::runtime_error(std::string("the driver lacks ") + name);
  return found;
}

std::byte* Accelerator::view(const void* address) const {
  return static_cast<std::byte*>(
      reinterpret_cast<void* (*)(const void*)>(symbol("fake_device_view"))(address));
}

void Accelerator::set(const char* name, uint64_t value) {
  const auto set = reinterpret_cast<bool (*)(const char*, uint64_t)>(symbol("fake_device_set"));
  if (!set(name, value)) throw std::runtime_error(std::string("no setting is called ") + name);
}

uint64_t Accelerator::count(const char* name) const {
  return reinterpret_cast<uint64_t (*)(const char*)>(symbol("fake_device_count"))(name);
}

}  // namespace lintel::test
