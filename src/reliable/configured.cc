// Settings of the reliability layer from the configuration. Set-up path.
#include "reliable/configured.h"

#include "reliable/over_link.h"
#include "util/config.h"
#include "wiring/registry.h"

namespace lintel {

ReliableSettings configured_reliability(const TransportSettings& settings) {
  ReliableSettings reliable;
  reliable.uid = settings.uid;
  reliable.job_key = settings.job_key;
  reliable.memory_bytes = config_u64(ConfigKey::network_memory_kib) * 1024;
  reliable.peer_timeout_ns = config_u64(ConfigKey::network_timeout_ms) * 1'000'000;
  // Without a progress thread nobody would send them when the application stops calling.
  reliable.holds_acknowledgements = config_string(ConfigKey::progress) != "caller";
  reliable.shortest_timeout_ns = config_u64(ConfigKey::retransmit_min_us) * 1000;
  return reliable;
}

Faults configured_faults() {
  Faults faults;
  std::string reason;
  if (Faults::parse(config_string(ConfigKey::faults), faults, reason)) return faults;
  config_refuse(ConfigKey::faults,
                "drop, dup, reorder and corrupt with probabilities from 0 to 1, and seed, as in "
                "drop=0.01,seed=7");
  return {};
}

std::unique_ptr<ReliableTransport> open_configured_transport(std::unique_ptr<PacketLink> link,
                                                             const TransportSettings& settings,
                                                             bool polls_always,
                                                             std::string& reason) {
  ReliableSettings reliable = configured_reliability(settings);
  reliable.polls_always = polls_always;
  return reliable_over_link(std::move(link), reliable, configured_faults(), reason);
}

}  // namespace lintel
