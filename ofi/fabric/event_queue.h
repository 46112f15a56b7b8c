// fi_eq: events of control operations, written by the provider and by programs. Set-up path.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <vector>

#include <rdma/fi_eq.h>

#include "base/object.h"
#include "base/wait_descriptor.h"

namespace lintel::ofi {

class Fabric;

class EventQueue : public fid_eq {
 public:
  EventQueue(Fabric& fabric, void* context) noexcept;

  [[nodiscard]] static EventQueue& of(Object* object) noexcept {
    return *static_cast<EventQueue*>(reinterpret_cast<fid_eq*>(object));
  }
  // fi_eq_open.
  static int open(fid_fabric* fabric, fi_eq_attr* attr, fid_eq** result, void* context) noexcept;
  int close() noexcept;

  // Any thread.
  void post(uint32_t event, const fi_eq_entry& entry) noexcept;
  void post_error(const fi_eq_err_entry& entry) noexcept;
  ssize_t write(uint32_t event, const void* data, size_t size) noexcept;
  // Takes the first event, or with FI_PEEK looks at it. Waits up to a time; less than 0 is for
  // ever.
  ssize_t read(uint32_t* event, void* data, size_t size, int timeout_ms, uint64_t flags) noexcept;
  // Takes the error that is first.
  ssize_t read_error(fi_eq_err_entry* entry, uint64_t flags) noexcept;

  // fi_trywait: 0 if the program may sleep on the descriptor, or -FI_EAGAIN.
  [[nodiscard]] int try_wait() noexcept;
  // FI_GETWAIT, FI_GETWAITOBJ.
  [[nodiscard]] int control(int command, void* argument) const noexcept;

  void add_user() noexcept { ++users_; }
  void remove_user() noexcept { --users_; }

 private:
  struct Event {
    uint32_t kind;
    bool is_error;
    std::vector<std::byte> data;
  };

  void append(Event event) noexcept;
  // Removes the first event. With the mutex.
  void pop() noexcept;

  Fabric& fabric_;
  std::atomic<size_t> users_{0};  // objects that report here
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<Event> events_;
  WaitDescriptor descriptor_;  // FI_WAIT_FD: readable while there are events
};

}  // namespace lintel::ofi
