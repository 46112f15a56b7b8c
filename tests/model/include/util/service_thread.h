// Stands in for src/util/service_thread.h in the models: a thread of the scenario runs it.
#pragma once

#include <string>

namespace lintel {

class ServiceThread {
 public:
  template <auto run, typename Owner>
  [[nodiscard]] bool start(Owner& owner, const char*, std::string&) {
    running_ = true;
    owner_ = &owner;
    run_ = [](void* of) { (static_cast<Owner*>(of)->*run)(); };
    return true;
  }
  [[nodiscard]] bool running() const noexcept { return running_; }
  void join() noexcept {}
  // The one that was started last.
  static void run_started() { run_(owner_); }

 private:
  static inline void* owner_ = nullptr;
  static inline void (*run_)(void*) = nullptr;
  bool running_ = false;
};

}  // namespace lintel
