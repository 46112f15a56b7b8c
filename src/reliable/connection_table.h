// All connections, found by process and by the number in frames. Connection path, any thread;
// by_number() is message path.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "reliable/connection.h"
#include "util/arena.h"
#include "util/lock.h"

namespace lintel {

class ConnectionTable {
 public:
  // Set-up path. `reuses_places`: those of connections that have ended. False: the system refuses
  // the address space.
  [[nodiscard]] bool open(uint32_t most, bool reuses_places = true) noexcept {
    reuses_places_ = reuses_places;
    return arena_.open(most);
  }

  [[nodiscard]] Connection* find(ProcessId peer) const;
  // Idle, if it had failed, or has never been: then it may take the place of one that has failed.
  // nullptr: there are too many connections, or `most_of_node` with processes of that node. Throws
  // when there is no memory.
  [[nodiscard]] Connection* find_or_make(ProcessId peer, uint32_t most_of_node = UINT32_MAX);
  // Connections with processes of that node that have not ended.
  [[nodiscard]] uint32_t of_node(uint32_t nid) const;
  // The poller. It has failed, and its link is not used any more until one side connects.
  void note_end(Connection& connection) noexcept;
  // The poller. One for which fits(connection), its lock held; tries a few, each time others.
  template <typename Fits>
  [[nodiscard]] Connection* search(const Fits& fits) noexcept {
    for (unsigned i = 0; i < most_tried; ++i) {
      if (++searched_ >= arena_.high_water()) searched_ = 0;
      Connection& connection = arena_.at(searched_);
      const LockGuard guard(connection.lock);
      if (fits(connection)) return &connection;
    }
    return nullptr;
  }
  // The connection that once had that number, or still has it: compare.
  [[nodiscard]] Connection* by_number(uint64_t number) const noexcept;

  // Visits all connections without a lock, for debuggers.
  template <typename Visit>
  void for_each_unlocked(const Visit& visit) const noexcept {
    for (uint32_t i = 0; i < arena_.high_water(); ++i) visit(arena_.at(i));
  }
  [[nodiscard]] size_t size() const;
  template <typename Visit>
  void for_each(const Visit& visit) {
    const LockGuard guard(mutex_);
    for (const auto& [key, connection] : connections_) visit(*connection);
  }

 private:
  static constexpr unsigned most_tried = 64;

  void make_idle(Connection& connection) noexcept LINTEL_REQUIRES(connection.lock);
  Connection* take_place() noexcept LINTEL_REQUIRES(mutex_);
  void leave_node(uint32_t nid) noexcept LINTEL_REQUIRES(mutex_);

  bool reuses_places_ = true;
  mutable Mutex mutex_;  // before the locks of connections
  std::unordered_map<uint64_t, Connection*> connections_ LINTEL_GUARDED_BY(mutex_);
  std::unordered_map<uint32_t, uint32_t> of_node_
      LINTEL_GUARDED_BY(mutex_);  // number of connections that have not ended, by nid
  Arena<Connection> arena_;
  ConnectionStack<&Connection::ended> ended_ LINTEL_GUARDED_BY(mutex_);  // some are connected again
  uint32_t searched_ = 0;
};

}  // namespace lintel
