// The memory that the ranks of a test share, and waiting on it with a futex. Set-up path.
#include "support/shared_area.h"

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>
#include <new>
#include <stdexcept>

namespace lintel::test {

namespace {

void futex(std::atomic<uint32_t>& word, int operation, uint32_t value, const timespec* timeout) {
  syscall(SYS_futex, &word, operation, value, timeout, nullptr, 0);
}

}  // namespace

void SharedArea::announce() noexcept {
  changes.fetch_add(1);
  futex(changes, FUTEX_WAKE, INT_MAX, nullptr);
}

void SharedArea::wait_for_change(uint32_t seen_changes) noexcept {
  const timespec timeout{0, 50'000'000};
  futex(changes, FUTEX_WAIT, seen_changes, &timeout);
}

SharedMapping::SharedMapping() {
  void* memory =
      mmap(nullptr, sizeof(SharedArea), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::runtime_error("cannot map the memory shared by the ranks");
  area_ = new (memory) SharedArea{};
}

SharedMapping::~SharedMapping() { munmap(area_, sizeof(SharedArea)); }

}  // namespace lintel::test
