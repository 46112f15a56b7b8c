#include "transfer/peer_check.h"

#include <algorithm>
#include <vector>

#include "base/provider.h"
#include "endpoint/endpoint.h"
#include "transfer/receive.h"
#include "transfer/send.h"

namespace lintel::ofi {
namespace {

constexpr size_t most_probes = 64;  // of an endpoint at a time
constexpr uint16_t is_second = 1;   // Operation::small of a probe

bool is_receive(const Operation& operation) noexcept {
  return operation.kind == OwnerKind::receive || operation.kind == OwnerKind::multi_receive;
}

// The peer that an operation waits for, or FI_ADDR_NOTAVAIL: a long message that a peer has the
// header of, or a receive from one sender.
fi_addr_t awaited_peer(const Operation& operation) noexcept {
  if (operation.kind == OwnerKind::long_send)
    return operation.has(is_acknowledged) ? operation.tag : FI_ADDR_NOTAVAIL;
  if (!is_receive(operation)) return FI_ADDR_NOTAVAIL;
  const bool is_held_back = operation.has(is_deferred) && !deferral_of(operation).has_started();
  return is_held_back ? FI_ADDR_NOTAVAIL : operation.header;
}

// Operations that wait for a peer.
std::vector<Operation*> waiting_for(Endpoint& endpoint, fi_addr_t name) {
  std::vector<Operation*> found;
  endpoint.posted().for_each([&](const OperationReference& reference) {
    if (awaited_peer(*reference.operation) == name) found.push_back(reference.operation);
  });
  return found;
}

// Peers of which the endpoint awaits something, at most most_probes; in turn.
std::vector<fi_addr_t> next_peers(Endpoint& endpoint) {
  const ptl_process_t self = endpoint.domain().network().process();
  std::vector<fi_addr_t> names;
  endpoint.posted().for_each([&](const OperationReference& reference) {
    const fi_addr_t name = awaited_peer(*reference.operation);
    if (name != FI_ADDR_NOTAVAIL && encode(self, Peer(name).index) != name) names.push_back(name);
  });
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  std::rotate(names.begin(), std::upper_bound(names.begin(), names.end(), endpoint.probed_peer()),
              names.end());
  if (names.size() > most_probes) names.resize(most_probes);
  if (!names.empty()) endpoint.probed_peer() = names.back();
  return names;
}

void send_probe(Endpoint& endpoint, fi_addr_t name, uint16_t round) {
  const Peer peer(name);
  Operation& operation = endpoint.begin_operation(OwnerKind::probe, nullptr);
  operation.tag = name;
  operation.small = round;
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

// Messages of the peer before its end may still be on its way when the first probe fails. After the
// second it has arrived.
void peer_is_lost(Endpoint& endpoint, fi_addr_t name, uint16_t round, ptl_ni_fail_t failure) {
  bool receives = false;
  for (Operation* const each : waiting_for(endpoint, name)) {
    if (!is_receive(*each)) {
      fail_long_send(*each, failure);
    } else if (failure == PTL_NI_UNDELIVERABLE) {  // else it lives, and its endpoint is not open
      receives = true;
      if (round == is_second) fail_directed_receive(*each, failure);
    }
  }
  if (receives && round != is_second) send_probe(endpoint, name, is_second);
}

}  // namespace

void check_peers(Domain& domain) {
  const auto check = [](Endpoint& endpoint) {
    if (endpoint.probes() != 0) return;  // the last ones are not answered yet
    for (const fi_addr_t name : next_peers(endpoint)) send_probe(endpoint, name, 0);
  };
  domain.for_each_endpoint(check);
  domain.for_each_sender(check);
}

void probe_ended(Operation& operation, const ptl_event_t& event) {
  Endpoint& endpoint = *operation.endpoint;
  endpoint.remove_transmit(operation);
  endpoint.remove_probe();
  if (event.ni_fail_type != PTL_NI_OK)
    peer_is_lost(endpoint, operation.tag, operation.small, event.ni_fail_type);
  endpoint.end_operation(operation);
}

}  // namespace lintel::ofi
