/* memory_kind.h: the object behind a gex_MK_t of a device. Set-up path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_SEGMENT_MEMORY_KIND_H
#define LINTEL_GASNET_SEGMENT_MEMORY_KIND_H

#include <atomic>

#include "gasnet_mk.h"
#include "tools/headers.h"

/** Lives until gex_MK_Destroy and the end of its last segment. */
struct gasneti_memory_kind {
  explicit gasneti_memory_kind(const gex_MK_Create_args_t& made_of) : args(made_of) {}

  /** Allocates memory of the device.
   * @return NULL if there is none. */
  void* allocate(size_t bytes) const;
  void release(void* address) const;
  /** Whether all of it is memory of the device. */
  bool owns(const void* address, size_t bytes) const;

  const gex_MK_Create_args_t args;
  std::atomic<unsigned int> users{1}; /* segments, and the client */
};

namespace lintel::gasnet {

inline bool is_device(gex_MK_t kind) { return kind != GEX_MK_HOST && kind != GEX_MK_INVALID; }
/** Whether none of the drivers in use owns the start. */
bool is_memory_of_host(const void* address, size_t bytes);
/** A segment begins or ends to use the kind. Nothing for memory of the host. */
void use_kind(gex_MK_t kind);
void leave_kind(gex_MK_t kind);

}  // namespace lintel::gasnet

#endif  // LINTEL_GASNET_SEGMENT_MEMORY_KIND_H
