// Data that no child process may inherit: a page that the kernel fills with zeros in every child. A
// child of fork() abandons its parent's objects in a handler (abandon_in_child()), but _Fork() and
// clone() call no handler. Such a child finds no interface on the usual path of a call, without a
// test for it.
#pragma once

#include <atomic>
#include <cstddef>

#include "portals4.h"
#include "util/page_size.h"

namespace lintel {

class NetworkInterface;
class PhysicalInterface;

inline constexpr unsigned interface_table_size = 32;
inline constexpr unsigned physical_interfaces = 8;

// On a system with shorter pages several.
inline constexpr size_t process_page_bytes = largest_page_bytes;

// Nothing else may lie in the page.
struct alignas(process_page_bytes) ProcessPage {
  // The first member: its address is that of the page, which saves each call an instruction.
  std::atomic<NetworkInterface*> interface_table[interface_table_size];
  std::atomic<bool> initialized;  // PtlInit succeeded and the matching PtlFini was not called
  std::atomic<bool> used;         // this process has called PtlInit
  // Physical interfaces that PtlAbort must wake, for use in signal handlers.
  std::atomic<PhysicalInterface*> wakeable[physical_interfaces];
};
static_assert(sizeof(ProcessPage) == process_page_bytes);

}  // namespace lintel
