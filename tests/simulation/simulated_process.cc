#include "simulation/simulated_process.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "simulation/virtual_time.h"

namespace lintel::simulation {

namespace {
constexpr const char* job_key = "a secret that is long enough not to be stretched";
}

std::unique_ptr<ReliableTransport> SimulatedProcess::open_transport() {
  auto link = std::make_unique<SimulatedLink>(network_, number_, shape_.link);
  link_ = link.get();
  ReliableSettings settings;
  settings.uid = 1000;
  settings.memory_bytes = shape_.memory_bytes;
  settings.peer_timeout_ns = shape_.peer_timeout_ns;
  settings.first_sequence = shape_.first_sequence;
  settings.most_connections = shape_.most_connections;
  settings.clock = virtual_clock;
  settings.security = shape_.security;
  if (settings.security != NetworkSecurity::off) settings.job_key = job_key;
  settings.key_epoch_bits = shape_.key_epoch_bits;
  settings.first_counter = shape_.first_counter;
  std::string reason;
  std::unique_ptr<ReliableTransport> transport =
      ReliableTransport::open(std::move(link), settings, reason);
  if (transport == nullptr) throw std::runtime_error(reason);
  transport_ = transport.get();
  return transport;
}

void SimulatedProcess::close_transport(bool politely) noexcept {
  if (!politely) link_->silence();
  retransmissions_ += transport_->counters().retransmissions;
  transport_ = nullptr;
  link_ = nullptr;
}

void SimulatedProcess::note_frame_memory() noexcept {
  most_frame_memory_ = std::max(most_frame_memory_, transport_->frame_memory_used());
}

}  // namespace lintel::simulation
