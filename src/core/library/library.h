// The library as a whole: its reference count, its physical interfaces, the table that handles are
// looked up in (spec 3.5, 3.6). Set-up path, except for the look-ups.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "core/library/process_page.h"
#include "core/objects/handle.h"
#include "core/operations/physical_interface.h"
#include "portals4.h"
#include "portals4_lintel.h"
#include "transport/opened_transports.h"

namespace lintel {

namespace library_detail {
extern ProcessPage process;
extern std::atomic<const ptl_lintel_hooks_t*> hooks;
}  // namespace library_detail

// Returns the hooks of a run-time library; nullptr if none has installed any.
[[nodiscard]] inline const ptl_lintel_hooks_t* interface_hooks() noexcept {
  return library_detail::hooks.load(std::memory_order_acquire);
}
// PtlLintelSetJobKey: sets the key of physical interfaces that are opened from now on.
[[nodiscard]] int set_job_key(std::string key) noexcept;

// PtlInit succeeded and the matching PtlFini has not been called.
[[nodiscard]] inline bool library_is_initialized() noexcept {
  return library_detail::process.initialized.load(std::memory_order_acquire);
}

// The interface that a handle of any type belongs to; nullptr if there is none (any more).
[[nodiscard]] inline NetworkInterface* interface_of(const HandleFields& fields) noexcept {
  NetworkInterface* interface =
      library_detail::process.interface_table[fields.interface_index].load(
          std::memory_order_acquire);
  return interface != nullptr && interface->incarnation() == fields.incarnation ? interface : nullptr;
}
// The same, but the caller checks the incarnation.
[[nodiscard]] inline NetworkInterface* interface_at_index_of(uint64_t handle) noexcept {
  return library_detail::process.interface_table[interface_index_of(handle)].load(
      std::memory_order_acquire);
}
[[nodiscard]] inline NetworkInterface* find_interface(ptl_handle_any_t handle) noexcept {
  NetworkInterface* const interface = interface_at_index_of(handle);
  return interface != nullptr && interface->handle() == handle ? interface : nullptr;
}

// PtlInit was called, by this process or by one that it inherits from (see process_page.h).
[[nodiscard]] bool library_was_used() noexcept;

// PtlInit, PtlFini (spec 3.5.1, 3.5.2): any thread, any time.
[[nodiscard]] int initialize_library() noexcept;
void finalize_library() noexcept;
// PtlAbort (spec 3.5.3). Async-signal-safe.
void abort_waiting() noexcept;

// PtlNIInit, PtlNIFini (spec 3.6.2, 3.6.3); the arguments have been checked.
[[nodiscard]] int open_interface(uint32_t number, unsigned slot, uint32_t pid,
                                 const ptl_ni_limits_t* desired, OpenTransports open_transports,
                                 NetworkInterface** interface) noexcept;
[[nodiscard]] int close_interface(ptl_handle_ni_t handle) noexcept;

}  // namespace lintel
