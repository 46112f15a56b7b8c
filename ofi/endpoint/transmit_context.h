// fi_stx_context: what several endpoints send through. The endpoints of a domain share its
// interface in any case, so it only has to be there as long as they are. Set-up path.
#pragma once

#include <rdma/fi_endpoint.h>

#include "base/object.h"

namespace lintel::ofi {

class Domain;

class TransmitContext : public fid_stx {
 public:
  TransmitContext(Domain& domain, void* context) noexcept;

  [[nodiscard]] static TransmitContext& of(Object* object) noexcept {
    return *static_cast<TransmitContext*>(reinterpret_cast<fid_stx*>(object));
  }
  // fi_stx_context.
  static int open(fid_domain* domain, fi_tx_attr* attr, fid_stx** result, void* context) noexcept;
  int close() noexcept;

  void add_user() noexcept { ++users_; }
  void remove_user() noexcept { --users_; }

 private:
  Domain& domain_;
  size_t users_ = 0;  // endpoints
};

}  // namespace lintel::ofi
