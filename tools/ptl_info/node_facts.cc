// What the node permits: reading other processes, membarrier, /dev/shm. Set-up path.
// SPDX-License-Identifier: BSD-3-Clause
#include <linux/membarrier.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
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
  node.read_other_memory = error == 0 ? "permitted between processes of this user"
                                      : std::string("refused: ") + std::strerror(error);
  const std::string scope = first_line_of("/proc/sys/kernel/yama/ptrace_scope");
  if (!scope.empty()) {
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

std::string describe_shared_memory() {
  if (access("/dev/shm", R_OK | W_OK | X_OK) != 0) {
    return std::string("/dev/shm cannot be used: ") + std::strerror(errno);
  }
  struct statvfs state {};
  if (statvfs("/dev/shm", &state) != 0) return "/dev/shm can be used";
  const std::uint64_t block = state.f_frsize;
  return "/dev/shm, " + tools::format_bytes(state.f_bavail * block) + " of " +
         tools::format_bytes(state.f_blocks * block) + " free";
}

}  // namespace

NodeFacts gather_node_facts() {
  NodeFacts node;
  node.machine = tools::describe_machine();
  describe_reading(node);
  node.membarrier_available = expedited_membarrier_available();
  node.shared_memory = describe_shared_memory();
  return node;
}

}  // namespace lintel::info
