// Processes that are killed while they send messages.
#include <signal.h>
#include <sys/wait.h>

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/interface.h"
#include "support/memory.h"
#include "support/objects.h"
#include "support/ranks.h"

namespace lintel::test {
namespace {

constexpr ptl_pt_index_t pt_index = 4;
constexpr ptl_size_t message_bytes = 8000;  // six frames
constexpr int address_slot = 1;

// Chooses a pid that no other sender uses: a process with the pid of a dead one would be its
// successor.
ptl_handle_ni_t open_with_own_pid(int sender) {
  ptl_handle_ni_t handle = PTL_INVALID_HANDLE;
  auto pid = static_cast<ptl_pid_t>(30'000 + sender);
  int code = PTL_PID_IN_USE;
  for (; code == PTL_PID_IN_USE; pid += 1000)
    code =
        PtlNIInit(PTL_IFACE_DEFAULT, matching_physical.options(), pid, nullptr, nullptr, &handle);
  must(code);
  return handle;
}

// One frame in five is lost, so the target has received part of a message when the sender dies.
void stream_and_die(ptl_process_t target, int sender) {
  setenv("PTL_FAULTS", ("drop=0.2,seed=" + std::to_string(sender)).c_str(), 1);
  must(PtlInit());
  const ptl_handle_ni_t interface = open_with_own_pid(sender);
  std::vector<std::byte> memory(message_bytes);
  const Counter acks(interface);
  const Descriptor descriptor(interface, memory, PTL_MD_EVENT_CT_ACK, PTL_EQ_NONE, acks.handle());
  const auto put = [&](ptl_size_t length, ptl_ack_req_t ack) {
    must(PtlPut(descriptor.handle(), 0, length, ack, target, pt_index, 0, 0, nullptr, 0));
  };
  put(8, PTL_CT_ACK_REQ);
  acks.expect(1);  // connected
  for (int i = 0; i < 32; ++i) put(message_bytes, PTL_NO_ACK_REQ);
  raise(SIGKILL);
}

// The memory of the target has room for some thirty partly received messages.
// spec 3.13.3
TEST(AbandonedMessagesTest, SendersThatWereKilledDoNotExcludeOthers) {
  const int senders = long_tests() ? 900 : 60;
  const RunOptions options{.environment = {{"PTL_TRANSPORT", "udp"},
                                           {"PTL_UDP_FRAME_BYTES", "1400"},
                                           {"PTL_NETWORK_MEMORY_KIB", "2048"},
                                           {"PTL_PEER_TIMEOUT_MS", "3000"}},
                           .deadline = (long_tests() ? 10 : 3) * test_deadline};
  run_ranks(2, options, [&](Rank& rank) {
    std::vector<std::byte> memory(message_bytes);
    if (rank.index() == 0) {
      rank.initialise();
      const Interface interface(matching_physical, {});
      ptl_pt_index_t index = 0;
      must(PtlPTAlloc(interface.handle(), 0, PTL_EQ_NONE, pt_index, &index));
      interface.append(pt_index, {.start = memory.data(),
                                  .length = memory.size(),
                                  .options = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE});
      ptl_process_t own{};
      must(PtlGetPhysId(interface.handle(), &own));
      rank.publish(address_slot, own);
      rank.barrier();
      rank.barrier();
      expect_pattern(memory, 7);
      return;
    }
    rank.barrier();
    const auto target = rank.published<ptl_process_t>(0, address_slot);
    for (int i = 0; i < senders; ++i)
      EXPECT_EQ(WTERMSIG(run_child([&] { stream_and_die(target, i); })), SIGKILL);
    rank.initialise();
    const Interface interface(matching_physical, {});
    fill(memory, 7);
    const Counter acks(interface.handle());
    const Descriptor descriptor(interface.handle(), memory, PTL_MD_EVENT_CT_ACK, PTL_EQ_NONE,
                                acks.handle());
    for (int i = 0; i < 20; ++i)
      must(PtlPut(descriptor.handle(), 0, memory.size(), PTL_CT_ACK_REQ, target, pt_index, 0, 0,
                  nullptr, 0));
    acks.expect(20);
    rank.barrier();
  });
}

}  // namespace
}  // namespace lintel::test
