// Preloaded before the library by the tests of the tools: damages what ptl_perf receives, so that
// it must notice. TOOL_TEST_FAULT=data flips a bit of the 20th message that a process takes from an
// event queue; =behind writes behind its end.
// SPDX-License-Identifier: BSD-3-Clause
#include <dlfcn.h>
#include <portals4.h>

#include <cstdlib>
#include <cstring>

namespace {

int (*real_wait)(ptl_handle_eq_t, ptl_event_t*) = nullptr;
const char* fault = nullptr;
int taken = 0;

}  // namespace

extern "C" __attribute__((visibility("default"))) int PtlEQWait(ptl_handle_eq_t eq_handle,
                                                                ptl_event_t* event) noexcept {
  if (real_wait == nullptr) {
    void* symbol = dlsym(RTLD_NEXT, "PtlEQWait");
    std::memcpy(&real_wait, &symbol, sizeof real_wait);
    fault = std::getenv("TOOL_TEST_FAULT");
  }
  const int code = real_wait(eq_handle, event);
  if (fault != nullptr && code == PTL_OK && event->type == PTL_EVENT_PUT && event->mlength > 0 &&
      ++taken == 20) {
    auto* bytes = static_cast<unsigned char*>(event->start);
    if (std::strcmp(fault, "data") == 0) bytes[event->mlength - 1] ^= 0x10;
    if (std::strcmp(fault, "behind") == 0) bytes[event->mlength + 1] ^= 0x10;
  }
  return code;
}
