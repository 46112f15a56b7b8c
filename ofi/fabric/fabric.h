// fi_fabric: the parent of domains and event queues. Set-up path.
#pragma once

#include <atomic>

#include <rdma/fabric.h>

namespace lintel::ofi {

class Fabric : public fid_fabric {
 public:
  // `calls` are its functions, which open what is in it.
  Fabric(uint32_t api, fi_ops_fabric& calls, void* context) noexcept;

  [[nodiscard]] static Fabric& of(fid_fabric* fabric) noexcept {
    return *static_cast<Fabric*>(fabric);
  }
  // A fabric that this provider opened, in contrast to one of another provider.
  [[nodiscard]] static bool is_ours(const fid_fabric& fabric) noexcept;

  int close() noexcept;
  void add_user() noexcept { ++users_; }
  void remove_user() noexcept { --users_; }

 private:
  std::atomic<size_t> users_{0};  // domains, event queues
};

}  // namespace lintel::ofi
