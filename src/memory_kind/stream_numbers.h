// Types and numbers that the drivers of CUDA and HIP have in common.
#pragma once

namespace lintel::stream_numbers {

struct Uuid {
  char bytes[16];
};
struct IpcHandle {
  char reserved[64];
};

using PointerAttribute = int;  // CU_POINTER_ATTRIBUTE_..., HIP_POINTER_ATTRIBUTE_...

// Results (CUDA_ERROR_..., hipError...).
using Result = int;
inline constexpr Result success = 0;
inline constexpr Result invalid_value = 1;
inline constexpr Result out_of_memory = 2;
inline constexpr Result not_initialized = 3;
inline constexpr Result deinitialized = 4;
inline constexpr Result no_device = 100;
inline constexpr Result invalid_device = 101;
inline constexpr Result invalid_context = 201;
inline constexpr Result peer_access_unsupported = 217;
inline constexpr Result invalid_handle = 400;
inline constexpr Result not_ready = 600;
inline constexpr Result illegal_address = 700;
inline constexpr Result context_is_destroyed = 709;
inline constexpr Result host_memory_already_registered = 712;
inline constexpr Result not_supported = 801;

inline constexpr unsigned stream_non_blocking = 1;     // CU_STREAM_..., hipStream...
inline constexpr unsigned event_disable_timing = 2;    // CU_EVENT_..., hipEvent...
inline constexpr unsigned host_register_portable = 1;  // CU_MEMHOSTREGISTER_..., hipHostRegister...

}  // namespace lintel::stream_numbers
