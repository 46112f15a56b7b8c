// The registration cache: keeps memory registered after use, finds it again, and gives it up when
// there is too much of it or when the application changes what lies at its addresses.
//
// look_up.cc    acquire() and release(): the message path
// enter.cc      registers what look-ups miss
// retire.cc     makes room, deregisters, ends watching
// events.cc     what the application unmaps, and the thread that learns of it
// attach.cc     registrars come and go, forked children
//
// Why a look-up never finds memory that is no longer what it was: a thread that unmaps, moves or
// discards watched memory stays in its system call until the event has been read. Events are read
// with `lock_` held, and the regions that they concern are gone from the indexes before it is
// released. So what that thread does next sees them gone. Another thread can be faster only if the
// kernel gives it the same addresses anew while the first is still in its system call. It cannot
// know of the event, but the kernel does: MemoryWatch::changing(), asked before the look-up, is
// true from before the memory goes until its event was read, and then the look-up waits for that.
// (Settings::check; it costs a system call, which programs can do without whose other threads map
// no memory while one unmaps.)
//
// Discarded memory differs: its event comes first, and the pages go when it was read. Whoever sends
// from memory that is being discarded may find it registered with the old pages for longer than
// this one operation; nobody can say what he wanted to send.
//
// Memory that is being registered is in no index yet, but in `entering_`, so that events find it. It
// gets there before the kernel is asked for its pages, and, where neighbours are registered anew
// with it, in the same section of the lock in which these were found: others may be discarding them.
//
// Locks: nobody allocates or frees memory, logs, or waits for anybody with `lock_` or `watch_lock_`
// held. Freeing may unmap watched memory, and that ends when the reader of events has had the lock.
// For the same reason the thread that reads events never deregisters memory: another one does.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "registration/memory_watch.h"
#include "registration/region.h"
#include "registration/region_index.h"
#include "registration/registration.h"
#include "util/spin_lock.h"

namespace lintel {

class WatchedCache;

// The memory of one registrar.
class AttachedMemory final : public RegisteredMemory {
 public:
  AttachedMemory(WatchedCache& cache, Registrar& registrar, uint32_t generation, size_t capacity);
  ~AttachedMemory() override;

  [[nodiscard]] const RegisteredRegion* acquire(const void* address, uint64_t length, bool writable,
                                                int& error) noexcept override;
  void release(const RegisteredRegion* region) noexcept override;

 private:
  friend class WatchedCache;

  [[nodiscard]] RegionIndex& index(bool writable) noexcept {
    return writable ? for_writing_ : for_reading_;
  }
  [[nodiscard]] Region* find(uint64_t begin, uint64_t end, bool writable) const noexcept {
    Region* const found = for_writing_.find(begin, end);
    return found != nullptr || writable ? found : for_reading_.find(begin, end);
  }

  WatchedCache& cache_;
  Registrar& registrar_;
  const uint32_t generation_;
  RegionIndex for_writing_;  // serves reading, too
  RegionIndex for_reading_;
  RegionSiblings regions_;
  unsigned deregistering_ = 0;  // regions that threads are at work on, without the lock
  AttachedMemory* next_ = nullptr;
};

class WatchedCache final : public RegistrationCache {
 public:
  struct Settings {
    uint32_t most_regions = 4096;  // 0: nothing is kept
    uint64_t most_bytes = UINT64_MAX;
    bool check = true;  // see above
  };

  explicit WatchedCache(const Settings& settings) : settings_(settings) {}
  WatchedCache(const WatchedCache&) = delete;
  WatchedCache& operator=(const WatchedCache&) = delete;
  ~WatchedCache() = default;  // nothing may be attached

  [[nodiscard]] std::unique_ptr<RegisteredMemory> attach(Registrar& registrar) noexcept override;
  [[nodiscard]] RegistrationCounters counters() const noexcept override;

  // What was attached before the fork belongs to the parent: it refuses everything from now on, and
  // deregisters nothing. New registrars can be attached.
  void after_fork_in_child() noexcept;

  // Memory is watched, and so kept. Changes only while something is attached or detached.
  [[nodiscard]] bool watching() const noexcept { return watch_.active(); }

 private:
  friend class AttachedMemory;
  struct Range {
    uint64_t begin;
    uint64_t end;
    bool operator==(const Range&) const = default;
  };
  enum class Entry : uint8_t { entered, unwatchable, failed };

  // look_up.cc
  [[nodiscard]] Region* look_up(AttachedMemory& memory, Range wanted, bool writable) noexcept;
  void give_back(Region& region) noexcept;

  // enter.cc
  [[nodiscard]] Region* enter(AttachedMemory& memory, Range wanted, bool writable, bool keep,
                              int& error) noexcept;
  [[nodiscard]] Entry enter_watched(Region& region, Range wanted, int& error) noexcept;
  void begin(Region& region, Range range) noexcept;
  void begin_locked(Region& region, Range range) noexcept;
  [[nodiscard]] bool begin_with_neighbours(Region& region, Range exact) noexcept;
  [[nodiscard]] Range widened_locked(AttachedMemory& memory, bool writable, Range range) noexcept;
  [[nodiscard]] Entry enter_begun(Region& region, bool make_room, int& error) noexcept;
  [[nodiscard]] int register_making_room(Region& region) noexcept;
  void keep_if_possible(Region& region) noexcept;
  void insert(Region& region) noexcept;

  // retire.cc; those called *_locked with lock_ held
  [[nodiscard]] bool has_room_locked(const Region& region) const noexcept;
  void retire_locked(Region& region) noexcept;
  uint64_t evict_locked() noexcept;
  [[nodiscard]] bool evict(uint64_t bytes) noexcept;
  void deregister_retired() noexcept;
  void stop_watching(Range range) noexcept;
  [[nodiscard]] Range first_unused_locked(Range range) noexcept;

  // events.cc
  void read_events() noexcept;
  void handle_locked(const MemoryEvent& event) noexcept;
  [[nodiscard]] bool wait_for_changes() noexcept;
  [[nodiscard]] bool start_threads() noexcept;
  void stop_threads() noexcept;
  static void* run_reader(void* self) noexcept;
  static void* run_retirer(void* self) noexcept;

  // attach.cc
  void start_watching();
  void detach(AttachedMemory& memory) noexcept;

  const Settings settings_;
  std::mutex attach_lock_;  // set-up; taken before the others
  // Serialises what is asked of watch_ with the reckoning of what needs to be watched. Taken before
  // lock_, held through system calls that wait for no other thread of this process but for the
  // kernel's own lock of the address space.
  std::mutex watch_lock_;
  MemoryWatch watch_;

  // Held for some dozens of nanoseconds by look-ups, for a short system call by readers of events,
  // which must be so (see above) and happens only when the application has changed registered
  // memory.
  mutable SpinLock lock_;
  AttachedMemory* attached_ = nullptr;
  RegionChain entering_;  // being registered
  RegionChain idle_;      // kept and not leased, least recently used first
  RegionChain retired_;   // to be deregistered
  RegistrationCounters counters_;

  std::atomic<uint32_t> generation_{0};  // of forks
  unsigned attached_count_ = 0;
  pthread_t reader_{};
  pthread_t retirer_{};
  int stop_reader_ = -1;  // an eventfd
  std::atomic<bool> stop_retirer_{false};
  std::atomic<uint32_t> retirements_{0};      // what the retirer sleeps on
  std::atomic<uint32_t> deregistrations_{0};  // what those sleep on who wait for deregistration
};

}  // namespace lintel
