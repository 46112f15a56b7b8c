// A kind of memory for unit tests: the processor cannot access it, and copies end when a test says
// so, in the order that it says.
#pragma once

#include <portals4.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <deque>
#include <map>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include "memory_kind/drivers.h"
#include "memory_kind/memory_kind.h"
#include "support/deadlines.h"
#include "support/rank.h"

namespace lintel::test {

class TestMemoryKind final : public MemoryKind {
 public:
  static constexpr uint8_t kind_number = 7;

  // The kind, in use until leave().
  static TestMemoryKind& in_use() {
    static TestMemoryKind& kind = *new TestMemoryKind;
    if (!kind.registered_) use_kind(kind);
    kind.registered_ = true;
    return kind;
  }
  // At the end of a suite: other tests find no kind in use.
  static void leave() {
    TestMemoryKind& kind = in_use();
    forget_kind(kind);
    kind.registered_ = false;
  }

  // --- memory
  // `at`: where, if that is free.
  [[nodiscard]] std::byte* allocate(size_t bytes, std::byte* at = nullptr) {
    const int file = memfd_create("device", 0);
    if (file < 0 || ftruncate(file, static_cast<off_t>(bytes)) != 0)
      throw std::runtime_error("no memory for a device");
    auto* const device = static_cast<std::byte*>(mmap(at, bytes, PROT_NONE, MAP_SHARED, file, 0));
    auto* const inside =
        static_cast<std::byte*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
    allocations_[device] = {inside, bytes, ++last_id_, file};
    return device;
  }
  void free(std::byte* device) {
    const Allocation freed = allocations_.at(device);
    munmap(device, freed.bytes);
    munmap(freed.inside, freed.bytes);
    close(freed.file);
    allocations_.erase(device);
  }
  // What the device sees. The address must be that of device memory.
  [[nodiscard]] std::byte* inside(const void* address) { return translate(address, 1); }

  // --- copies
  bool holds = false;  // copies end only by end_copy() and end_all()
  unsigned polls = 1;  // otherwise after so many questions
  unsigned most_copies = 1000;
  bool fails = false;    // copies fail when they end
  bool refuses = false;  // no copy can be started
  bool exports = false;  // memory is named to other processes, and to this one
  bool lends = false;    // dmabufs
  const char* pci = "";  // address of the device
  unsigned started = 0;  // copies ever started
  unsigned synchronous = 0;
  unsigned asked = 0;                                    // calls of describe()
  unsigned exported = 0;                                 // calls of export_allocation()
  std::vector<std::pair<uint32_t, uint64_t>> forgotten;  // process, allocation or 0: all
  [[nodiscard]] size_t under_way() const { return copies_.size(); }
  // Ends the copy at this place in the order in which they were started.
  void end_copy(size_t place) { copies_.at(place).polls_left = 0; }
  void end_all() {
    for (Copy& copy : copies_) copy.polls_left = 0;
  }
  void reset() {
    holds = fails = refuses = exports = lends = false;
    pci = "";
    polls = 1;
    most_copies = 1000;
    started = synchronous = asked = exported = 0;
    forgotten.clear();
  }

  // --- MemoryKind
  [[nodiscard]] const char* name() const noexcept override { return "test"; }
  [[nodiscard]] uint8_t number() const noexcept override { return kind_number; }
  [[nodiscard]] bool describe(const void* address, DeviceAllocation* out) noexcept override {
    ++asked;
    const auto found = find(address);
    if (found == allocations_.end()) return false;
    *out = {reinterpret_cast<uintptr_t>(found->first), found->second.bytes, found->second.id, 0};
    return true;
  }
  [[nodiscard]] CopyStatus copy(void* to, const void* from, size_t bytes,
                                const DeviceAllocation*) noexcept override {
    ++synchronous;
    return move(to, from, bytes);
  }
  [[nodiscard]] CopyTicket start_copy(void* to, const void* from, size_t bytes,
                                      CopyStatus* status) noexcept override {
    *status = refuses ? CopyStatus::failed : CopyStatus::running;
    if (refuses || copies_.size() >= most_copies) return no_copy;
    ++started;
    copies_.push_back({++last_ticket_, to, from, bytes, holds ? UINT32_MAX : polls});
    return last_ticket_;
  }
  [[nodiscard]] CopyStatus state_of(CopyTicket ticket) noexcept override {
    for (auto copy = copies_.begin(); copy != copies_.end(); ++copy) {
      if (copy->ticket != ticket) continue;
      if (copy->polls_left != 0) {
        if (copy->polls_left != UINT32_MAX) --copy->polls_left;
        return CopyStatus::running;
      }
      const Copy ended = *copy;
      copies_.erase(copy);
      return fails ? CopyStatus::failed : move(ended.to, ended.from, ended.bytes);
    }
    return CopyStatus::failed;
  }
  bool pin(void*, size_t) noexcept override { return true; }
  void unpin(void*) noexcept override {}
  [[nodiscard]] bool export_allocation(const DeviceAllocation& allocation,
                                       ExportedAllocation* out) noexcept override {
    *out = {};
    ++exported;
    out->kind = kind_number;
    out->process = static_cast<uint32_t>(getpid());
    out->id = allocation.id;
    out->base = allocation.base;
    out->length = allocation.length;
    return exports;
  }
  [[nodiscard]] void* open_exported(const ExportedAllocation&) noexcept override { return nullptr; }
  void close_exported(void*) noexcept override {}
  void forget_exported(uint32_t process, const uint64_t* id) noexcept override {
    forgotten.emplace_back(process, id != nullptr ? *id : 0);
  }
  [[nodiscard]] int dmabuf(const void* address, uint64_t, uint64_t* offset) noexcept override {
    const auto found = find(address);
    if (!lends || found == allocations_.end()) return -1;
    *offset = static_cast<uint64_t>(static_cast<const std::byte*>(address) - found->first);
    return dup(found->second.file);
  }
  [[nodiscard]] int device_count() noexcept override { return 1; }
  void device_name(int, char* text, size_t) noexcept override { *text = '\0'; }
  void pci_address(int, char* text, size_t bytes) noexcept override {
    std::strncpy(text, pci, bytes);
  }
  [[nodiscard]] void* allocate(int, uint64_t bytes) noexcept override { return allocate(bytes); }
  void release(void* base) noexcept override { free(static_cast<std::byte*>(base)); }

 private:
  struct Allocation {
    std::byte* inside;
    size_t bytes;
    uint64_t id;
    int file;
  };
  struct Copy {
    CopyTicket ticket;
    void* to;
    const void* from;
    size_t bytes;
    uint32_t polls_left;
  };
  using Allocations = std::map<std::byte*, Allocation>;

  [[nodiscard]] Allocations::iterator find(const void* address) noexcept {
    auto* const wanted = static_cast<std::byte*>(const_cast<void*>(address));
    auto found = allocations_.upper_bound(wanted);
    if (found == allocations_.begin()) return allocations_.end();
    --found;
    return wanted < found->first + found->second.bytes ? found : allocations_.end();
  }
  // nullptr: no memory of the device, or not so much.
  [[nodiscard]] std::byte* translate(const void* address, size_t bytes) noexcept {
    const auto found = find(address);
    if (found == allocations_.end()) return nullptr;
    const auto offset = static_cast<size_t>(static_cast<const std::byte*>(address) - found->first);
    return bytes <= found->second.bytes - offset ? found->second.inside + offset : nullptr;
  }
  [[nodiscard]] CopyStatus move(void* to, const void* from, size_t bytes) noexcept {
    const bool to_device = find(to) != allocations_.end();
    const bool from_device = find(from) != allocations_.end();
    if (to_device) to = translate(to, bytes);
    if (from_device) from = translate(from, bytes);
    if (to == nullptr || from == nullptr || (!to_device && !from_device))
      return CopyStatus::no_memory;
    std::memmove(to, from, bytes);
    return CopyStatus::done;
  }

  bool registered_ = false;
  Allocations allocations_;
  std::deque<Copy> copies_;
  CopyTicket last_ticket_ = 0;
  uint64_t last_id_ = 0;
};

// The next event of a queue, which must be of this kind and report this result.
inline ptl_event_t expect_event(ptl_handle_eq_t queue, ptl_event_kind_t kind, ptl_ni_fail_t fail) {
  ptl_event_t event{};
  unsigned which = 0;
  must(PtlEQPoll(&queue, 1, static_cast<ptl_time_t>(wait_deadline.count()), &event, &which));
  EXPECT_EQ(event.type, kind);
  EXPECT_EQ(event.ni_fail_type, fail);
  return event;
}

}  // namespace lintel::test
