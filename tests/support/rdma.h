// The RDMA devices of this machine, for ranks that use nothing else: each takes another one if there are
// several, as if they were on different nodes. Set-up path.
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

// Why no RDMA device can be used here; empty if one can.
[[nodiscard]] std::string why_no_rdma();

// In a rank, before it opens an interface: if PTL_TRANSPORT says verbs and nothing names a device, ranks take
// one device after the other.
void take_rdma_device(int index);

// In a rank, before it opens an interface: RDMA devices are all that it uses.
void join_rdma(int index, Rdma rdma);

}  // namespace lintel::test
