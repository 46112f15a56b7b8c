#include "fabric/event_queue.h"

#include <chrono>
#include <cstring>
#include <new>

#include "base/provider.h"
#include "base/unsupported.h"
#include "fabric/fabric.h"

namespace lintel::ofi {
namespace {

EventQueue& of(fid_eq* queue) { return *static_cast<EventQueue*>(queue); }

ssize_t eq_read(fid_eq* queue, uint32_t* event, void* data, size_t size, uint64_t flags) {
  return of(queue).read(event, data, size, 0, flags);
}

ssize_t eq_wait(fid_eq* queue, uint32_t* event, void* data, size_t size, int timeout_ms,
                uint64_t flags) {
  return of(queue).read(event, data, size, timeout_ms, flags);
}

ssize_t eq_write(fid_eq* queue, uint32_t event, const void* data, size_t size, uint64_t) {
  return of(queue).write(event, data, size);
}

ssize_t eq_read_error(fid_eq* queue, fi_eq_err_entry* entry, uint64_t flags) {
  return of(queue).read_error(entry, flags);
}

const char* eq_describe(fid_eq*, int provider_error, const void*, char* text, size_t size) {
  const char* const message = fi_strerror(provider_error);
  if (text != nullptr && size > 0) snprintf(text, size, "%s", message);
  return message;
}

fi_ops queue_object_ops =
    object_ops([](Object* object) { return EventQueue::of(object).close(); }, no_bind,
               [](Object* object, int command, void* argument) {
                 return EventQueue::of(object).control(command, argument);
               });
fi_ops_eq queue_ops = {.size = sizeof(fi_ops_eq),
                       .read = eq_read,
                       .readerr = eq_read_error,
                       .write = eq_write,
                       .sread = eq_wait,
                       .strerror = eq_describe};

}  // namespace

EventQueue::EventQueue(Fabric& fabric, void* context) noexcept
    : fid_eq{{FI_CLASS_EQ, context, &queue_object_ops}, &queue_ops}, fabric_(fabric) {
  fabric_.add_user();
}

int EventQueue::open(fid_fabric* fabric, fi_eq_attr* attr, fid_eq** result,
                     void* context) noexcept {
  const fi_wait_obj wait = attr != nullptr ? attr->wait_obj : FI_WAIT_UNSPEC;
  if (wait != FI_WAIT_NONE && wait != FI_WAIT_UNSPEC && wait != FI_WAIT_YIELD &&
      wait != FI_WAIT_FD) {
    FI_INFO(provider(), FI_LOG_EQ, "event queues have no wait object of kind %d\n", wait);
    return -FI_ENOSYS;
  }
  auto* const queue = new (std::nothrow) EventQueue(Fabric::of(fabric), context);
  if (queue == nullptr) return -FI_ENOMEM;
  if (wait == FI_WAIT_FD) {
    if (const int code = queue->descriptor_.open(); code != 0) {
      (void)queue->close();
      return code;
    }
  }
  *result = queue;
  return 0;
}

int EventQueue::close() noexcept {
  if (users_ != 0) return -FI_EBUSY;
  fabric_.remove_user();
  delete this;
  return 0;
}

void EventQueue::post(uint32_t event, const fi_eq_entry& entry) noexcept {
  (void)write(event, &entry, sizeof entry);
}

ssize_t EventQueue::write(uint32_t event, const void* data, size_t size) noexcept {
  const auto* const bytes = static_cast<const std::byte*>(data);
  append({event, false, {bytes, bytes + size}});
  return static_cast<ssize_t>(size);
}

void EventQueue::post_error(const fi_eq_err_entry& entry) noexcept {
  const auto* const bytes = reinterpret_cast<const std::byte*>(&entry);
  append({0, true, {bytes, bytes + sizeof entry}});
}

void EventQueue::append(Event event) noexcept {
  const std::lock_guard guard(mutex_);
  events_.push_back(std::move(event));
  arrived_.notify_one();
  if (descriptor_.is_open()) descriptor_.raise();
}

void EventQueue::pop() noexcept {
  events_.pop_front();
  if (events_.empty() && descriptor_.is_open()) descriptor_.clear();
}

int EventQueue::try_wait() noexcept {
  if (!descriptor_.is_open()) return -FI_EINVAL;
  const std::lock_guard guard(mutex_);
  return events_.empty() ? 0 : -FI_EAGAIN;
}

int EventQueue::control(int command, void* argument) const noexcept {
  return descriptor_.control(command, argument, FI_WAIT_UNSPEC);
}

ssize_t EventQueue::read_error(fi_eq_err_entry* entry, uint64_t flags) noexcept {
  const std::lock_guard guard(mutex_);
  if (events_.empty() || !events_.front().is_error) return -FI_EAGAIN;
  memcpy(entry, events_.front().data.data(), sizeof *entry);
  if ((flags & FI_PEEK) == 0) pop();
  return sizeof *entry;
}

ssize_t EventQueue::read(uint32_t* event, void* data, size_t size, int timeout_ms,
                         uint64_t flags) noexcept {
  std::unique_lock lock(mutex_);
  const auto is_ready = [this] { return !events_.empty(); };
  if (timeout_ms < 0) {
    arrived_.wait(lock, is_ready);
  } else if (timeout_ms > 0) {
    arrived_.wait_for(lock, std::chrono::milliseconds(timeout_ms), is_ready);
  }
  if (events_.empty()) return -FI_EAGAIN;
  const Event& first = events_.front();
  if (first.is_error) return -FI_EAVAIL;
  const size_t needed = first.data.size();
  if (size < needed) return -FI_ETOOSMALL;
  *event = first.kind;
  memcpy(data, first.data.data(), needed);
  if ((flags & FI_PEEK) == 0) pop();
  return static_cast<ssize_t>(needed);
}

}  // namespace lintel::ofi
