// The stand-in for libibverbs: how tests see into it and make it fail.
#include <algorithm>

#include "support/fake_verbs/objects.h"

namespace lintel::fake_verbs {

namespace {

// ::ffff:a.b.c.d, or the GID of an InfiniBand port.
ibv_gid gid_of(const Settings& settings, unsigned number) {
  ibv_gid gid{};
  if (settings.infiniband) {
    gid.raw[0] = 0xfe;
    gid.raw[1] = 0x80;
    gid.raw[8] = 2;
    gid.raw[15] = static_cast<uint8_t>(number + 1);
    return gid;
  }
  const uint32_t address = settings.ipv4 + number;
  gid.raw[10] = gid.raw[11] = 0xff;
  for (unsigned i = 0; i < 4; ++i) gid.raw[12 + i] = static_cast<uint8_t>(address >> (24 - 8 * i));
  return gid;
}

void fill(World& all) {
  for (unsigned i = 0; i < all.settings.devices; ++i) {
    auto device = std::make_unique<Device>();
    static_cast<ibv_device&>(*device) = {};
    device->node_type = IBV_NODE_CA;
    device->transport_type = IBV_TRANSPORT_IB;
    const std::string name = "fake" + std::to_string(i);
    name.copy(device->name, sizeof device->name - 1);
    name.copy(device->dev_name, sizeof device->dev_name - 1);
    device->number = i;
    device->lid = static_cast<uint16_t>(all.settings.infiniband ? i + 1 : 0);
    device->gid = gid_of(all.settings, i);
    all.devices.push_back(std::move(device));
  }
}

}  // namespace

World& world() {
  static World* const all = [] {
    auto* const fresh = new World;
    fill(*fresh);
    return fresh;
  }();
  return *all;
}

void reset(const Settings& settings) {
  World& all = world();
  const std::lock_guard guard(all.lock);
  // Objects of the former test may still refer to its devices, so these are kept; they do not
  // affect this test.
  all.settings = settings;
  for (auto& device : all.devices) all.former_devices.push_back(std::move(device));
  all.devices.clear();
  all.contexts.clear();
  all.regions.clear();
  all.windows.clear();
  all.queue_pairs.clear();
  all.calls.clear();
  all.call_faults.clear();
  all.request_faults.clear();
  all.loses = nullptr;
  all.done.clear();
  all.last_dmabuf = -1;
  all.violations.clear();
  all.in_use = {};
  all.registered_bytes = 0;
  all.locked_bytes = 0;
  all.most_locked_bytes = UINT64_MAX;
  all.held = false;
  fill(all);
}

int call_fault(const char* function) {
  World& all = world();
  ++all.calls[function];
  const auto found = all.call_faults.find(function);
  if (found == all.call_faults.end() || found->second.empty()) return 0;
  CallFault& fault = found->second.front();
  if (fault.before != 0) {
    --fault.before;
    return 0;
  }
  const int error = fault.error;
  if (--fault.times == 0) found->second.pop_front();
  return error;
}

void violation(std::string text) { world().violations.push_back(std::move(text)); }

Device& device_of(const ibv_context* context) {
  return *static_cast<const Context*>(context)->owner;
}

InUse in_use() {
  World& all = world();
  const std::lock_guard guard(all.lock);
  return all.in_use;
}

uint64_t registered_bytes() {
  World& all = world();
  const std::lock_guard guard(all.lock);
  return all.registered_bytes;
}

uint64_t locked_bytes() {
  World& all = world();
  const std::lock_guard guard(all.lock);
  return all.locked_bytes;
}

void limit_locked_bytes(uint64_t bytes) {
  World& all = world();
  const std::lock_guard guard(all.lock);
  all.most_locked_bytes = bytes;
}

ibv_qp_attr attributes_of(uint32_t queue_pair) {
  World& all = world();
  const std::lock_guard guard(all.lock);
  const auto found = all.queue_pairs.find(queue_pair);
  return found == all.queue_pairs.end() ? ibv_qp_attr{} : found->second->attributes;
}

int last_dmabuf() {
  World& all = world();
  const std::lock_guard guard(all.lock);
  return all.last_dmabuf;
}

ibv_ah_attr last_address() {
  World& all = world();
  const std::lock_guard guard(all.lock);
  return all.last_address;
}

std::vector<uint32_t> queue_pairs(ibv_qp_type type) {
  World& all = world();
  const std::lock_guard guard(all.lock);
  std::vector<uint32_t> numbers;
  for (const auto& [number, pair] : all.queue_pairs)
    if (pair->qp_type == type) numbers.push_back(number);
  return numbers;
}

ibv_qp_state state_of(uint32_t queue_pair) {
  World& all = world();
  const std::lock_guard guard(all.lock);
  const auto found = all.queue_pairs.find(queue_pair);
  return found == all.queue_pairs.end() ? IBV_QPS_UNKNOWN : found->second->state;
}

unsigned calls(const std::string& function) {
  World& all = world();
  const std::lock_guard guard(all.lock);
  return all.calls[function];
}

unsigned done(ibv_wr_opcode opcode) {
  World& all = world();
  const std::lock_guard guard(all.lock);
  return all.done[opcode];
}

std::vector<std::string> violations() {
  World& all = world();
  const std::lock_guard guard(all.lock);
  return all.violations;
}

void fail_call(const std::string& function, int error, unsigned nth, unsigned times) {
  World& all = world();
  const std::lock_guard guard(all.lock);
  all.call_faults[function].push_back({nth - 1, times, error});
}

void fail_request(ibv_wc_status status, std::function<bool(const Request&)> which) {
  World& all = world();
  const std::lock_guard guard(all.lock);
  all.request_faults.push_back({status, std::move(which)});
}

void lose_datagrams(std::function<bool(const Datagram&)> which) {
  World& all = world();
  const std::lock_guard guard(all.lock);
  all.loses = std::move(which);
}

void hold() {
  World& all = world();
  const std::lock_guard guard(all.lock);
  all.held = true;
}

void release() {
  World& all = world();
  const std::lock_guard guard(all.lock);
  all.held = false;
  work();
}

unsigned let_pass(unsigned count) {
  World& all = world();
  const std::lock_guard guard(all.lock);
  all.held = false;
  const unsigned passed = work(count);
  all.held = true;
  return passed;
}

void set_port(unsigned device, bool up) {
  World& all = world();
  const std::lock_guard guard(all.lock);
  Device& owner = *all.devices.at(device);
  if (owner.up == up) return;
  owner.up = up;
  raise_everywhere(owner, up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR);
  work();
}

void expire_retries() {
  World& all = world();
  const std::lock_guard guard(all.lock);
  for (const auto& [number, pair] : all.queue_pairs) {
    if (!pair->waits_for_port && !pair->waits_for_receiver) continue;
    const ibv_wc_status status =
        pair->waits_for_receiver ? IBV_WC_RNR_RETRY_EXC_ERR : IBV_WC_RETRY_EXC_ERR;
    const uint32_t wanted = number;
    all.request_faults.push_front(
        {status, [wanted](const Request& request) { return request.queue_pair == wanted; }});
  }
  work();
}

unsigned waiting_for_receivers() {
  World& all = world();
  const std::lock_guard guard(all.lock);
  return static_cast<unsigned>(
      std::count_if(all.queue_pairs.begin(), all.queue_pairs.end(),
                    [](const auto& entry) { return entry.second->waits_for_receiver; }));
}

void raise_device_event(unsigned device, ibv_event_type type) {
  World& all = world();
  const std::lock_guard guard(all.lock);
  raise_everywhere(*all.devices.at(device), type);
}

void raise_queue_pair_event(uint32_t queue_pair, ibv_event_type type) {
  World& all = world();
  const std::lock_guard guard(all.lock);
  const auto found = all.queue_pairs.find(queue_pair);
  if (found == all.queue_pairs.end()) return;
  ibv_async_event event{};
  event.event_type = type;
  event.element.qp = found->second;
  raise(*static_cast<Context*>(found->second->context), event);
  stop(*found->second, IBV_QPS_ERR);
  work();
}

void break_completion_queue(uint32_t queue_pair) {
  World& all = world();
  const std::lock_guard guard(all.lock);
  const auto found = all.queue_pairs.find(queue_pair);
  if (found != all.queue_pairs.end())
    break_queue(static_cast<CompletionQueue&>(*found->second->send_cq));
}

void break_receive_queue(uint32_t queue_pair) {
  World& all = world();
  const std::lock_guard guard(all.lock);
  const auto found = all.queue_pairs.find(queue_pair);
  if (found == all.queue_pairs.end() || found->second->srq == nullptr) return;
  static_cast<SharedQueue*>(found->second->srq)->receives.clear();
  ibv_async_event event{};
  event.event_type = IBV_EVENT_SRQ_ERR;
  event.element.srq = found->second->srq;
  raise(*static_cast<Context*>(found->second->context), event);
}

}  // namespace lintel::fake_verbs
