// Settings of the reliability layer from the configuration. Set-up path.
#include "reliable/configured.h"

#include "reliable/faulty_link.h"
#include "transport/registry.h"
#include "util/config.h"
#include "util/log.h"

namespace lintel {

std::unique_ptr<ReliableTransport> open_configured_transport(std::unique_ptr<PacketLink> link,
                                                             const TransportSettings& settings,
                                                             bool polls_always,
                                                             std::string& reason) {
  ReliableSettings reliable;
  reliable.uid = settings.uid;
  reliable.job_key = settings.job_key;
  reliable.memory_bytes = config_u64(ConfigKey::network_memory_kib) * 1024;
  reliable.peer_timeout_ns = config_u64(ConfigKey::network_timeout_ms) * 1'000'000;
  reliable.shortest_timeout_ns = config_u64(ConfigKey::retransmit_min_us) * 1000;
  reliable.polls_always = polls_always;
  if (settings.job_key.empty())
    log_message(LogLevel::info,
                "%s: peers are not authenticated; set PTL_JOB_KEY to the same secret in all "
                "processes of a job",
                link->name());
  return ReliableTransport::open(with_configured_faults(std::move(link)), reliable, reason);
}

}  // namespace lintel
