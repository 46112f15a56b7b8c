// A table that a handler of fork() reads in the child. Set-up path.
#include "util/descriptors_in_children.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <mutex>

namespace lintel {

namespace {

constexpr unsigned most_descriptors = 64;
std::atomic<int> remembered[most_descriptors];  // descriptor + 1; 0: free

void close_remembered() noexcept {
  for (std::atomic<int>& slot : remembered)
    if (const int descriptor = slot.exchange(0, std::memory_order_relaxed) - 1; descriptor >= 0)
      close(descriptor);
}

}  // namespace

void close_in_children(int descriptor) noexcept {
  static std::once_flag once;
  std::call_once(once, [] { pthread_atfork(nullptr, nullptr, &close_remembered); });
  for (std::atomic<int>& slot : remembered) {
    int unused = 0;
    if (slot.compare_exchange_strong(unused, descriptor + 1, std::memory_order_relaxed)) return;
  }
}

void forget_in_children(int descriptor) noexcept {
  for (std::atomic<int>& slot : remembered) {
    int ours = descriptor + 1;
    if (slot.compare_exchange_strong(ours, 0, std::memory_order_relaxed)) return;
  }
}

}  // namespace lintel
