// One process of the measurement. Set-up path.
// SPDX-License-Identifier: BSD-3-Clause
#include "ptl_perf/session.h"

#include <exception>

#include "common/machine.h"
#include "ptl_perf/errors.h"

namespace lintel::perf {

Session::Session(Rendezvous& rendezvous, const Settings& settings)
    : rendezvous_(rendezvous),
      interface_(settings.interface),
      exceptions_at_start_(std::uncaught_exceptions()),
      resident_bytes_before_start_(tools::resident_memory_bytes()) {
  require(PtlInit(), "PtlInit");
  endpoint(settings);
}

Session::~Session() {
  if (std::uncaught_exceptions() == exceptions_at_start_) {
    // A peer may still talk to this process: nobody closes before all are done.
    try {
      rendezvous_.barrier();
      rendezvous_.leave();
    } catch (const Failure&) {
      // The results are out; closing is all that is left.
    }
  }
  for (auto& [kind, endpoint] : endpoints_) PtlNIFini(endpoint->interface);
  PtlFini();
}

Endpoint& Session::endpoint(bool matching, bool logical) {
  auto& slot = endpoints_[{matching, logical}];
  if (slot) return *slot;

  auto endpoint = std::make_unique<Endpoint>();
  endpoint->matching = matching;
  endpoint->logical = logical;
  const unsigned options = (matching ? PTL_NI_MATCHING : PTL_NI_NO_MATCHING) |
                           (logical ? PTL_NI_LOGICAL : PTL_NI_PHYSICAL);
  require(PtlNIInit(interface_, options, rendezvous_.requested_pid(), nullptr, &endpoint->limits,
                    &endpoint->interface),
          "PtlNIInit");

  if (identifiers_.empty()) {
    resident_bytes_after_start_ = tools::resident_memory_bytes();
    ptl_process_t own{};
    require(PtlGetPhysId(endpoint->interface, &own), "PtlGetPhysId");
    identifiers_ = rendezvous_.exchange_identifiers(interface_, own);
  }
  endpoint->addresses = identifiers_;
  if (logical) {
    require(PtlSetMap(endpoint->interface, identifiers_.size(), identifiers_.data()), "PtlSetMap");
    for (unsigned rank = 0; rank < process_count(); ++rank) endpoint->addresses[rank].rank = rank;
  }
  rendezvous_.barrier();
  slot = std::move(endpoint);
  return *slot;
}

}  // namespace lintel::perf
