// One process of the measurement. Set-up path.
// SPDX-License-Identifier: BSD-3-Clause
#include "ptl_perf/session.h"

#include <algorithm>
#include <exception>
#include <numeric>

#include "common/machine.h"
#include "ptl_perf/errors.h"

namespace lintel::perf {
namespace {

// Neighbouring ranks; or, for pairs across nodes, half of the ranks in the order of nodes with the
// other half.
std::vector<unsigned> choose_order(const std::vector<unsigned>& nodes, bool across_nodes) {
  std::vector<unsigned> by_node(nodes.size());
  std::iota(by_node.begin(), by_node.end(), 0u);
  if (!across_nodes) return by_node;
  if (std::all_of(nodes.begin(), nodes.end(), [](unsigned node) { return node == 0; })) {
    throw Failure(ExitCode::usage, "--across-nodes: all processes are on one node");
  }
  std::stable_sort(by_node.begin(), by_node.end(),
                   [&](unsigned left, unsigned right) { return nodes[left] < nodes[right]; });
  std::vector<unsigned> order;
  const std::size_t half = by_node.size() / 2;
  for (std::size_t i = 0; i < half; ++i) {
    order.push_back(by_node[i]);
    order.push_back(by_node[half + i]);
  }
  return order;
}

}  // namespace

Session::Session(Rendezvous& rendezvous, const Settings& settings)
    : rendezvous_(rendezvous),
      interface_(settings.interface),
      exceptions_at_start_(std::uncaught_exceptions()),
      resident_bytes_before_start_(tools::resident_memory_bytes()) {
  require(PtlInit(), "PtlInit");
  endpoint(settings);
  nodes_ = rendezvous_.nodes(identifiers_);
  set_order(choose_order(nodes_, settings.across_nodes));
}

void Session::set_order(std::vector<unsigned> order) {
  order_ = std::move(order);
  position_ =
      static_cast<unsigned>(std::find(order_.begin(), order_.end(), rank()) - order_.begin());
}

unsigned Session::peer_rank(unsigned rank) const {
  const auto at =
      static_cast<unsigned>(std::find(order_.begin(), order_.end(), rank) - order_.begin());
  return order_[at ^ 1u];
}

bool Session::initiator(unsigned rank) const {
  return (std::find(order_.begin(), order_.end(), rank) - order_.begin()) % 2 == 0;
}

Session::~Session() {
  if (std::uncaught_exceptions() == exceptions_at_start_) {
    // A peer may still send to this process: none closes before all are done.
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
