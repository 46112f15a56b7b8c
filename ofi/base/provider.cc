#include "base/provider.h"

#include <portals4_lintel.h>

namespace lintel::ofi {

fi_provider* provider() noexcept {
  static fi_provider record;
  return &record;
}

int error_of(int portals_code) noexcept {
  switch (portals_code) {
    case PTL_OK:
      return 0;
    case PTL_ARG_INVALID:
      return -FI_EINVAL;
    case PTL_NO_SPACE:
    case PTL_LIST_TOO_LONG:
    case PTL_PT_FULL:
      return -FI_ENOMEM;
    case PTL_IN_USE:
    case PTL_PT_IN_USE:
    case PTL_PID_IN_USE:
      return -FI_EBUSY;
    default:
      return -FI_EOTHER;
  }
}

int error_of_failure(ptl_ni_fail_t failure) noexcept {
  switch (failure) {
    case PTL_NI_OK:
      return 0;
    case PTL_NI_PERM_VIOLATION:
    case PTL_NI_OP_VIOLATION:
      return FI_EACCES;
    case PTL_NI_SEGV:
      return FI_EFAULT;
    case PTL_NI_NO_MATCH:
      return FI_ENOMSG;
    default:
      return FI_EIO;
  }
}

int failed(fi_log_subsys subsystem, const char* call, int portals_code) noexcept {
  FI_WARN(provider(), subsystem, "%s: %s PTL_LOG_LEVEL=debug says more.\n", call,
          PtlLintelStrError(portals_code));
  return error_of(portals_code);
}

}  // namespace lintel::ofi
