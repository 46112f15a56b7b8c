#include "completion/completion_queue.h"

#include <portals4_lintel.h>

#include <algorithm>
#include <new>

#include "base/deadline.h"
#include "base/provider.h"
#include "base/unsupported.h"
#include "domain/domain.h"

namespace lintel::ofi {
namespace {

CompletionQueue& of(fid_cq* queue) { return *static_cast<CompletionQueue*>(queue); }

size_t bytes_of(fi_cq_format format) noexcept {
  switch (format) {
    case FI_CQ_FORMAT_MSG:
      return sizeof(fi_cq_msg_entry);
    case FI_CQ_FORMAT_DATA:
      return sizeof(fi_cq_data_entry);
    case FI_CQ_FORMAT_TAGGED:
      return sizeof(fi_cq_tagged_entry);
    default:
      return sizeof(fi_cq_entry);
  }
}

ssize_t cq_read(fid_cq* queue, void* buffer, size_t count) {
  return of(queue).read(buffer, count, nullptr);
}

ssize_t cq_readfrom(fid_cq* queue, void* buffer, size_t count, fi_addr_t* sources) {
  return of(queue).read(buffer, count, sources);
}

ssize_t cq_readerr(fid_cq* queue, fi_cq_err_entry* entry, uint64_t) {
  return of(queue).read_error(entry);
}

ssize_t cq_sread(fid_cq* queue, void* buffer, size_t count, const void*, int timeout_ms) {
  return of(queue).wait(buffer, count, nullptr, timeout_ms);
}

ssize_t cq_sreadfrom(fid_cq* queue, void* buffer, size_t count, fi_addr_t* sources, const void*,
                     int timeout_ms) {
  return of(queue).wait(buffer, count, sources, timeout_ms);
}

int cq_signal(fid_cq* queue) {
  of(queue).signal();
  return 0;
}

const char* cq_strerror(fid_cq*, int provider_error, const void*, char* text, size_t size) {
  const char* const name = PtlToStr(provider_error, PTL_STR_FAIL_TYPE);
  if (text != nullptr && size > 0) snprintf(text, size, "%s", name);
  return name;
}

fi_ops queue_object_ops =
    object_ops([](Object* object) { return CompletionQueue::of(object).close(); }, no_bind,
               [](Object* object, int command, void* argument) {
                 return CompletionQueue::of(object).control(command, argument);
               });
fi_ops_cq queue_ops = {.size = sizeof(fi_ops_cq),
                       .read = cq_read,
                       .readfrom = cq_readfrom,
                       .readerr = cq_readerr,
                       .sread = cq_sread,
                       .sreadfrom = cq_sreadfrom,
                       .signal = cq_signal,
                       .strerror = cq_strerror};

}  // namespace

CompletionQueue::CompletionQueue(Domain& domain, const fi_cq_attr& attr, void* context) noexcept
    : fid_cq{{FI_CLASS_CQ, context, &queue_object_ops}, &queue_ops},
      domain_(domain),
      entry_bytes_(bytes_of(attr.format)) {
  domain_.add_user();
  const Guard guard(domain_.lock());
  domain_.pump().add(loss_report_);
}

int CompletionQueue::open(fid_domain* domain, fi_cq_attr* attr, fid_cq** result,
                          void* context) noexcept {
  fi_cq_attr wanted = attr != nullptr ? *attr : fi_cq_attr{};
  if (wanted.format > FI_CQ_FORMAT_TAGGED) return -FI_EINVAL;
  if (wanted.format == FI_CQ_FORMAT_UNSPEC) wanted.format = FI_CQ_FORMAT_TAGGED;
  if (wanted.wait_obj != FI_WAIT_NONE && wanted.wait_obj != FI_WAIT_UNSPEC &&
      wanted.wait_obj != FI_WAIT_YIELD && wanted.wait_obj != FI_WAIT_FD) {
    FI_INFO(provider(), FI_LOG_CQ, "completion queues have no wait object of kind %d\n",
            wanted.wait_obj);
    return -FI_ENOSYS;
  }
  auto* const queue = new (std::nothrow) CompletionQueue(Domain::of(domain), wanted, context);
  if (queue == nullptr) return -FI_ENOMEM;
  if (wanted.wait_obj == FI_WAIT_FD) {
    int code = queue->descriptor_.open();
    if (code == 0) code = Domain::of(domain).watcher().start();
    if (code != 0) {
      (void)queue->close();
      return code;
    }
  }
  if (attr != nullptr) attr->format = wanted.format;
  *result = queue;
  return 0;
}

int CompletionQueue::close() noexcept {
  if (users_ != 0) {
    FI_WARN(provider(), FI_LOG_CQ, "%zu endpoints use the queue; close them first.\n", users_);
    return -FI_EBUSY;
  }
  {
    const Guard guard(domain_.lock());
    domain_.pump().remove(loss_report_);
    if (is_armed_) domain_.watcher().disarm();
  }
  domain_.remove_user();
  delete this;
  return 0;
}

void CompletionQueue::push_error(const fi_cq_err_entry& entry, const void* data, size_t size) {
  auto error = std::make_unique<CompletionError>();
  error->entry = entry;
  const auto* const bytes = static_cast<const std::byte*>(data);
  if (size != 0) error->data.assign(bytes, bytes + size);
  ring_.push_error(std::move(error));
  wake_if_armed();
}

void CompletionQueue::push_in_general(const fi_cq_tagged_entry& entry, fi_addr_t source) {
  if (room_ == 0 || !ring_.empty()) return push_to_ring(entry, source);
  memcpy(place_, &entry, entry_bytes_);
  place_ += entry_bytes_;
  --room_;
  if (sources_ != nullptr) *sources_++ = source;
}

void CompletionQueue::signal() noexcept {
  is_signaled_ = true;
  if (descriptor_.is_open()) descriptor_.raise();
}

int CompletionQueue::try_wait() noexcept {
  if (!descriptor_.is_open()) return -FI_EINVAL;
  const Guard guard(domain_.lock());
  domain_.progress();
  if (!ring_.empty() || is_signaled_.exchange(false)) return -FI_EAGAIN;
  if (is_armed_) return 0;
  descriptor_.clear();
  is_armed_ = true;
  domain_.watcher().arm();
  return 0;
}

void CompletionQueue::wake() noexcept {
  is_armed_ = false;
  domain_.watcher().disarm();
  descriptor_.raise();
}

int CompletionQueue::control(int command, void* argument) const noexcept {
  return descriptor_.control(command, argument, FI_WAIT_UNSPEC);
}

void CompletionQueue::LossReport::events_were_lost() {
  fi_cq_err_entry entry{};
  entry.err = FI_EOVERRUN;
  queue_.push_error(entry);
}

ssize_t CompletionQueue::read(void* buffer, size_t count, fi_addr_t* sources) noexcept {
  const Guard guard(domain_.lock());
  // Programs read until there is nothing more. The read that only says so need not look again.
  const bool found_end = found_end_;
  found_end_ = false;
  place_ = static_cast<char*>(buffer);
  if (!ring_.empty() || count == 0) [[unlikely]]
    return read_in_general(count, sources);
  if (found_end) return -FI_EAGAIN;
  const size_t taken = take_events(count, sources);
  if (taken != 0) [[likely]]
    return static_cast<ssize_t>(taken);
  return ring_.empty() ? -FI_EAGAIN : -FI_EAVAIL;
}

size_t CompletionQueue::take_events(size_t count, fi_addr_t* sources) noexcept {
  sources_ = sources;
  room_ = count;
  bool more = domain_.handle_event();
  while (more && room_ != 0 && ring_.empty()) more = domain_.handle_next(room_);
  domain_.finish_events();
  const size_t taken = count - room_;
  found_end_ = taken != 0 && room_ != 0 && ring_.empty();
  room_ = 0;
  return taken;
}

size_t CompletionQueue::take_from_ring(size_t count, fi_addr_t*& sources) noexcept {
  size_t taken = 0;
  for (; taken < count && !ring_.empty() && ring_.front().error == nullptr; ++taken) {
    const Completion& front = ring_.front();
    if (entry_bytes_ == sizeof front.entry) [[likely]] {
      memcpy(place_, &front.entry, sizeof front.entry);
    } else {
      memcpy(place_, &front.entry, entry_bytes_);
    }
    if (sources != nullptr) *sources++ = front.source;
    place_ += entry_bytes_;
    ring_.pop();
  }
  return taken;
}

ssize_t CompletionQueue::read_in_general(size_t count, fi_addr_t* sources) noexcept {
  size_t taken = take_from_ring(count, sources);
  if (ring_.empty() && taken != count) {
    taken += take_events(count - taken, sources);
    found_end_ = found_end_ || (taken != 0 && ring_.empty() && taken != count);
  } else {
    domain_.progress();  // a read of nothing is for the effects of events
  }
  if (taken != 0) return static_cast<ssize_t>(taken);
  return !ring_.empty() && ring_.front().error != nullptr ? -FI_EAVAIL : -FI_EAGAIN;
}

ssize_t CompletionQueue::wait(void* buffer, size_t count, fi_addr_t* sources,
                              int timeout_ms) noexcept {
  const Deadline deadline(timeout_ms);
  for (unsigned round = 0;; ++round) {
    const ssize_t result = read(buffer, count, sources);
    if (result != -FI_EAGAIN) return result;
    if (is_signaled_.exchange(false)) return -FI_EAGAIN;
    if (deadline.is_over()) return -FI_EAGAIN;
    domain_.wait_for_event(deadline, round);
  }
}

ssize_t CompletionQueue::read_error(fi_cq_err_entry* entry) noexcept {
  const Guard guard(domain_.lock());
  if (ring_.empty() || ring_.front().error == nullptr) return -FI_EAGAIN;
  CompletionError& error = *ring_.front().error;
  void* const space = entry->err_data;
  const size_t room = entry->err_data_size;
  *entry = error.entry;
  if (space != nullptr && room != 0 && domain_.copies_error_data()) {
    entry->err_data = space;
    entry->err_data_size = std::min(room, error.data.size());
    memcpy(space, error.data.data(), entry->err_data_size);
  } else {
    error_data_.swap(error.data);
    entry->err_data = error_data_.empty() ? nullptr : error_data_.data();
    entry->err_data_size = error_data_.size();
  }
  ring_.pop();
  return 1;
}

}  // namespace lintel::ofi
