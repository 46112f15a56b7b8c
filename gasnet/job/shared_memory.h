/* shared_memory.h: memory that other processes of the host can map. Set-up path.
 *
 * It is a memfd, touched lazily and not limited by the size of /dev/shm. Others open it through
 * /proc, for which they must run as the same user.
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

  /** @param name  seen in /proc/PID/maps.
   * @return false if the kernel refuses; errno says why. */
  bool create(const char* name, size_t bytes);
  void* address() const { return address_; }
  size_t bytes() const { return bytes_; }
  /** Valid until close_descriptor(). */
  int descriptor() const { return descriptor_; }
  /** Makes it longer for those that map it from now on; address() has what it had.
   * @return false if the kernel refuses; errno says why. */
  bool grow(size_t bytes);
  /** Once all others have mapped it. */
  void close_descriptor();
  /** Others that have mapped it keep it. */
  void unmap();

 private:
  void* address_ = nullptr;
  size_t bytes_ = 0;
  int descriptor_ = -1;
};

/** Maps memory of another process.
 * @param descriptor  its number there.
 * @param offset      where in it the mapping begins, a multiple of the page size.
 * @return NULL if it cannot be opened; errno says why. */
void* map_memory_of(int process_id, int descriptor, size_t offset, size_t bytes);

}  // namespace lintel::gasnet

#endif  // LINTEL_GASNET_JOB_SHARED_MEMORY_H
