#include "reliable/connection_table.h"

#include "reliable/cookie.h"

namespace lintel {

namespace {
constexpr unsigned number_index_bits = 20;
constexpr uint64_t number_index_mask = (uint64_t{1} << number_index_bits) - 1;
}  // namespace

Connection* ConnectionTable::find(ProcessId peer) const {
  const std::lock_guard guard(mutex_);
  const auto found = connections_.find(key_of(peer));
  return found == connections_.end() ? nullptr : found->second;
}

Connection* ConnectionTable::find_or_make(ProcessId peer) {
  const std::lock_guard guard(mutex_);
  const auto [place, is_new] = connections_.try_emplace(key_of(peer), nullptr);
  if (!is_new) return place->second;
  const uint32_t index = arena_.allocate();
  if (index == Arena<Connection>::no_index) {
    connections_.erase(place);
    return nullptr;
  }
  Connection& connection = arena_.at(index);
  connection.peer = peer;
  renumber(connection);
  return place->second = &connection;
}

// What a frame to us must name: the place in the arena, and bits that nobody can guess.
void ConnectionTable::renumber(Connection& connection) noexcept {
  connection.number = (random_u64() | 1) << number_index_bits | arena_.index_of(connection);
}

Connection* ConnectionTable::by_number(uint64_t number) const noexcept {
  const auto index = static_cast<uint32_t>(number & number_index_mask);
  return arena_.contains(index) ? &arena_.at(index) : nullptr;
}

void ConnectionTable::make_idle(Connection& connection) noexcept {
  renumber(connection);
  connection.announced = false;
  connection.peer_number = 0;
  connection.silence = {};
  connection.state.store(ConnectionState::idle, std::memory_order_release);
}

size_t ConnectionTable::size() const {
  const std::lock_guard guard(mutex_);
  return connections_.size();
}

}  // namespace lintel
