// Reading events and passing them on. Connection path.
#include "verbs/async_events.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "util/lock.h"
#include "util/log.h"
#include "util/text.h"

namespace lintel {

bool AsyncEvents::open(ibv_context* context, const std::string& name, std::string& reason) {
  context_ = context;
  name_ = name;
  const int flags = fcntl(context->async_fd, F_GETFL);
  if (flags >= 0 && fcntl(context->async_fd, F_SETFL, flags | O_NONBLOCK) == 0) return true;
  reason = text_of("its events cannot be read without waiting (", strerror(errno), ")");
  return false;
}

void AsyncEvents::add(AsyncEventSink& sink) {
  const LockGuard guard(mutex_);
  sinks_.push_back(&sink);
}

void AsyncEvents::remove(AsyncEventSink& sink) noexcept {
  const LockGuard guard(mutex_);
  sinks_.erase(std::remove(sinks_.begin(), sinks_.end(), &sink), sinks_.end());
}

void AsyncEvents::dispatch() noexcept {
  constexpr unsigned most_events = 256;
  ibv_async_event event;
  // The descriptor stays readable while there are more.
  for (unsigned i = 0; i < most_events && ibv_get_async_event(context_, &event) == 0; ++i) {
    log_event(event);
    {
      const LockGuard guard(mutex_);
      for (AsyncEventSink* const sink : sinks_) sink->on_async_event(event);
    }
    ibv_ack_async_event(&event);
  }
}

void AsyncEvents::log_event(const ibv_async_event& event) const noexcept {
  switch (event.event_type) {
    case IBV_EVENT_PORT_ERR:
      log_message(LogLevel::warn,
                  "verbs: port %d of %s is down: messages wait, and fail in the end",
                  event.element.port_num, name_.c_str());
      return;
    case IBV_EVENT_PORT_ACTIVE:
      log_message(LogLevel::warn, "verbs: port %d of %s is up again", event.element.port_num,
                  name_.c_str());
      return;
    case IBV_EVENT_DEVICE_FATAL:
      log_message(LogLevel::error,
                  "verbs: device %s has failed: nothing can be sent through it any more",
                  name_.c_str());
      return;
    case IBV_EVENT_CQ_ERR:
      log_message(LogLevel::error, "verbs: a completion queue of %s has overflowed", name_.c_str());
      return;
    case IBV_EVENT_SRQ_ERR:
      log_message(LogLevel::error,
                  "verbs: a queue of receive buffers of %s has failed: messages go as datagrams",
                  name_.c_str());
      return;
    case IBV_EVENT_LID_CHANGE:
    case IBV_EVENT_GID_CHANGE:
    case IBV_EVENT_PKEY_CHANGE:
      log_message(
          LogLevel::warn,
          "verbs: port %d of %s has been given another %s: if that was the one in use, peers are "
          "lost and the job must be started again",
          event.element.port_num, name_.c_str(),
          event.event_type == IBV_EVENT_LID_CHANGE   ? "LID"
          : event.event_type == IBV_EVENT_GID_CHANGE ? "GID"
                                                     : "P_Key");
      return;
    default:
      log_message(LogLevel::debug, "verbs: event %d of %s", static_cast<int>(event.event_type),
                  name_.c_str());
  }
}

}  // namespace lintel
