// The functions of the library that the reliability layer calls, as seen from inside the module: they
// lead back into the library. A copy of guarded memory in here would not be known to the library's fault
// handler, and a copy of the loader would look up a configuration that nobody loaded.
// Message path: one indirect call.
#include "verbs/host.h"

#include <atomic>

#include "util/guarded_memory.h"
#include "util/module.h"

namespace lintel {

namespace {

std::atomic<const VerbsHost*> current{nullptr};

const VerbsHost& library() noexcept { return *current.load(std::memory_order_acquire); }

}  // namespace

void set_verbs_host(const VerbsHost& host) noexcept {
  current.store(&host, std::memory_order_release);
}

bool guarded_copy(void* destination, const void* source, size_t bytes) noexcept {
  return library().guarded_copy(destination, source, bytes);
}

bool guarded_call(void (*action)(void*), void* argument) noexcept {
  return library().guarded_call(action, argument);
}

const void* load_module(const std::string& name, unsigned version, std::string& reason) {
  return library().load_module(name, version, reason);
}

}  // namespace lintel
