// fi_mr: memory that peers may read and write. At each endpoint of the domain, or at the one that
// it is bound to, it is an entry for writes, one for writes that make an event, and one for reads,
// so that they are counted apart. Set-up path.
#pragma once

#include <portals4.h>

#include <vector>

#include <rdma/fi_domain.h>

#include "base/object.h"
#include "domain/region_table.h"
#include "endpoint/operation.h"
#include "wire/address.h"

namespace lintel::ofi {

class Counter;
class Domain;
class Endpoint;

class MemoryRegion final : public fid_mr, public EventOwner, public LinkedRegion {
 public:
  MemoryRegion(Domain& domain, const fi_mr_attr& attr) noexcept;

  [[nodiscard]] static MemoryRegion& of(Object* object) noexcept {
    return *static_cast<MemoryRegion*>(reinterpret_cast<fid_mr*>(object));
  }
  // fi_mr_reg, fi_mr_regv, fi_mr_regattr.
  static int register_one(Object* domain, const void* buffer, size_t length, uint64_t access,
                          uint64_t offset, uint64_t key, uint64_t flags, fid_mr** result,
                          void* context) noexcept;
  static int register_several(Object* domain, const iovec* pieces, size_t count, uint64_t access,
                              uint64_t offset, uint64_t key, uint64_t flags, fid_mr** result,
                              void* context) noexcept;
  static int register_described(Object* domain, const fi_mr_attr* attr, uint64_t flags,
                                fid_mr** result) noexcept;

  int close() noexcept;
  int bind(Object* object, uint64_t flags) noexcept;
  int enable() noexcept;

  [[nodiscard]] int link(Endpoint& endpoint) noexcept override;
  void unlink(Endpoint& endpoint) noexcept override;

 private:
  struct Link {
    Endpoint* endpoint;
    ptl_handle_me_t entries[3];  // for writes, for writes with events, for reads
  };

  [[nodiscard]] int bind_endpoint(Endpoint& endpoint) noexcept;
  [[nodiscard]] int bind_counter(Counter& counter) noexcept;
  // Returns the counter of accesses through an entry, or NULL.
  [[nodiscard]] Counter* counter_at(const Endpoint& endpoint, Portal portal) const noexcept;
  [[nodiscard]] int choose_key(uint64_t requested) noexcept;
  [[nodiscard]] int link_all() noexcept;
  void release(const Link& link) noexcept;

  Domain& domain_;
  const uint64_t access_;
  std::vector<iovec> pieces_;
  Endpoint* endpoint_ = nullptr;  // NULL: all of the domain
  Counter* counter_ = nullptr;    // of remote writes
  bool is_enabled_ = false;
  std::vector<Link> links_;
};

}  // namespace lintel::ofi
