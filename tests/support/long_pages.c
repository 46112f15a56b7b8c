// Preloaded into a program, makes the system look like one whose pages are LONG_PAGES bytes long (a
// variable of the environment):
// sysconf() says so, mappings begin at such pages, and calls about other addresses are refused or
// concern whole pages, as by the kernel of such a system.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

// Constructors of other libraries may come before one of this file.
static size_t long_page(void) {
  static _Atomic size_t bytes;
  if (bytes == 0) {
    const char* const text = getenv("LONG_PAGES");
    bytes = text == NULL ? 65536 : strtoul(text, NULL, 10);
  }
  return bytes;
}

static size_t whole(size_t bytes) { return (bytes + long_page() - 1) & ~(long_page() - 1); }

static int is_in_page(const void* address) { return (uintptr_t)address % long_page() != 0; }

long sysconf(int name) {
  static long (*real)(int);
  if (name == _SC_PAGESIZE) return (long)long_page();
  if (real == NULL) real = (long (*)(int))dlsym(RTLD_NEXT, "sysconf");
  return real(name);
}

int getpagesize(void) { return (int)long_page(); }

void* mmap(void* address, size_t bytes, int protection, int flags, int file, off_t offset) {
  if ((flags & MAP_FIXED) != 0 || bytes == 0)
    return (void*)syscall(SYS_mmap, address, bytes, protection, flags, file, offset);
  char* const room = (char*)syscall(SYS_mmap, NULL, whole(bytes) + long_page(), PROT_NONE,
                                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return room;
  char* const start = room + (-(uintptr_t)room & (long_page() - 1));
  void* const mapped =
      (void*)syscall(SYS_mmap, start, bytes, protection, flags | MAP_FIXED, file, offset);
  if (mapped == MAP_FAILED) return mapped;
  if (start > room) syscall(SYS_munmap, room, (size_t)(start - room));
  char* const end = start + whole(bytes);
  char* const room_end = room + whole(bytes) + long_page();
  if (room_end > end) syscall(SYS_munmap, end, (size_t)(room_end - end));
  return mapped;
}

int munmap(void* address, size_t bytes) {
  if (is_in_page(address)) {
    errno = EINVAL;
    return -1;
  }
  return (int)syscall(SYS_munmap, address, whole(bytes));
}

int madvise(void* address, size_t bytes, int advice) {
  if (is_in_page(address)) {
    errno = EINVAL;
    return -1;
  }
  return (int)syscall(SYS_madvise, address, whole(bytes), advice);
}

int mprotect(void* address, size_t bytes, int protection) {
  if (is_in_page(address)) {
    errno = EINVAL;
    return -1;
  }
  return (int)syscall(SYS_mprotect, address, whole(bytes), protection);
}
