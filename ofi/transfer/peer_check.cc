#include "transfer/peer_check.h"

#include <algorithm>
#include <vector>

#include "base/provider.h"
#include "endpoint/endpoint.h"
#include "transfer/send.h"

namespace lintel::ofi {
namespace {

// Long messages of an endpoint that a peer has the headers of, or those to one peer.
std::vector<Operation*> waiting(Endpoint& endpoint) {
  std::vector<Operation*> found;
  endpoint.posted().for_each([&](const OperationReference& reference) {
    if (reference.kind == OwnerKind::long_send && reference.operation->has(is_acknowledged))
      found.push_back(reference.operation);
  });
  return found;
}

void send_probe(Endpoint& endpoint, fi_addr_t name) {
  const Peer peer(name);
  Operation& operation = endpoint.begin_operation(OwnerKind::probe, nullptr);
  operation.tag = name;
  const int code =
      PtlPut(endpoint.domain().network().acknowledged(), 0, 0, PTL_ACK_REQ, peer.process,
             peer.portal(Portal::rendezvous), probe_bits, 0, &operation, 0);
  if (code != PTL_OK) {
    (void)failed(FI_LOG_EP_DATA, "PtlPut", code);
    endpoint.end_operation(operation);
    return;
  }
  endpoint.add_transmits(operation);
  endpoint.add_probe();
}

}  // namespace

void check_peers(Domain& domain) {
  domain.for_each_endpoint([](Endpoint& endpoint) {
    if (endpoint.probes() != 0) return;  // the last ones are not answered yet
    std::vector<fi_addr_t> names;
    for (const Operation* const operation : waiting(endpoint)) names.push_back(operation->tag);
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    for (const fi_addr_t name : names) send_probe(endpoint, name);
  });
}

void probe_ended(Operation& operation, const ptl_event_t& event) {
  Endpoint& endpoint = *operation.endpoint;
  endpoint.remove_transmit(operation);
  endpoint.remove_probe();
  if (event.ni_fail_type != PTL_NI_OK)
    for (Operation* const each : waiting(endpoint))
      if (each->tag == operation.tag) fail_long_send(*each, event.ni_fail_type);
  endpoint.end_operation(operation);
}

}  // namespace lintel::ofi
