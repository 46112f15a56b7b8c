// A stand-in for HIP, libamdhip64.so: the functions that the library and its tests call, over
// devices without hardware (engine.h).
#include "memory_kind/hip_functions.h"
#include "support/fake_devices/fake_streams.h"

namespace lintel::hip {

namespace {

namespace fake = fake_devices;
using fake::streams::event_of, fake::streams::number, fake::streams::queue_of,
    fake::streams::result_of;

thread_local int current_device = 0;

}  // namespace

}  // namespace lintel::hip

using namespace lintel::hip;

#pragma GCC visibility push(default)
extern "C" {

const char* hipGetErrorName(Result error) {
  switch (error) {
    case invalid_value:
      return "hipErrorInvalidValue";
    case illegal_address:
      return "hipErrorIllegalAddress";
    case peer_access_unsupported:
      return "hipErrorPeerAccessUnsupported";
    default:
      return "hipErrorUnknown";
  }
}

Result hipRuntimeGetVersion(int* version) {
  *version = first_version_of_6;
  return success;
}

Result hipGetDeviceCount(int* count) {
  *count = fake::device_count();
  return *count == 0 ? no_device : success;
}

Result hipDeviceGetName(char* text, int bytes, int device) {
  return fake::streams::name_of(device, text, bytes);
}

Result hipDeviceGetPCIBusId(char* text, int bytes, int device) {
  return fake::streams::pci_address_of(device, text, bytes);
}

Result hipDeviceGetUuid(Uuid* uuid, int device) { return fake::streams::uuid_of(device, uuid); }

Result hipGetDevice(int* device) {
  *device = current_device;
  return success;
}

Result hipSetDevice(int device) {
  if (device < 0 || device >= fake::device_count()) return invalid_device;
  current_device = device;
  return success;
}

// As HIP: leaves attributes of memory that it does not know as they are.
Result hipDrvPointerGetAttributes(unsigned count, PointerAttribute* attributes, void** data,
                                  void* pointer) {
  fake::Allocation found{};
  if (fake::is_lost()) return illegal_address;
  if (!fake::find(number(pointer), &found)) return success;
  for (unsigned i = 0; i < count; ++i) switch (attributes[i]) {
      case attribute_memory_type:
        *static_cast<unsigned*>(data[i]) = memory_type_device_6;
        break;
      case attribute_buffer_id:
        *static_cast<unsigned*>(data[i]) = static_cast<unsigned>(found.id);
        break;
      case attribute_is_managed:
        *static_cast<bool*>(data[i]) = fake::is_managed(number(pointer));
        break;
      case attribute_device_ordinal:
        *static_cast<int*>(data[i]) = found.device;
        break;
      default:
        return invalid_value;
    }
  return success;
}

Result hipMemGetAddressRange(void** base, size_t* bytes, void* pointer) {
  fake::Allocation found{};
  if (!fake::find(number(pointer), &found)) return invalid_value;
  *base = reinterpret_cast<void*>(found.base);
  *bytes = found.bytes;
  return success;
}

Result hipMalloc(void** pointer, size_t bytes) {
  uintptr_t base = 0;
  const Result result = result_of(fake::allocate(current_device, bytes, nullptr, &base));
  *pointer = reinterpret_cast<void*>(base);
  return result;
}

Result hipMallocManaged(void** pointer, size_t bytes, unsigned) {
  const Result result = hipMalloc(pointer, bytes);
  return result == success && !fake::mark_managed(number(*pointer)) ? not_supported : result;
}

Result hipFree(void* pointer) { return result_of(fake::release(number(pointer))); }

Result hipMemcpyAsync(void* to, const void* from, size_t bytes, int kind, Stream stream) {
  if (kind != copy_default) return invalid_value;
  return result_of(fake::copy(queue_of(stream), number(to), number(from), bytes));
}

Result hipMemcpy(void* to, const void* from, size_t bytes, int kind) {
  const Result result = hipMemcpyAsync(to, from, bytes, kind, nullptr);
  return result == success ? result_of(fake::wait(queue_of(nullptr))) : result;
}

Result hipDeviceSynchronize() { return result_of(fake::wait(queue_of(nullptr))); }

Result hipStreamCreateWithFlags(Stream* stream, unsigned) {
  *stream = reinterpret_cast<Stream>(fake::make_queue());
  return success;
}

Result hipStreamSynchronize(Stream stream) { return result_of(fake::wait(queue_of(stream))); }

Result hipEventCreateWithFlags(Event* event, unsigned) {
  *event = reinterpret_cast<Event>(fake::make_event());
  return success;
}

Result hipEventRecord(Event event, Stream stream) {
  return result_of(fake::record(queue_of(stream), event_of(event)));
}

Result hipEventQuery(Event event) { return result_of(fake::state_of(event_of(event))); }

Result hipHostRegister(void* memory, size_t bytes, unsigned) {
  return result_of(fake::pin(number(memory), bytes));
}

Result hipHostUnregister(void* memory) { return result_of(fake::unpin(number(memory))); }

Result hipIpcGetMemHandle(IpcHandle* handle, void* pointer) {
  return fake::streams::export_to(number(pointer), handle);
}

Result hipIpcOpenMemHandle(void** pointer, IpcHandle handle, unsigned) {
  uintptr_t base = 0;
  const Result result = fake::streams::open(handle, nullptr, &base);
  *pointer = reinterpret_cast<void*>(base);
  return result;
}

Result hipIpcCloseMemHandle(void* pointer) { return result_of(fake::close(number(pointer))); }

int hsa_amd_portable_export_dmabuf(const void* pointer, size_t, int* descriptor, uint64_t* offset) {
  fake::Allocation found{};
  if (!fake::find(number(pointer), &found)) return 1;
  *offset = number(pointer) - found.base;
  return fake::file_of(found.base, descriptor) == fake::Result::ok ? 0 : 1;
}
}
#pragma GCC visibility pop
