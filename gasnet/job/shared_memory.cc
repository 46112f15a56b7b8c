/* shared_memory.cc: memfd_create and /proc. Set-up path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "job/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "tools/descriptors.h"

namespace lintel::gasnet {

bool SharedMemory::make(const char* name) {
  descriptor_ = above_standard(memfd_create(name, MFD_CLOEXEC));
  return descriptor_ >= 0;
}

bool SharedMemory::create(const char* name, size_t bytes) { return make(name) && map(bytes); }

bool SharedMemory::open(const char* path, size_t bytes) {
  descriptor_ = above_standard(::open(path, O_RDWR | O_CLOEXEC));
  return descriptor_ >= 0 && map(bytes);
}

bool SharedMemory::map(size_t bytes) {
  struct stat status;
  if (fstat(descriptor_, &status) == 0 &&
      (static_cast<size_t>(status.st_size) >= bytes || grow(bytes))) {
    void* const address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
    if (address != MAP_FAILED) {
      address_ = address;
      bytes_ = bytes;
      return true;
    }
  }
  const int error = errno;
  close_descriptor();
  errno = error;
  return false;
}

bool SharedMemory::grow(size_t bytes) {
  return ftruncate(descriptor_, static_cast<off_t>(bytes)) == 0;
}

void SharedMemory::close_descriptor() {
  if (descriptor_ >= 0) close(descriptor_);
  descriptor_ = -1;
}

void SharedMemory::unmap() {
  close_descriptor();
  if (address_) munmap(address_, bytes_);
  address_ = nullptr;
  bytes_ = 0;
}

void* map_memory_of(int process_id, int descriptor, size_t bytes) {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/fd/%d", process_id, descriptor);
  const int opened = above_standard(::open(path, O_RDWR | O_CLOEXEC));
  if (opened < 0) return nullptr;
  void* const address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, opened, 0);
  const int error = errno;
  close(opened);
  errno = error;
  return address == MAP_FAILED ? nullptr : address;
}

}  // namespace lintel::gasnet
