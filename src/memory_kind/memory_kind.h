// The contract between the core and the drivers of accelerators: memory that the processor must
// not touch, but that the application names in descriptors and entries. Host memory has no kind:
// a null MemoryKind costs a compare.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace lintel {

// An allocation of device memory, as its driver describes it.
struct DeviceAllocation {
  uintptr_t base = 0;
  uint64_t length = 0;  // bytes
  // Number that no later allocation of the process has, even at the same address.
  uint64_t id = 0;
  int device = 0;           // number of the device in this process, as the driver counts
  void* context = nullptr;  // means something to the driver alone
};

// Result of a copy.
enum class CopyStatus : uint8_t {
  done,
  running,
  no_memory,  // the allocation is gone, or the address is wrong: PTL_NI_SEGV
  failed,     // the driver failed, such as by a lost context: PTL_NI_SEGV; the log has the reason
};

// Name of a copy under way. Zero names none.
using CopyTicket = uint32_t;
inline constexpr CopyTicket no_copy = 0;

// Names an allocation to other processes of the node. Travels in messages: sized, validated on
// arrival.
struct ExportedAllocation {
  uint8_t kind;                      // MemoryKind::number()
  uint8_t handle_bytes;              // bytes of `handle` in use
  uint8_t reserved[2];               // zero
  uint32_t process;                  // process number of the exporter
  uint64_t id;                       // DeviceAllocation::id at the exporter
  uint64_t base;                     // address at the exporter
  uint64_t length;                   // bytes
  std::array<std::byte, 16> device;  // unique identifier of the device
  std::array<std::byte, 64> handle;
};
static_assert(sizeof(ExportedAllocation) == 112);

// One driver. All functions are thread-safe and never throw. Those marked "never waits" may be
// called by the poller.
class MemoryKind {
 public:
  MemoryKind() = default;
  MemoryKind(const MemoryKind&) = delete;
  MemoryKind& operator=(const MemoryKind&) = delete;
  virtual ~MemoryKind() = default;

  [[nodiscard]] virtual const char* name() const noexcept = 0;  // name in PTL_DEVICE_MEMORY
  [[nodiscard]] virtual uint8_t number() const noexcept = 0;  // 1 and up; the same in all processes

  // Never waits. Whether `address` is device memory of this kind, allocated by this process.
  // Managed (unified) memory is not.
  [[nodiscard]] virtual bool describe(const void* address, DeviceAllocation* out) noexcept = 0;
  [[nodiscard]] bool owns(const void* address) noexcept {
    DeviceAllocation allocation;
    return describe(address, &allocation);
  }

  // Copies and waits for the end; for short lengths. One side is device memory of this kind, the
  // other either that or memory of the host. `known`: a fresh answer of describe() for the only
  // side that is memory of a device; or nullptr: the driver is asked.
  [[nodiscard]] virtual CopyStatus copy(void* to, const void* from, size_t bytes,
                                        const DeviceAllocation* known) noexcept = 0;
  [[nodiscard]] CopyStatus copy(void* to, const void* from, size_t bytes) noexcept {
    return copy(to, from, bytes, nullptr);
  }

  // Never waits. Starts a copy as above; host memory must be pinned, and both sides stay until the
  // copy has ended. Copies end in any order. no_copy: could not be started, see `status`;
  // CopyStatus::running there: too many are under way, try again later.
  [[nodiscard]] virtual CopyTicket start_copy(void* to, const void* from, size_t bytes,
                                              CopyStatus* status) noexcept = 0;
  // Never waits. The state of a copy; a ticket is given back by an answer other than running.
  [[nodiscard]] virtual CopyStatus state_of(CopyTicket ticket) noexcept = 0;

  // Pins memory of the host, so that copies from and to it are asynchronous. False: they are
  // possible, but slower and may wait.
  virtual bool pin(void* host, size_t bytes) noexcept = 0;
  virtual void unpin(void* host) noexcept = 0;

  // Names the allocation to processes of the node. False: the driver cannot.
  [[nodiscard]] virtual bool export_allocation(const DeviceAllocation& allocation,
                                               ExportedAllocation* out) noexcept = 0;
  // Maps another process' allocation, at least as long as `exported` says. nullptr: no peer access,
  // the owner has freed it, or it is this process. Mappings are kept after close_exported(), so
  // that the next call for the same allocation is quick. The caller has checked that `process` is
  // that of the peer.
  [[nodiscard]] virtual void* open_exported(const ExportedAllocation& exported) noexcept = 0;
  virtual void close_exported(void* base) noexcept = 0;
  // The process has freed the allocation that has this DeviceAllocation::id there, or, with
  // nullptr, it has gone: gives up mappings, those in use when they are closed. The driver may wait
  // for a device.
  virtual void forget_exported(uint32_t process, const uint64_t* id) noexcept = 0;

  // A dmabuf descriptor for a range, which the caller closes; -1: none. `offset`: of the range
  // within the buffer.
  [[nodiscard]] virtual int dmabuf(const void* address, uint64_t length,
                                   uint64_t* offset) noexcept = 0;

  // Set-up path, for programs that have no driver of their own at hand. Initializes the driver.

  [[nodiscard]] virtual int device_count() noexcept = 0;  // 0: none, or the driver failed
  // Writes the name of the device, such as "NVIDIA H200"; "" if there is none.
  virtual void device_name(int device, char* text, size_t bytes) noexcept = 0;
  // Writes its address on the PCI bus, such as "0000:3b:00.0"; "" if that is not known.
  virtual void pci_address(int device, char* text, size_t bytes) noexcept = 0;
  [[nodiscard]] virtual void* allocate(int device, uint64_t bytes) noexcept = 0;  // nullptr: failed
  virtual void release(void* base) noexcept = 0;
};

// The kinds of this process.

namespace memory_kind_detail {
extern std::atomic<bool> in_use;
}

// Whether any driver is in use. One relaxed load; false in programs without accelerators.
[[nodiscard]] inline bool device_memory_in_use() noexcept {
  return memory_kind_detail::in_use.load(std::memory_order_relaxed);
}

// Set-up path (PtlInit, PtlNIInit, PtlPTAlloc, PtlMDBind). Takes drivers into use that the process
// has loaded, as PTL_DEVICE_MEMORY permits.
void look_for_drivers() noexcept;

// Set-up path. The kind of that name, its driver loaded if the process has not done so. nullptr:
// there is no such driver, or PTL_DEVICE_MEMORY excludes it.
[[nodiscard]] MemoryKind* find_driver(const char* name) noexcept;

// Never waits. The kind of the memory at `address`, nullptr for memory of the host.
[[nodiscard]] MemoryKind* kind_of(const void* address, DeviceAllocation* out) noexcept;

// Never waits. The kind in use that has this number(), nullptr if there is none.
[[nodiscard]] MemoryKind* kind_numbered(uint8_t number) noexcept;

// Connection path. The process has gone, see MemoryKind::forget_exported().
void forget_allocations_of(uint32_t process) noexcept;

// Set-up path. Takes a kind into use that is not one of the drivers, such as that of a test. It
// stays until the process ends.
void use_kind(MemoryKind& kind) noexcept;

}  // namespace lintel
