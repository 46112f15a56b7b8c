// The drivers that the library knows. Set-up path.
#pragma once

#include <memory>

#include "memory_kind/device_driver.h"
#include "memory_kind/driver_library.h"

namespace lintel {

// The driver behind an open library; nullptr: that lacks a function, its reason() says which.
[[nodiscard]] std::unique_ptr<DeviceDriver> make_cuda_driver(DriverLibrary& library);
[[nodiscard]] std::unique_ptr<DeviceDriver> make_hip_driver(DriverLibrary& library);
[[nodiscard]] std::unique_ptr<DeviceDriver> make_ze_driver(DriverLibrary& library);

}  // namespace lintel
