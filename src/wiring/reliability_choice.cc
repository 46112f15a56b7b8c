// From the configuration to settings of the reliability layer. Set-up path.
#include "wiring/reliability_choice.h"

#include "util/config.h"

namespace lintel {

ReliableSettings configured_reliability(uint32_t uid, const std::string& job_key) {
  ReliableSettings reliable;
  reliable.uid = uid;
  reliable.job_key = job_key;
  reliable.memory_bytes = config_u64(ConfigKey::network_memory_kib) * 1024;
  reliable.peer_timeout_ns = config_u64(ConfigKey::peer_timeout_ms) * 1'000'000;
  const std::string& security = config_string(ConfigKey::network_security);
  if (security == "encrypted")
    reliable.security = NetworkSecurity::encrypted;
  else if (security == "authenticated" || (security == "auto" && !job_key.empty()))
    reliable.security = NetworkSecurity::authenticated;
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

}  // namespace lintel
