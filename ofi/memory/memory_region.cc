#include "memory/memory_region.h"

#include <portals4_lintel.h>
#include <sched.h>

#include <algorithm>
#include <new>

#include "base/limits.h"
#include "base/provider.h"
#include "base/unsupported.h"
#include "completion/counter.h"
#include "endpoint/endpoint.h"

namespace lintel::ofi {
namespace {

constexpr Portal portals[] = {Portal::memory, Portal::memory_event, Portal::memory_read};

fi_ops region_object_ops =
    object_ops([](Object* object) { return MemoryRegion::of(object).close(); },
               [](Object* object, Object* other, uint64_t flags) {
                 return MemoryRegion::of(object).bind(other, flags);
               },
               [](Object* object, int command, void*) {
                 return command == FI_ENABLE ? MemoryRegion::of(object).enable() : -FI_ENOSYS;
               });

int check(const fi_mr_attr& attr, bool uses_virtual_addresses, uint64_t flags) noexcept {
  if ((flags & ~FI_RMA_EVENT) != 0) return -FI_EBADFLAGS;
  if (attr.offset != 0 || attr.iov_count == 0) return -FI_EINVAL;
  if (attr.iov_count > (uses_virtual_addresses ? 1 : most_segments)) {
    FI_WARN(provider(), FI_LOG_MR,
            "A region has at most %zu pieces, and one with FI_MR_VIRT_ADDR.\n", most_segments);
    return -FI_EINVAL;
  }
  return 0;
}

// The name in Portals of the driver of an interface, or NULL.
const char* driver_of(fi_hmem_iface iface) noexcept {
  switch (iface) {
    case FI_HMEM_CUDA:
      return "cuda";
    case FI_HMEM_ROCR:
      return "hip";
    case FI_HMEM_ZE:
      return "ze";
    default:
      return nullptr;
  }
}

// FI_HMEM: `attr` says whose memory it is. Returns 0 or a negative error number.
int find_device(Domain& domain, const fi_mr_attr& attr) noexcept {
  if (attr.iface == FI_HMEM_SYSTEM) return 0;
  const char* const driver = driver_of(attr.iface);
  unsigned devices = 0;
  if (driver == nullptr || PtlLintelDeviceCount(driver, &devices) != PTL_OK || devices == 0) {
    FI_WARN(provider(), FI_LOG_MR,
            "There is no driver for memory of interface %d, or no device. PTL_LOG_LEVEL=debug says "
            "more.\n",
            attr.iface);
    return -FI_ENOSYS;
  }
  if (attr.iface == FI_HMEM_CUDA && static_cast<unsigned>(attr.device.cuda) >= devices)
    return -FI_EINVAL;
  const Guard guard(domain.lock());
  return domain.network().reach_devices();
}

}  // namespace

MemoryRegion::MemoryRegion(Domain& domain, const fi_mr_attr& attr) noexcept
    : fid_mr{.fid = {FI_CLASS_MR, attr.context, &region_object_ops},
             .mem_desc = nullptr,
             .key = FI_KEY_NOTAVAIL},
      EventOwner{OwnerKind::region},
      domain_(domain),
      access_(attr.access),
      pieces_(attr.mr_iov, attr.mr_iov + attr.iov_count) {
  mem_desc = this;
  domain_.add_user();
}

int MemoryRegion::register_described(Object* domain, const fi_mr_attr* attr, uint64_t flags,
                                     fid_mr** result) noexcept {
  Domain& owner = Domain::of(reinterpret_cast<fid_domain*>(domain));
  int code = check(*attr, owner.regions().uses_virtual_addresses(), flags);
  if (code == 0 && owner.names_devices()) code = find_device(owner, *attr);
  if (code != 0) return code;
  const Guard guard(owner.lock());
  auto* const region = new (std::nothrow) MemoryRegion(owner, *attr);
  if (region == nullptr) return -FI_ENOMEM;
  code = region->choose_key(attr->requested_key);
  if (code == 0) code = region->link_all();
  if (code != 0) {
    if (region->key != FI_KEY_NOTAVAIL) owner.regions().remove(region->key);
    for (const Link& each : region->links_) region->release(each);
    owner.remove_user();
    delete region;
    return code;
  }
  *result = region;
  return 0;
}

int MemoryRegion::register_several(Object* domain, const iovec* pieces, size_t count,
                                   uint64_t access, uint64_t offset, uint64_t key, uint64_t flags,
                                   fid_mr** result, void* context) noexcept {
  const fi_mr_attr attr = {.mr_iov = pieces,
                           .iov_count = count,
                           .access = access,
                           .offset = offset,
                           .requested_key = key,
                           .context = context,
                           .auth_key_size = 0,
                           .auth_key = nullptr,
                           .iface = FI_HMEM_SYSTEM,
                           .device = {}};
  return register_described(domain, &attr, flags, result);
}

int MemoryRegion::register_one(Object* domain, const void* buffer, size_t length, uint64_t access,
                               uint64_t offset, uint64_t key, uint64_t flags, fid_mr** result,
                               void* context) noexcept {
  const iovec piece = {const_cast<void*>(buffer), length};
  return register_several(domain, &piece, 1, access, offset, key, flags, result, context);
}

int MemoryRegion::choose_key(uint64_t requested) noexcept {
  RegionTable& table = domain_.regions();
  const uint64_t wanted =
      table.chooses_keys() ? table.choose_key(pieces_.front().iov_base) : requested;
  if (wanted == FI_KEY_NOTAVAIL || !table.add(*this, wanted)) {
    FI_WARN(provider(), FI_LOG_MR,
            "The key 0x%llx is taken or cannot be used: choose another, or offer FI_MR_PROV_KEY.\n",
            static_cast<unsigned long long>(wanted));
    return -FI_ENOKEY;
  }
  key = wanted;
  return 0;
}

int MemoryRegion::link_all() noexcept {
  int code = 0;
  domain_.for_each_endpoint([&](Endpoint& endpoint) {
    if (code == 0) code = link(endpoint);
  });
  is_enabled_ = code == 0;
  return code;
}

// An entry has one counting event: that of the region comes before that of its endpoint.
Counter* MemoryRegion::counter_at(const Endpoint& endpoint, Portal portal) const noexcept {
  if (portal == Portal::memory_read) return endpoint.counters().remote_read;
  return counter_ != nullptr ? counter_ : endpoint.counters().remote_write;
}

int MemoryRegion::link(Endpoint& endpoint) noexcept {
  if (endpoint_ != nullptr && endpoint_ != &endpoint) return 0;
  ptl_me_t entry{};
  const bool is_one = pieces_.size() == 1;
  entry.start = is_one ? pieces_.front().iov_base : pieces_.data();
  entry.length = is_one ? pieces_.front().iov_len : pieces_.size();
  entry.ct_handle = PTL_CT_NONE;
  entry.uid = PTL_UID_ANY;
  entry.options = PTL_ME_NO_TRUNCATE | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_UNLINK_DISABLE |
                  (is_one ? 0 : PTL_IOVEC);
  if ((access_ & FI_REMOTE_WRITE) != 0) entry.options |= PTL_ME_OP_PUT;
  if ((access_ & FI_REMOTE_READ) != 0) entry.options |= PTL_ME_OP_GET;
  entry.match_id.phys = {PTL_NID_ANY, PTL_PID_ANY};
  entry.match_bits = key;
  Link link = {&endpoint, {PTL_INVALID_HANDLE, PTL_INVALID_HANDLE, PTL_INVALID_HANDLE}};
  for (size_t i = 0; i < std::size(portals); ++i) {
    ptl_me_t each = entry;
    if (portals[i] != Portal::memory_event) each.options |= PTL_ME_EVENT_COMM_DISABLE;
    Counter* const counter = counter_at(endpoint, portals[i]);
    if (counter != nullptr) {
      each.options |= PTL_ME_EVENT_CT_COMM;
      each.ct_handle = counter->count_in_portals();
    }
    const int code =
        PtlMEAppend(domain_.network().interface(), endpoint.portal(portals[i]), &each,
                    PTL_PRIORITY_LIST, static_cast<EventOwner*>(this), &link.entries[i]);
    if (code == PTL_OK) continue;
    release(link);
    return failed(FI_LOG_MR, "PtlMEAppend of a region", code);
  }
  links_.push_back(link);
  return 0;
}

void MemoryRegion::release(const Link& link) noexcept {
  for (const ptl_handle_me_t entry : link.entries)
    while (entry != PTL_INVALID_HANDLE && PtlMEUnlink(entry) == PTL_IN_USE) {
      domain_.pump().drain();
      sched_yield();  // a peer is accessing the memory
    }
}

void MemoryRegion::unlink(Endpoint& endpoint) noexcept {
  std::erase_if(links_, [&](const Link& link) {
    if (link.endpoint != &endpoint) return false;
    release(link);
    return true;
  });
}

int MemoryRegion::close() noexcept {
  {
    const Guard guard(domain_.lock());
    domain_.regions().remove(key);
    for (const Link& each : links_) release(each);
    domain_.pump().drain();  // of events that name the region
    if (counter_ != nullptr) counter_->remove_user();
  }
  domain_.remove_user();
  delete this;
  return 0;
}

int MemoryRegion::bind(Object* object, uint64_t flags) noexcept {
  switch (object->fclass) {
    case FI_CLASS_EP:
      return flags == 0 ? bind_endpoint(Endpoint::of(object)) : -FI_EBADFLAGS;
    case FI_CLASS_CNTR:
      return flags == FI_REMOTE_WRITE ? bind_counter(Counter::of(object)) : -FI_EBADFLAGS;
    default:
      FI_WARN(provider(), FI_LOG_MR, "A region cannot be bound to an object of class %zu.\n",
              object->fclass);
      return -FI_EINVAL;
  }
}

// FI_MR_ENDPOINT: the region is for one endpoint only.
int MemoryRegion::bind_endpoint(Endpoint& endpoint) noexcept {
  const Guard guard(domain_.lock());
  if (endpoint_ != nullptr) return -FI_EBUSY;
  endpoint_ = &endpoint;
  std::erase_if(links_, [this](const Link& link) {
    if (link.endpoint == endpoint_) return false;
    release(link);
    return true;
  });
  return 0;
}

int MemoryRegion::bind_counter(Counter& counter) noexcept {
  const Guard guard(domain_.lock());
  if (counter_ != nullptr) return -FI_EBUSY;
  if (counter.count_in_portals() == PTL_CT_NONE) return -FI_ENOMEM;
  counter_ = &counter;
  counter.add_user();
  for (const Link& each : links_) release(each);
  links_.clear();
  return link_all();
}

int MemoryRegion::enable() noexcept { return is_enabled_ ? 0 : -FI_EINVAL; }

}  // namespace lintel::ofi
