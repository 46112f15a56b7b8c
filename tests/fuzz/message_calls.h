// The calls that start messages, directly or triggered. Set-up path.
#pragma once

#include "fuzz/descriptors.h"
#include "fuzz/phase.h"

namespace lintel::fuzz {

class MessageCalls {
 public:
  MessageCalls(const Phase& phase, const Descriptors& descriptors)
      : phase_(phase), descriptors_(descriptors) {}

  void send(const Message& message);

 private:
  [[nodiscard]] int start(const Message& message);

  const Phase& phase_;
  const Descriptors& descriptors_;
};

}  // namespace lintel::fuzz
