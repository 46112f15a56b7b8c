#include "endpoint/endpoint.h"

#include <sched.h>

#include <cstring>

#include "base/provider.h"
#include "base/unsupported.h"
#include "endpoint/scalable_endpoint.h"
#include "endpoint/segments.h"

namespace lintel::ofi {
namespace {

constexpr int close_timeout_ms = 5000;

size_t class_of(Role role) noexcept {
  switch (role) {
    case Role::transmit:
      return FI_CLASS_TX_CTX;
    case Role::receive:
      return FI_CLASS_RX_CTX;
    case Role::shared_receive:
      return FI_CLASS_SRX_CTX;
    default:
      return FI_CLASS_EP;
  }
}

fi_ops endpoint_object_ops = object_ops([](Object* object) { return Endpoint::of(object).close(); },
                                        [](Object* object, Object* other, uint64_t flags) {
                                          return Endpoint::of(object).bind(other, flags);
                                        },
                                        [](Object* object, int command, void* argument) {
                                          return Endpoint::of(object).control(command, argument);
                                        });

}  // namespace

Endpoint::Endpoint(Domain& domain, const fi_info& info, const EndpointCalls& calls, void* context,
                   const Membership& membership) noexcept
    : fid_ep{.fid = {class_of(membership.role), context, &endpoint_object_ops},
             .ops = calls.general,
             .cm = calls.names,
             .msg = calls.message,
             .rma = calls.memory,
             .tagged = calls.tagged,
             .atomic = calls.atomic,
             .collective = calls.collective},
      domain_(domain),
      membership_(membership),
      caps_(info.caps),
      shared_{info.ep_attr != nullptr && info.ep_attr->tx_ctx_cnt == FI_SHARED_CONTEXT,
              info.ep_attr != nullptr && info.ep_attr->rx_ctx_cnt == FI_SHARED_CONTEXT},
      common_{(info.mode & FI_CONTEXT2) != 0} {
  if (info.tx_attr != nullptr) transmit_.op_flags = info.tx_attr->op_flags;
  if (info.rx_attr != nullptr) receive_.op_flags = info.rx_attr->op_flags;
  if (membership_.parent != nullptr) keys_.shared = &membership_.parent->keys();
  if (membership_.role == Role::shared_receive) {
    receive_.is_shared = receive_.is_selective = true;
    // The offset that a sender asks for is no place, but says whom the message is for.
    receive_.entry_options = PTL_ME_MANAGE_LOCAL;
  }
  domain_.add_user();
}

int Endpoint::bind(Object* object, uint64_t flags) noexcept {
  if (membership_.role == Role::shared_receive && object->fclass != FI_CLASS_AV) return -FI_EINVAL;
  if (is_enabled() && object->fclass != FI_CLASS_CNTR && membership_.role != Role::shared_receive)
    return -FI_EOPBADSTATE;
  switch (object->fclass) {
    case FI_CLASS_AV:
      return bind_addresses(*static_cast<AddressVector*>(reinterpret_cast<fid_av*>(object)));
    case FI_CLASS_SRX_CTX:
      return bind_receive_context(Endpoint::of(object));
    case FI_CLASS_CQ:
      return bind_queue(CompletionQueue::of(object), flags);
    case FI_CLASS_CNTR:
      return bind_counter(Counter::of(object), flags);
    case FI_CLASS_STX_CTX:
      if (!shared_.transmits) return -FI_EINVAL;
      if (shared_.transmit != nullptr) return -FI_EBUSY;
      shared_.transmit = &TransmitContext::of(object);
      shared_.transmit->add_user();
      return 0;
    case FI_CLASS_EQ:
      return 0;  // there are no events of endpoints without connections
    default:
      FI_WARN(provider(), FI_LOG_EP_CTRL,
              "An endpoint cannot be bound to an object of class %zu.\n", object->fclass);
      return -FI_EINVAL;
  }
}

int Endpoint::bind_addresses(AddressVector& addresses) noexcept {
  if (addresses_ != nullptr) return -FI_EBUSY;
  addresses_ = &addresses;
  addresses_->add_user();
  return 0;
}

int Endpoint::bind_receive_context(Endpoint& context) noexcept {
  if (!shared_.receives || &context.domain_ != &domain_) return -FI_EINVAL;
  if (shared_.receive != nullptr) return -FI_EBUSY;
  const Guard guard(domain_.lock());
  shared_.receive = &context;
  context.shared_.sharers.push_back(this);
  return 0;
}

// Those that share a receive context have one address vector (man fi_endpoint).
int Endpoint::join_receive_context() noexcept {
  if (shared_.receive == nullptr) {
    FI_WARN(provider(), FI_LOG_EP_CTRL,
            "Bind the receive context that the endpoint shares before fi_enable.\n");
    return -FI_EOPBADSTATE;
  }
  if (!shared_.receive->has_addresses()) return shared_.receive->bind_addresses(*addresses_);
  if (shared_.receive->addresses_ == addresses_) return 0;
  FI_WARN(provider(), FI_LOG_EP_CTRL,
          "Endpoints that share a receive context have the same address vector.\n");
  return -FI_EINVAL;
}

Endpoint& Endpoint::sharer(uint32_t index) noexcept {
  Endpoint* const named = domain_.endpoint(index);
  // It may be closed, or the message may name none.
  return named != nullptr && named->shared_.receive == this ? *named : first_recipient();
}

int Endpoint::bind_queue(CompletionQueue& queue, uint64_t flags) noexcept {
  if ((flags & ~(FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION)) != 0) return -FI_EBADFLAGS;
  if ((flags & (FI_TRANSMIT | FI_RECV)) == 0) return -FI_EINVAL;
  const bool selective = (flags & FI_SELECTIVE_COMPLETION) != 0;
  for (const auto& [flag, direction] : {std::pair{FI_TRANSMIT, &transmit_}, {FI_RECV, &receive_}}) {
    if ((flags & flag) == 0) continue;
    if (direction->queue != nullptr) return -FI_EBUSY;
    direction->queue = &queue;
    direction->is_selective = selective;
    queue.add_user();
  }
  find_common_cases();
  return 0;
}

int Endpoint::bind_counter(Counter& counter, uint64_t flags) noexcept {
  constexpr uint64_t remote = FI_REMOTE_READ | FI_REMOTE_WRITE;
  if (flags == 0 || (flags & ~(FI_SEND | FI_RECV | FI_READ | FI_WRITE | remote)) != 0)
    return -FI_EBADFLAGS;
  if ((flags & remote) != 0 && (is_enabled() || (caps_ & FI_RMA_EVENT) == 0)) {
    FI_WARN(provider(), FI_LOG_EP_CTRL,
            "Counters of remote reads and writes need FI_RMA_EVENT, and are bound before "
            "fi_enable.\n");
    return -FI_EINVAL;
  }
  if ((flags & remote) != 0 && counter.count_in_portals() == PTL_CT_NONE) return -FI_ENOMEM;
  for (const auto& [flag, place] : {std::pair{FI_SEND, &counters_.send},
                                    {FI_RECV, &counters_.receive},
                                    {FI_READ, &counters_.read},
                                    {FI_WRITE, &counters_.write},
                                    {FI_REMOTE_READ, &counters_.remote_read},
                                    {FI_REMOTE_WRITE, &counters_.remote_write}}) {
    if ((flags & flag) == 0) continue;
    if (*place != nullptr) return -FI_EBUSY;
    *place = &counter;
    counter.add_user();
  }
  find_common_cases();
  return 0;
}

void Endpoint::find_common_cases() noexcept {
  common_.reports = receive_.queue != nullptr && counters_.receive == nullptr && !is_shared();
  common_.posts = common_.reports && receive_.reports(receive_.op_flags) && common_.in_contexts &&
                  !domain_.progresses_itself();
  common_.sends =
      transmit_.reports(transmit_.op_flags) &&
      (transmit_.op_flags & (FI_INJECT | FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE | FI_FENCE)) == 0;
}

int Endpoint::control(int command, void* argument) noexcept {
  switch (command) {
    case FI_ENABLE:
      return enable();
    case FI_GETOPSFLAG:
    case FI_SETOPSFLAG: {
      auto& flags = *static_cast<uint64_t*>(argument);
      const uint64_t which = flags & (FI_TRANSMIT | FI_RECV);
      if (which != FI_TRANSMIT && which != FI_RECV) return -FI_EINVAL;
      uint64_t& op_flags = (which == FI_TRANSMIT ? transmit_ : receive_).op_flags;
      if (command == FI_GETOPSFLAG) {
        flags = op_flags;
      } else {
        op_flags = flags & ~which;
        find_common_cases();
      }
      return 0;
    }
    default:
      return -FI_ENOSYS;
  }
}

int Endpoint::check_bindings() noexcept {
  if (membership_.role == Role::shared_receive) return 0;
  if (ScalableEndpoint* const parent = membership_.parent; parent != nullptr) {
    // Open MPI enables the contexts first.
    if (const int code = parent->enable(); code != 0) return code;
    if (addresses_ == nullptr) {
      addresses_ = parent->addresses();
      addresses_->add_user();
    }
  }
  if (addresses_ == nullptr) {
    FI_WARN(provider(), FI_LOG_EP_CTRL, "Bind an address vector before fi_enable.\n");
    return -FI_ENOAV;
  }
  if (shared_.transmits && shared_.transmit == nullptr) {
    FI_WARN(provider(), FI_LOG_EP_CTRL,
            "Bind the transmit context that the endpoint shares before fi_enable.\n");
    return -FI_EOPBADSTATE;
  }
  // A receive context may only be the target of RMA.
  const bool sends =
      membership_.role != Role::receive && (caps_ & (FI_SEND | FI_READ | FI_WRITE)) != 0;
  const bool counted = counters_.send != nullptr || counters_.write != nullptr ||
                       counters_.read != nullptr || counters_.receive != nullptr;
  if (sends && transmit_.queue == nullptr && receive_.queue == nullptr && !counted) {
    FI_WARN(provider(), FI_LOG_EP_CTRL, "Bind a completion queue or counters before fi_enable.\n");
    return -FI_ENOCQ;
  }
  return 0;
}

int Endpoint::enable() noexcept {
  const Guard guard(domain_.lock());
  if (is_enabled()) return 0;
  int code = check_bindings();
  if (code == 0 && shared_.receives) code = join_receive_context();
  if (code == 0) code = take_index();
  if (code != 0) return code;
  if (membership_.role == Role::transmit) {
    domain_.add_sender(*this);
    return 0;
  }
  return open_channels();
}

int Endpoint::open_shared() noexcept { return enable(); }

int Endpoint::take_index() noexcept {
  const Network& network = domain_.network();
  if (membership_.parent == nullptr) {
    uint32_t index = 0;
    if (const int code = allocate_blocks(network, 1, index); code != 0) return code;
    index_ = index;
    // Messages go to the receive context. Others are refused, and not held.
    if (shared_.receives)
      for (const Portal which : {Portal::tagged, Portal::message})
        PtlPTDisable(network.interface(), portal(which));
    return accept_probes(network, index_, probes_.entry);
  }
  index_ = membership_.parent->index();
  if (membership_.role == Role::transmit) return 0;
  index_ += membership_.position;
  // A context that had the position before may have disabled them.
  for (const Portal which : all_portals) PtlPTEnable(network.interface(), portal(which));
  return 0;
}

int Endpoint::open_channels() noexcept {
  domain_.add(*this, index_);
  int code = 0;
  if (!shared_.receives) code = tagged_.open(portal(Portal::tagged));
  if (code == 0 && !shared_.receives) code = message_.open(portal(Portal::message));
  if (code == 0) code = domain_.regions().add_endpoint(*this);
  return code;
}

void Endpoint::close_channels() noexcept {
  domain_.regions().remove_endpoint(*this);
  tagged_.close();
  message_.close();
  domain_.pump().drain();
  domain_.report_drops();
  domain_.remove(*this, index_);
}

int Endpoint::name(void* buffer, size_t* size) const noexcept {
  if (!is_enabled()) {
    FI_WARN(provider(), FI_LOG_EP_CTRL, "An endpoint has its name from fi_enable on.\n");
    return -FI_EOPBADSTATE;
  }
  if (membership_.parent != nullptr) return membership_.parent->name(buffer, size);
  const ptl_process_t process = domain_.network().process();
  const uint32_t receiver = shared_.receive != nullptr ? shared_.receive->index_ : index_;
  const Address address = {.nid = process.phys.nid,
                           .pid = process.phys.pid,
                           .index = Address::index_of(index_, receiver)};
  return copy_name(address, domain_.names_as_text(), buffer, size);
}

int Endpoint::get_option(int level, int option, void* value, size_t* size) const noexcept {
  if (level != FI_OPT_ENDPOINT || option != FI_OPT_MIN_MULTI_RECV) return -FI_ENOPROTOOPT;
  if (*size < sizeof least_free_) return -FI_ETOOSMALL;
  memcpy(value, &least_free_, sizeof least_free_);
  *size = sizeof least_free_;
  return 0;
}

int Endpoint::set_option(int level, int option, const void* value, size_t size) noexcept {
  if (level == FI_OPT_ENDPOINT && option == FI_OPT_FI_HMEM_P2P) {
    if (size != sizeof(int)) return -FI_EINVAL;
    const int wanted = *static_cast<const int*>(value);
    // Portals decides how memory of devices is reached.
    return wanted == FI_HMEM_P2P_ENABLED || wanted == FI_HMEM_P2P_PREFERRED ? 0 : -FI_EOPNOTSUPP;
  }
  if (level != FI_OPT_ENDPOINT || option != FI_OPT_MIN_MULTI_RECV) return -FI_ENOPROTOOPT;
  if (size != sizeof least_free_) return -FI_EINVAL;
  memcpy(&least_free_, value, sizeof least_free_);
  return 0;
}

// A message that its receiver has not got.
void Endpoint::withdraw_long_send(Operation& operation) noexcept {
  operation.posted = Operation::not_posted;
  operation.state |= is_delivered;
  if (!operation.has(is_acknowledged)) return;  // its acknowledgment ends it
  remove_transmit(operation);
  if (operation.has(has_segments)) delete static_cast<Segments*>(operation.buffer);
  end_operation(operation);
}

// Afterwards no message changes the memory of a receive, and none waits to be got.
void Endpoint::withdraw_entries() noexcept {
  posted_.remove_if([this](const OperationReference& reference, ptl_handle_me_t entry) {
    if (PtlMEUnlink(entry) != PTL_OK) return false;
    if (reference.kind == OwnerKind::long_send) {
      withdraw_long_send(*reference.operation);
      return true;
    }
    if (reference.kind == OwnerKind::receive) domain_.pump().remove_receive();
    forget(reference);
    return true;
  });
}

void Endpoint::wait_for_operations() noexcept {
  const Deadline deadline(close_timeout_ms);
  while (domain_.pump().drain(), pending_.immediate + pending_.deferred != 0 || !posted_.empty()) {
    if (deadline.is_over()) {
      FI_WARN(provider(), FI_LOG_EP_CTRL,
              "The endpoint is closed with %zu operations pending. Their memory must stay: read "
              "their completions before fi_close.\n",
              pending_.immediate + pending_.deferred);
      return;
    }
    withdraw_entries();
    sched_yield();
  }
}

void Endpoint::withdraw_deferrals() noexcept {
  for (Counter* const each : domain_.triggers())
    each->existing_trigger()->withdraw_if(
        [this](const TriggeredWork& work) { return work.endpoint() == this; });
}

void Endpoint::release_bindings() noexcept {
  if (addresses_ != nullptr) addresses_->remove_user();
  if (shared_.transmit != nullptr) shared_.transmit->remove_user();
  if (shared_.receive != nullptr) std::erase(shared_.receive->shared_.sharers, this);
  for (const Direction* const direction : {&transmit_, &receive_})
    if (direction->queue != nullptr) direction->queue->remove_user();
  for (Counter* const counter : {counters_.send, counters_.receive, counters_.read, counters_.write,
                                 counters_.remote_read, counters_.remote_write})
    if (counter != nullptr) counter->remove_user();
}

int Endpoint::close() noexcept {
  {
    const Guard guard(domain_.lock());
    if (!shared_.sharers.empty()) {
      FI_WARN(provider(), FI_LOG_EP_CTRL, "%zu endpoints share the context; close them first.\n",
              shared_.sharers.size());
      return -FI_EBUSY;
    }
    const ptl_handle_ni_t interface = domain_.network().interface();
    if (is_enabled()) {
      const bool receives = membership_.role != Role::transmit;
      for (const Portal which : all_portals)
        if (membership_.parent == nullptr || (receives && which != Portal::rendezvous))
          PtlPTDisable(interface, portal(which));
      withdraw_deferrals();
      tagged_.discard_delayed();
      message_.discard_delayed();
      withdraw_entries();
      wait_for_operations();
      if (receives) {
        close_channels();
      } else {
        domain_.remove_sender(*this);
      }
      if (probes_.entry != PTL_INVALID_HANDLE) PtlMEUnlink(probes_.entry);
      if (membership_.parent == nullptr) free_block(interface, index_);
    }
    release_bindings();
    if (membership_.parent != nullptr) membership_.parent->remove(*this);
  }
  domain_.remove_user();
  delete this;
  return 0;
}

}  // namespace lintel::ofi
