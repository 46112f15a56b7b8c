// A thread of the library. It handles no signals, which are the application's, but for faults.
// Set-up path.
#pragma once

#include <pthread.h>

#include <string>

// Exported for modules and programs of this version, see cmake/portals.map.in.
#pragma GCC visibility push(default)
namespace lintel {

class ServiceThread {
 public:
  ServiceThread() = default;
  ServiceThread(const ServiceThread&) = delete;
  ServiceThread& operator=(const ServiceThread&) = delete;
  ~ServiceThread() { join(); }

  // Runs the member function `run` of `owner`. `name`: a literal of 15 characters at most. False:
  // `reason` says why not.
  template <auto run, typename Owner>
  [[nodiscard]] bool start(Owner& owner, const char* name, std::string& reason) {
    const auto entry = [](void* argument) -> void* {
      (static_cast<Owner*>(argument)->*run)();
      return nullptr;
    };
    return start(entry, &owner, name, reason);
  }
  [[nodiscard]] bool running() const noexcept { return running_; }
  // Waits for the end of the thread, which the owner has requested. Idempotent.
  void join() noexcept;

 private:
  bool start(void* (*entry)(void*), void* argument, const char* name, std::string& reason);
  static void* begin(void* self);

  // Data that the thread reads when it begins.
  void* (*entry_)(void*) = nullptr;
  void* argument_ = nullptr;
  const char* name_ = nullptr;

  pthread_t thread_{};
  bool running_ = false;
};

}  // namespace lintel
#pragma GCC visibility pop
