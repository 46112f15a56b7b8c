// Opening and closing the queue pair; routes to peers; what the resolver's thread does for the link.
// Set-up and connection path.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "reliable/cookie.h"
#include "util/clock.h"
#include "util/log.h"
#include "verbs/ud_link.h"

namespace lintel {

namespace {

constexpr uint64_t longest_farewell_ns = 1'000'000;
// What the reliability layer counts for the smallest frame: a slot of the queue takes that much.
constexpr uint64_t smallest_charge_bytes = 640 + 64;
constexpr uint32_t slot_alignment = 64;
constexpr unsigned kibibyte = 1024;

std::string failure(const VerbsDevice& device, const char* what, int error) {
  std::string text = device.name();
  text.append(": ").append(what).append(" failed (").append(strerror(error)).append(")");
  if (error == ENOMEM) text.append("; ").append(locked_memory_advice());
  return text;
}

}  // namespace

LinkAddress UdLink::pack(const Address& address) noexcept {
  LinkAddress packed;
  std::memcpy(packed.bytes.data(), &address, sizeof address);
  return packed;
}

UdLink::Address UdLink::unpack(const LinkAddress& packed) noexcept {
  Address address;
  std::memcpy(&address, packed.bytes.data(), sizeof address);
  return address;
}

UdLink::UdLink(std::shared_ptr<VerbsDevice> device, const UdSettings& settings)
    : device_(std::move(device)), settings_(settings) {
  // The address is this process as it would see itself; it is known when the queue pair is there.
  properties_.name = "verbs";
  properties_.id = settings_.id;
  properties_.mtu = device_->mtu_bytes;
  properties_.descriptor = device_->events.descriptor();
}

OpenStatus UdLink::open(std::shared_ptr<VerbsDevice> device, const UdSettings& settings,
                        std::unique_ptr<UdLink>& result, std::string& reason) {
  std::unique_ptr<UdLink> link(new UdLink(std::move(device), settings));
  switch (link->resolver_.claim(settings.id, reason)) {
    case OpenStatus::opened:
      break;
    case OpenStatus::pid_in_use:
      return OpenStatus::pid_in_use;
    case OpenStatus::failed:
      return OpenStatus::failed;
  }
  if (link->properties_.mtu < least_mtu) {
    reason = link->device_->name();
    reason.append(" carries datagrams of ").append(std::to_string(link->properties_.mtu));
    reason.append(" bytes only; raise the MTU of its network interface to 1500 at least");
    return OpenStatus::failed;
  }
  if (!link->hosts_.open(*link->device_)) {
    reason = "no address space for the table of nodes (ulimit -v?)";
    return OpenStatus::failed;
  }
  if (!link->open_queues(reason) || !link->open_buffers(reason) || !link->start_queue_pair(reason))
    return OpenStatus::failed;

  const VerbsDevice& port = *link->device_;
  UdDestination own;
  own.gid = port.gid;
  own.lid = port.lid;
  own.is_roce = port.is_roce;
  own.queue_pair = link->queue_pair_->qp_num;
  own.q_key = link->q_key_;
  own.mtu = link->properties_.mtu;
  Route route;
  std::string ignored;  // a port need not reach itself
  static_cast<void>(link->make_route(own, route, ignored));
  link->properties_.own_address = route.address;
  link->properties_.receive_capacity_bytes =
      std::max(link->receive_slots_ * smallest_charge_bytes, uint64_t{4} * link->properties_.mtu);

  link->device_->async_events.add(*link);
  if (!link->resolver_.start(own, *link, settings.lookup_timeout_ns, reason))
    return OpenStatus::failed;
  result = std::move(link);
  return OpenStatus::opened;
}

bool UdLink::open_queues(std::string& reason) {
  const VerbsDevice& device = *device_;
  receive_slots_ =
      std::min({settings_.receive_buffers, static_cast<uint32_t>(device.attributes.max_qp_wr),
                static_cast<uint32_t>(device.attributes.max_cqe)});
  send_queue_ = ibv_create_cq(device.context, send_depth, nullptr, nullptr, 0);
  receive_queue_ = ibv_create_cq(device.context, static_cast<int>(receive_slots_), nullptr,
                                 device.events.channel(), 0);
  if (send_queue_ == nullptr || receive_queue_ == nullptr) {
    reason = failure(device, "ibv_create_cq", errno);
    return false;
  }
  ibv_qp_init_attr attributes{};
  attributes.send_cq = send_queue_;
  attributes.recv_cq = receive_queue_;
  attributes.qp_type = IBV_QPT_UD;
  attributes.cap.max_send_wr = send_depth;
  attributes.cap.max_recv_wr = receive_slots_;
  attributes.cap.max_send_sge = most_elements;
  attributes.cap.max_recv_sge = 1;
  attributes.cap.max_inline_data = wanted_inline_bytes;
  queue_pair_ = ibv_create_qp(device.pd, &attributes);
  if (queue_pair_ == nullptr && (errno == EINVAL || errno == ENOTSUP)) {
    attributes.cap = {send_depth, receive_slots_, most_elements, 1, 0};
    queue_pair_ = ibv_create_qp(device.pd, &attributes);
  }
  if (queue_pair_ == nullptr) {
    reason = failure(device, "ibv_create_qp for datagrams", errno);
    return false;
  }
  inline_bytes_ = attributes.cap.max_inline_data;
  do {
    q_key_ = static_cast<uint32_t>(random_u64()) >> 1;
  } while (q_key_ == 0);
  return true;
}

bool UdLink::open_buffers(std::string& reason) {
  receive_slot_bytes_ =
      (global_route_bytes + properties_.mtu + slot_alignment - 1) & ~(slot_alignment - 1);
  if (!receive_buffer_.open(device_->pd, size_t{receive_slots_} * receive_slot_bytes_,
                            IBV_ACCESS_LOCAL_WRITE,
                            "datagrams that arrive (PTL_VERBS_RECEIVE_BUFFERS)", reason) ||
      !send_buffer_.open(device_->pd, size_t{send_depth} * properties_.mtu, 0, "datagrams to send",
                         reason))
    return false;
  to_post_.reserve(receive_slots_);
  for (uint32_t i = 0; i < receive_slots_; ++i) to_post_.push_back(i);
  receive_requests_.resize(repost_batch);
  receive_elements_.resize(repost_batch);
  for (unsigned i = 0; i < repost_batch; ++i) {
    receive_elements_[i] = {0, global_route_bytes + properties_.mtu, receive_buffer_.local_key()};
    receive_requests_[i].sg_list = &receive_elements_[i];
    receive_requests_[i].num_sge = 1;
  }
  for (unsigned i = 0; i < largest_burst; ++i) {
    requests_[i].opcode = IBV_WR_SEND_WITH_IMM;
    requests_[i].imm_data = q_key_;
    requests_[i].sg_list = elements_[i].data();
  }
  return true;
}

// Also after a repair. The device has no work request of ours.
bool UdLink::start_queue_pair(std::string& reason) noexcept {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.pkey_index = device_->pkey_index;
  attributes.port_num = device_->port;
  attributes.qkey = q_key_;
  int error = ibv_modify_qp(queue_pair_, &attributes,
                            IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
  const char* step = "to INIT";
  if (error == 0) {
    repost();
    attributes.qp_state = IBV_QPS_RTR;
    error = ibv_modify_qp(queue_pair_, &attributes, IBV_QP_STATE);
    step = "to RTR";
  }
  if (error == 0) {
    attributes.qp_state = IBV_QPS_RTS;
    attributes.sq_psn = 0;
    error = ibv_modify_qp(queue_pair_, &attributes, IBV_QP_STATE | IBV_QP_SQ_PSN);
    step = "to RTS";
  }
  if (error == 0) return true;
  try {
    reason = failure(*device_, std::string("ibv_modify_qp ").append(step).c_str(), error);
  } catch (...) {
    reason.clear();
  }
  return false;
}

// The device works off its queue in order: when a last datagram to ourselves is sent, all others are.
UdLink::~UdLink() {
  resolver_.stop();
  device_->async_events.remove(*this);
  if (queue_pair_ != nullptr && posted_ != completed_) {
    const Address self = unpack(properties_.own_address);
    const uint64_t deadline = now_ns() + longest_farewell_ns;
    reap_sends();
    if (free_slots() > 0 && hosts_.contains(self.host) && hosts_.handle(self.host) != nullptr) {
      requests_[0].num_sge = 0;
      requests_[0].next = nullptr;
      requests_[0].wr_id = posted_;
      requests_[0].send_flags = IBV_SEND_SIGNALED;
      requests_[0].wr.ud = {hosts_.handle(self.host), self.queue_pair, self.q_key};
      ibv_send_wr* refused = nullptr;
      if (ibv_post_send(queue_pair_, &requests_[0], &refused) == 0) ++posted_;
      while (posted_ != completed_ && !broken_ && now_ns() < deadline) reap_sends();
    }
  }
  if (queue_pair_ != nullptr) ibv_destroy_qp(queue_pair_);
  if (receive_queue_ != nullptr) {
    device_->events.drain();
    ibv_destroy_cq(receive_queue_);
  }
  if (send_queue_ != nullptr) ibv_destroy_cq(send_queue_);
}

bool UdLink::offer_memory(std::byte* start, size_t bytes) noexcept {
  return offered_.offer(device_->pd, start, bytes);
}

ResolveStatus UdLink::resolve(ProcessId peer, Route& route, std::string* reason) noexcept {
  return resolver_.resolve(peer, route, reason);
}

// The port of its pid is closed with the process; who comes after it has another queue pair and another Q_Key.
bool UdLink::is_gone(ProcessId peer, const LinkAddress& address) noexcept {
  Route now;
  bool refused = false;
  switch (resolver_.resolve(peer, now, nullptr, &refused)) {
    case ResolveStatus::resolved:
      return !(now.address == address);
    case ResolveStatus::unreachable:
      return refused;
    case ResolveStatus::pending:
      break;
  }
  return false;
}

bool UdLink::adopt(ProcessId, const LinkAddress& from, Route& route) noexcept {
  const Address address = unpack(from);
  if (!hosts_.contains(address.host) || hosts_.handle(address.host) == nullptr) return false;
  hosts_.admit(address.host);
  route = {from, properties_.mtu};
  return true;
}

bool UdLink::make_route(const UdDestination& destination, Route& route, std::string& reason) {
  const uint32_t host = hosts_.make(hosts_.key_of(destination.gid, destination.lid), reason);
  if (host == UdHosts::none) return false;
  route.address = pack({destination.queue_pair, destination.q_key, host, {}});
  route.mtu = std::min(destination.mtu, properties_.mtu);
  return true;
}

void UdLink::work() noexcept {
  hosts_.make_wanted();
  offered_.register_wanted();
}

int UdLink::event_descriptor() const noexcept { return device_->async_events.descriptor(); }

void UdLink::handle_events() noexcept { device_->async_events.dispatch(); }

void UdLink::on_async_event(const ibv_async_event& event) noexcept {
  if (event.event_type == IBV_EVENT_QP_FATAL && event.element.qp == queue_pair_)
    broken_.store(true, std::memory_order_relaxed);
}

std::string UdLink::describe() const {
  std::string text = device_->description();
  text.append(", datagrams of up to ").append(std::to_string(properties_.mtu)).append(" bytes, ");
  text.append(std::to_string(receive_slots_)).append(" of them wait at most, ");
  text.append(std::to_string(inline_bytes_)).append(" bytes inline, ");
  text.append(std::to_string((receive_buffer_.bytes() + send_buffer_.bytes()) / kibibyte));
  text.append(" KiB locked, ");
  text.append(offered_.refused() ? "frames copied (locked memory is limited)"
                                 : "frames sent from where they are");
  return text;
}

}  // namespace lintel
