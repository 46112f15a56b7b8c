#include "domain/network.h"

#include <unistd.h>

#include <initializer_list>
#include <mutex>

#include "base/limits.h"
#include "base/provider.h"
#include "base/settings.h"
#include "wire/address.h"

namespace lintel::ofi {
namespace {

// In force if this is the first use of the interface in the process.
constexpr ptl_ni_limits_t wanted_limits() noexcept {
  return {.max_entries = 1 << 22,
          .max_unexpected_headers = 1 << 22,
          .max_mds = 1 << 16,
          .max_eqs = 4096,
          .max_cts = 1 << 18,
          .max_pt_index = static_cast<int>(most_endpoints * portals_per_endpoint - 1),
          .max_iovecs = 1 << 20,
          .max_list_size = 1 << 22,
          .max_triggered_ops = 1 << 20,
          .max_msg_size = most_message_bytes,
          .max_atomic_size = 2048,
          .max_fetch_atomic_size = 2048,
          .max_waw_ordered_size = ordered_bytes,
          .max_war_ordered_size = ordered_bytes,
          .max_volatile_size = inject_bytes,
          .features = 0};
}

// The reference to Portals that a process has from its first domain to its end: after its last
// PtlFini, it could not open another domain. A child made by fork has none.
std::mutex process_mutex;
pid_t initialized_process = 0;
size_t open_networks = 0;  // of that process

int initialize_process() noexcept {
  const std::lock_guard guard(process_mutex);
  if (initialized_process == getpid()) return PTL_OK;
  const int code = PtlInit();
  if (code != PTL_OK) return code;
  initialized_process = getpid();
  open_networks = 0;
  return PTL_OK;
}

void count_networks(int change) noexcept {
  const std::lock_guard guard(process_mutex);
  if (initialized_process == getpid()) open_networks += static_cast<size_t>(change);
}

}  // namespace

void Network::finish_process() noexcept {
  const std::lock_guard guard(process_mutex);
  if (initialized_process != getpid() || open_networks != 0) return;
  initialized_process = 0;
  PtlFini();
}

int Network::open() noexcept {
  int code = initialize_process();
  if (code != PTL_OK) return failed(FI_LOG_DOMAIN, "PtlInit", code);
  const ptl_ni_limits_t wanted = wanted_limits();
  code = PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, &wanted,
                   &limits_, &interface_);
  if (code != PTL_OK) return failed(FI_LOG_DOMAIN, "PtlNIInit", code);
  count_networks(1);
  code = PtlGetPhysId(interface_, &process_);
  if (code != PTL_OK) return failed(FI_LOG_DOMAIN, "PtlGetPhysId", code);
  if (limits_.max_volatile_size < inject_bytes || process_.phys.pid >= (1u << 16)) {
    FI_WARN(provider(), FI_LOG_DOMAIN,
            "The interface has pid %u and copies %llu bytes; at most 65535 and at least %zu are "
            "needed. Open the domain before the program opens this interface with other limits.\n",
            process_.phys.pid, static_cast<unsigned long long>(limits_.max_volatile_size),
            inject_bytes);
    return -FI_EINVAL;
  }
  code = PtlEQAlloc(interface_, settings().events, &events_);
  if (code != PTL_OK) return failed(FI_LOG_DOMAIN, "PtlEQAlloc", code);
  return bind_all();
}

int Network::reach_devices() noexcept {
  if (reaches_devices_) return 0;
  reaches_devices_ = true;
  former_ = {quiet_, sending_, acknowledged_, copied_, replies_};
  return bind_all();
}

int Network::bind_all() {
  int code = PTL_OK;
  const unsigned no_send = PTL_MD_EVENT_SEND_DISABLE;
  if ((code = bind(no_send | PTL_MD_VOLATILE, PTL_EQ_NONE, quiet_)) == PTL_OK &&
      (code = bind(0, events_, sending_)) == PTL_OK &&
      (code = bind(no_send, events_, acknowledged_)) == PTL_OK &&
      (code = bind(no_send | PTL_MD_VOLATILE, events_, copied_)) == PTL_OK &&
      (code = bind(no_send, events_, replies_)) == PTL_OK)
    return 0;
  return failed(FI_LOG_DOMAIN, "PtlMDBind", code);
}

int Network::bind(unsigned options, ptl_handle_eq_t events, ptl_handle_md_t& descriptor) {
  const ptl_md_t description = {.start = nullptr,
                                .length = PTL_SIZE_MAX,
                                .options = options,
                                .eq_handle = events,
                                .ct_handle = PTL_CT_NONE};
  return PtlMDBind(interface_, &description, &descriptor);
}

void Network::close() noexcept {
  for (const ptl_handle_md_t descriptor : {quiet_, sending_, acknowledged_, copied_, replies_})
    if (descriptor != PTL_INVALID_HANDLE) PtlMDRelease(descriptor);
  for (const ptl_handle_md_t descriptor : former_) PtlMDRelease(descriptor);
  if (events_ != PTL_EQ_NONE) PtlEQFree(events_);
  if (interface_ == PTL_INVALID_HANDLE) return;
  PtlNIFini(interface_);
  count_networks(-1);
}

}  // namespace lintel::ofi
