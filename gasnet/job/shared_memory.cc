/* shared_memory.cc: memfd_create and /proc. Set-up path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "job/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

namespace lintel::gasnet {

bool SharedMemory::create(const char* name, size_t bytes) {
  descriptor_ = memfd_create(name, MFD_CLOEXEC);
  if (descriptor_ < 0) return false;
  if (ftruncate(descriptor_, static_cast<off_t>(bytes)) != 0) {
    close_descriptor();
    return false;
  }
  void* const address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
  if (address == MAP_FAILED) {
    const int error = errno;
    close_descriptor();
    errno = error;
    return false;
  }
  address_ = address;
  bytes_ = bytes;
  return true;
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

void* map_memory_of(int process_id, int descriptor, size_t offset, size_t bytes) {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/fd/%d", process_id, descriptor);
  const int opened = open(path, O_RDWR | O_CLOEXEC);
  if (opened < 0) return nullptr;
  void* const address =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, opened, static_cast<off_t>(offset));
  const int error = errno;
  close(opened);
  errno = error;
  return address == MAP_FAILED ? nullptr : address;
}

}  // namespace lintel::gasnet
