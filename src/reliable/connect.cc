// The table of connections. Connection path.
#include "reliable/reliable_transport.h"
#include "util/log.h"

namespace lintel {

namespace {
constexpr unsigned number_index_bits = 20;
constexpr uint64_t number_index_mask = (uint64_t{1} << number_index_bits) - 1;
}  // namespace

Connection* ReliableTransport::find(ProcessId peer) {
  const std::lock_guard guard(mutex_);
  const auto found = table_.find(key_of(peer));
  return found == table_.end() ? nullptr : found->second;
}

Connection* ReliableTransport::find_or_make(ProcessId peer) {
  const std::lock_guard guard(mutex_);
  Connection*& entry = table_[key_of(peer)];
  if (entry != nullptr) return entry;
  const uint32_t index = connections_.allocate();
  if (index == Arena<Connection>::no_index) {
    table_.erase(key_of(peer));
    return nullptr;
  }
  entry = &connections_.at(index);
  entry->peer = peer;
  renumber(*entry);
  return entry;
}

// What a frame to us must name: the place in the arena, and bits that nobody can guess.
void ReliableTransport::renumber(Connection& connection) noexcept {
  connection.number = (random_u64() | 1) << number_index_bits | connections_.index_of(connection);
}

Connection* ReliableTransport::by_number(uint64_t number) noexcept {
  const auto index = static_cast<uint32_t>(number & number_index_mask);
  return connections_.contains(index) ? &connections_.at(index) : nullptr;
}

void ReliableTransport::make_idle(Connection& connection) noexcept {
  renumber(connection);
  connection.announced = false;
  connection.refused = RefuseCause::none;
  connection.peer_number = 0;
  connection.unreachable_hints = 0;
  connection.waiting_since_ns = 0;
  connection.state.store(ConnectionState::idle, std::memory_order_release);
}

Link* ReliableTransport::connect(ProcessId peer, std::string* reason) {
  if (peer == own_id_) {
    if (reason != nullptr) *reason = "that is this process itself";
    return nullptr;
  }
  Route route;
  if (link_->resolve(peer, route, reason) == ResolveStatus::unreachable) return nullptr;
  Connection* const connection = find_or_make(peer);
  if (connection == nullptr) {
    if (reason != nullptr) *reason = "too many connections";
    return nullptr;
  }
  const std::lock_guard guard(connection->lock);
  if (connection->state.load(std::memory_order_relaxed) == ConnectionState::failed)
    make_idle(*connection);
  return connection;
}

}  // namespace lintel
