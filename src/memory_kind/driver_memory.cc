// The memory of the devices of one driver. Message path: start_copy(), state_of(), describe().
#include "memory_kind/driver_memory.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <new>
#include <utility>

#include "util/assert.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/never_destroyed.h"

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

struct Said {
  Mutex lock;
  SaidRecently recently;
};

Said& said() {
  static NeverDestroyed<Said> said;
  return said.get();
}

}  // namespace

DriverMemory::DriverMemory(std::unique_ptr<DeviceDriver> driver)
    : driver_(std::move(driver)), contexts_(*driver_), imports_(*driver_) {}

bool DriverMemory::describe(const void* address, DeviceAllocation* out) noexcept {
  DeviceContext context;
  if (!driver_->describe(address, out, &context) || imports_.contains(out->base)) return false;
  out->context = context.handle;
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

CopyStatus DriverMemory::copy(void* to, const void* from, size_t bytes,
                              const DeviceAllocation* known) noexcept {
  if (bytes == 0) return CopyStatus::done;
  // The driver is asked as little as possible.
  DeviceAllocation allocation;
  DeviceContext context;
  if (known != nullptr)
    context = {known->context, known->device};
  else if (!driver_->describe(to, &allocation, &context) &&
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

namespace {

bool is_same(const ExportedAllocation& a, const ExportedAllocation& b) {
  return std::memcmp(&a, &b, sizeof a) == 0;
}

bool overlaps(const ExportedAllocation& a, const ExportedAllocation& b) {
  return a.process == b.process && a.base < b.base + b.length && b.base < a.base + a.length;
}

}  // namespace

template <typename IsStale>
void ImportCache::drop(const IsStale& is_stale) {
  std::erase_if(imports_, [&](const Import& import) {
    if (import.users != 0 || !is_stale(import)) return false;
    driver_.close(import.base);
    return true;
  });
}

bool ImportCache::make_room() {
  if (imports_.size() < max_imports) return true;
  auto oldest = imports_.end();
  for (auto import = imports_.begin(); import != imports_.end(); ++import)
    if (import->users == 0 && (oldest == imports_.end() || import->last_use < oldest->last_use))
      oldest = import;
  if (oldest == imports_.end()) return false;
  driver_.close(oldest->base);
  imports_.erase(oldest);
  return true;
}

void* ImportCache::map(const ExportedAllocation& exported) {
  void* const base = driver_.open(exported);
  if (base == nullptr) return nullptr;
  DeviceAllocation mapped;
  DeviceContext context;
  if (driver_.describe(base, &mapped, &context) &&
      mapped.base + mapped.length - reinterpret_cast<uintptr_t>(base) >= exported.length)
    return base;
  driver_.close(base);  // shorter than its exporter says
  return nullptr;
}

void* ImportCache::open(const ExportedAllocation& exported) noexcept {
  if (exported.process == static_cast<uint32_t>(getpid()) || exported.length == 0 ||
      exported.base + exported.length < exported.base)
    return nullptr;
  LockGuard guard(lock_);
  for (Import& import : imports_)
    if (is_same(import.exported, exported)) {
      ++import.users;
      import.is_forgotten = false;
      import.last_use = ++uses_;
      return import.base;
    }
  try {
    // Two allocations of a process have no address in common, so an earlier one is gone.
    drop([&](const Import& import) { return overlaps(import.exported, exported); });
    if (!make_room()) return nullptr;
    imports_.reserve(imports_.size() + 1);
    is_used_.store(true, std::memory_order_relaxed);
    void* const base = map(exported);
    if (base != nullptr) imports_.push_back({exported, base, 1, ++uses_});
    return base;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

bool ImportCache::contains(uintptr_t base) noexcept {
  if (!is_used_.load(std::memory_order_relaxed)) return false;
  LockGuard guard(lock_);
  return std::any_of(imports_.begin(), imports_.end(), [&](const Import& import) {
    return reinterpret_cast<uintptr_t>(import.base) == base;
  });
}

void ImportCache::close(void* base) noexcept {
  LockGuard guard(lock_);
  const auto import = std::find_if(imports_.begin(), imports_.end(),
                                   [&](const Import& each) { return each.base == base; });
  LINTEL_ASSERT(import != imports_.end() && import->users != 0);
  if (import == imports_.end() || import->users == 0) return;
  if (--import->users == 0 && import->is_forgotten)
    drop([](const Import& each) { return each.is_forgotten; });
}

void ImportCache::forget(uint32_t process, const uint64_t* id) noexcept {
  LockGuard guard(lock_);
  for (Import& import : imports_)
    import.is_forgotten |=
        import.exported.process == process && (id == nullptr || import.exported.id == *id);
  drop([](const Import& import) { return import.is_forgotten; });
}

void say_driver_fault(uint8_t kind, const char* driver, int error, const char* function,
                      size_t bytes, const char* text) noexcept {
  {
    Said& before = said();
    LockGuard guard(before.lock);
    const uint64_t key = uint64_t{kind} << 32 | static_cast<uint32_t>(error);
    if (!before.recently.is_due(key, now_ns())) return;
  }
  char length[40] = "";
  if (bytes != 0) std::snprintf(length, sizeof length, " of %zu bytes", bytes);
  log_message(LogLevel::error, "the driver of an accelerator failed: %s, %s%s: %s (%d)", driver,
              function, length, text, error);
}

}  // namespace lintel
