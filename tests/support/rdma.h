// The RDMA devices of this machine, for ranks that use no other transport. If there are several,
// ranks use different ones, as if they were on different nodes. Set-up path.
#pragma once

#include <string>
#include <vector>

namespace lintel::test {

enum class Rdma {
  connected,  // queue pairs between the ranks, made on first use
  datagrams,  // everything by datagrams and the reliability layer (PTL_VERBS_MAX_RC=0)
};

// The devices with an active port. Without those of the second cable of the guest (tests/vm), rail0
// and rail1: they are further ports beside rxe0 and rxe1.
[[nodiscard]] std::vector<std::string> rdma_devices();

// Why no RDMA device can be used here; empty if one can. Also empty if LINTEL_TEST_NEEDS_RDMA is
// set: then a test that finds no device fails.
[[nodiscard]] std::string why_no_rdma();

// PTL_PEER_TIMEOUT_MS for tests in which no peer dies. Devices may be emulated, and then slow.
[[nodiscard]] std::string rdma_timeout_ms();

// Called in a rank before it opens an interface: permits only RDMA devices, and takes one of them.
void join_rdma(int index, Rdma rdma);

// Called in a rank before its body: takes a device if PTL_TRANSPORT permits nothing else.
void take_rdma_device(int index);

}  // namespace lintel::test
