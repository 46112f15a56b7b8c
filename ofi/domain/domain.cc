#include "domain/domain.h"

#include <portals4_lintel.h>

#include "base/provider.h"
#include "base/settings.h"
#include "base/unsupported.h"
#include "fabric/fabric.h"

namespace lintel::ofi {
namespace {

Domain& of_object(Object* object) { return Domain::of(reinterpret_cast<fid_domain*>(object)); }

fi_ops domain_object_ops = object_ops(
    [](Object* object) { return of_object(object).close(); },
    [](Object* object, Object* other, uint64_t) { return of_object(object).bind(other); },
    [](Object* object, int command, void* argument) {
      return of_object(object).control(command, argument);
    });
bool needs_lock(fi_threading threading) noexcept {
  return threading != FI_THREAD_DOMAIN;  // all others let threads use several endpoints at a time
}

}  // namespace

Domain::Domain(Fabric& fabric, const fi_info& info, const DomainCalls& calls,
               void* context) noexcept
    : fid_domain{{FI_CLASS_DOMAIN, context, &domain_object_ops}, calls.open, calls.regions},
      fabric_(fabric),
      calls_(calls),
      lock_(needs_lock(info.domain_attr->threading)),
      pump_(*this, calls.handle, calls.check_peers),
      regions_(registration_mode(fabric.api_version, info.domain_attr->mr_mode, info.caps)),
      names_devices_((info.caps & FI_HMEM) != 0),
      vector_type_(info.domain_attr->av_type != FI_AV_UNSPEC ? info.domain_attr->av_type
                                                             : FI_AV_MAP),
      names_as_text_(info.addr_format == FI_ADDR_STR),
      progresses_itself_(info.domain_attr->data_progress == FI_PROGRESS_AUTO) {
  fabric_.add_user();
}

bool Domain::is_ours(const fid_domain& domain) noexcept {
  return domain.fid.ops == &domain_object_ops;
}

int Domain::open() noexcept {
  if (const int code = network_.open(); code != 0) return code;
  pump_.set_capacity(settings().events);
  PtlNIStatus(network_.interface(), PTL_SR_DROP_COUNT, &drops_);
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

void Domain::add(Endpoint& endpoint, uint32_t index) noexcept { endpoints_[index] = &endpoint; }

void Domain::remove(Endpoint& endpoint, uint32_t index) noexcept {
  if (endpoints_[index] == &endpoint) endpoints_[index] = nullptr;
}

void Domain::report_drops() noexcept {
  ptl_sr_value_t now = drops_;
  if (PtlNIStatus(network_.interface(), PTL_SR_DROP_COUNT, &now) != PTL_OK || now == drops_) return;
  FI_WARN(
      provider(), FI_LOG_EP_DATA,
      "%lld messages to this process were dropped: they were for closed endpoints or regions.\n",
      static_cast<long long>(now - drops_));
  drops_ = now;
}

}  // namespace lintel::ofi
