// PtlJobInit and its companions. Set-up path.
#include <portals4_runtime.h>
#include <unistd.h>

#include <cstring>
#include <string_view>

#include "job.h"
#include "util/log.h"

using namespace lintel;

namespace {

constexpr size_t longest_key = 64;
constexpr size_t longest_value = 32768;

template <typename Call>
int guarded(Call&& call) noexcept {
  try {
    return call();
  } catch (...) {
    return PTL_NO_SPACE;
  }
}

bool is_user_key(const char* key) {
  return key != nullptr && *key != '\0' && std::strlen(key) <= longest_key &&
         !std::string_view(key).starts_with("lintel.");
}

// An interface that others have opened, too, stays open and published.
void close_interface(ptl_handle_ni_t ni) {
  PtlNIFini(ni);
  ptl_process_t id;
  if (PtlGetPhysId(ni, &id) != PTL_OK) job().withdraw(ni);
}

int open_published(ptl_interface_t iface, unsigned options, const ptl_ni_limits_t* desired,
                   ptl_ni_limits_t* actual, ptl_handle_ni_t* ni) {
  int code = PtlNIInit(iface, options, PTL_PID_ANY, desired, actual, ni);
  if (code != PTL_OK) {
    set_job_error("PtlJobOpen: PtlNIInit returned " + std::to_string(code));
    return code;
  }
  // Another library of the process may have opened it before.
  code = job().is_published(*ni) ? PTL_OK : job().publish(*ni);
  // All processes have opened the interface when the map is there; without one, after a barrier.
  if (code == PTL_OK) code = (options & PTL_NI_LOGICAL) != 0 ? job().set_map(*ni) : job().barrier();
  if (code != PTL_OK) close_interface(*ni);
  return code;
}

}  // namespace

extern "C" {

int PtlJobInit(void) noexcept {
  return guarded([] { return job().join(); });
}

int PtlJobFini(void) noexcept {
  return guarded([] { return job().leave(); });
}

int PtlJobGetInfo(ptl_job_info_t* info) noexcept {
  return guarded([&] { return job().info(info); });
}

int PtlJobGetNode(ptl_rank_t rank, uint32_t* node) noexcept {
  return guarded([&] { return job().node_of(rank, node); });
}

int PtlJobOpen(ptl_interface_t iface, unsigned int options, const ptl_ni_limits_t* desired,
               ptl_ni_limits_t* actual, ptl_handle_ni_t* ni) noexcept {
  return guarded([&] {
    if (ni == nullptr) return PTL_ARG_INVALID;
    if (const int code = job().join(); code != PTL_OK) return code;
    int code = PtlInit();
    if (code != PTL_OK) {
      set_job_error("PtlJobOpen: PtlInit returned " + std::to_string(code));
      job().leave();
      return code;
    }
    code = open_published(iface, options, desired, actual, ni);
    if (code != PTL_OK) {
      job().leave();  // before Portals, through which jobs by hand talk
      PtlFini();
    }
    return code;
  });
}

int PtlJobClose(ptl_handle_ni_t ni) noexcept {
  return guarded([&] {
    if (job().size() == 0) return PTL_NO_INIT;
    ptl_process_t id;
    if (const int code = PtlGetPhysId(ni, &id); code != PTL_OK) return code;
    close_interface(ni);
    job().leave();
    PtlFini();
    return PTL_OK;
  });
}

int PtlJobPublish(ptl_handle_ni_t ni) noexcept {
  return guarded([&] { return job().publish(ni); });
}

int PtlJobGetMap(ptl_handle_ni_t ni, ptl_size_t map_size, ptl_process_t* map) noexcept {
  return guarded([&] {
    return map == nullptr ? PTL_ARG_INVALID : job().get_map(ni, {map, map_size});
  });
}

int PtlJobSetMap(ptl_handle_ni_t ni) noexcept {
  return guarded([&] { return job().set_map(ni); });
}

int PtlJobBarrier(void) noexcept {
  return guarded([] { return job().barrier(); });
}

int PtlJobPut(const char* key, const void* value, size_t bytes) noexcept {
  return guarded([&] {
    if (!is_user_key(key) || (value == nullptr && bytes > 0) || bytes > longest_value)
      return PTL_ARG_INVALID;
    return job().put(key, {static_cast<const std::byte*>(value), bytes});
  });
}

int PtlJobGet(ptl_rank_t rank, const char* key, void* value, size_t* bytes) noexcept {
  return guarded([&] {
    if (!is_user_key(key) || bytes == nullptr || (value == nullptr && *bytes > 0))
      return PTL_ARG_INVALID;
    return job().get(rank, key, value, bytes);
  });
}

int PtlJobSecret(char* secret, size_t size) noexcept {
  return guarded([&] {
    return secret == nullptr || size == 0 ? PTL_ARG_INVALID : job().secret({secret, size});
  });
}

void PtlJobAbort(int code, const char* text) noexcept {
  const int exit_code = code >= 1 && code <= 255 ? code : 1;
  log_message(LogLevel::error, "the job is aborted with code %d%s%s", exit_code,
              text != nullptr ? ": " : "", text != nullptr ? text : "");
  try {
    job().abort(exit_code, text != nullptr ? text : "");
  } catch (...) {
    // The launcher will notice the exit code.
  }
  _exit(exit_code);
}

const char* PtlJobError(void) noexcept { return job_error(); }

}  // extern "C"
