// All connections, found by process and by the number in frames. Connection path, any thread;
// by_number() is message path.
#pragma once

#include <cstdint>
#include <mutex>
#include <unordered_map>

#include "reliable/connection.h"
#include "util/arena.h"

namespace lintel {

// Processes in an order that is the same for all.
[[nodiscard]] inline uint64_t key_of(ProcessId process) noexcept {
  return uint64_t{process.nid} << 32 | process.pid;
}

class ConnectionTable {
 public:
  // Set-up path. False: the system refuses the address space.
  [[nodiscard]] bool open(uint32_t most) noexcept { return arena_.open(most); }

  [[nodiscard]] Connection* find(ProcessId peer) const;
  // nullptr: too many. Throws when there is no memory.
  [[nodiscard]] Connection* find_or_make(ProcessId peer);
  // The connection that once had that number, or still has it: compare.
  [[nodiscard]] Connection* by_number(uint64_t number) const noexcept;
  // Its lock is held. A failed one can be opened again, under another number.
  void make_idle(Connection& connection) noexcept;

  [[nodiscard]] size_t size() const;
  template <typename Visit>
  void for_each(const Visit& visit) {
    const std::lock_guard guard(mutex_);
    for (const auto& [key, connection] : connections_) visit(*connection);
  }

 private:
  void renumber(Connection& connection) noexcept;

  mutable std::mutex mutex_;
  std::unordered_map<uint64_t, Connection*> connections_;
  Arena<Connection> arena_;
};

}  // namespace lintel
