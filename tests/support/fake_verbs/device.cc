// The stand-in for libibverbs: devices, ports, protection domains, address handles.
#include <arpa/inet.h>
#include <net/if.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "support/fake_verbs/objects.h"

// The header defines these as macros; the functions are defined here.
#undef ibv_query_port

using namespace lintel::fake_verbs;

namespace {

int query_device_ex(ibv_context* context, const ibv_query_device_ex_input*,
                    ibv_device_attr_ex* attributes, size_t) {
  *attributes = {};
  if (const int error = ibv_query_device(context, &attributes->orig_attr); error != 0) return error;
  if (!world().settings.on_demand) return 0;
  attributes->odp_caps.general_caps = IBV_ODP_SUPPORT;
  attributes->odp_caps.per_transport_caps.rc_odp_caps =
      IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_WRITE;
  return 0;
}

}  // namespace

extern "C" {

ibv_device** ibv_get_device_list(int* count) {
  World& all = world();
  const std::lock_guard guard(all.lock);
  if (const int error = call_fault("ibv_get_device_list"); error != 0) {
    errno = error;
    return nullptr;
  }
  auto** const list = new ibv_device*[all.devices.size() + 1]();
  for (size_t i = 0; i < all.devices.size(); ++i) list[i] = all.devices[i].get();
  if (count != nullptr) *count = static_cast<int>(all.devices.size());
  return list;
}

void ibv_free_device_list(ibv_device** list) { delete[] list; }

const char* ibv_get_device_name(ibv_device* device) { return device->name; }

ibv_context* ibv_open_device(ibv_device* device) {
  World& all = world();
  const std::lock_guard guard(all.lock);
  if (const int error = call_fault("ibv_open_device"); error != 0) {
    errno = error;
    return nullptr;
  }
  auto* const extended = new ExtendedContext{};
  Context* const context = &extended->context;
  context->abi_compat = __VERBS_ABI_IS_EXTENDED;
  verbs_get_ctx(context)->sz = sizeof(verbs_context);
  verbs_get_ctx(context)->query_device_ex = query_device_ex;
  context->device = device;
  context->owner = static_cast<Device*>(device);
  fill_operations(context->ops);
  context->cmd_fd = -1;
  context->async_fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
  context->num_comp_vectors = 1;
  all.contexts.insert(context);
  ++all.in_use.contexts;
  return context;
}

int ibv_close_device(ibv_context* base) {
  World& all = world();
  const std::lock_guard guard(all.lock);
  auto* const context = static_cast<Context*>(base);
  if (context->users != 0) violation("ibv_close_device with objects of the device in use");
  close(context->async_fd);
  all.contexts.erase(context);
  --all.in_use.contexts;
  delete reinterpret_cast<ExtendedContext*>(verbs_get_ctx(context));
  return 0;
}

int ibv_query_device(ibv_context*, ibv_device_attr* attributes) {
  World& all = world();
  const std::lock_guard guard(all.lock);
  if (const int error = call_fault("ibv_query_device"); error != 0) return error;
  const Settings& settings = all.settings;
  *attributes = {};
  attributes->vendor_id = settings.vendor;
  attributes->max_mr_size = UINT64_MAX;
  attributes->page_size_cap = 4096;
  attributes->max_qp = settings.max_qp;
  attributes->max_qp_wr = settings.max_qp_wr;
  attributes->max_sge = settings.max_sge;
  attributes->max_sge_rd = settings.max_sge;
  attributes->max_cq = settings.max_qp * 2;
  attributes->max_cqe = settings.max_cqe;
  attributes->max_mr = settings.max_mr;
  attributes->max_mw = settings.windows ? settings.max_mr : 0;
  attributes->max_pd = 1024;
  attributes->max_qp_rd_atom = settings.max_reads;
  attributes->max_qp_init_rd_atom = settings.max_reads;
  attributes->max_ah = settings.max_qp;
  attributes->max_srq = settings.max_qp;
  attributes->max_srq_wr = settings.max_srq_wr;
  attributes->max_srq_sge = settings.max_sge;
  attributes->max_pkeys = static_cast<uint16_t>(settings.pkeys.size());
  attributes->phys_port_cnt = 1;
  if (settings.windows)
    attributes->device_cap_flags = IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B;
  return 0;
}

int ibv_query_port(ibv_context* context, uint8_t port, _compat_ibv_port_attr* compatible) {
  World& all = world();
  const std::lock_guard guard(all.lock);
  if (const int error = call_fault("ibv_query_port"); error != 0) return error;
  if (port != 1) return EINVAL;
  const Device& device = device_of(context);
  // The inline function of the header passes the whole structure, zeroed.
  auto* const attributes = reinterpret_cast<ibv_port_attr*>(compatible);
  attributes->state = device.up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
  attributes->max_mtu = IBV_MTU_4096;
  attributes->active_mtu = all.settings.mtu;
  attributes->gid_tbl_len = 1;
  attributes->max_msg_sz = all.settings.max_message_bytes;
  attributes->pkey_tbl_len = static_cast<uint16_t>(all.settings.pkeys.size());
  attributes->lid = device.lid;
  attributes->sm_lid = all.settings.infiniband ? 1 : 0;
  attributes->max_vl_num = 1;
  attributes->active_width = 2;
  attributes->active_speed = 4;
  attributes->phys_state = device.up ? 5 : 3;
  attributes->link_layer =
      all.settings.infiniband ? IBV_LINK_LAYER_INFINIBAND : IBV_LINK_LAYER_ETHERNET;
  return 0;
}

int ibv_query_gid(ibv_context* context, uint8_t port, int index, ibv_gid* gid) {
  World& all = world();
  const std::lock_guard guard(all.lock);
  if (call_fault("ibv_query_gid") != 0 || port != 1 || index != 0) return -1;
  *gid = device_of(context).gid;
  return 0;
}

static void fill_gid_entry(const ibv_context* context, ibv_gid_entry& entry) {
  entry = {};
  entry.gid = device_of(context).gid;
  entry.gid_index = 0;
  entry.port_num = 1;
  entry.gid_type = world().settings.infiniband ? IBV_GID_TYPE_IB : IBV_GID_TYPE_ROCE_V2;
  entry.ndev_ifindex = world().settings.infiniband ? 0 : if_nametoindex(world().settings.interface);
}

int _ibv_query_gid_ex(ibv_context* context, uint32_t port, uint32_t index, ibv_gid_entry* entry,
                      uint32_t, size_t) {
  World& all = world();
  const std::lock_guard guard(all.lock);
  if (const int error = call_fault("ibv_query_gid_ex"); error != 0) return error;
  if (port != 1 || index != 0) return EINVAL;
  fill_gid_entry(context, *entry);
  return 0;
}

ssize_t _ibv_query_gid_table(ibv_context* context, ibv_gid_entry* entries, size_t most, uint32_t,
                             size_t) {
  World& all = world();
  const std::lock_guard guard(all.lock);
  if (const int error = call_fault("ibv_query_gid_table"); error != 0) return -error;
  if (most == 0) return -EINVAL;
  fill_gid_entry(context, entries[0]);
  return 1;
}

int ibv_query_pkey(ibv_context*, uint8_t port, int index, __be16* pkey) {
  World& all = world();
  const std::lock_guard guard(all.lock);
  const std::vector<uint16_t>& pkeys = all.settings.pkeys;
  if (call_fault("ibv_query_pkey") != 0 || port != 1 || index < 0 ||
      static_cast<size_t>(index) >= pkeys.size())
    return -1;
  *pkey = htons(pkeys[static_cast<size_t>(index)]);
  return 0;
}

int ibv_fork_init(void) { return 0; }

ibv_pd* ibv_alloc_pd(ibv_context* context) {
  World& all = world();
  const std::lock_guard guard(all.lock);
  if (const int error = call_fault("ibv_alloc_pd"); error != 0) {
    errno = error;
    return nullptr;
  }
  auto* const domain = new Domain{};
  domain->context = context;
  ++static_cast<Context*>(context)->users;
  ++all.in_use.domains;
  return domain;
}

int ibv_dealloc_pd(ibv_pd* base) {
  World& all = world();
  const std::lock_guard guard(all.lock);
  auto* const domain = static_cast<Domain*>(base);
  if (domain->users != 0) {
    violation("ibv_dealloc_pd with objects of the domain in use");
    return EBUSY;
  }
  --static_cast<Context*>(domain->context)->users;
  --all.in_use.domains;
  delete domain;
  return 0;
}

ibv_ah* ibv_create_ah(ibv_pd* domain, ibv_ah_attr* attributes) {
  World& all = world();
  const std::lock_guard guard(all.lock);
  int error = call_fault("ibv_create_ah");
  // On Ethernet every address needs a GRH.
  if (error == 0 && !all.settings.infiniband && attributes->is_global == 0) error = EINVAL;
  if (error == 0 && attributes->port_num != 1) error = EINVAL;
  if (error != 0) {
    errno = error;
    return nullptr;
  }
  auto* const handle = new AddressHandle{};
  handle->context = domain->context;
  handle->pd = domain;
  handle->attributes = all.last_address = *attributes;
  ++static_cast<Domain*>(domain)->users;
  ++all.in_use.address_handles;
  return handle;
}

int ibv_destroy_ah(ibv_ah* handle) {
  World& all = world();
  const std::lock_guard guard(all.lock);
  --static_cast<Domain*>(handle->pd)->users;
  --all.in_use.address_handles;
  delete static_cast<AddressHandle*>(handle);
  return 0;
}

const char* ibv_wc_status_str(ibv_wc_status status) {
  static const char* const names[] = {"success",
                                      "local length error",
                                      "local QP operation error",
                                      "local EE context operation error",
                                      "local protection error",
                                      "Work Request Flushed Error",
                                      "memory management operation error",
                                      "bad response error",
                                      "local access error",
                                      "remote invalid request error",
                                      "remote access error",
                                      "remote operation error",
                                      "transport retry counter exceeded",
                                      "RNR retry counter exceeded"};
  return static_cast<size_t>(status) < std::size(names) ? names[status] : "another error";
}

}  // extern "C"
