/* job_memory.cc: paths, variables.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "spawner/job_memory.h"

#include <unistd.h>

#include <cstdlib>
#include <string>

#include "job/futex.h"
#include "job/shared_memory.h"

namespace lintel::gasnet {
namespace {

constexpr size_t kBarrierBytes = 4096;

/** @param memory  stays open: child processes find it by its descriptor. */
void set_path(const char* variable, const SharedMemory& memory) {
  const std::string path =
      "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(memory.descriptor());
  setenv(variable, path.c_str(), 1);
}

}  // namespace

void* provide_memory(const char* variable, size_t bytes) {
  SharedMemory memory;
  if (!memory.create(variable, bytes)) return nullptr;
  set_path(variable, memory);
  return memory.address();
}

void JobMemory::provide() {
  // This program may itself be a process of a job.
  unsetenv("PTL_JOB_MEMORY");
  unsetenv("GASNETRUN_MEMORY");
  words_ = static_cast<Words*>(provide_memory("PTL_JOB_MEMORY", kBarrierBytes));
  if (!words_) return;
  words_->version.store(kVersion, std::memory_order_relaxed);
  // The processes give it its size.
  SharedMemory control;
  if (control.make("gasnetrun")) set_path("GASNETRUN_MEMORY", control);
}

void JobMemory::note_end() {
  if (!words_) return;
  words_->ended.store(1, std::memory_order_release);
  futex_wake_all(words_->generation);
}

}  // namespace lintel::gasnet
