// Tests what the node permits: reading other processes, membarrier, /dev/shm. Set-up path.
// SPDX-License-Identifier: BSD-3-Clause
#include <fcntl.h>
#include <linux/membarrier.h>
#include <linux/userfaultfd.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "common/text.h"
#include "ptl_info/facts.h"

namespace lintel::info {
namespace {

// Read by one child from another; at the same address in both, since both are forks.
volatile std::uint64_t probe = 0;

/** A forked process that is ended with its owner. */
class Child {
 public:
  explicit Child(pid_t pid) : pid_(pid) {}
  ~Child() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      wait_status();
    }
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return pid_; }

  int wait_status() {
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    return status;
  }

 private:
  pid_t pid_;
};

// 0, or the errno with which one process of this user failed to read another one. Two siblings,
// since a parent may read its children where unrelated processes may not.
int try_reading_sibling() {
  constexpr std::uint64_t expected = 0x6c696e74656c;
  int ready[2];
  if (pipe(ready) != 0) return errno;
  Child target(fork());
  if (target.pid() == 0) {
    probe = expected;
    const char done = 1;
    if (write(ready[1], &done, 1) != 1) _exit(1);
    for (;;) pause();
  }
  char done = 0;
  const bool started = target.pid() > 0 && read(ready[0], &done, 1) == 1;
  close(ready[0]);
  close(ready[1]);
  if (!started) return EAGAIN;

  Child reader(fork());
  if (reader.pid() == 0) {
    std::uint64_t found = 0;
    const iovec here{&found, sizeof found};
    const iovec there{const_cast<std::uint64_t*>(&probe), sizeof found};
    const ssize_t bytes = process_vm_readv(target.pid(), &here, 1, &there, 1, 0);
    if (bytes < 0) _exit(errno);
    _exit(bytes == sizeof found && found == expected ? 0 : EIO);
  }
  if (reader.pid() < 0) return EAGAIN;
  const int status = reader.wait_status();
  return WIFEXITED(status) ? WEXITSTATUS(status) : EIO;
}

std::string first_line_of(const char* file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

void describe_reading(NodeFacts& node) {
  const int error = try_reading_sibling();
  node.can_read_other_memory = error == 0;
  node.is_root = geteuid() == 0;
  node.read_other_memory = error == 0 ? "permitted between processes of this user"
                                      : std::string("refused: ") + std::strerror(error);
  const std::string scope = first_line_of("/proc/sys/kernel/yama/ptrace_scope");
  if (!scope.empty()) {
    node.ptrace_scope = std::atoi(scope.c_str());
    node.read_other_memory += " (kernel.yama.ptrace_scope = " + scope + ")";
  }
  if (error != 0) {
    node.read_other_memory += "; large messages go through shared memory with two copies";
  }
}

bool expedited_membarrier_available() {
  const long commands = syscall(__NR_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
  return commands >= 0 && (commands & MEMBARRIER_CMD_GLOBAL_EXPEDITED) != 0;
}

bool userfaultfd_available() {
  const long descriptor = syscall(__NR_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
  if (descriptor >= 0) close(static_cast<int>(descriptor));
  return descriptor >= 0;
}

std::uint64_t limit_of(__rlimit_resource_t resource) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0) return 0;
  return limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : limit.rlim_cur;
}

void describe_shared_memory(NodeFacts& node) {
  if (access("/dev/shm", R_OK | W_OK | X_OK) != 0) {
    node.shared_memory = std::string("/dev/shm cannot be used: ") + std::strerror(errno);
    return;
  }
  node.shm_usable = true;
  struct statvfs state {};
  if (statvfs("/dev/shm", &state) == 0) {
    node.shm_total_bytes = state.f_blocks * state.f_frsize;
    node.shm_free_bytes = state.f_bavail * state.f_frsize;
  }
  node.shared_memory = "/dev/shm, " + tools::format_bytes(node.shm_free_bytes) + " of " +
                       tools::format_bytes(node.shm_total_bytes) + " free";
}

}  // namespace

NodeFacts gather_node_facts() {
  NodeFacts node;
  node.machine = tools::describe_machine();
  describe_reading(node);
  node.membarrier_available = expedited_membarrier_available();
  describe_shared_memory(node);
  node.userfaultfd_available = userfaultfd_available();
  node.locked_memory_limit_bytes = limit_of(RLIMIT_MEMLOCK);
  node.address_space_limit_bytes = limit_of(RLIMIT_AS);
  node.receive_buffer_limit_bytes =
      std::strtoull(first_line_of("/proc/sys/net/core/rmem_max").c_str(), nullptr, 10);
  return node;
}

}  // namespace lintel::info
