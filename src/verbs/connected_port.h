// The queue pairs of one port, with all that they share. The transport passes calls on to the
// parts.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "registration/device_distances.h"
#include "verbs/channel_change.h"
#include "verbs/verbs_link.h"
#include "verbs/verbs_module.h"

namespace lintel {

struct ConnectedPort {
  // `notices`: see Arrivals.
  ConnectedPort(std::shared_ptr<VerbsDevice> device, Transport& datagrams,
                const ConnectedSettings& settings, NoticeSink* notices = nullptr);
  ConnectedPort(const ConnectedPort&) = delete;
  ConnectedPort& operator=(const ConnectedPort&) = delete;
  ~ConnectedPort();

  // Makes the queues. False: `reason`.
  [[nodiscard]] bool open(std::string& reason);
  [[nodiscard]] bool is_open() const noexcept { return queue.get() != nullptr; }

  // Before the poller sleeps. False: there is something to do.
  [[nodiscard]] bool arm() noexcept {
    return queue.arm() && !requests.is_pending(std::memory_order_seq_cst);
  }
  // The poller. What is left to do besides completions. `for_each`: calls a function with each link
  // that may have requests.
  template <typename ForEach>
  void serve(MessageSink& sink, const ForEach& for_each) noexcept LINTEL_REQUIRES(polling) {
    if (requests.is_pending(std::memory_order_relaxed)) [[unlikely]] {
      change.stop_broken(requests.take());
      for_each([&](VerbsLink& link) { change.grant(link); });
    }
    if (!unfinished.is_empty()) [[unlikely]]
      unfinished.serve([&](VerbsLink& link) {
        polling.assert_held();
        return change.serve(link, sink);
      });
  }

  // Parts, destroyed in the opposite order.
  const std::shared_ptr<VerbsDevice> device;
  const ConnectedSettings settings;
  DeviceDistances distances;
  DeviceMemory memory;
  ChannelRequests requests;
  UnfinishedLinks unfinished;
  MessageSender sender;
  RemoteAccesses accesses;
  Exposures exposures;
  ReceiveBuffers receives;
  CompletionQueue queue;
  Channels channels;
  Arrivals arrivals;
  Completions completions;
  ChannelChange change;
};

}  // namespace lintel
