// Objects of Portals of a domain: the matching interface, which all domains of a process share, an
// event queue, and descriptors over all memory, one for each set of events. Set-up path.
#pragma once

#include <portals4.h>

#include <vector>

namespace lintel::ofi {

class Network {
 public:
  Network() = default;
  ~Network() { close(); }
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  // Returns 0 or a negative error number.
  [[nodiscard]] int open() noexcept;

  // The descriptors below reach memory of devices whose driver the process has loaded by now.
  // Returns 0 or a negative error number.
  [[nodiscard]] int reach_devices() noexcept;

  // The end of the process: gives up Portals, unless a domain is open.
  static void finish_process() noexcept;

  [[nodiscard]] ptl_handle_ni_t interface() const noexcept { return interface_; }
  [[nodiscard]] ptl_handle_eq_t events() const noexcept { return events_; }
  [[nodiscard]] ptl_process_t process() const noexcept { return process_; }
  [[nodiscard]] const ptl_ni_limits_t& limits() const noexcept { return limits_; }

  // Descriptors that start at address 0, so the local offset is the address.
  // Copied at the call, no events: messages that need no memory of their sender.
  [[nodiscard]] ptl_handle_md_t quiet() const noexcept { return quiet_; }
  // An event when the memory may be used again.
  [[nodiscard]] ptl_handle_md_t sending() const noexcept { return sending_; }
  // An event when the target has acknowledged.
  [[nodiscard]] ptl_handle_md_t acknowledged() const noexcept { return acknowledged_; }
  // The same, and short data is copied at the call.
  [[nodiscard]] ptl_handle_md_t copied() const noexcept { return copied_; }
  // An event when a reply has arrived.
  [[nodiscard]] ptl_handle_md_t replies() const noexcept { return replies_; }

 private:
  [[nodiscard]] int bind(unsigned options, ptl_handle_eq_t events, ptl_handle_md_t& descriptor);
  [[nodiscard]] int bind_all();
  void close() noexcept;

  ptl_handle_ni_t interface_ = PTL_INVALID_HANDLE;
  ptl_handle_eq_t events_ = PTL_EQ_NONE;
  ptl_process_t process_{};
  ptl_ni_limits_t limits_{};
  bool reaches_devices_ = false;
  // Descriptors of before reach_devices(): operations may use them.
  std::vector<ptl_handle_md_t> former_;
  ptl_handle_md_t quiet_ = PTL_INVALID_HANDLE;
  ptl_handle_md_t sending_ = PTL_INVALID_HANDLE;
  ptl_handle_md_t acknowledged_ = PTL_INVALID_HANDLE;
  ptl_handle_md_t copied_ = PTL_INVALID_HANDLE;
  ptl_handle_md_t replies_ = PTL_INVALID_HANDLE;
};

}  // namespace lintel::ofi
