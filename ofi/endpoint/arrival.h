// Knowledge of a receiver about a message. Message path.
#pragma once

#include <portals4.h>

#include <cstddef>
#include <cstdint>

#include <rdma/fabric.h>

#include "wire/message_header.h"

namespace lintel::ofi {

struct Arrival {
  MessageHeader header;
  ptl_match_bits_t bits;
  size_t length;       // bytes that the sender sent
  fi_addr_t sender;    // name in 64 bits
  uint32_t recipient;  // of a shared receive context: index of the endpoint
};

}  // namespace lintel::ofi
