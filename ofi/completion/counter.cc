#include "completion/counter.h"

#include <new>

#include "base/deadline.h"
#include "base/provider.h"
#include "base/unsupported.h"
#include "domain/domain.h"

namespace lintel::ofi {
namespace {

constexpr int longest_remote_wait_ms = 1;  // until operations of this side are looked after

Counter& of(fid_cntr* counter) { return *static_cast<Counter*>(counter); }

int count(fid_cntr* counter, uint64_t value) {
  const Guard guard(of(counter).domain().lock());
  of(counter).add(value);
  return 0;
}

int count_errors(fid_cntr* counter, uint64_t value) {
  const Guard guard(of(counter).domain().lock());
  of(counter).add_errors(value);
  return 0;
}

int set(fid_cntr* counter, uint64_t value) {
  const Guard guard(of(counter).domain().lock());
  of(counter).set(value);
  return 0;
}

int set_errors(fid_cntr* counter, uint64_t value) {
  const Guard guard(of(counter).domain().lock());
  of(counter).set_errors(value);
  return 0;
}

int wait_for(fid_cntr* counter, uint64_t threshold, int timeout_ms) {
  return of(counter).wait(threshold, timeout_ms);
}

fi_ops counter_object_ops =
    object_ops([](Object* object) { return Counter::of(object).close(); }, no_bind,
               [](Object* object, int command, void* argument) {
                 return Counter::of(object).control(command, argument);
               });
fi_ops_cntr counter_ops = {.size = sizeof(fi_ops_cntr),
                           .read = [](fid_cntr* counter) { return of(counter).read(); },
                           .readerr = [](fid_cntr* counter) { return of(counter).read_errors(); },
                           .add = count,
                           .set = set,
                           .wait = wait_for,
                           .adderr = count_errors,
                           .seterr = set_errors};

}  // namespace

Counter::Counter(Domain& domain, void* context) noexcept
    : fid_cntr{{FI_CLASS_CNTR, context, &counter_object_ops}, &counter_ops}, domain_(domain) {
  domain_.add_user();
}

int Counter::open(fid_domain* domain, fi_cntr_attr* attr, fid_cntr** result,
                  void* context) noexcept {
  const fi_wait_obj wait = attr != nullptr ? attr->wait_obj : FI_WAIT_UNSPEC;
  if (wait != FI_WAIT_NONE && wait != FI_WAIT_UNSPEC && wait != FI_WAIT_YIELD &&
      wait != FI_WAIT_FD) {
    FI_INFO(provider(), FI_LOG_CNTR, "counters have no wait object of kind %d\n", wait);
    return -FI_ENOSYS;
  }
  auto* const counter = new (std::nothrow) Counter(Domain::of(domain), context);
  if (counter == nullptr) return -FI_ENOMEM;
  if (wait == FI_WAIT_FD) {
    counter->alarm_ = std::make_unique<CounterAlarm>(counter->domain_);
    counter->is_plain_ = false;
    if (const int code = counter->alarm_->open(); code != 0) {
      (void)counter->close();
      return code;
    }
  }
  *result = counter;
  return 0;
}

int Counter::close() noexcept {
  {
    const Guard guard(domain_.lock());
    for (Counter* const each : domain_.triggers()) each->trigger_->sweep();
    if (users_ != 0) {
      FI_WARN(
          provider(), FI_LOG_CNTR,
          "%zu endpoints, regions and deferred operations use the counter; close or cancel them "
          "first.\n",
          users_);
      return -FI_EBUSY;
    }
    if (trigger_ != nullptr) std::erase(domain_.triggers(), this);
    trigger_.reset();
    alarm_.reset();
    for (const ptl_handle_md_t descriptor : descriptors_)
      if (descriptor != PTL_INVALID_HANDLE) PtlMDRelease(descriptor);
    if (events_ != PTL_CT_NONE) PtlCTFree(events_);
  }
  domain_.remove_user();
  delete this;
  return 0;
}

void Counter::add_and_tell(uint64_t count) noexcept {
  if (trigger_ != nullptr) {
    PtlCTInc(events_, {count, 0});
  } else {
    successes_ += count;
  }
  ring();
}

void Counter::add_errors(uint64_t count) noexcept {
  errors_ += count;
  ring();
}

void Counter::set_errors(uint64_t count) noexcept {
  errors_ = count - counted().failure;
  ring();
}

void Counter::set(uint64_t count) noexcept {
  if (alarm_ != nullptr) alarm_->unwatch();
  ring();
  if (trigger_ != nullptr) {
    PtlCTSet(events_, {count, counted().failure});
  } else {
    successes_ = count - counted().success;
  }
}

ptl_handle_ct_t Counter::count_in_portals() noexcept {
  if (events_ != PTL_CT_NONE) return events_;
  const int code = PtlCTAlloc(domain_.network().interface(), &events_);
  if (code == PTL_OK) {
    if (alarm_ != nullptr && alarm_->is_armed()) alarm_->watch(events_, 1);
    return events_;
  }
  (void)failed(FI_LOG_CNTR, "PtlCTAlloc", code);
  return events_ = PTL_CT_NONE;
}

Trigger* Counter::trigger() noexcept {
  if (trigger_ != nullptr) return trigger_.get();
  if (count_in_portals() == PTL_CT_NONE) return nullptr;
  PtlCTInc(events_, {successes_, 0});
  successes_ = 0;
  trigger_ = std::make_unique<Trigger>(domain_.network().interface(), events_, alarm_.get());
  is_plain_ = false;
  domain_.triggers().push_back(this);
  return trigger_.get();
}

ptl_handle_md_t Counter::counted_descriptor(Counted what) noexcept {
  ptl_handle_md_t& descriptor = descriptors_[static_cast<size_t>(what)];
  if (descriptor != PTL_INVALID_HANDLE) return descriptor;
  if (count_in_portals() == PTL_CT_NONE) return PTL_INVALID_HANDLE;
  const ptl_md_t description = {
      .start = nullptr,
      .length = PTL_SIZE_MAX,
      .options = what == Counted::sends
                     ? PTL_MD_EVENT_CT_SEND
                     : PTL_MD_EVENT_SEND_DISABLE | PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_REPLY,
      .eq_handle = domain_.network().events(),
      .ct_handle = events_};
  const int code = PtlMDBind(domain_.network().interface(), &description, &descriptor);
  if (code == PTL_OK) return descriptor;
  (void)failed(FI_LOG_CNTR, "PtlMDBind", code);
  return descriptor = PTL_INVALID_HANDLE;
}

ptl_ct_event_t Counter::counted() const noexcept {
  ptl_ct_event_t counts{};
  if (events_ != PTL_CT_NONE) PtlCTGet(events_, &counts);
  return counts;
}

uint64_t Counter::read() noexcept {
  const Guard guard(domain_.lock());
  domain_.progress();
  return seen_ = successes();
}

uint64_t Counter::read_errors() noexcept {
  const Guard guard(domain_.lock());
  domain_.progress();
  return seen_errors_ = errors();
}

void Counter::wait_for_portals(uint64_t threshold, int most_ms) noexcept {
  const ptl_size_t wanted = threshold - successes_;
  ptl_ct_event_t counts;
  unsigned which = 0;
  PtlCTPoll(&events_, &wanted, 1, static_cast<ptl_time_t>(most_ms), &counts, &which);
}

int Counter::try_wait() noexcept {
  if (alarm_ == nullptr) return -FI_EINVAL;
  const Guard guard(domain_.lock());
  domain_.progress();
  const ptl_ct_event_t counts = counted();
  if (successes_ + counts.success != seen_ || errors_ + counts.failure != seen_errors_)
    return -FI_EAGAIN;
  alarm_->arm();
  if (events_ != PTL_CT_NONE) alarm_->watch(events_, counts.success + 1);
  return 0;
}

int Counter::control(int command, void* argument) const noexcept {
  return alarm_ != nullptr ? alarm_->control(command, argument)
                           : WaitDescriptor().control(command, argument, FI_WAIT_UNSPEC);
}

int Counter::wait(uint64_t threshold, int timeout_ms) noexcept {
  const Deadline deadline(timeout_ms);
  const uint64_t errors = read_errors();
  for (unsigned round = 0;; ++round) {
    if (read() >= threshold) return 0;
    if (read_errors() != errors) return -FI_EAVAIL;
    if (deadline.is_over()) return -FI_ETIMEDOUT;
    if (events_ != PTL_CT_NONE) {
      wait_for_portals(threshold, deadline.left_ms(longest_remote_wait_ms));
    } else {
      domain_.wait_for_event(deadline, round);
    }
  }
}

}  // namespace lintel::ofi
