// Reads and writes of remote memory, and the end of atomics. One operation of the program may be
// several of Portals: one for each pair of a local and a remote piece. A write is complete when the
// target has acknowledged it, whatever level the program asks for, so that no error is silent.
// Message path.
#pragma once

#include <portals4.h>
#include <sys/uio.h>

#include <rdma/fabric.h>
#include <rdma/fi_rma.h>

#include "endpoint/operation.h"

namespace lintel::ofi {

class Deferral;
class Domain;
class Endpoint;

struct MemoryRequest {
  const iovec* pieces;
  size_t count;
  fi_addr_t target;  // as the program gives it
  const fi_rma_iov* remote;
  size_t remote_count;
  uint64_t header;  // MessageHeader::with_data(), or 0
  void* context;
  uint64_t flags;        // of the call, or those of the endpoint
  bool reports_success;  // unlike fi_inject_write
  Deferral* deferral = nullptr;
};

// Arguments of fi_readmsg and fi_writemsg.
[[nodiscard]] MemoryRequest request_to_read(const fi_msg_rma& message, uint64_t flags) noexcept;
[[nodiscard]] MemoryRequest request_to_write(const fi_msg_rma& message, uint64_t flags) noexcept;

// Without the lock of the domain.
ssize_t write_memory(Endpoint& endpoint, const MemoryRequest& request);
ssize_t read_memory(Endpoint& endpoint, const MemoryRequest& request);

// The common part of reads, writes and atomics. With the lock.
[[nodiscard]] Operation& begin_memory_operation(Endpoint& endpoint, void* context, uint64_t flags,
                                                uint64_t entry_flags, bool reports_success,
                                                Deferral* deferral);
// `started` parts are on their way, or in the deferral; `code` is PTL_OK, or that of the next one.
ssize_t start_memory_operation(Operation& operation, size_t started, int code, const char* call);

// The event of a remote write with data for a completion.
void region_written(Domain& domain, const ptl_event_t& event);

// The event of a part.
void memory_advanced(Operation& operation, const ptl_event_t& event);

}  // namespace lintel::ofi
