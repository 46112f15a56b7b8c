#include "reliable/connection_table.h"

#include "transport/process_key.h"
#include "util/lock.h"
#include "util/random.h"

namespace lintel {

namespace {
constexpr unsigned number_index_bits = 20;
constexpr uint64_t number_index_mask = (uint64_t{1} << number_index_bits) - 1;
}  // namespace

Connection* ConnectionTable::find(ProcessId peer) const {
  const LockGuard guard(mutex_);
  const auto found = connections_.find(key_of(peer));
  return found == connections_.end() ? nullptr : found->second;
}

Connection* ConnectionTable::find_or_make(ProcessId peer, uint32_t most_of_node) {
  const LockGuard guard(mutex_);
  uint32_t& count = of_node_[peer.nid];
  Connection*& connection = connections_[key_of(peer)];
  const bool is_new = connection == nullptr;
  if (is_new || connection->life.is_reported()) {
    const bool fits = count < most_of_node;
    ++count;
    if (fits && is_new) connection = take_place();
    if (!fits || connection == nullptr) {
      leave_node(peer.nid);
      if (is_new) connections_.erase(key_of(peer));
      return nullptr;
    }
  }
  if (is_new) {
    const LockGuard connection_guard(connection->lock);
    connection->peer = peer;
    connection->context = nullptr;
    connection->life.forget_peer();
    make_idle(*connection);
  } else {
    const LockGuard connection_guard(connection->lock);
    if (connection->life.is(ConnectionState::failed)) make_idle(*connection);
  }
  return connection;
}

Connection* ConnectionTable::take_place() noexcept {
  const uint32_t index = arena_.allocate();
  if (index != Arena<Connection>::no_index) return &arena_.at(index);
  while (!ended_.is_empty()) {
    Connection& connection = ended_.pop();
    const LockGuard guard(connection.lock);
    if (!connection.life.is_reported()) continue;
    connections_.erase(key_of(connection.peer));
    return &connection;
  }
  return nullptr;
}

void ConnectionTable::leave_node(uint32_t nid) noexcept {
  const auto found = of_node_.find(nid);
  LINTEL_ASSERT(found != of_node_.end() && found->second != 0);
  if (--found->second == 0) of_node_.erase(found);
}

uint32_t ConnectionTable::of_node(uint32_t nid) const {
  const LockGuard guard(mutex_);
  const auto found = of_node_.find(nid);
  return found == of_node_.end() ? 0 : found->second;
}

void ConnectionTable::note_end(Connection& connection) noexcept {
  const LockGuard guard(mutex_);
  const LockGuard connection_guard(connection.lock);
  if (!connection.life.is(ConnectionState::failed)) return;
  connection.life.note_reported();
  leave_node(connection.peer.nid);
  if (reuses_places_) ended_.push(connection);
}

// Gives it another number, which frames to this process must contain: the place
// in the arena, and 44 random bits, which are not all zero.
void ConnectionTable::make_idle(Connection& connection) noexcept {
  uint64_t random = 0;
  while (random == 0) random = random_u64() << number_index_bits;
  connection.life.renew(random | arena_.index_of(connection));
  connection.silence = {};
}

Connection* ConnectionTable::by_number(uint64_t number) const noexcept {
  const auto index = static_cast<uint32_t>(number & number_index_mask);
  return arena_.contains(index) ? &arena_.at(index) : nullptr;
}

size_t ConnectionTable::size() const {
  const LockGuard guard(mutex_);
  return connections_.size();
}

}  // namespace lintel
