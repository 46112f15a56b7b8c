#include "domain/domain.h"

#include <portals4_lintel.h>

#include <new>

#include "address/address_vector.h"
#include "completion/completion_queue.h"
#include "completion/counter.h"
#include "endpoint/endpoint.h"
#include "fabric/fabric.h"
#include "memory/memory_region.h"
#include "provider/attributes.h"
#include "provider/provider.h"
#include "provider/settings.h"
#include "provider/unsupported.h"
#include "transfer/atomic.h"

namespace lintel::ofi {
namespace {

Domain& of_object(Object* object) { return Domain::of(reinterpret_cast<fid_domain*>(object)); }

int open_endpoint_with_flags(fid_domain* domain, fi_info* info, fid_ep** result, uint64_t flags,
                             void* context) {
  return flags == 0 ? Endpoint::open(domain, info, result, context) : -FI_EINVAL;
}

fi_ops domain_object_ops = object_ops(
    [](Object* object) { return of_object(object).close(); },
    [](Object* object, Object* other, uint64_t) { return of_object(object).bind(other); });
fi_ops_domain domain_ops = {.size = sizeof(fi_ops_domain),
                            .av_open = AddressVector::open,
                            .cq_open = CompletionQueue::open,
                            .endpoint = Endpoint::open,
                            .scalable_ep = unsupported(&fi_ops_domain::scalable_ep),
                            .cntr_open = Counter::open,
                            .poll_open = unsupported(&fi_ops_domain::poll_open),
                            .stx_ctx = unsupported(&fi_ops_domain::stx_ctx),
                            .srx_ctx = unsupported(&fi_ops_domain::srx_ctx),
                            .query_atomic = query_atomic,
                            .query_collective = unsupported(&fi_ops_domain::query_collective),
                            .endpoint2 = open_endpoint_with_flags};
fi_ops_mr region_ops = {.size = sizeof(fi_ops_mr),
                        .reg = MemoryRegion::register_one,
                        .regv = MemoryRegion::register_several,
                        .regattr = MemoryRegion::register_described};

bool needs_lock(fi_threading threading) noexcept {
  return threading != FI_THREAD_DOMAIN;  // all others let threads use several endpoints at a time
}

}  // namespace

Domain::Domain(Fabric& fabric, const fi_info& info, void* context) noexcept
    : fid_domain{{FI_CLASS_DOMAIN, context, &domain_object_ops}, &domain_ops, &region_ops},
      fabric_(fabric),
      lock_(needs_lock(info.domain_attr->threading)),
      regions_(registration_mode(fabric.api_version, info.domain_attr->mr_mode)),
      vector_type_(info.domain_attr->av_type != FI_AV_UNSPEC ? info.domain_attr->av_type
                                                             : FI_AV_MAP),
      names_as_text_(info.addr_format == FI_ADDR_STR),
      progresses_itself_(info.domain_attr->data_progress == FI_PROGRESS_AUTO) {
  fabric_.add_user();
}

bool Domain::is_ours(const fid_domain& domain) noexcept { return domain.ops == &domain_ops; }

int Domain::open(fid_fabric* fabric, fi_info* info, fid_domain** result, void* context) noexcept {
  if (info->domain_attr == nullptr) return -FI_EINVAL;
  auto* const domain = new (std::nothrow) Domain(Fabric::of(fabric), *info, context);
  if (domain == nullptr) return -FI_ENOMEM;
  if (const int code = domain->network_.open(); code != 0) {
    (void)domain->close();
    return code;
  }
  domain->pump_.set_capacity(settings().events);
  PtlNIStatus(domain->network_.interface(), PTL_SR_DROP_COUNT, &domain->drops_);
  *result = domain;
  return 0;
}

int Domain::close() noexcept {
  if (users_ != 0) {
    FI_WARN(provider(), FI_LOG_DOMAIN, "%zu objects of the domain are open; close them first.\n",
            users_.load());
    return -FI_EBUSY;
  }
  fabric_.remove_user();
  delete this;
  return 0;
}

// Registrations are finished when they return, so an event queue has nothing to report of them.
int Domain::bind(Object* object) noexcept { return object->fclass == FI_CLASS_EQ ? 0 : -FI_EINVAL; }

bool Domain::copies_error_data() const noexcept {
  return FI_VERSION_GE(fabric_.api_version, FI_VERSION(1, 5));
}

void Domain::add(CompletionQueue& queue) {
  const Guard guard(lock_);
  queues_.push_back(&queue);
  add_user();
}

void Domain::remove(CompletionQueue& queue) noexcept {
  const Guard guard(lock_);
  std::erase(queues_, &queue);
  remove_user();
}

void Domain::add(Endpoint& endpoint, uint32_t index) noexcept { endpoints_[index] = &endpoint; }

void Domain::remove(Endpoint& endpoint, uint32_t index) noexcept {
  if (endpoints_[index] == &endpoint) endpoints_[index] = nullptr;
}

void Domain::report_drops() noexcept {
  ptl_sr_value_t now = drops_;
  if (PtlNIStatus(network_.interface(), PTL_SR_DROP_COUNT, &now) != PTL_OK || now == drops_) return;
  FI_WARN(provider(), FI_LOG_EP_DATA,
          "%lld messages to this process were dropped: more were unexpected than there is memory "
          "for, or they were for closed endpoints. Raise FI_LINTEL_UNEXPECTED_RESERVE, or call "
          "fi_cq_read more often.\n",
          static_cast<long long>(now - drops_));
  drops_ = now;
}

}  // namespace lintel::ofi
