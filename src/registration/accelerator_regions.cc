#include "registration/accelerator_regions.h"

#include <cerrno>
#include <cstring>
#include <iterator>
#include <new>
#include <utility>

#include "util/assert.h"
#include "util/clock.h"
#include "util/log.h"

namespace lintel {

namespace {

constexpr uint64_t between_looks_ns = 100'000'000;

bool is_there(MemoryKind& kind, uint64_t address, uint64_t id) noexcept {
  DeviceAllocation now;
  return kind.describe(reinterpret_cast<const void*>(address), &now) && now.id == id;
}

bool is_shortage(int error) noexcept {
  return error == ENOMEM || error == ENOSPC || error == EAGAIN;
}

}  // namespace

AcceleratorRange range_of(MemoryKind& kind, void* address, uint64_t length) noexcept {
  AcceleratorRange range;
  range.address = address;
  range.length = length;
  range.dmabuf = Descriptor(kind.dmabuf(address, length, &range.offset));
  return range;
}

AcceleratorRegions::~AcceleratorRegions() {
  const LockGuard guard(lock_);
  drop_if([](const Kept&) { return true; });
}

void AcceleratorRegions::abandon() noexcept {
  for (auto& region : regions_) static_cast<void>(region.second.release());
  regions_.clear();
}

void AcceleratorRegions::deregister(Kept& region) noexcept {
  if (region.registered) registrar_.deregister_memory(region.registration);
}

// One that is leased is deregistered after that.
AcceleratorRegions::Regions::iterator AcceleratorRegions::drop(Regions::iterator region) noexcept {
  Kept& dropped = *region->second;
  if (dropped.leases == 0) {
    deregister(dropped);
  } else {
    dropped.is_freed = true;
    static_cast<void>(region->second.release());
  }
  return regions_.erase(region);
}

template <typename Condition>
void AcceleratorRegions::drop_if(const Condition& condition) noexcept {
  for (auto region = regions_.begin(); region != regions_.end();)
    region = condition(*region->second) ? drop(region) : std::next(region);
}

int AcceleratorRegions::register_allocation(Kept& region) noexcept {
  const AcceleratorRange range =
      range_of(*region.kind, reinterpret_cast<void*>(region.address), region.length);
  return registrar_.register_accelerator(range, region.registration);
}

AcceleratorRegions::Kept* AcceleratorRegions::add(MemoryKind& kind,
                                                  const DeviceAllocation& allocation, int& error) {
  drop_if([](const Kept& region) { return !is_there(*region.kind, region.address, region.id); });
  if (regions_.size() >= most_) drop_if([](const Kept& region) { return region.leases == 0; });
  auto region = std::make_unique<Kept>();
  region->address = allocation.base;
  region->length = allocation.length;
  region->writable = region->of_accelerator = true;
  region->kind = &kind;
  region->id = allocation.id;
  auto& place = regions_[allocation.base];
  if (place != nullptr) return nullptr;  // the caller's allocation has been freed meanwhile
  error = register_allocation(*region);
  region->registered = error == 0;
  if (is_shortage(error)) {
    regions_.erase(allocation.base);
    return nullptr;
  }
  if (error != 0) say_refusal(kind, allocation.device, error);
  place = std::move(region);
  return place.get();
}

const RegisteredRegion* AcceleratorRegions::acquire(MemoryKind& kind,
                                                    const DeviceAllocation& allocation,
                                                    MemoryRange wanted, int& error) noexcept {
  error = EFAULT;
  if (wanted.begin < allocation.base || wanted.end > allocation.base + allocation.length)
    return nullptr;
  const LockGuard guard(lock_);
  const auto found = regions_.find(allocation.base);
  Kept* region = nullptr;
  if (found != regions_.end() && found->second->id == allocation.id) {
    region = found->second.get();
  } else {
    try {
      region = add(kind, allocation, error);
    } catch (const std::bad_alloc&) {
      error = ENOMEM;
    }
    if (region == nullptr) return nullptr;
  }
  error = EOPNOTSUPP;
  if (!region->registered) return nullptr;
  ++region->leases;
  return region;
}

void AcceleratorRegions::release(const RegisteredRegion& region) noexcept {
  const LockGuard guard(lock_);
  auto& released = const_cast<Kept&>(static_cast<const Kept&>(region));
  LINTEL_ASSERT(released.leases != 0);
  if (--released.leases != 0) return;
  if (released.is_freed) {
    deregister(released);
    delete &released;
  } else if (regions_.size() > most_) {
    drop(regions_.find(released.address));
  }
}

bool AcceleratorRegions::end_freed() noexcept {
  const LockGuard guard(lock_);
  if (regions_.empty()) return false;
  const uint64_t now = now_ns();
  if (now - looked_ns_ >= between_looks_ns) {
    looked_ns_ = now;
    drop_if([](const Kept& region) { return !is_there(*region.kind, region.address, region.id); });
  }
  return !regions_.empty();
}

void AcceleratorRegions::say_refusal(const MemoryKind& kind, int device, int error) noexcept {
  const uint64_t bit = uint64_t{1} << (static_cast<unsigned>(device) % 64);
  if ((said_ & bit) != 0) return;
  said_ |= bit;
  log_message(LogLevel::info,
              "the RDMA device does not register memory of %s:%d (%s): messages with it go through "
              "buffers of the host",
              kind.name(), device, std::strerror(error));
}

}  // namespace lintel
