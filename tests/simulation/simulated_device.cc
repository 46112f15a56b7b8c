#include "simulation/simulated_device.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <utility>

#include "memory_kind/drivers.h"
#include "simulation/virtual_time.h"

namespace lintel::simulation {

namespace {

constexpr size_t most_copies = 64;
constexpr uint64_t longest_copy_ns = 300 * microsecond;
constexpr uint64_t most_questions = 5000;

struct Mapping {
  std::byte* device;
  std::byte* view;
};

// Memory of this and earlier simulations that nobody uses, by length.
std::multimap<size_t, Mapping>& unused() {
  static auto& mappings = *new std::multimap<size_t, Mapping>;
  return mappings;
}

Mapping map(size_t bytes) {
  const auto found = unused().find(bytes);
  if (found != unused().end()) {
    const Mapping mapping = found->second;
    unused().erase(found);
    return mapping;
  }
  const int file = memfd_create("device", 0);
  void* device = MAP_FAILED;
  void* view = MAP_FAILED;
  if (file >= 0 && ftruncate(file, static_cast<off_t>(bytes)) == 0) {
    device = mmap(nullptr, bytes, PROT_NONE, MAP_SHARED, file, 0);
    view = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  }
  if (device == MAP_FAILED || view == MAP_FAILED) std::abort();
  close(file);
  return {static_cast<std::byte*>(device), static_cast<std::byte*>(view)};
}

}  // namespace

SimulatedDevice::SimulatedDevice(uint64_t seed, double failing) : dice_(seed), failing_(failing) {
  current_ = this;
  use_kind(*this);
}

SimulatedDevice::~SimulatedDevice() {
  while (!allocations_.empty()) release(allocations_.begin()->first);
  forget_kind(*this);
  current_ = nullptr;
}

SimulatedDevice::Allocations::iterator SimulatedDevice::find(const void* address) noexcept {
  auto* const wanted = static_cast<std::byte*>(const_cast<void*>(address));
  auto found = allocations_.upper_bound(wanted);
  if (found == allocations_.begin()) return allocations_.end();
  --found;
  return wanted < found->first + found->second.bytes ? found : allocations_.end();
}

std::byte* SimulatedDevice::view_of(void* address) noexcept {
  auto* const start = static_cast<std::byte*>(address);
  if (current_ == nullptr) return start;
  const auto found = current_->find(start);
  return found == current_->allocations_.end() ? start
                                               : found->second.view + (start - found->first);
}

bool SimulatedDevice::describe(const void* address, DeviceAllocation* out) noexcept {
  const auto found = find(address);
  if (found == allocations_.end()) return false;
  *out = {reinterpret_cast<uintptr_t>(found->first), found->second.bytes, found->second.id, 0};
  return true;
}

CopyStatus SimulatedDevice::move(void* to, const void* from, size_t bytes) noexcept {
  if (dice_.happens(failing_)) {
    ++failures_;
    return CopyStatus::failed;
  }
  std::memmove(view_of(to), view_of(const_cast<void*>(from)), bytes);
  return CopyStatus::done;
}

CopyStatus SimulatedDevice::copy(void* to, const void* from, size_t bytes,
                                 const DeviceAllocation*) noexcept {
  return move(to, from, bytes);
}

CopyTicket SimulatedDevice::start_copy(void* to, const void* from, size_t bytes,
                                       CopyStatus* status) noexcept {
  *status = CopyStatus::running;
  if (copies_.size() == most_copies) return no_copy;
  copies_[++last_ticket_] = {to, from, bytes, virtual_now_ns + dice_.below(longest_copy_ns),
                             most_questions};
  return last_ticket_;
}

CopyStatus SimulatedDevice::state_of(CopyTicket ticket) noexcept {
  const auto found = copies_.find(ticket);
  if (found == copies_.end()) return CopyStatus::failed;
  Copy& copy = found->second;
  if (virtual_now_ns < copy.ends_ns && --copy.questions_left != 0) return CopyStatus::running;
  const Copy ended = copy;
  copies_.erase(found);
  return move(ended.to, ended.from, ended.bytes);
}

void* SimulatedDevice::allocate(int, uint64_t bytes) noexcept {
  const Mapping mapping = map(bytes);
  allocations_[mapping.device] = {mapping.view, bytes, ++allocated_};
  return mapping.device;
}

void SimulatedDevice::release(void* base) noexcept {
  const auto found = allocations_.find(static_cast<std::byte*>(base));
  if (found == allocations_.end()) return;
  unused().insert({found->second.bytes, {found->first, found->second.view}});
  allocations_.erase(found);
}

Memory::Memory(uint64_t bytes, bool of_device) {
  start_ = of_device ? static_cast<std::byte*>(SimulatedDevice::current()->allocate(0, bytes))
                     : new std::byte[bytes];
  view_ = of_device ? SimulatedDevice::view_of(start_) : start_;
}

Memory& Memory::operator=(Memory&& other) noexcept {
  std::swap(start_, other.start_);
  std::swap(view_, other.view_);
  return *this;
}

Memory::~Memory() {
  if (start_ == view_)
    delete[] start_;
  else if (SimulatedDevice::current() != nullptr)
    SimulatedDevice::current()->release(start_);
}

}  // namespace lintel::simulation
