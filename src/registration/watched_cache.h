// The registration cache: keeps memory registered after use, finds it again, and deregisters it
// when there is too much of it or when the application changes what lies at its addresses.
//
// Why a look-up never finds memory that is no longer what it was: a thread that unmaps, moves or
// discards watched memory stays in its system call until the event has been read. Events are read
// with the lock of the table held, and the regions that they concern are gone from the indexes
// before it is released. So everything that thread does afterwards sees them gone. Another thread
// can be faster only if the kernel gives it the same addresses while the first is still in its
// system call. Then the event may not be there yet, but MemoryWatch::changing(), asked before the
// look-up, is true from before the memory goes until its event was read, and the look-up waits for
// that.
//
// Discarded memory differs: its event comes first, and the pages go when it was read. A thread that
// sends from memory while another discards it may find it registered with the old pages for longer
// than this one operation; what it meant to send is undefined anyway.
//
// Memory that is being registered is in no index yet, but in RegionTable::entering_, so that events
// find it. It gets there before the kernel is asked for its pages, and, where neighbours are
// registered again with it, under the same lock under which these were found: other threads may be
// discarding them.
//
// Locks: with the lock of the table or of Deregistration held, no thread allocates or frees memory,
// logs, or waits for another one. Freeing may unmap watched memory, and that ends when the reader
// of events has had the lock. For the same reason the thread that reads events never deregisters
// memory: another one does.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "registration/memory_change_reader.h"
#include "registration/region_maker.h"
#include "registration/registration.h"
#include "util/lock.h"

namespace lintel {

class WatchedCache final : public RegistrationCache {
 public:
  struct Settings {
    uint32_t most_regions = 4096;  // 0: nothing is kept
    uint64_t most_bytes = UINT64_MAX;
  };

  explicit WatchedCache(const Settings& settings) : settings_(settings), parts_(settings) {}
  WatchedCache(const WatchedCache&) = delete;
  WatchedCache& operator=(const WatchedCache&) = delete;
  ~WatchedCache() = default;  // no registrar may be attached

  [[nodiscard]] std::unique_ptr<RegisteredMemory> attach(Registrar& registrar) noexcept override;
  [[nodiscard]] RegistrationCounters counters() const noexcept override {
    return parts_.table.counters();
  }

  // Registrars that were attached before the fork belong to the parent: their memory refuses all
  // requests from now on, and nothing is deregistered. New registrars can be attached.
  void after_fork_in_child() noexcept;

  // Whether memory is watched, and regions are kept. Changes only while a registrar is attached or
  // detached.
  [[nodiscard]] bool watching() const noexcept { return parts_.watch.active(); }

 private:
  class Attached;
  struct Parts {
    explicit Parts(const Settings& settings) noexcept
        : table(settings.most_regions, settings.most_bytes) {}
    RegionTable table;
    MemoryWatch watch;
    Deregistration deregistration{table, watch};
    RegionMaker maker{table, watch, deregistration};
    MemoryChangeReader changes{table, watch, deregistration};
    Mutex attach_lock;  // set-up; taken before the others
    unsigned attached LINTEL_GUARDED_BY(attach_lock) = 0;
  };

  void start_watching();

  const Settings settings_;
  std::atomic<uint32_t> generation_{0};  // number of forks
  Parts parts_;
};

// Returns the registration cache of this process, set up as the configuration says. Set-up path.
// Lives until the process ends. Watches over memory only while something is attached.
[[nodiscard]] RegistrationCache& process_registration_cache();

}  // namespace lintel
