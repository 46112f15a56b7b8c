#include "endpoint/scalable_endpoint.h"

#include <algorithm>
#include <new>

#include "base/provider.h"
#include "base/unsupported.h"
#include "endpoint/portal_block.h"

namespace lintel::ofi {
namespace {

fi_ops scalable_object_ops =
    object_ops([](Object* object) { return ScalableEndpoint::of(object).close(); },
               [](Object* object, Object* other, uint64_t) {
                 return ScalableEndpoint::of(object).bind(other);
               },
               [](Object* object, int command, void*) {
                 return ScalableEndpoint::of(object).control(command);
               });

int open_transmit_context(fid_ep* endpoint, int position, fi_tx_attr* attr, fid_ep** result,
                          void* context) {
  return ScalableEndpoint::of(&endpoint->fid).open_transmit(position, attr, result, context);
}

int open_receive_context(fid_ep* endpoint, int position, fi_rx_attr* attr, fid_ep** result,
                         void* context) {
  return ScalableEndpoint::of(&endpoint->fid).open_receive(position, attr, result, context);
}

fi_ops_ep scalable_ops = {.size = sizeof(fi_ops_ep),
                          .cancel = unsupported(&fi_ops_ep::cancel),
                          .getopt = unsupported(&fi_ops_ep::getopt),
                          .setopt = unsupported(&fi_ops_ep::setopt),
                          .tx_ctx = open_transmit_context,
                          .rx_ctx = open_receive_context,
                          .rx_size_left = unsupported(&fi_ops_ep::rx_size_left),
                          .tx_size_left = unsupported(&fi_ops_ep::tx_size_left)};

fi_ops_cm scalable_name_ops = {
    .size = sizeof(fi_ops_cm),
    .setname = unsupported(&fi_ops_cm::setname),
    .getname = [](Object* object, void* name,
                  size_t* size) { return ScalableEndpoint::of(object).name(name, size); },
    .getpeer = unsupported(&fi_ops_cm::getpeer),
    .connect = unsupported(&fi_ops_cm::connect),
    .listen = unsupported(&fi_ops_cm::listen),
    .accept = unsupported(&fi_ops_cm::accept),
    .reject = unsupported(&fi_ops_cm::reject),
    .shutdown = unsupported(&fi_ops_cm::shutdown),
    .join = unsupported(&fi_ops_cm::join)};

size_t contexts_of(size_t asked) noexcept {
  return asked == FI_SHARED_CONTEXT ? 1 : std::max<size_t>(asked, 1);
}

}  // namespace

ScalableEndpoint::ScalableEndpoint(Domain& domain, const fi_info& info, const EndpointCalls& calls,
                                   void* context) noexcept
    : fid_ep{.fid = {FI_CLASS_SEP, context, &scalable_object_ops},
             .ops = &scalable_ops,
             .cm = &scalable_name_ops,
             .msg = calls.message,
             .rma = calls.memory,
             .tagged = calls.tagged,
             .atomic = calls.atomic,
             .collective = calls.collective},
      domain_(domain),
      calls_(calls),
      caps_(info.caps),
      mode_(info.mode),
      transmit_(info.tx_attr != nullptr ? *info.tx_attr : fi_tx_attr{}),
      receive_(info.rx_attr != nullptr ? *info.rx_attr : fi_rx_attr{}),
      transmitters_(contexts_of(info.ep_attr->tx_ctx_cnt)),
      receivers_(contexts_of(info.ep_attr->rx_ctx_cnt)) {
  domain_.add_user();
}

int ScalableEndpoint::open(Domain& domain, const fi_info& info, const EndpointCalls& calls,
                           fid_ep** result, void* context) noexcept {
  if (info.ep_attr == nullptr || contexts_of(info.ep_attr->tx_ctx_cnt) > most_contexts ||
      contexts_of(info.ep_attr->rx_ctx_cnt) > most_contexts)
    return -FI_EINVAL;
  if (info.ep_attr->rx_ctx_cnt == FI_SHARED_CONTEXT) return -FI_ENOSYS;
  *result = new (std::nothrow) ScalableEndpoint(domain, info, calls, context);
  return *result != nullptr ? 0 : -FI_ENOMEM;
}

int ScalableEndpoint::close() noexcept {
  const auto is_open = [](const Endpoint* context) { return context != nullptr; };
  if (std::any_of(transmitters_.begin(), transmitters_.end(), is_open) ||
      std::any_of(receivers_.begin(), receivers_.end(), is_open)) {
    FI_WARN(provider(), FI_LOG_EP_CTRL, "Close the contexts of the endpoint first.\n");
    return -FI_EBUSY;
  }
  if (is_enabled()) {
    const Guard guard(domain_.lock());
    domain_.pump().drain();
    PtlMEUnlink(probe_entry_);
    for (uint32_t i = 0; i < receivers_.size(); ++i)
      free_block(domain_.network().interface(), index_ + i);
  }
  if (addresses_ != nullptr) addresses_->remove_user();
  domain_.remove_user();
  delete this;
  return 0;
}

int ScalableEndpoint::bind(Object* object) noexcept {
  if (object->fclass == FI_CLASS_EQ) return 0;
  if (object->fclass != FI_CLASS_AV) return -FI_EINVAL;
  if (is_enabled()) return -FI_EOPBADSTATE;
  if (addresses_ != nullptr) return -FI_EBUSY;
  addresses_ = static_cast<AddressVector*>(reinterpret_cast<fid_av*>(object));
  addresses_->add_user();
  return 0;
}

int ScalableEndpoint::control(int command) noexcept {
  if (command != FI_ENABLE) return -FI_ENOSYS;
  const Guard guard(domain_.lock());
  return enable();
}

int ScalableEndpoint::enable() noexcept {
  if (is_enabled()) return 0;
  if (addresses_ == nullptr) {
    FI_WARN(provider(), FI_LOG_EP_CTRL, "Bind an address vector before fi_enable.\n");
    return -FI_ENOAV;
  }
  uint32_t index = 0;
  const Network& network = domain_.network();
  if (const int code = allocate_blocks(network, static_cast<uint32_t>(receivers_.size()), index);
      code != 0)
    return code;
  index_ = index;
  return accept_probes(network, index_, probe_entry_);
}

int ScalableEndpoint::name(void* buffer, size_t* size) const noexcept {
  if (!is_enabled()) return -FI_EOPBADSTATE;
  const ptl_process_t process = domain_.network().process();
  const Address address = {.nid = process.phys.nid, .pid = process.phys.pid, .index = index_};
  return copy_name(address, domain_.names_as_text(), buffer, size);
}

int ScalableEndpoint::open_transmit(int position, const fi_tx_attr* attr, fid_ep** result,
                                    void* context) noexcept {
  fi_tx_attr transmit = transmit_;
  fi_info info{};
  info.caps = caps_;
  if (attr != nullptr) {
    if ((attr->caps & ~(caps_ | domain_caps)) != 0) return -FI_EINVAL;
    if (attr->caps != 0) info.caps = attr->caps;
    transmit.op_flags = attr->op_flags;
  }
  info.mode = mode_;
  info.tx_attr = &transmit;
  return open_context(transmitters_, position, Role::transmit, info, result, context);
}

int ScalableEndpoint::open_receive(int position, const fi_rx_attr* attr, fid_ep** result,
                                   void* context) noexcept {
  fi_rx_attr receive = receive_;
  fi_info info{};
  info.caps = caps_;
  if (attr != nullptr) {
    if ((attr->caps & ~(caps_ | domain_caps)) != 0) return -FI_EINVAL;
    if (attr->caps != 0) info.caps = attr->caps;
    receive.op_flags = attr->op_flags;
  }
  info.mode = mode_;
  info.rx_attr = &receive;
  return open_context(receivers_, position, Role::receive, info, result, context);
}

int ScalableEndpoint::open_context(Contexts& contexts, int position, Role role, const fi_info& info,
                                   fid_ep** result, void* context) noexcept {
  const auto place = static_cast<size_t>(position);
  if (position < 0 || place >= contexts.size()) return -FI_EINVAL;
  if (contexts[place] != nullptr) return -FI_EBUSY;
  auto* const opened = new (std::nothrow)
      Endpoint(domain_, info, calls_, context,
               {.parent = this, .role = role, .position = static_cast<uint32_t>(position)});
  if (opened == nullptr) return -FI_ENOMEM;
  contexts[place] = opened;
  *result = opened;
  return 0;
}

void ScalableEndpoint::remove(const Endpoint& context) noexcept {
  for (Contexts* const contexts : {&transmitters_, &receivers_})
    std::replace(contexts->begin(), contexts->end(), const_cast<Endpoint*>(&context),
                 static_cast<Endpoint*>(nullptr));
}

}  // namespace lintel::ofi
