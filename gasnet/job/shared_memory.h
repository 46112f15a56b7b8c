/* shared_memory.h: memory that other processes of the host can map. Set-up path.
 *
 * The memory is a memfd: pages are allocated when they are touched, and the size of /dev/shm is no
 * limit. Other processes open it through /proc, for which they must run as the same user.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_JOB_SHARED_MEMORY_H
#define LINTEL_GASNET_JOB_SHARED_MEMORY_H

#include <cstddef>

namespace lintel::gasnet {

class SharedMemory {
 public:
  SharedMemory() = default;
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  /** Makes memory of length 0 and does not map it.
   * @param name  appears in /proc/PID/maps.
   * @return false if the kernel refuses; errno says why. */
  bool make(const char* name);
  /** Makes memory and maps it. The same parameter and result. */
  bool create(const char* name, size_t bytes);
  /** Maps memory that another process keeps. Each process that opens it makes it long enough.
   * @param path  in /proc.
   * @return false if it cannot be opened or mapped; errno says why. */
  bool open(const char* path, size_t bytes);
  void* address() const { return address_; }
  size_t bytes() const { return bytes_; }
  /** Valid until close_descriptor(). */
  int descriptor() const { return descriptor_; }
  /** Makes the memory longer for processes that map it later.
   * @return false if the kernel refuses; errno says why. */
  bool grow(size_t bytes);
  /** To be called once all other processes have mapped the memory. */
  void close_descriptor();
  /** Unmaps the memory here. Other processes that have mapped it keep it. */
  void unmap();

 private:
  bool map(size_t bytes);

  void* address_ = nullptr;
  size_t bytes_ = 0;
  int descriptor_ = -1;
};

/** Maps memory of another process.
 * @param descriptor  its number in that process.
 * @return NULL if the memory cannot be opened or mapped; errno says why. */
void* map_memory_of(int process_id, int descriptor, size_t bytes);

}  // namespace lintel::gasnet

#endif  // LINTEL_GASNET_JOB_SHARED_MEMORY_H
