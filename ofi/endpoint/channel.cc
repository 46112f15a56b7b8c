#include "endpoint/channel.h"

#include <algorithm>

#include "base/provider.h"
#include "endpoint/endpoint.h"
#include "endpoint/report.h"

namespace lintel::ofi {

Channel::Channel(Endpoint& endpoint, Domain& domain, PostedTable& posted) noexcept
    : endpoint_(endpoint), domain_(domain), posted_(posted), store_(domain) {}

int Channel::open(ptl_pt_index_t portal) noexcept {
  portal_ = portal;
  return store_.open(portal);
}

void Channel::close() noexcept {
  domain_.pump().forget(*this);
  store_.close();
}

ssize_t Channel::not_appended(Operation& operation, int code) {
  posted_.remove(operation);
  if (code == PTL_NO_SPACE || code == PTL_LIST_TOO_LONG) return -FI_EAGAIN;
  return failed(FI_LOG_EP_DATA, "PtlMEAppend of a receive", code);
}

ssize_t Channel::delay(const ptl_me_t& entry, Operation& operation) {
  delayed_.push_back({entry, OperationReference(operation)});
  domain_.pump().delay(*this);
  return 0;
}

bool Channel::post_delayed() {
  while (!delayed_.empty() && domain_.pump().has_room()) {
    const Delayed next = delayed_.front();
    const ssize_t code = append(next.entry, *next.reference.operation);
    if (code == -FI_EAGAIN) return false;
    delayed_.pop_front();
    if (code != 0) fail_receive(*next.reference.operation, static_cast<int>(-code), 0);
  }
  return delayed_.empty();
}

Operation* Channel::withdraw_delayed(const void* context) {
  const auto found = std::find_if(delayed_.begin(), delayed_.end(), [&](const Delayed& each) {
    return each.reference.is_receive_of(context);
  });
  if (found == delayed_.end()) return nullptr;
  Operation* const operation = found->reference.operation;
  delayed_.erase(found);
  return operation;
}

void Channel::discard_delayed() noexcept {
  for (const Delayed& each : delayed_) endpoint_.forget(each.reference);
  delayed_.clear();
}

}  // namespace lintel::ofi
