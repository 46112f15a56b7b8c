#include "core/library/print_statistics.h"

#include <cstdio>
#include <string>

namespace lintel {

void print_statistics(const PhysicalInterface& physical) noexcept {
  static constexpr const char* names[message_kinds] = {
      "none", "put",       "get",   "atomic",       "fetch_atomic", "swap",
      "ack",  "ack_batch", "reply", "data_request", "data",         "connection"};
  fprintf(stderr, "lintel: interface %u, nid 0x%08x pid %u\n", physical.number(), physical.id().nid,
          physical.id().pid);
  for (unsigned kind = 1; kind < message_kinds; ++kind) {
    const auto k = static_cast<MessageKind>(kind);
    const uint64_t out = physical.peers().sent(k, false);
    const uint64_t in = physical.received.messages[kind].get();
    if (out == 0 && in == 0) continue;
    fprintf(stderr,
            "  %-13s sent %12llu messages %14llu bytes   received %12llu messages %14llu bytes\n",
            names[kind], static_cast<unsigned long long>(out),
            static_cast<unsigned long long>(physical.peers().sent(k, true)),
            static_cast<unsigned long long>(in),
            static_cast<unsigned long long>(physical.received.bytes[kind].get()));
  }
  const PollCounters& polls = physical.poller().counters;
  fprintf(stderr,
          "  sends queued %llu, messages refused %llu, peers failed %llu, polls %llu (%llu with "
          "work), sleeps %llu\n",
          static_cast<unsigned long long>(physical.queues().queued.get()),
          static_cast<unsigned long long>(physical.messages_refused.get()),
          static_cast<unsigned long long>(physical.peers_failed.get()),
          static_cast<unsigned long long>(polls.polls.get()),
          static_cast<unsigned long long>(polls.polls_with_work.get()),
          static_cast<unsigned long long>(polls.sleeps.get()));
  for (const auto& transport : physical.transports()) {
    const std::string text = transport->statistics();
    if (!text.empty()) fprintf(stderr, "  %s\n", text.c_str());
  }
}

}  // namespace lintel
