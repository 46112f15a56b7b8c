// The RDMA devices of this machine, for ranks that use nothing else. If there are several, each
// rank takes another one, as if on different nodes. Set-up path.
#pragma once

#include <string>
#include <vector>

namespace lintel::test {

enum class Rdma {
  connected,  // queue pairs between the ranks, made on first use
  datagrams,  // everything by datagrams and the reliability layer (PTL_VERBS_MAX_RC=0)
};

// The devices with an active port.
[[nodiscard]] std::vector<std::string> rdma_devices();

// Why no RDMA device can be used here. Empty if one can, or must (LINTEL_TEST_NEEDS_RDMA): a test
// that finds none then fails.
[[nodiscard]] std::string why_no_rdma();

// PTL_PEER_TIMEOUT_MS for tests in which no peer dies: devices may be emulated, and slow.
[[nodiscard]] std::string rdma_timeout_ms();

// In a rank, before it opens an interface: nothing but RDMA devices, of which it takes one.
void join_rdma(int index, Rdma rdma);

// In a rank, before its body: takes a device if PTL_TRANSPORT permits nothing else.
void take_rdma_device(int index);

}  // namespace lintel::test
