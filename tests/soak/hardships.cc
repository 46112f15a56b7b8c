#include "soak/hardships.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <string>
#include <vector>

namespace lintel::soak {

namespace {
constexpr const char* filler = "/dev/shm/filler";
}

bool forbid_calls(std::initializer_list<int> numbers) {
  std::vector<sock_filter> program;
  program.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)));
  for (const int number : numbers) {
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(number), 0, 1));
    program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS));
  }
  program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

bool own_shared_memory(uint64_t bytes) {
  const std::string options = "size=" + std::to_string(bytes);
  return unshare(CLONE_NEWNS) == 0 &&
         mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         mount("tmpfs", "/dev/shm", "tmpfs", 0, options.c_str()) == 0;
}

void fill_shared_memory() {
  const int file = open(filler, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  const std::vector<char> block(1 << 20);
  for (size_t bytes = block.size(); bytes >= 4096; bytes /= 2)
    while (write(file, block.data(), bytes) > 0) {
    }
  close(file);
}

void free_shared_memory() { unlink(filler); }

}  // namespace lintel::soak
