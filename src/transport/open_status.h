// Result of opening a transport or a link. Set-up path.
#pragma once

#include <cstdint>

namespace lintel {

enum class OpenStatus : uint8_t {
  opened,
  pid_in_use,  // another process has this pid on the node, or this nid and pid on the network
  failed,
};

}  // namespace lintel
