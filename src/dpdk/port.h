// An Ethernet port of DPDK with one queue each way: found, set up, started, given back. Set-up
// path.
#pragma once

#include <rte_ethdev.h>
#include <rte_mempool.h>

#include <cstdint>
#include <memory>
#include <string>

#include "dpdk/device_limits.h"
#include "dpdk/ethernet_frame.h"

namespace lintel {

struct PortSettings {
  std::string device;  // device as in PTL_DPDK_PORTS
  uint32_t mtu = 0;    // payload of an Ethernet frame; 0: what the port is set up for
  uint32_t ring = 0;   // frames that wait, each way
};

class Port {
 public:
  // EAL runs. nullptr: `reason`.
  [[nodiscard]] static std::unique_ptr<Port> open(const PortSettings& settings,
                                                  std::string& reason);
  // No thread uses the port any more.
  ~Port();
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;

  // False: the other end is not open yet (memif), `reason` has the error of DPDK; may be tried
  // again.
  [[nodiscard]] bool start(std::string& reason) noexcept;
  void stop() noexcept;
  [[nodiscard]] bool started() const noexcept { return started_; }
  [[nodiscard]] bool link_is_up() const noexcept;

  [[nodiscard]] uint16_t id() const noexcept { return id_; }
  [[nodiscard]] const MacAddress& mac() const noexcept { return mac_; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] const std::string& driver() const noexcept { return driver_; }
  // Payload of an Ethernet frame.
  [[nodiscard]] uint32_t mtu() const noexcept { return mtu_; }
  [[nodiscard]] uint32_t ring_frames() const noexcept { return ring_frames_; }
  [[nodiscard]] rte_mempool* send_pool() const noexcept { return send_pool_; }
  // Behind a bus, not made of software: its link takes seconds to come up, its interrupts can be
  // waited for, and it reads memory itself.
  [[nodiscard]] bool is_hardware() const noexcept { return hardware_; }
  // The driver of this device needs the InterruptGate.
  [[nodiscard]] static bool needs_gate(const std::string& device) noexcept {
    return device.compare(0, 9, "net_memif") == 0;
  }
  // Whether the ring lies between two processes.
  [[nodiscard]] bool is_private() const noexcept { return driver_ == "net_memif"; }
  // Whether the port connects to another one that waits (the client of a memif).
  [[nodiscard]] bool starts_connections() const noexcept { return memif_client_; }
  // Whether the driver may free frames that it reports as not taken.
  [[nodiscard]] bool may_free_untaken() const noexcept { return may_free_untaken_; }
  // Descriptor of the receive interrupt, or -1.
  [[nodiscard]] int interrupt_descriptor() const noexcept { return interrupt_descriptor_; }

  // Registers memory that the port may send from. False: it cannot.
  [[nodiscard]] bool register_memory(std::byte* start, size_t bytes) noexcept;
  // Whether the driver copies frames before it reports them as taken, also frames in several
  // buffers, from any memory.
  [[nodiscard]] bool sends_from_anywhere() const noexcept {
    return frame_memory_ == FrameMemory::anywhere;
  }

 private:
  Port() = default;
  bool probe(const std::string& device, std::string& reason);
  bool settle_sizes(const PortSettings& settings, std::string& reason);
  bool make_pools(std::string& reason);
  bool configure(bool with_interrupts, std::string& reason);
  bool steer(std::string& reason) noexcept;
  void unregister_memory() noexcept;

  std::string name_;
  std::string driver_;
  uint16_t id_ = RTE_MAX_ETHPORTS;
  rte_device* device_ = nullptr;
  MacAddress mac_{};
  uint32_t mtu_ = 0;
  uint32_t buffer_bytes_ = 0;
  uint32_t ring_frames_ = 0;
  bool states_limits_ = true;  // the driver says the truth about its frames
  bool hardware_ = false;
  bool memif_client_ = false;
  bool may_free_untaken_ = false;
  FrameMemory frame_memory_ = FrameMemory::of_dpdk;
  bool shared_with_kernel_ = false;  // frames that no rule selects go to the kernel
  bool started_ = false;
  int interrupt_descriptor_ = -1;
  rte_mempool* receive_pool_ = nullptr;
  rte_mempool* send_pool_ = nullptr;
  std::byte* registered_ = nullptr;
  size_t registered_bytes_ = 0;
};

}  // namespace lintel
