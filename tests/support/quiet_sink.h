// A core that ignores what a transport reports, and permits every access.
#pragma once

#include "transport/transport.h"

namespace lintel::test {

class QuietSink : public MessageSink {
 public:
  void* on_new_link(Link&) noexcept override { return this; }
  void on_messages(Link&, const InboundMessage*, unsigned) noexcept override {}
  void on_peer_failed(Link&) noexcept override {}
  void on_remote_done(Link&, uint32_t, RemoteResult) noexcept override {}
  bool may_access(Link&, const RemoteMemory&, bool) noexcept override { return true; }
};

}  // namespace lintel::test
