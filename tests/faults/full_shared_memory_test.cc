// A file system for shared memory without room: in a mount namespace of the test's own.
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include <gtest/gtest.h>

#include "support/interface.h"
#include "support/memory.h"
#include "support/objects.h"
#include "support/ranks.h"

namespace lintel::test {
namespace {

constexpr ptl_pt_index_t pt_index = 4;

bool mount_shared_memory(const char* options, unsigned long flags = 0) {
  return mount("tmpfs", "/dev/shm", "tmpfs", flags, options) == 0;
}

bool enter_own_namespace() {
  return unshare(CLONE_NEWNS) == 0 &&
         mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
}

// Whether a process of this user may do all this.
bool can_mount() {
  const pid_t child = fork();
  if (child == 0) _exit(enter_own_namespace() && mount_shared_memory("size=64k") ? 0 : 1);
  int status = 1;
  waitpid(child, &status, 0);
  return status == 0;
}

// All ranks see the small file system that rank 0 mounts.
void enter_small_file_system(Rank& rank, const char* options) {
  if (rank.index() == 0) {
    ASSERT_TRUE(enter_own_namespace()) << std::strerror(errno);
    ASSERT_TRUE(mount_shared_memory(options)) << std::strerror(errno);
    rank.publish(1, getpid());
  }
  rank.barrier();
  if (rank.index() == 0) return;
  const std::string path =
      "/proc/" + std::to_string(rank.published<pid_t>(0, 1)) + "/ns/mnt";
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(fd, 0) << path << ": " << std::strerror(errno);
  ASSERT_EQ(setns(fd, CLONE_NEWNS), 0) << std::strerror(errno);
  close(fd);
}

// spec 3.13.3
TEST(FullSharedMemoryTest, OperationsFailUntilThereIsRoom) {
  if (!can_mount()) GTEST_SKIP() << "no right to mount a file system in a namespace (not root)";
  RunOptions options;
  options.environment = {{"PTL_TRANSPORT", "local,shm"}, {"PTL_LOG_LEVEL", "error"}};
  run_ranks(2, options, [](Rank& rank) {
    // Room for both segments, and not for the queue from one to the other.
    enter_small_file_system(rank, "size=140k");
    std::vector<std::byte> memory(64);
    const Interface interface(rank, matching_physical);
    const EventQueue events(interface.handle());
    ptl_pt_index_t index = 0;
    must(PtlPTAlloc(interface.handle(), 0, events.handle(), pt_index, &index));
    interface.append(index, {.start = memory.data(),
                             .length = memory.size(),
                             .options = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE});
    rank.barrier();
    if (rank.index() == 0) {
      const EventQueue sent(interface.handle());
      const Descriptor descriptor(interface.handle(), memory, 0, sent.handle());
      const auto put = [&] {
        must(PtlPut(descriptor.handle(), 0, memory.size(), PTL_ACK_REQ, interface.address(1), index,
                    0, 0, nullptr, 0));
      };
      put();
      sent.expect(PTL_EVENT_SEND, PTL_NI_UNDELIVERABLE);
      ASSERT_TRUE(mount_shared_memory("size=64m", MS_REMOUNT)) << std::strerror(errno);
      fill(memory, 8);
      put();
      sent.expect_all({PTL_EVENT_SEND, PTL_EVENT_ACK});
    }
    rank.barrier();
    if (rank.index() == 1) {
      events.expect(PTL_EVENT_PUT);
      expect_pattern(memory, 8);
      events.expect_silence();
    }
    rank.barrier();
  });
}

}  // namespace
}  // namespace lintel::test
