// One port of an RDMA device, opened by this process, with all that a queue pair needs. Set-up
// path, except as said.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <infiniband/verbs.h>

#include "util/lock.h"
#include "verbs/verbs_module.h"

namespace lintel {

// Asynchronous events of a device: a port goes down or comes up, a queue pair or the device fails.
// Connection path.
class AsyncEventSink {
 public:
  // Called in the thread that calls dispatch(). The event is acknowledged afterwards: until then
  // the queue pair that it names cannot be destroyed.
  virtual void on_async_event(const ibv_async_event& event) noexcept = 0;

 protected:
  ~AsyncEventSink() = default;
};

class AsyncEvents {
 public:
  AsyncEvents() = default;
  AsyncEvents(const AsyncEvents&) = delete;
  AsyncEvents& operator=(const AsyncEvents&) = delete;

  // False: `reason` says why not. `name` of the device, for the log.
  [[nodiscard]] bool open(ibv_context* context, const std::string& name, uint8_t port,
                          std::string& reason);
  // Any thread. Whether the port is up, by its events. It was when they were opened.
  [[nodiscard]] bool port_is_up() const noexcept { return is_up_.load(std::memory_order_relaxed); }
  // Non-blocking; readable when there is something to dispatch. Constant.
  [[nodiscard]] int descriptor() const noexcept { return context_->async_fd; }

  // Any thread. After remove() the sink is not called any more, nor is a call under way.
  void add(AsyncEventSink& sink);
  void remove(AsyncEventSink& sink) noexcept;

  // One thread. Passes all events to every sink. Never waits.
  void dispatch() noexcept;

 private:
  void log_event(const ibv_async_event& event) const noexcept;

  void follow_port(const ibv_async_event& event) noexcept;

  ibv_context* context_ = nullptr;
  std::string name_;
  uint8_t port_ = 0;
  std::atomic<bool> is_up_{true};
  Mutex mutex_;
  std::vector<AsyncEventSink*> sinks_ LINTEL_GUARDED_BY(mutex_);
};

// The one completion channel of a device: completion queues made with channel() make descriptor()
// readable, once after each arm().
class CompletionEvents {
 public:
  CompletionEvents() = default;
  CompletionEvents(const CompletionEvents&) = delete;
  CompletionEvents& operator=(const CompletionEvents&) = delete;
  // All completion queues of the channel are destroyed by now.
  ~CompletionEvents();

  // False: `reason` says why not.
  [[nodiscard]] bool open(ibv_context* context, std::string& reason);

  // Non-blocking; for poll() or epoll. Constant.
  [[nodiscard]] int descriptor() const noexcept { return channel_->fd; }
  // Argument of ibv_create_cq(). Constant.
  [[nodiscard]] ibv_comp_channel* channel() const noexcept { return channel_; }
  // Path into sleep; any thread. The next completion of that queue makes the descriptor readable;
  // one that came before does not: poll the queue once more afterwards. False: the device refused.
  [[nodiscard]] bool arm(ibv_cq* queue) noexcept { return ibv_req_notify_cq(queue, 0) == 0; }
  // Path into and out of sleep; any thread. Takes all events there are and acknowledges them: the
  // descriptor is not readable any more. Must have run before a queue is destroyed that was armed.
  void drain() noexcept;

 private:
  ibv_comp_channel* channel_ = nullptr;
};

// Vendor of the kernel's software device, in ibv_device_attr.
inline constexpr uint32_t vendor_of_rxe = 0xffffff;

class VerbsDevice {
 public:
  // Returns nullptr if there is no usable port: `reason` says what is wrong and what to do.
  [[nodiscard]] static std::unique_ptr<VerbsDevice> open(const VerbsPortWish& wish,
                                                         std::string& reason);
  // The same, then the further ports that the wish names; or if it names none, others of the same
  // kind that are active. Empty: `reason`.
  [[nodiscard]] static std::vector<std::shared_ptr<VerbsDevice>> open_all(const VerbsPortWish& wish,
                                                                          std::string& reason);
  VerbsDevice(const VerbsDevice&) = delete;
  VerbsDevice& operator=(const VerbsDevice&) = delete;
  // All objects that were made with the device are destroyed by now.
  ~VerbsDevice();

  // Fills in the address of another port, for address handles and for the transition of a connected
  // queue pair to RTR: service level, traffic class, GID index; a GRH where the network or the
  // distance needs one. `lid` and `gid` are those of the other port. Message path.
  void fill_address(ibv_ah_attr& attributes, const ibv_gid& gid, uint16_t lid) const noexcept;

  // Whether fill_address() would add a GRH. Message path.
  [[nodiscard]] bool needs_grh(const ibv_gid& gid) const noexcept;

  [[nodiscard]] uint32_t mtu_bytes() const noexcept { return 128u << mtu; }

  [[nodiscard]] const std::string& name() const noexcept { return name_; }  // "rxe0:1"; constant
  // "rxe0:1 (the first active port), RoCE v2 GID 1 (::ffff:192.168.77.1), MTU 1024, near";
  // constant.
  [[nodiscard]] const std::string& description() const noexcept { return description_; }

  // Members that are constant once the device is open.
  std::shared_ptr<ibv_context> owner;  // owner of `context`; released last
  ibv_context* context = nullptr;
  ibv_pd* pd = nullptr;
  uint8_t port = 1;
  uint16_t lid = 0;  // InfiniBand only
  uint8_t gid_index = 0;
  ibv_gid gid{};
  uint8_t network_bits = 128;  // PortGid::network_bits
  uint16_t pkey_index = 0;
  uint8_t service_level = 0;
  uint8_t traffic_class = 0;
  ibv_mtu mtu = IBV_MTU_1024;  // MTU of the active port
  uint32_t nid = 0;            // IPv4 address of the port, in host byte order; 0: it has none
  bool is_roce = false;
  bool is_one_of_several = false;  // the process has other ports
  uint32_t max_message_bytes = 0;  // maximum length of one work request
  std::string directory;           // of its PCI device, in sysfs
  ibv_device_attr attributes{};
  // RDMA READ and WRITE work with memory whose pages are not pinned (IBV_ACCESS_ON_DEMAND).
  bool has_on_demand_paging = false;
  CompletionEvents events;
  AsyncEvents async_events;

 private:
  VerbsDevice() = default;
  bool find_pkey(uint16_t wanted, unsigned table_rows, const std::string& name,
                 std::string& reason);

  std::string name_;
  std::string description_;
};

using VerbsDevices = std::vector<std::shared_ptr<VerbsDevice>>;

// Returns a sentence about a failed call, with the remedy if the limit of locked memory is the
// cause.
[[nodiscard]] std::string verbs_failure(const std::string& name, const char* what, int error);
// Returns a sentence about a refused ibv_reg_mr(): names the limit of locked memory and the remedy
// if that is the cause. `what`: the purpose of the memory.
[[nodiscard]] std::string registration_failure(const char* what, size_t bytes, int error);

}  // namespace lintel
