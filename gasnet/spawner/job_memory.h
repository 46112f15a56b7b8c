/* job_memory.h: memory that the processes of a job on one host share from their start. They map it
 * through /proc while the launcher runs.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_SPAWNER_JOB_MEMORY_H
#define LINTEL_GASNET_SPAWNER_JOB_MEMORY_H

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace lintel::gasnet {

/** Makes memory that child processes can map.
 * @param variable  of the environment; gets the path of the memory.
 * @return its address; NULL if the kernel refuses; errno says why. */
void* provide_memory(const char* variable, size_t bytes);

class JobMemory {
 public:
  /** Makes the memory and sets the variables that name it. Without it a job starts more slowly:
   * its processes find each other through Portals. */
  void provide();
  /** A process of the job has ended. Others that wait for it at their start give up. */
  void note_end();

 private:
  /* The layout is that of PTL_JOB_MEMORY. */
  struct Words {
    std::atomic<uint32_t> ended;
    std::atomic<uint32_t> arrived;
    std::atomic<uint32_t> generation;
    std::atomic<uint32_t> opened;
    std::atomic<uint32_t> version;
  };
  static_assert(sizeof(Words) == 20);
  static constexpr uint32_t kVersion = 1;
  Words* words_ = nullptr;
};

}  // namespace lintel::gasnet

#endif  // LINTEL_GASNET_SPAWNER_JOB_MEMORY_H
