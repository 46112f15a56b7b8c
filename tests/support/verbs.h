// RDMA devices for tests: those of this machine, or of the guest that tests/vm starts. Set-up path.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace lintel::test {

// Why there is no RDMA device here; empty if there is one, or if there must be one
// (LINTEL_TEST_NEEDS_VERBS), so that a test that finds none fails.
[[nodiscard]] std::string why_no_verbs();

// What makes a rank use nothing but an RDMA device.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> verbs_environment();

// The devices that tests use, of LINTEL_TEST_VERBS_DEVICES (names with spaces between them) or else
// none: the library's own choice.
[[nodiscard]] std::vector<std::string> verbs_devices();

// In a rank, before its body: if it uses nothing but RDMA devices and nobody chose one, rank
// `index` takes one of verbs_devices(), in turn, so that neighbouring ranks have the network
// between them.
void take_verbs_device(int index);

}  // namespace lintel::test
