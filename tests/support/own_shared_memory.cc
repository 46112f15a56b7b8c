#include "support/own_shared_memory.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include <gtest/gtest.h>

namespace lintel::test {

namespace {

bool mount_shared_memory(const char* options, unsigned long flags = 0) {
  return mount("tmpfs", "/dev/shm", "tmpfs", flags, options) == 0;
}

bool enter_own_namespace() {
  return unshare(CLONE_NEWNS) == 0 &&
         mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
}

}  // namespace

bool can_own_shared_memory() {
#ifdef __SANITIZE_THREAD__
  return false;
#else
  const pid_t child = fork();
  if (child == 0) _exit(enter_own_namespace() && mount_shared_memory("size=64k") ? 0 : 1);
  int status = 1;
  waitpid(child, &status, 0);
  return status == 0;
#endif
}

void enter_memory_of_its_own(const char* options) {
  ASSERT_TRUE(enter_own_namespace()) << std::strerror(errno);
  ASSERT_TRUE(mount_shared_memory(options)) << std::strerror(errno);
}

void enter_own_shared_memory(Rank& rank, const char* options, int slot) {
  if (rank.index() == 0) {
    enter_memory_of_its_own(options);
    rank.publish(slot, getpid());
  }
  rank.barrier();
  if (rank.index() == 0) return;
  const std::string path = "/proc/" + std::to_string(rank.published<pid_t>(0, slot)) + "/ns/mnt";
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(fd, 0) << path << ": " << std::strerror(errno);
  ASSERT_EQ(setns(fd, CLONE_NEWNS), 0) << std::strerror(errno);
  close(fd);
}

void remount_shared_memory(const char* options) {
  ASSERT_TRUE(mount_shared_memory(options, MS_REMOUNT)) << std::strerror(errno);
}

}  // namespace lintel::test
