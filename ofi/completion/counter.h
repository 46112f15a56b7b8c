// fi_cntr: a count of completions and one of errors. Accesses of peers are counted by Portals, in a
// counting event of its own. Message path, but for open() and close().
#pragma once

#include <portals4.h>

#include <atomic>
#include <cstdint>

#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>

#include "base/assert.h"
#include "base/object.h"

namespace lintel::ofi {

class Domain;

class Counter : public fid_cntr {
 public:
  Counter(Domain& domain, void* context) noexcept;

  [[nodiscard]] static Counter& of(Object* object) noexcept {
    return *static_cast<Counter*>(reinterpret_cast<fid_cntr*>(object));
  }
  // fi_cntr_open.
  static int open(fid_domain* domain, fi_cntr_attr* attr, fid_cntr** result,
                  void* context) noexcept;
  int close() noexcept;

  void add(uint64_t count) noexcept { successes_.fetch_add(count, std::memory_order_release); }
  void add_errors(uint64_t count) noexcept { errors_.fetch_add(count, std::memory_order_release); }
  void set(uint64_t count) noexcept {
    successes_.store(count - remote().success, std::memory_order_release);
  }
  void set_errors(uint64_t count) noexcept {
    errors_.store(count - remote().failure, std::memory_order_release);
  }
  // The counting event for accesses of peers; PTL_CT_NONE if there can be none.
  [[nodiscard]] ptl_handle_ct_t count_remote() noexcept;
  // After progress of the domain.
  [[nodiscard]] uint64_t read() noexcept;
  [[nodiscard]] uint64_t read_errors() noexcept;
  // Returns 0, -FI_EAVAIL after another error, or -FI_ETIMEDOUT.
  [[nodiscard]] int wait(uint64_t threshold, int timeout_ms) noexcept;

  void add_user() noexcept { ++users_; }
  void remove_user() noexcept {
    OFI_ASSERT(users_ != 0);
    --users_;
  }

 private:
  [[nodiscard]] ptl_ct_event_t remote() const noexcept;
  // Waits a moment for an access of a peer.
  void wait_for_remote(uint64_t threshold, int most_ms) noexcept;

  Domain& domain_;
  std::atomic<uint64_t> successes_{0};
  std::atomic<uint64_t> errors_{0};
  ptl_handle_ct_t remote_ = PTL_CT_NONE;
  size_t users_ = 0;  // bindings of endpoints and regions
};

}  // namespace lintel::ofi
