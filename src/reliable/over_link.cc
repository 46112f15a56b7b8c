// Link, faults and reliability, one around the other. Set-up path.
#include "reliable/over_link.h"

#include "util/log.h"

namespace lintel {

std::unique_ptr<Transport> reliable_over_link(std::unique_ptr<PacketLink> link,
                                              const ReliableSettings& settings,
                                              const Faults& faults, std::string& reason) {
  if (settings.job_key.empty() && settings.node_secret == nullptr)
    log_message(LogLevel::info,
                "%s: peers are not authenticated; set PTL_JOB_KEY to the same secret in all "
                "processes of a job",
                link->name());
  if (faults.any()) {
    log_message(LogLevel::info, "%s: PTL_FAULTS damages what is sent on purpose", link->name());
    link = std::make_unique<FaultyLink>(std::move(link), faults);
  }
  return ReliableTransport::open(std::move(link), settings, reason);
}

}  // namespace lintel
