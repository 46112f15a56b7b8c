// A logical network interface: its limits, its portal table and the pools of its objects (spec
// 3.6).
// Functions that find objects are on the message path; the others name their path.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/events/triggered_operation.h"
#include "core/matching/unexpected_pool.h"
#include "core/objects/handle.h"
#include "core/objects/limits.h"
#include "core/objects/list_entry.h"
#include "core/objects/memory_descriptor.h"
#include "core/objects/portal_entry.h"
#include "core/objects/rank_map.h"
#include "core/progress/statistics.h"
#include "portals4.h"
#include "util/arena.h"
#include "util/lock.h"

namespace lintel {

struct InterfaceStatus {
  SharedCounter dropped;                // PTL_SR_DROP_COUNT
  SharedCounter permission_violations;  // PTL_SR_PERMISSION_VIOLATIONS
  SharedCounter operation_violations;   // PTL_SR_OPERATION_VIOLATIONS
  std::atomic<uint64_t> unexpected_depth{0};
  std::atomic<uint64_t> unexpected_peak{0};
};

class Initiator;
class PhysicalInterface;

// Has held messages delivered.
class RoomListener {
 public:
  // There may be room for held messages. Any thread; portal locks may be held.
  virtual void room_appeared() noexcept = 0;
  // Set-up path, before the first portal table entry that holds messages. False: no address space.
  [[nodiscard]] virtual bool prepare_to_hold() noexcept = 0;

 protected:
  ~RoomListener() = default;
};

inline constexpr unsigned logical_interfaces = 4;  // over one physical interface
// Set in slots: which of the four an interface is, the same in every process.
inline constexpr unsigned slot_matching = 1;
inline constexpr unsigned slot_logical = 2;

// The objects of a logical interface. Guarded by themselves.
struct InterfacePools {
  Arena<MemoryDescriptor> descriptors;
  Arena<CountingEvent> counters;
  Arena<EventQueueObject> event_queues;
  Arena<ListEntry> entries;
  UnexpectedPool unexpected_headers;
  Arena<TriggeredOperation> triggered_operations;

  // Set-up path. False: no address space.
  [[nodiscard]] bool open(const ptl_ni_limits_t& limits) noexcept;
};

class NetworkInterface {
 public:
  // `initiator`, `own`: of the physical interface; its address is `own`.
  NetworkInterface(PhysicalInterface& physical, Initiator& initiator, ProcessId own, unsigned slot,
                   uint8_t index, uint8_t incarnation) noexcept;
  ~NetworkInterface();

  // Set-up path. Reserves the pools; PTL_NO_SPACE if the system refuses.
  [[nodiscard]] int open(const ptl_ni_limits_t* desired) noexcept;

  [[nodiscard]] bool matching() const noexcept { return (request_flags_ & slot_matching) != 0; }
  [[nodiscard]] bool logical() const noexcept { return (request_flags_ & slot_logical) != 0; }
  [[nodiscard]] unsigned slot() const noexcept { return request_flags_ & flag_interface_mask; }
  // Initial MessageHeader::flags of the requests of this interface: the slot, and flags for the
  // log.
  [[nodiscard]] unsigned request_flags() const noexcept { return request_flags_; }
  [[nodiscard]] PhysicalInterface& physical() const noexcept { return physical_; }
  [[nodiscard]] Initiator& initiator() const noexcept { return initiator_; }
  [[nodiscard]] const ptl_ni_limits_t& limits() const noexcept { return limits_; }
  [[nodiscard]] uint64_t handle() const noexcept { return handle_; }
  [[nodiscard]] uint8_t incarnation() const noexcept { return incarnation_; }
  // Identifier of this process on the interface. The rank is PTL_RANK_ANY if there is no map or if
  // the map does not contain this process.
  [[nodiscard]] ptl_process_t own_id() const noexcept {
    ptl_process_t id{};
    if (logical()) {
      id.rank = map.own_rank();
    } else {
      id.phys.nid = own_.nid;
      id.phys.pid = own_.pid;
    }
    return id;
  }

  // --- objects by handle; nullptr if it is stale, of another type or of another interface
  [[nodiscard]] MemoryDescriptor* find_descriptor(uint64_t handle) noexcept {
    return find(pools_.descriptors, handle);
  }
  [[nodiscard]] CountingEvent* find_counter(uint64_t handle) noexcept {
    return find(pools_.counters, handle);
  }
  [[nodiscard]] EventQueueObject* find_event_queue(uint64_t handle) noexcept {
    return find(pools_.event_queues, handle);
  }
  [[nodiscard]] ListEntry* entry_slot(uint32_t index) noexcept {
    return pools_.entries.contains(index) ? &pools_.entries.at(index) : nullptr;
  }

  // Returns the argument of LiveHandle::begin().
  template <typename T>
  [[nodiscard]] uint64_t handle_family(HandleType type, const Arena<T>& pool,
                                       const T& object) const noexcept {
    return make_handle(type, 0, pool.index_of(object));
  }
  [[nodiscard]] uint64_t handle_of_entry(uint32_t generation, uint32_t index) const noexcept {
    return entry_handles_ | uint64_t{generation & handle_generation_mask} << handle_index_bits |
           index;
  }

  [[nodiscard]] PortalEntry* portal(uint32_t pt_index) const noexcept {
    return pt_index <= static_cast<uint32_t>(limits_.max_pt_index)
               ? portals_[pt_index].load(std::memory_order_acquire)
               : nullptr;
  }

  // Set-up path. `executor` runs the triggered operations of the interface's counters.
  void set_executor(TriggerExecutor& executor) noexcept { executor_ = &executor; }
  [[nodiscard]] TriggerExecutor* executor() const noexcept { return executor_; }
  void set_room_listener(RoomListener& listener) noexcept { room_listener_ = &listener; }

  // See RoomListener.
  [[nodiscard]] bool prepare_to_hold() const noexcept { return room_listener_->prepare_to_hold(); }
  // An entry was appended, or something else may have made room for held messages.
  void note_room() const noexcept {
    if (held_queues.load(std::memory_order_relaxed) != 0) [[unlikely]]
      room_listener_->room_appeared();
  }

  // Set-up path, setup_mutex held: the same, made if this is its first use. nullptr: no memory.
  [[nodiscard]] PortalEntry* obtain_portal(uint32_t pt_index) noexcept;

  // Returns the entries that portal table entries spare. No portal lock held.
  void release_spare_entries() noexcept;
  // The same whenever many more entries have been used than ever: those that are spared do not add
  // up.
  void limit_spare_entries() noexcept;

  // --- pools; guarded by themselves
  Arena<MemoryDescriptor>& descriptors() noexcept { return pools_.descriptors; }
  Arena<CountingEvent>& counters() noexcept { return pools_.counters; }
  Arena<EventQueueObject>& event_queues() noexcept { return pools_.event_queues; }
  Arena<ListEntry>& entries() noexcept { return pools_.entries; }
  UnexpectedPool& unexpected_headers() noexcept { return pools_.unexpected_headers; }
  Arena<TriggeredOperation>& triggered_operations() noexcept { return pools_.triggered_operations; }

  RankMap map;
  InterfaceStatus status;
  // Pairs of an initiator and a portal table entry with held messages. Changed under the lock of
  // the entry.
  std::atomic<uint32_t> held_queues{0};
  std::atomic<uint32_t> bundles{0};  // PtlStartBundle without PtlEndBundle yet
  Mutex setup_mutex;                 // portal table allocation, map changes
  unsigned references = 0;           // under the library's lock

 private:
  [[nodiscard]] uint64_t make_handle(HandleType type, uint32_t generation,
                                     uint32_t index) const noexcept {
    return encode_handle({type, index_, incarnation_, generation, index});
  }
  template <typename T>
  [[nodiscard]] static T* find(Arena<T>& pool, uint64_t handle) noexcept {
    const auto index = static_cast<uint32_t>(handle) & (handle_index_limit - 1);
    if (index >= pool.capacity()) [[unlikely]]
      return nullptr;
    // The memory of an object that was never used contains zeros: no handle but 0, see open().
    T& object = pool.at(index);
    return object.handle.is(handle) ? &object : nullptr;
  }

  PhysicalInterface& physical_;
  Initiator& initiator_;
  const ProcessId own_;
  TriggerExecutor* executor_ = nullptr;
  RoomListener* room_listener_ = nullptr;
  const uint64_t handle_;
  const uint64_t entry_handles_;  // bits that the handles of all entries share
  const unsigned request_flags_;
  const uint8_t index_;
  const uint8_t incarnation_;
  ptl_ni_limits_t limits_{};
  InterfacePools pools_;
  static constexpr uint32_t entries_between_releases = 1024;
  // Number of entries ever used, see limit_spare_entries().
  std::atomic<uint32_t> next_release_{entries_between_releases};
  std::atomic<PortalEntry*> portals_[largest_pt_index + 1] = {};
};

}  // namespace lintel
