// The memory of the devices of one driver. Message path: start_copy(), state_of(), describe().
#include "memory_kind/driver_memory.h"

#include <unistd.h>

#include <utility>

namespace lintel {

using Outcome = DeviceDriver::Outcome;

namespace {

CopyStatus status_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::done:
      return CopyStatus::done;
    case Outcome::running:
      return CopyStatus::running;
    case Outcome::no_memory:
      return CopyStatus::no_memory;
    case Outcome::failed:
    case Outcome::stale:
      return CopyStatus::failed;
  }
  return CopyStatus::failed;
}

}  // namespace

DriverMemory::DriverMemory(std::unique_ptr<DeviceDriver> driver)
    : driver_(std::move(driver)), contexts_(*driver_), imports_(*driver_) {}

bool DriverMemory::describe(const void* address, DeviceAllocation* out) noexcept {
  DeviceContext context;
  if (!driver_->describe(address, out, &context)) return false;
  if (!has_context_.load(std::memory_order_relaxed))  // for pin()
    has_context_.store(contexts_.find(context) != nullptr, std::memory_order_relaxed);
  return true;
}

// A copy goes through the context of its destination, or of its source if that is the only memory
// of a device.
bool DriverMemory::find_route(const void* to, const void* from, Route* out) noexcept {
  DeviceAllocation allocation;
  const bool to_device = driver_->describe(to, &allocation, &out->context);
  DeviceContext source;
  const bool from_device = driver_->describe(from, &allocation, &source);
  if (!to_device) out->context = source;
  out->direction = !to_device    ? ContextQueues::from_device
                   : from_device ? ContextQueues::between_devices
                                 : ContextQueues::to_device;
  return to_device || from_device;
}

CopyStatus DriverMemory::copy(void* to, const void* from, size_t bytes) noexcept {
  if (bytes == 0) return CopyStatus::done;
  // The driver is asked as little as possible.
  DeviceAllocation allocation;
  DeviceContext context;
  if (!driver_->describe(to, &allocation, &context) &&
      !driver_->describe(from, &allocation, &context))
    return CopyStatus::no_memory;
  for (bool again = false;; again = true) {
    ContextQueues::Entry* const entry = contexts_.find(context);
    if (entry == nullptr) return CopyStatus::failed;
    const DeviceDriver::Queue queue = contexts_.queue(*entry, ContextQueues::awaited);
    if (queue == nullptr) return CopyStatus::failed;
    const Outcome outcome = driver_->copy_now(context, queue, to, from, bytes);
    if (outcome != Outcome::stale || again) return status_of(outcome);
    contexts_.forget(*entry);
  }
}

CopyTicket DriverMemory::start_copy(void* to, const void* from, size_t bytes,
                                    CopyStatus* status) noexcept {
  Route route;
  *status = CopyStatus::no_memory;
  if (!find_route(to, from, &route)) return no_copy;
  *status = CopyStatus::failed;
  for (bool again = false;; again = true) {
    ContextQueues::Entry* const entry = contexts_.find(route.context);
    if (entry == nullptr) return no_copy;
    const DeviceDriver::Queue queue = contexts_.queue(*entry, route.direction);
    if (queue == nullptr) return no_copy;
    bool full = false;
    const CopyTicket ticket = contexts_.take_ticket(*entry, &full);
    if (full) *status = CopyStatus::running;
    if (ticket == no_copy) return no_copy;
    const Outcome outcome =
        driver_->start(route.context, queue, contexts_.event_of(ticket), to, from, bytes);
    *status = status_of(outcome);
    if (outcome == Outcome::running) return ticket;
    if (outcome == Outcome::stale) contexts_.forget(*entry);
    contexts_.give_back(ticket);
    if (outcome != Outcome::stale || again) return no_copy;
  }
}

CopyStatus DriverMemory::state_of(CopyTicket ticket) noexcept {
  const CopyStatus status =
      status_of(driver_->state_of(contexts_.context_of(ticket), contexts_.event_of(ticket)));
  if (status != CopyStatus::running) contexts_.give_back(ticket);
  return status;
}

// Any context will do: the memory is pinned for all. None is made for this, since it takes memory
// of a device that the program may not use.
bool DriverMemory::pin(void* host, size_t bytes) noexcept {
  DeviceContext context;
  return contexts_.any(&context) && driver_->pin(context, host, bytes);
}

void DriverMemory::unpin(void* host) noexcept {
  DeviceContext context;
  if (contexts_.any(&context)) driver_->unpin(context, host);
}

bool DriverMemory::export_allocation(const DeviceAllocation& allocation,
                                     ExportedAllocation* out) noexcept {
  DeviceAllocation now;
  DeviceContext context;
  if (!driver_->describe(reinterpret_cast<const void*>(allocation.base), &now, &context) ||
      now.id != allocation.id)
    return false;
  *out = {};
  out->kind = number();
  out->process = static_cast<uint32_t>(getpid());
  out->id = now.id;
  out->base = now.base;
  out->length = now.length;
  return driver_->export_allocation(context, now, out);
}

void* DriverMemory::open_exported(const ExportedAllocation& exported) noexcept {
  if (exported.kind != number() || exported.handle_bytes > exported.handle.size()) return nullptr;
  return imports_.open(exported);
}

int DriverMemory::dmabuf(const void* address, uint64_t length, uint64_t* offset) noexcept {
  DeviceAllocation allocation;
  DeviceContext context;
  const uintptr_t begin = reinterpret_cast<uintptr_t>(address);
  if (!driver_->describe(address, &allocation, &context) ||
      length > allocation.base + allocation.length - begin)
    return -1;
  uintptr_t start = 0;
  const int descriptor = driver_->dmabuf(context, allocation, &start);
  *offset = begin - start;
  return descriptor;
}

}  // namespace lintel
