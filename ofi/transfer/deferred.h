// Operations that start when a counter reaches a threshold: calls with FI_TRIGGER, and works that
// are queued at the domain (man fi_trigger). The message path tests a flag; the rest is set-up
// path.
#pragma once

#include <sys/types.h>

#include <rdma/fabric.h>

namespace lintel::ofi {

class Domain;
class Endpoint;
struct AtomicRequest;
struct MemoryRequest;
struct ReceiveRequest;
struct SendRequest;

template <typename Request>
using Action = ssize_t (*)(Endpoint& endpoint, const Request& request);

// With FI_TRIGGER: has the action carried out at the threshold that the context names.
ssize_t trigger(Endpoint& endpoint, const SendRequest& request, Action<SendRequest> action);
ssize_t trigger(Endpoint& endpoint, const ReceiveRequest& request, Action<ReceiveRequest> action);
ssize_t trigger(Endpoint& endpoint, const MemoryRequest& request, Action<MemoryRequest> action);
ssize_t trigger(Endpoint& endpoint, const AtomicRequest& request, Action<AtomicRequest> action);

// Carries out what a call with flags asks for, now or later. Without the lock of the domain.
template <typename Request>
ssize_t perform(Endpoint& endpoint, const Request& request, Action<Request> action) {
  if ((request.flags & FI_TRIGGER) == 0) [[likely]]
    return action(endpoint, request);
  return trigger(endpoint, request, action);
}

// FI_QUEUE_WORK, FI_CANCEL_WORK, FI_FLUSH_WORK. Without the lock.
int control_work(Domain& domain, int command, void* argument);

// fi_cancel of operations that have not started. Returns whether there was one. Without the lock.
bool cancel_deferred(Endpoint& endpoint, const void* context);

}  // namespace lintel::ofi
