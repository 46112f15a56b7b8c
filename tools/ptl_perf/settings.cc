// Names for what the command line decided. Set-up path.
// SPDX-License-Identifier: BSD-3-Clause
#include "ptl_perf/settings.h"

namespace lintel::perf {

const char* ack_name(Ack ack) {
  switch (ack) {
    case Ack::none:
      return "PTL_NO_ACK_REQ";
    case Ack::full:
      return "PTL_ACK_REQ";
    case Ack::counting:
      return "PTL_CT_ACK_REQ";
    case Ack::operation_complete:
      return "PTL_OC_ACK_REQ";
  }
  return "unknown";
}

std::string describe_interface_use(const Settings& settings) {
  std::string text = settings.matching ? "matching" : "non-matching";
  text += settings.logical ? ", logical" : ", physical";
  if (settings.events == Events::full) {
    text += ", full events";
    text += settings.wait == Wait::blocking ? ", PtlEQWait" : ", polling PtlEQGet";
  } else {
    text += ", counting events";
    text += settings.wait == Wait::blocking ? ", PtlCTWait" : ", polling PtlCTGet";
  }
  return text;
}

}  // namespace lintel::perf
