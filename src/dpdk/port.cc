// Finding, starting and giving back a port. Set-up path.
#include "dpdk/port.h"

#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_mbuf.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "dpdk/eal.h"
#include "util/new_descriptor.h"
#include "util/text.h"

namespace lintel {

namespace {

// A burst that was received and not given back, frames in the making, and what threads keep for
// themselves.
constexpr unsigned buffers_beyond_ring = 512;
constexpr unsigned buffers_per_thread = 64;

std::string with_complaint(std::string text) {
  if (const std::string why = last_eal_complaint(); !why.empty())
    text.append(" (").append(why).append(")");
  return text;
}

std::string error_text(const std::string& what, int error) {
  return with_complaint(std::string(what).append(": ").append(rte_strerror(std::abs(error))));
}

// The file of a server that was killed: no process listens there, and the driver would fail.
void remove_stale_socket(const std::string& device) {
  if (device_argument(device, "role") != "server" ||
      device_argument(device, "socket-abstract") != "no")
    return;
  const std::string path = device_argument(device, "socket");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) return;
  std::copy(path.begin(), path.end(), address.sun_path);
  const Descriptor probe = open_socket(AF_UNIX, SOCK_SEQPACKET);
  if (connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 &&
      errno == ECONNREFUSED)
    unlink(path.c_str());
}

std::string device_name(const std::string& device) {
  const std::string name = device.substr(0, device.find(','));
  // DPDK names PCI devices with their domain.
  return is_bus_device(name) && std::count(name.begin(), name.end(), ':') == 1 &&
                 name.compare(0, 10, "auxiliary:") != 0
             ? std::string("0000:").append(name)
             : name;
}

}  // namespace

std::unique_ptr<Port> Port::open(const PortSettings& settings, std::string& reason) {
  const StandardDescriptorsTaken taken;
  std::unique_ptr<Port> port(new Port);
  if (!port->probe(settings.device, reason) || !port->settle_sizes(settings, reason) ||
      !port->make_pools(reason))
    return nullptr;
  if (port->hardware_ && port->configure(true, reason)) return port;
  return port->configure(false, reason) ? std::move(port) : nullptr;
}

bool Port::probe(const std::string& device, std::string& reason) {
  name_ = device_name(device);
  hardware_ = is_bus_device(device);
  if (rte_eth_dev_get_port_by_name(name_.c_str(), &id_) != 0) {
    remove_stale_socket(device);
    const QuietEalLog quiet;
    if (const int error = rte_dev_probe(device.c_str()); error != 0)
      return explained(false, reason, error_text("DPDK cannot open the port " + name_, error));
    if (rte_eth_dev_get_port_by_name(name_.c_str(), &id_) != 0)
      return explained(
          false, reason,
          with_complaint(name_ + " is no Ethernet port of DPDK; is it bound to vfio-pci, or is its "
                                 "driver one that needs no binding (mlx5)?"));
  }
  rte_eth_dev_info info{};
  rte_ether_addr mac{};
  if (const int error = rte_eth_dev_info_get(id_, &info); error != 0)
    return explained(false, reason,
                     error_text("the limits of the port " + name_ + " cannot be read", error));
  device_ = info.device;
  driver_ = info.driver_name == nullptr ? "" : info.driver_name;
  memif_client_ = driver_ == "net_memif" && device_argument(device, "role") == "client";
  may_free_untaken_ = driver_ == "net_af_packet";
  frame_memory_ = frame_memory_of(device);
  if (frame_memory_ == FrameMemory::anywhere &&
      (info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS) == 0)
    frame_memory_ = FrameMemory::registered;
  shared_with_kernel_ = driver_.compare(0, 3, "mlx") == 0;
  if (const int error = rte_eth_macaddr_get(id_, &mac); error != 0)
    return explained(false, reason, error_text("the port " + name_ + " has no address", error));
  std::copy_n(mac.addr_bytes, mac_.size(), mac_.begin());
  return true;
}

bool Port::settle_sizes(const PortSettings& settings, std::string& reason) {
  rte_eth_dev_info info{};
  static_cast<void>(rte_eth_dev_info_get(id_, &info));
  const DeviceLimits limits = limits_of_device(settings.device);
  states_limits_ = !limits.known;
  uint16_t present = RTE_ETHER_MTU;
  static_cast<void>(rte_eth_dev_get_mtu(id_, &present));
  const uint32_t most =
      limits.known ? limits.frame_bytes - std::min(limits.frame_bytes, ethernet_header_bytes)
                   : std::max<uint32_t>(info.max_mtu, present);
  const uint32_t wanted = settings.mtu != 0 ? settings.mtu : limits.known ? most : present;
  mtu_ = std::min({wanted, most, longest_ethernet_body + ethernet_payload_overhead});
  // Hardware may add a VLAN tag and the checksum.
  buffer_bytes_ = std::max(mtu_ + ethernet_header_bytes + 8, limits.slot_bytes);
  if (mtu_ < PacketLink::least_mtu + ethernet_payload_overhead)
    return explained(false, reason,
                     "frames of the port " + name_ + " carry " + std::to_string(mtu_) +
                         " bytes, which is too little");
  uint16_t receive = static_cast<uint16_t>(settings.ring);
  uint16_t send = receive;
  static_cast<void>(rte_eth_dev_adjust_nb_rx_tx_desc(id_, &receive, &send));
  ring_frames_ = limits.known ? limits.ring_frames : receive;
  return true;
}

bool Port::make_pools(std::string& reason) {
  // Some devices take whole KiB only.
  const uint32_t room = RTE_PKTMBUF_HEADROOM + std::max(2048u, (buffer_bytes_ + 1023) & ~1023u);
  const unsigned count = ring_frames_ + buffers_beyond_ring;
  const auto make = [&](const char* kind) {
    const std::string name = text_of("lintel-", kind, id_);
    return rte_pktmbuf_pool_create(name.c_str(), count, buffers_per_thread, 0,
                                   static_cast<uint16_t>(room), rte_eth_dev_socket_id(id_));
  };
  receive_pool_ = make("rx");
  send_pool_ = receive_pool_ == nullptr ? nullptr : make("tx");
  if (send_pool_ != nullptr) return true;
  reason = error_text("no memory for " + std::to_string(2 * count) + " buffers of " +
                          std::to_string(room) + " bytes",
                      rte_errno) +
           "; free huge pages, a larger -m in PTL_DPDK_EAL, or a smaller PTL_DPDK_RING help";
  return false;
}

bool Port::configure(bool with_interrupts, std::string& reason) {
  const QuietEalLog quiet;
  rte_eth_conf conf{};
  conf.rxmode.mq_mode = RTE_ETH_MQ_RX_NONE;
  if (states_limits_) conf.rxmode.mtu = mtu_;
  if (sends_from_anywhere()) conf.txmode.offloads = RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
  conf.intr_conf.rxq = with_interrupts ? 1 : 0;
  uint16_t receive = static_cast<uint16_t>(ring_frames_);
  uint16_t send = receive;
  int error = rte_eth_dev_configure(id_, 1, 1, &conf);
  if (error == 0) error = rte_eth_dev_adjust_nb_rx_tx_desc(id_, &receive, &send);
  const auto socket = static_cast<unsigned>(rte_eth_dev_socket_id(id_));
  if (error == 0) error = rte_eth_rx_queue_setup(id_, 0, receive, socket, nullptr, receive_pool_);
  if (error == 0) error = rte_eth_tx_queue_setup(id_, 0, send, socket, nullptr);
  // Only frames that match the rules come here; all others go to the kernel's network interface.
  if (error == 0 && shared_with_kernel_) {
    rte_flow_error ignored{};
    shared_with_kernel_ = rte_flow_isolate(id_, 1, &ignored) == 0;
  }
  if (error != 0)
    return explained(false, reason, error_text("the port " + name_ + " cannot be set up", error));
  std::string why;
  if (!start(why) && !memif_client_) return explained(false, reason, why);
  if (with_interrupts) {
    interrupt_descriptor_ = rte_eth_dev_rx_intr_ctl_q_get_fd(id_, 0);
    if (interrupt_descriptor_ < 0 || rte_eth_dev_rx_intr_enable(id_, 0) != 0) {
      interrupt_descriptor_ = -1;
      stop();
      return false;
    }
    static_cast<void>(rte_eth_dev_rx_intr_disable(id_, 0));
  }
  return true;
}

bool Port::start(std::string& reason) noexcept {
  const QuietEalLog quiet;
  const int error = rte_eth_dev_start(id_);
  started_ = error == 0;
  try {
    if (!started_) reason = error_text("the port " + name_ + " does not start", error);
    if (started_ && shared_with_kernel_ && !steer(reason)) stop();
  } catch (...) {
    reason.clear();
  }
  return started_;
}

void Port::stop() noexcept {
  if (started_) static_cast<void>(rte_eth_dev_stop(id_));
  started_ = false;
}

// Frames of our EtherType to queue 0, whatever their destination.
bool Port::steer(std::string& reason) noexcept {
  rte_flow_attr attributes{};
  attributes.ingress = 1;
  rte_flow_item_eth wanted{};
  rte_flow_item_eth mask{};
  wanted.type = rte_cpu_to_be_16(lintel_ether_type);
  mask.type = 0xffff;
  const rte_flow_item pattern[] = {{RTE_FLOW_ITEM_TYPE_ETH, &wanted, nullptr, &mask},
                                   {RTE_FLOW_ITEM_TYPE_END, nullptr, nullptr, nullptr}};
  const rte_flow_action_queue queue{0};
  const rte_flow_action actions[] = {{RTE_FLOW_ACTION_TYPE_QUEUE, &queue},
                                     {RTE_FLOW_ACTION_TYPE_END, nullptr}};
  rte_flow_error error{};
  if (rte_flow_create(id_, &attributes, pattern, actions, &error) != nullptr) return true;
  reason = text_of("the port takes no rule for our EtherType: ",
                   error.message == nullptr ? "no reason given" : error.message);
  return false;
}

bool Port::link_is_up() const noexcept {
  rte_eth_link link{};
  return started_ && rte_eth_link_get_nowait(id_, &link) == 0 &&
         link.link_status == RTE_ETH_LINK_UP;
}

// Software that reads other memory than DPDK's needs no registration. Hardware does, and can have
// it only if it uses the same addresses as the process.
bool Port::register_memory(std::byte* start, size_t bytes) noexcept {
  if (frame_memory_ == FrameMemory::of_dpdk) return false;
  if (!hardware_) return true;
  if (rte_eal_iova_mode() != RTE_IOVA_VA || registered_ != nullptr) return false;
  const auto page_bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const auto pages = static_cast<unsigned>(bytes / page_bytes);
  if (rte_extmem_register(start, bytes, nullptr, pages, page_bytes) != 0) return false;
  if (rte_dev_dma_map(device_, start, reinterpret_cast<uintptr_t>(start), bytes) != 0) {
    static_cast<void>(rte_extmem_unregister(start, bytes));
    return false;
  }
  registered_ = start;
  registered_bytes_ = bytes;
  return true;
}

void Port::unregister_memory() noexcept {
  if (registered_ == nullptr) return;
  static_cast<void>(rte_dev_dma_unmap(device_, registered_,
                                      reinterpret_cast<uintptr_t>(registered_), registered_bytes_));
  static_cast<void>(rte_extmem_unregister(registered_, registered_bytes_));
}

Port::~Port() {
  const QuietEalLog quiet;
  if (id_ != RTE_MAX_ETHPORTS) {
    stop();
    unregister_memory();
    static_cast<void>(rte_eth_dev_close(id_));
    if (device_ != nullptr) static_cast<void>(rte_dev_remove(device_));
  }
  rte_mempool_free(send_pool_);
  rte_mempool_free(receive_pool_);
}

}  // namespace lintel
