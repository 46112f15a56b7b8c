// A driver of accelerators for fuzzers: memory of the process, which the processor cannot access,
// and allocations of a peer. The input decides when copies end and what fails.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <map>

#include "fuzz/parsers/input.h"
#include "memory_kind/device_driver.h"

namespace lintel::fuzz {

class MadeUpDriver final : public DeviceDriver {
 public:
  static constexpr uint8_t kind_number = 9;
  static constexpr uint32_t peer_process = 0x7fff'0001;  // no process has this number
  static constexpr uint64_t peer_allocations = 3;        // their identifiers are 1, 2 and 3
  [[nodiscard]] static uint64_t bytes_of(uint64_t id) noexcept { return 9000 * id; }

  explicit MadeUpDriver(Input*& input) : input_(input) {
    const int file = memfd_create("device", MFD_CLOEXEC);
    FUZZ_CHECK(file >= 0 && ftruncate(file, arena_bytes) == 0);
    device_ = map(file, PROT_NONE);
    inside_ = map(file, PROT_READ | PROT_WRITE);
  }

  // Memory until reset(), with a gap behind it.
  [[nodiscard]] std::byte* take(uint64_t bytes, bool is_import = false) {
    std::byte* const taken = device_ + used_;
    used_ += (bytes + 8191) & ~uint64_t{4095};
    FUZZ_CHECK(used_ <= arena_bytes);
    allocations_[taken] = {bytes, ++last_id_, is_import};
    return taken;
  }
  void reset() {
    FUZZ_CHECK(mapped_ == 0);
    allocations_.clear();
    used_ = 0;
  }
  // A true description of an allocation of the peer.
  [[nodiscard]] static ExportedAllocation exported(uint64_t id) {
    ExportedAllocation out{};
    out.kind = kind_number;
    out.handle_bytes = sizeof id;
    out.process = peer_process;
    out.id = id;
    out.base = id << 32;
    out.length = bytes_of(id);
    std::memcpy(out.handle.data(), &id, sizeof id);
    return out;
  }

  const char* name() const noexcept override { return "made up"; }
  uint8_t number() const noexcept override { return kind_number; }
  bool describe(const void* address, DeviceAllocation* out,
                DeviceContext* context) noexcept override {
    const auto found = find(address);
    if (found == allocations_.end()) return false;
    *out = {reinterpret_cast<uintptr_t>(found->first), found->second.bytes, found->second.id, 0};
    *context = {this, 0};
    return true;
  }
  Queue make_queue(const DeviceContext&, bool) noexcept override { return this; }
  Event make_event(const DeviceContext&) noexcept override { return new Copy; }
  Outcome copy_now(const DeviceContext&, Queue, void* to, const void* from,
                   size_t bytes) noexcept override {
    return fails() ? Outcome::failed : move(to, from, bytes);
  }
  Outcome start(const DeviceContext&, Queue, Event event, void* to, const void* from,
                size_t bytes) noexcept override {
    if (fails()) return Outcome::failed;
    *static_cast<Copy*>(event) = {to, from, bytes};
    return Outcome::running;
  }
  Outcome state_of(const DeviceContext&, Event event) noexcept override {
    if (input_->flag()) return Outcome::running;
    const Copy& copy = *static_cast<Copy*>(event);
    return move(copy.to, copy.from, copy.bytes);
  }
  bool pin(const DeviceContext&, void*, size_t) noexcept override { return true; }
  void unpin(const DeviceContext&, void*) noexcept override {}
  bool export_allocation(const DeviceContext&, const DeviceAllocation&,
                         ExportedAllocation* out) noexcept override {
    out->handle_bytes = 8;
    return !fails();
  }
  // As drivers do: by the handle alone.
  void* open(const ExportedAllocation& exported) noexcept override {
    uint64_t id = 0;
    std::memcpy(&id, exported.handle.data(), sizeof id);
    if (id == 0 || id > peer_allocations || exported.process != peer_process || fails())
      return nullptr;
    ++mapped_;
    return take(bytes_of(id), true);
  }
  void close(void* base) noexcept override {
    --mapped_;
    FUZZ_CHECK(allocations_.erase(static_cast<std::byte*>(base)) == 1);
  }
  int dmabuf(const DeviceContext&, const DeviceAllocation&, uintptr_t*) noexcept override {
    return -1;
  }
  int device_count() noexcept override { return 1; }
  void device_name(int, char* text, size_t) noexcept override { *text = '\0'; }
  void pci_address(int, char* text, size_t) noexcept override { *text = '\0'; }
  void* allocate(int, uint64_t) noexcept override { return nullptr; }
  void release(void*) noexcept override {}

 private:
  static constexpr uint64_t arena_bytes = uint64_t{64} << 20;

  struct Allocation {
    uint64_t bytes;
    uint64_t id;
    bool is_import;
  };
  struct Copy {
    void* to = nullptr;
    const void* from = nullptr;
    size_t bytes = 0;
  };
  using Allocations = std::map<std::byte*, Allocation>;

  [[nodiscard]] static std::byte* map(int file, int access) {
    void* const at = mmap(nullptr, arena_bytes, access, MAP_SHARED, file, 0);
    FUZZ_CHECK(at != MAP_FAILED);
    return static_cast<std::byte*>(at);
  }
  [[nodiscard]] bool fails() noexcept { return input_->below(32) == 31; }
  [[nodiscard]] Allocations::iterator find(const void* address) noexcept {
    auto* const wanted = static_cast<std::byte*>(const_cast<void*>(address));
    auto next = allocations_.upper_bound(wanted);
    if (next == allocations_.begin()) return allocations_.end();
    --next;
    return wanted < next->first + next->second.bytes ? next : allocations_.end();
  }
  // nullptr: not so much. The library itself keeps to what a peer has described.
  [[nodiscard]] std::byte* reach(const void* address, size_t bytes) noexcept {
    auto* const at = static_cast<std::byte*>(const_cast<void*>(address));
    const auto found = find(at);
    if (found == allocations_.end()) {
      FUZZ_CHECK(at < device_ || at >= device_ + arena_bytes);
      return at;
    }
    const bool is_inside = bytes <= found->second.bytes - static_cast<uint64_t>(at - found->first);
    FUZZ_CHECK(is_inside || !found->second.is_import);
    return is_inside ? inside_ + (at - device_) : nullptr;
  }
  [[nodiscard]] Outcome move(void* to, const void* from, size_t bytes) noexcept {
    std::byte* const target = reach(to, bytes);
    const std::byte* const source = reach(from, bytes);
    if (target == nullptr || source == nullptr) return Outcome::no_memory;
    std::memmove(target, source, bytes);
    return Outcome::done;
  }

  Input*& input_;
  std::byte* device_;
  std::byte* inside_;
  uint64_t used_ = 0;
  uint64_t last_id_ = 0;
  unsigned mapped_ = 0;
  Allocations allocations_;
};

}  // namespace lintel::fuzz
