// Finds the system calls on sockets that a filter denies, as the seccomp profiles of some
// containers do. Set-up path.
#pragma once

#include <string>

namespace lintel {

struct UdpCalls {
  bool receives_one = true;      // recvfrom
  bool receives_several = true;  // recvmmsg
  bool sends_several = true;     // sendmmsg

  // Tests the system calls on a bound socket. False: datagrams cannot be sent or received at all;
  // `reason` says why not and what to do. Logs what is slower than it could be.
  [[nodiscard]] bool probe(int socket, std::string& reason);
};

}  // namespace lintel
