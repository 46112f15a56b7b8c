// Processes of other jobs and other users are refused.
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>

#include <gtest/gtest.h>

#include "support/interface.h"
#include "support/memory.h"
#include "support/objects.h"
#include "support/own_shared_memory.h"
#include "support/ranks.h"
#include "support/text.h"

namespace {
std::atomic<bool> claims_to_be_root{false};
}

// Replaces geteuid() for the library in this program. So a process can claim to be another user, as
// a modified library could.
extern "C" [[gnu::visibility("default")]] uid_t geteuid() noexcept {
  return claims_to_be_root ? 0 : static_cast<uid_t>(syscall(SYS_geteuid));
}

namespace lintel::test {
namespace {

constexpr ptl_pt_index_t pt_index = 4;
constexpr uid_t nobody = 65534;

// Rank 0 puts to and gets from rank 1, which accepts operations of all users. `outcome` is the
// expected result of the operations.
void expect_outcome(const std::function<void(Rank&)>& before, ptl_ni_fail_t outcome) {
  run_ranks(2, [&](Rank& rank) {
    before(rank);
    std::vector<std::byte> memory(64);
    const Interface interface(rank, matching_physical);
    const EventQueue events(interface.handle());
    if (rank.index() == 1) {
      fill(memory, 3);
      interface.allocate(pt_index, events.handle());
      interface.append(pt_index,
                       {.start = memory.data(),
                        .length = memory.size(),
                        .options = PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE |
                                   PTL_ME_EVENT_COMM_DISABLE});
    }
    rank.barrier();
    if (rank.index() == 0) {
      const Descriptor descriptor(interface.handle(), memory, 0, events.handle());
      const auto end = [&] {
        ptl_event_t event = events.next();
        while (event.type == PTL_EVENT_SEND && event.ni_fail_type == PTL_NI_OK)
          event = events.next();
        return fail_name(event.ni_fail_type);
      };
      must(PtlGet(descriptor.handle(), 0, 64, interface.address(1), pt_index, 0, 0, nullptr));
      EXPECT_EQ(end(), fail_name(outcome));
      if (outcome != PTL_NI_OK) expect_bytes(memory, std::byte{0});
      must(PtlPut(descriptor.handle(), 0, 64, PTL_ACK_REQ, interface.address(1), pt_index, 0, 0,
                  nullptr, 0));
      EXPECT_EQ(end(), fail_name(outcome));
    }
    rank.barrier();
    if (rank.index() == 1) expect_pattern(memory, 3);
  });
}

// spec 2.5, 3.8
TEST(IsolationTest, TheSameJobKeyAdmits) {
  expect_outcome([](Rank&) { setenv("PTL_JOB_KEY", "a shared secret", 1); }, PTL_NI_OK);
}

// spec 2.5, 3.8
TEST(IsolationTest, AnotherJobKeyIsRefused) {
  expect_outcome(
      [](Rank& rank) {
        setenv("PTL_JOB_KEY", rank.index() == 0 ? "one secret" : "another secret", 1);
      },
      PTL_NI_UNDELIVERABLE);
}

// spec 2.5, 3.8
TEST(IsolationTest, AMissingJobKeyIsRefused) {
  expect_outcome(
      [](Rank& rank) {
        if (rank.index() == 1) setenv("PTL_JOB_KEY", "a secret", 1);
      },
      PTL_NI_UNDELIVERABLE);
}

// spec 2.5, 3.8
TEST(IsolationTest, AnotherUserIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user for this test";
  expect_outcome(
      [](Rank& rank) {
        if (rank.index() == 0) {
          ASSERT_EQ(setgid(nobody), 0);
          ASSERT_EQ(setuid(nobody), 0);
        }
      },
      PTL_NI_UNDELIVERABLE);
}

// Only the kernel can confirm a user, and a datagram does not contain its sender's user.
// spec 2.5, 3.8
TEST(IsolationTest, AnotherUserThatLiesIsRefusedOverTheNetwork) {
  if (geteuid() != 0 || !can_own_shared_memory()) GTEST_SKIP() << no_own_shared_memory;
  run_ranks(2, [](Rank& rank) {
    enter_own_shared_memory(rank, "mode=1777", 2);
    rank.barrier();
    setenv("PTL_TRANSPORT", "udp", 1);
    if (rank.index() == 0) {
      ASSERT_EQ(setgid(nobody), 0);
      ASSERT_EQ(setuid(nobody), 0);
      claims_to_be_root = true;
    }
    std::vector<std::byte> memory(64);
    testing::internal::CaptureStderr();
    {
      const Interface interface(rank, matching_physical);
      const EventQueue events(interface.handle());
      if (rank.index() == 1) {
        fill(memory, 3);
        interface.allocate(pt_index, events.handle());
        ptl_uid_t uid = 0;
        must(PtlGetUid(interface.handle(), &uid));
        EXPECT_EQ(uid, 0u);
        interface.append(pt_index, {.start = memory.data(),
                                    .length = memory.size(),
                                    .options = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE,
                                    .uid = 0});
      }
      rank.barrier();
      if (rank.index() == 0) {
        const Descriptor descriptor(interface.handle(), memory, 0, events.handle());
        must(PtlPut(descriptor.handle(), 0, 64, PTL_ACK_REQ, interface.address(1), pt_index, 0, 0,
                    nullptr, 0));
        EXPECT_EQ(fail_name(events.next().ni_fail_type), fail_name(PTL_NI_UNDELIVERABLE));
      }
      rank.barrier();
      if (rank.index() == 1) {
        events.expect_empty();
        expect_pattern(memory, 3);
      }
    }
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_NE(said.find("set PTL_JOB_KEY"), std::string::npos)
        << "the messages of both sides must say what to do: " << said;
  });
}

// spec 2.5, 3.8
TEST(IsolationTest, WithoutAKeyProcessesOfTheUserAreAdmittedOverTheNetwork) {
  expect_outcome([](Rank&) { setenv("PTL_TRANSPORT", "udp", 1); }, PTL_NI_OK);
}

// Two containers with separate shared memory are treated as two nodes.
// spec 2.5, 3.8
TEST(IsolationTest, AnotherNodeIsAdmittedOnlyIfTheNetworkIsOpened) {
  if (!can_own_shared_memory()) GTEST_SKIP() << no_own_shared_memory;
  for (const bool open : {false, true}) {
    const auto as_another_node = [open](Rank&) {
      setenv("PTL_TRANSPORT", "udp", 1);
      if (open) setenv("PTL_UDP_OPEN", "1", 1);
      enter_memory_of_its_own("mode=1777");
    };
    expect_outcome(as_another_node, open ? PTL_NI_OK : PTL_NI_UNDELIVERABLE);
  }
}

}  // namespace
}  // namespace lintel::test
