// A thread that takes the events of a domain while the program sleeps on a descriptor (FI_WAIT_FD).
// It runs only between fi_trywait and the completion that ends the sleep; otherwise the program
// takes events itself. All functions need the lock of the domain. Set-up path, and sleeping.
#pragma once

#include <portals4.h>

#include <condition_variable>
#include <thread>

namespace lintel::ofi {

class Domain;

class Watcher {
 public:
  explicit Watcher(Domain& domain) noexcept : domain_(domain) {}
  // Without the lock.
  ~Watcher();
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

  // Before the first descriptor is used, without the lock, which the domain needs from then on.
  // Returns 0 or a negative error number.
  [[nodiscard]] int start() noexcept;
  // The program is going to sleep on one more descriptor, or one less.
  void arm() noexcept {
    ++armed_;
    changed_.notify_all();
  }
  void disarm() noexcept { --armed_; }
  // A portal table entry of the domain that no message is sent to; its events wake the thread.
  [[nodiscard]] ptl_pt_index_t portal() const noexcept { return portal_; }
  // The thread waits in Portals for the next event, and nobody else may take it.
  [[nodiscard]] bool is_taking() const noexcept { return is_taking_; }
  // Returns when is_taking() is false. Releases the lock meanwhile.
  void pause() noexcept;

 private:
  void run() noexcept;
  // Makes an event.
  void interrupt() noexcept;

  Domain& domain_;
  std::thread thread_;
  std::condition_variable_any changed_;
  ptl_pt_index_t portal_ = PTL_PT_ANY;
  unsigned armed_ = 0;
  unsigned pauses_ = 0;
  bool is_taking_ = false;
  bool ends_ = false;
};

}  // namespace lintel::ofi
