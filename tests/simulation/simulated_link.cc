#include "simulation/simulated_link.h"

#include <cstring>
#include <utility>

#include "reliable/send_window.h"
#include "simulation/virtual_time.h"

namespace lintel::simulation {

namespace {

LinkAddress address_of(ProcessId process, unsigned rail = 0) noexcept {
  LinkAddress address;
  std::memcpy(address.bytes.data(), &process, sizeof process);
  address.bytes[sizeof process] = static_cast<std::byte>(rail);
  return address;
}

ProcessId owner_of(const LinkAddress& address) noexcept {
  ProcessId process;
  std::memcpy(&process, address.bytes.data(), sizeof process);
  return process;
}

}  // namespace

SimulatedLink::SimulatedLink(Network& network, uint32_t process, const LinkShape& shape)
    : network_(network), process_(process), mtu_(shape.mtu), refuses_long_(shape.refuses_long) {
  properties_.name = "simulated";
  properties_.id = id_of(process);
  properties_.own_address = address_of(id_of(process));
  properties_.mtu = shape.mtu;
  properties_.receive_capacity_bytes = shape.capacity_bytes;
  properties_.receive_slot_bytes = shape.has_slots ? shape.mtu : 0;
  properties_.sends_from_anywhere = shape.sends_from_anywhere;
  properties_.longest_pause_ns = shape.longest_pause_ns;
  // Processes tell their ports in different orders, so that probes have to find the pairs.
  const unsigned rails = network.rails();
  for (unsigned i = 0; i < rails && rails > 1; ++i) {
    const unsigned port = i == 0 || process % 2 == 0 ? i : 1 + i % (rails - 1);
    properties_.rails[properties_.rail_count++] = {{static_cast<uint8_t>(port)}, shape.mtu};
  }
}

// The buffer of a socket also counts the records of its frames.
uint64_t SimulatedLink::charge_of(const std::vector<std::byte>& bytes) const noexcept {
  return FrameCharge(properties_.receive_slot_bytes).of(static_cast<uint32_t>(bytes.size()));
}

bool SimulatedLink::queue(TravellingFrame frame) {
  const uint64_t charge = charge_of(frame.bytes);
  if (waiting_bytes_ + charge > receive_capacity_bytes()) return false;
  waiting_bytes_ += charge;
  waiting_.push_back({address_of(id_of(frame.from), frame.rail), std::move(frame.bytes)});
  return true;
}

ResolveStatus SimulatedLink::resolve(ProcessId peer, Route& route, std::string*) noexcept {
  route = {address_of(peer), mtu_};
  return ResolveStatus::resolved;
}

bool SimulatedLink::adopt(ProcessId peer, const LinkAddress& from, Route& route) noexcept {
  route = {from, mtu_};
  return owner_of(from) == peer;
}

LinkAddress SimulatedLink::with_rail(ProcessId, const LinkAddress& to) const noexcept {
  LinkAddress by_rail = to;
  by_rail.set_rail(static_cast<uint8_t>(to.bytes[sizeof(ProcessId)]));
  return by_rail;
}

unsigned SimulatedLink::ways_to(ProcessId peer, const LinkAddress&,
                                LinkAddress (&to)[most_ways]) const noexcept {
  for (unsigned i = 0; i < network_.rails(); ++i) to[i] = with_rail(peer, address_of(peer, i));
  return network_.rails() == 1 ? 0 : network_.rails();
}

LinkAddress SimulatedLink::rail_address(ProcessId peer, unsigned rail,
                                        const RailAddress& port) const noexcept {
  LinkAddress to = address_of(peer, port.bytes[0]);
  to.set_rail(static_cast<uint8_t>(rail));
  return to;
}

unsigned SimulatedLink::send(const OutboundFrame* frames, unsigned count) noexcept {
  if (full_) {
    counters_.send_full.fetch_add(count, std::memory_order_relaxed);
    return 0;
  }
  for (unsigned i = 0; i < count; ++i) {
    if (silent_) continue;
    std::vector<std::byte> bytes;
    for (unsigned p = 0; p < frames[i].count; ++p) {
      const Piece& piece = frames[i].pieces[p];
      bytes.insert(bytes.end(), piece.base, piece.base + piece.length);
    }
    if (refuses(bytes)) {
      counters_.send_full.fetch_add(count - i, std::memory_order_relaxed);
      return i;
    }
    counters_.frames_sent.fetch_add(1, std::memory_order_relaxed);
    counters_.bytes_sent.fetch_add(bytes.size(), std::memory_order_relaxed);
    const LinkAddress& to = *frames[i].to;
    // Rails are networks without a connection.
    if (to.rail() != static_cast<unsigned>(to.bytes[sizeof(ProcessId)])) continue;
    network_.carry({process_, process_of(owner_of(to)), to.rail(), std::move(bytes)});
  }
  return count;
}

unsigned SimulatedLink::receive(InboundFrame* frames, unsigned max) noexcept {
  handed_out_.clear();
  while (handed_out_.size() < max && !waiting_.empty()) {
    waiting_bytes_ -= charge_of(waiting_.front().bytes);
    handed_out_.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }
  unsigned count = 0;
  for (Waiting& frame : handed_out_)
    frames[count++] = {&frame.from, frame.bytes.data(), static_cast<uint32_t>(frame.bytes.size())};
  counters_.frames_received.fetch_add(count, std::memory_order_relaxed);
  return count;
}

}  // namespace lintel::simulation
