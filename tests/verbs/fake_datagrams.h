// A transport that records sent messages and gives the answers that a test specifies.
#pragma once

#include <string>
#include <vector>

#include "transport/transport.h"

namespace lintel::test {

class FakeDatagrams final : public Transport {
 public:
  struct Message {
    MessageHeader header;
    std::vector<std::byte> payload;
  };

  const Capabilities& capabilities() const noexcept override { return capabilities_; }
  Link* connect(ProcessId, std::string*) override { return &link; }
  uint64_t incarnation(Link&) const noexcept override { return 1; }
  SendStatus send(Link&, const MessageHeader& header, const Piece* pieces,
                  unsigned count) noexcept override {
    if (status != SendStatus::sent) return status;
    Message message{header, {}};
    for (unsigned i = 0; i < count; ++i) {
      const auto* const first = static_cast<const std::byte*>(pieces[i].base);
      message.payload.insert(message.payload.end(), first, first + pieces[i].length);
    }
    messages.push_back(std::move(message));
    return status;
  }
  unsigned poll(MessageSink&, unsigned) noexcept override { return 0; }
  bool arm(bool) noexcept override { return true; }
  std::string describe() const override { return {}; }

  SendStatus status = SendStatus::sent;
  std::vector<Message> messages;
  Link link;

 private:
  Capabilities capabilities_{};
};

}  // namespace lintel::test
