// Atomics on remote memory. A call is split into operations of Portals: by pieces of memory, by
// their limit, and for comparisons by items. Each item is changed atomically. Message path.
#pragma once

#include <rdma/fi_atomic.h>
#include <rdma/fi_domain.h>

#include "transfer/atomic_types.h"

namespace lintel::ofi {

class Deferral;
class Endpoint;

struct AtomicRequest {
  AtomicCall call;
  const fi_ioc* operands;  // may be NULL for FI_ATOMIC_READ
  size_t operand_count;
  const fi_ioc* comparands;
  size_t comparand_count;
  const fi_ioc* results;
  size_t result_count;
  fi_addr_t target;  // as the program gives it
  const fi_rma_ioc* remote;
  size_t remote_count;
  fi_datatype type;
  fi_op operation;
  void* context;
  uint64_t flags;        // of the call, or those of the endpoint
  bool reports_success;  // unlike fi_inject_atomic
  Deferral* deferral = nullptr;
};

// Arguments of the calls with a message; without results and comparands.
[[nodiscard]] AtomicRequest request_for(AtomicCall call, const fi_msg_atomic& message,
                                        uint64_t flags) noexcept;

// Without the lock of the domain.
ssize_t carry_out(Endpoint& endpoint, const AtomicRequest& request);

// fi_query_atomic.
int query_atomic(fid_domain* domain, fi_datatype type, fi_op operation, fi_atomic_attr* attr,
                 uint64_t flags) noexcept;

}  // namespace lintel::ofi
