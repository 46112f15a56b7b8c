#include "endpoint/channel.h"

#include <algorithm>

#include "base/provider.h"
#include "endpoint/endpoint.h"
#include "endpoint/report.h"

namespace lintel::ofi {

Channel::Channel(Endpoint& endpoint, Portal which) noexcept
    : endpoint_(endpoint), which_(which), store_(endpoint.domain()) {}

ptl_pt_index_t Channel::portal() const noexcept { return endpoint_.portal(which_); }

int Channel::open() noexcept { return store_.open(portal()); }

void Channel::close() noexcept {
  endpoint_.domain().pump().forget(*this);
  store_.close();
}

ssize_t Channel::append(const ptl_me_t& entry, Operation& operation) {
  ptl_handle_me_t* const handle = endpoint_.posted().add(operation);
  Domain& domain = endpoint_.domain();
  const int code = PtlMEAppend(domain.network().interface(), portal(), &entry, PTL_PRIORITY_LIST,
                               &operation, handle);
  if (code == PTL_OK) [[likely]] {
    if (operation.kind == OwnerKind::receive) domain.pump().add_receive();
    return 0;
  }
  endpoint_.posted().remove(operation);
  if (code == PTL_NO_SPACE || code == PTL_LIST_TOO_LONG) return -FI_EAGAIN;
  return failed(FI_LOG_EP_DATA, "PtlMEAppend of a receive", code);
}

ssize_t Channel::post(const ptl_me_t& entry, Operation& operation) {
  EventPump& pump = endpoint_.domain().pump();
  if (delayed_.empty() && pump.has_room()) [[likely]]
    return append(entry, operation);
  delayed_.push_back({entry, OperationReference(operation)});
  pump.delay(*this);
  return 0;
}

bool Channel::post_delayed() {
  EventPump& pump = endpoint_.domain().pump();
  while (!delayed_.empty() && pump.has_room()) {
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
