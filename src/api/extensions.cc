// The functions of portals4_lintel.h. Set-up path, except PtlLintelGetMapEntry.
#include <cstring>
#include <string>
#include <string_view>

#include "api/resolve.h"
#include "portals4_lintel.h"
#include "util/config.h"
#include "util/local_rank.h"
#include "util/without_cancellation.h"

using namespace lintel;
using namespace lintel::api;

namespace {
template <size_t size>
void copy_text(char (&to)[size], std::string_view from) noexcept {
  to[from.copy(to, size - 1)] = '\0';
}
}  // namespace

extern "C" {

int PtlLintelSetJobKey(const char* key) noexcept {
  if (key == nullptr) return PTL_ARG_INVALID;
  try {
    return set_job_key(key);
  } catch (...) {
    return PTL_NO_SPACE;
  }
}

int PtlLintelGetJobKey(char* key, size_t size, size_t* length) noexcept {
  if (!library_is_initialized()) return PTL_NO_INIT;
  if (length == nullptr || (key == nullptr && size > 0)) return PTL_ARG_INVALID;
  const std::string& secret = config_string(ConfigKey::job_key);
  *length = secret.size();
  if (size == 0) return PTL_OK;
  if (secret.size() >= size) return PTL_NO_SPACE;
  std::memcpy(key, secret.c_str(), secret.size() + 1);
  return PTL_OK;
}

int PtlLintelSetLocalRank(unsigned int local_rank) noexcept {
  choose_local_rank(local_rank);
  return PTL_OK;
}

int PtlLintelSetHooks(const ptl_lintel_hooks_t* hooks) noexcept {
  if (hooks == nullptr || hooks->opening == nullptr || hooks->opened == nullptr ||
      hooks->closed == nullptr)
    return PTL_ARG_INVALID;
  const ptl_lintel_hooks_t* before = nullptr;
  return library_detail::hooks.compare_exchange_strong(before, hooks) || before == hooks
             ? PTL_OK
             : PTL_IN_USE;
}

int PtlLintelGetMapEntry(ptl_handle_ni_t ni_handle, ptl_rank_t rank, ptl_process_t* id) noexcept {
  NetworkInterface* interface = find_interface(ni_handle);
  if (interface == nullptr || !interface->logical() || id == nullptr) return code_of_bad_handle();
  if (!interface->map.is_set()) return PTL_IGNORED;
  ProcessId process{};
  if (!interface->map.find(rank, &process)) return PTL_ARG_INVALID;
  id->phys.nid = process.nid;
  id->phys.pid = process.pid;
  return PTL_OK;
}

int PtlLintelGetPath(ptl_handle_ni_t ni_handle, ptl_process_t target,
                     ptl_lintel_path_t* path) noexcept {
  const WithoutCancellation scope;
  NetworkInterface* interface = find_interface(ni_handle);
  if (interface == nullptr || path == nullptr) return code_of_bad_handle();
  ProcessId process{target.phys.nid, target.phys.pid};
  if (interface->logical() && !interface->map.find(target.rank, &process)) return PTL_ARG_INVALID;
  try {
    const PeerPath found = interface->physical().peers().path_to(process);
    copy_text(path->transport, found.transport == nullptr ? "" : found.transport);
    copy_text(path->device, found.device);
    copy_text(path->reason, found.reason);
    return found.transport == nullptr ? PTL_FAIL : PTL_OK;
  } catch (...) {
    return PTL_NO_SPACE;
  }
}

}  // extern "C"
