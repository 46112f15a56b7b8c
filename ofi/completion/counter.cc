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
  of(counter).add(value);
  return 0;
}

int count_errors(fid_cntr* counter, uint64_t value) {
  of(counter).add_errors(value);
  return 0;
}

int set(fid_cntr* counter, uint64_t value) {
  of(counter).set(value);
  return 0;
}

int set_errors(fid_cntr* counter, uint64_t value) {
  of(counter).set_errors(value);
  return 0;
}

int wait_for(fid_cntr* counter, uint64_t threshold, int timeout_ms) {
  return of(counter).wait(threshold, timeout_ms);
}

fi_ops counter_object_ops = object_ops([](Object* object) { return Counter::of(object).close(); });
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
  if (wait != FI_WAIT_NONE && wait != FI_WAIT_UNSPEC && wait != FI_WAIT_YIELD) {
    FI_INFO(provider(), FI_LOG_CNTR, "counters have no wait object of kind %d\n", wait);
    return -FI_ENOSYS;
  }
  auto* const counter = new (std::nothrow) Counter(Domain::of(domain), context);
  if (counter == nullptr) return -FI_ENOMEM;
  *result = counter;
  return 0;
}

int Counter::close() noexcept {
  if (users_ != 0) {
    FI_WARN(provider(), FI_LOG_CNTR,
            "%zu endpoints and regions use the counter; close them first.\n", users_);
    return -FI_EBUSY;
  }
  if (remote_ != PTL_CT_NONE) PtlCTFree(remote_);
  domain_.remove_user();
  delete this;
  return 0;
}

uint64_t Counter::read() noexcept {
  {
    const Guard guard(domain_.lock());
    domain_.progress();
  }
  return successes_.load(std::memory_order_acquire) + remote().success;
}

ptl_handle_ct_t Counter::count_remote() noexcept {
  if (remote_ != PTL_CT_NONE) return remote_;
  const int code = PtlCTAlloc(domain_.network().interface(), &remote_);
  if (code == PTL_OK) return remote_;
  (void)failed(FI_LOG_CNTR, "PtlCTAlloc", code);
  return remote_ = PTL_CT_NONE;
}

ptl_ct_event_t Counter::remote() const noexcept {
  ptl_ct_event_t counts{};
  if (remote_ != PTL_CT_NONE) PtlCTGet(remote_, &counts);
  return counts;
}

void Counter::wait_for_remote(uint64_t threshold, int most_ms) noexcept {
  const ptl_size_t wanted = threshold - successes_.load(std::memory_order_acquire);
  ptl_ct_event_t counts;
  unsigned which = 0;
  PtlCTPoll(&remote_, &wanted, 1, static_cast<ptl_time_t>(most_ms), &counts, &which);
}

uint64_t Counter::read_errors() noexcept {
  {
    const Guard guard(domain_.lock());
    domain_.progress();
  }
  return errors_.load(std::memory_order_acquire) + remote().failure;
}

int Counter::wait(uint64_t threshold, int timeout_ms) noexcept {
  const Deadline deadline(timeout_ms);
  const auto count_errors = [this] {
    return errors_.load(std::memory_order_acquire) + remote().failure;
  };
  const uint64_t errors = count_errors();
  for (unsigned round = 0;; ++round) {
    if (read() >= threshold) return 0;
    if (count_errors() != errors) return -FI_EAVAIL;
    if (deadline.is_over()) return -FI_ETIMEDOUT;
    if (remote_ != PTL_CT_NONE) {
      wait_for_remote(threshold, deadline.left_ms(longest_remote_wait_ms));
    } else {
      domain_.wait_for_event(deadline, round);
    }
  }
}

}  // namespace lintel::ofi
