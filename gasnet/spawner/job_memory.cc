/* job_memory.cc: memfd_create, variables.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "spawner/job_memory.h"

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <string>

namespace lintel::gasnet {
namespace {

constexpr size_t kBarrierBytes = 4096;

/** @return its descriptor, which stays open; -1 if the kernel refuses. */
int make_memory(const char* name, size_t bytes) {
  const int descriptor = memfd_create(name, MFD_CLOEXEC);
  if (descriptor < 0 || ftruncate(descriptor, static_cast<off_t>(bytes)) == 0) return descriptor;
  close(descriptor);
  return -1;
}

void set_path(const char* variable, int descriptor) {
  const std::string path =
      "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(descriptor);
  setenv(variable, path.c_str(), 1);
}

}  // namespace

void* provide_memory(const char* variable, size_t bytes) {
  const int descriptor = make_memory(variable, bytes);
  if (descriptor < 0) return nullptr;
  void* const address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (address == MAP_FAILED) {
    close(descriptor);
    return nullptr;
  }
  set_path(variable, descriptor);
  return address;
}

void JobMemory::provide() {
  // This program may itself be a process of a job.
  unsetenv("PTL_JOB_MEMORY");
  unsetenv("GASNETRUN_MEMORY");
  words_ = static_cast<Words*>(provide_memory("PTL_JOB_MEMORY", kBarrierBytes));
  if (!words_) return;
  words_->version.store(kVersion, std::memory_order_relaxed);
  // The processes give it its size.
  const int control = make_memory("gasnetrun", 0);
  if (control >= 0) set_path("GASNETRUN_MEMORY", control);
}

void JobMemory::note_end() {
  if (!words_) return;
  words_->ended.store(1, std::memory_order_release);
  syscall(SYS_futex, &words_->generation, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace lintel::gasnet
