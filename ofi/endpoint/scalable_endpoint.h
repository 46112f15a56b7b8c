// fi_scalable_ep: one name for several contexts to send from and to receive at. Each is an
// Endpoint. The contexts to receive at have consecutive blocks of the portal table; those to send
// from share the first one, for long messages that wait. Set-up path.
#pragma once

#include <vector>

#include <rdma/fi_endpoint.h>

#include "endpoint/endpoint.h"

namespace lintel::ofi {

class ScalableEndpoint : public fid_ep {
 public:
  ScalableEndpoint(Domain& domain, const fi_info& info, const EndpointCalls& calls,
                   void* context) noexcept;

  [[nodiscard]] static ScalableEndpoint& of(Object* object) noexcept {
    return *static_cast<ScalableEndpoint*>(reinterpret_cast<fid_ep*>(object));
  }
  // fi_scalable_ep.
  static int open(Domain& domain, const fi_info& info, const EndpointCalls& calls, fid_ep** result,
                  void* context) noexcept;
  int close() noexcept;
  int bind(Object* object) noexcept;
  int control(int command) noexcept;
  int name(void* buffer, size_t* size) const noexcept;
  // fi_tx_context, fi_rx_context.
  int open_transmit(int position, const fi_tx_attr* attr, fid_ep** result, void* context) noexcept;
  int open_receive(int position, const fi_rx_attr* attr, fid_ep** result, void* context) noexcept;

  // Under the lock of the domain. Does nothing if it is enabled already.
  [[nodiscard]] int enable() noexcept;
  [[nodiscard]] bool is_enabled() const noexcept { return index_ != no_index; }
  [[nodiscard]] uint32_t index() const noexcept { return index_; }
  [[nodiscard]] AddressVector* addresses() const noexcept { return addresses_; }
  [[nodiscard]] uint32_t& keys() noexcept { return keys_; }
  void remove(const Endpoint& context) noexcept;

 private:
  static constexpr uint32_t no_index = UINT32_MAX;

  using Contexts = std::vector<Endpoint*>;

  int open_context(Contexts& contexts, int position, Role role, const fi_info& info,
                   fid_ep** result, void* context) noexcept;

  Domain& domain_;
  const EndpointCalls calls_;
  const uint64_t caps_;
  const uint64_t mode_;
  fi_tx_attr transmit_;  // what contexts have unless they ask for other flags
  fi_rx_attr receive_;
  Contexts transmitters_;  // by position; NULL: not open
  Contexts receivers_;
  AddressVector* addresses_ = nullptr;
  uint32_t index_ = no_index;  // of the first block
  uint32_t keys_ = 0;          // of long messages of all contexts
  ptl_handle_me_t probe_entry_ = PTL_INVALID_HANDLE;
};

}  // namespace lintel::ofi
