// Asynchronous events of a device: a port goes down or comes up, a queue pair or the device fails.
// Connection path.
#pragma once

#include <string>
#include <vector>

#include <infiniband/verbs.h>

#include "util/lock.h"

namespace lintel {

class AsyncEventSink {
 public:
  // Called in the thread that calls dispatch(). The event is acknowledged afterwards: until then
  // the queue pair that it names cannot be destroyed.
  virtual void on_async_event(const ibv_async_event& event) noexcept = 0;

 protected:
  ~AsyncEventSink() = default;
};

class AsyncEvents {
 public:
  AsyncEvents() = default;
  AsyncEvents(const AsyncEvents&) = delete;
  AsyncEvents& operator=(const AsyncEvents&) = delete;

  // False: `reason` says why not. `name` of the device, for the log.
  [[nodiscard]] bool open(ibv_context* context, const std::string& name, std::string& reason);
  // Non-blocking; readable when there is something to dispatch. Constant.
  [[nodiscard]] int descriptor() const noexcept { return context_->async_fd; }

  // Any thread. After remove() the sink is not called any more, nor is a call under way.
  void add(AsyncEventSink& sink);
  void remove(AsyncEventSink& sink) noexcept;

  // One thread. Passes all events to every sink. Never waits.
  void dispatch() noexcept;

 private:
  void log_event(const ibv_async_event& event) const noexcept;

  ibv_context* context_ = nullptr;
  std::string name_;
  Mutex mutex_;
  std::vector<AsyncEventSink*> sinks_ LINTEL_GUARDED_BY(mutex_);
};

}  // namespace lintel
