// One end of a test of the provider: fabric, domain, endpoint, queues and counters of libfabric,
// and the calls that tests make most. Set-up path.
#pragma once

#include <sched.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include "support/accelerator.h"
#include "support/rank.h"

namespace lintel::test::ofi {

inline constexpr uint32_t api = FI_VERSION(1, 17);

// Fails the rank unless `code` is 0. Returns nothing, so calls that return a count have expect_eq.
void must(ssize_t code, Place place = Place::current());

struct CloseObject {
  template <typename Object>
  void operator()(Object* object) const {
    must(fi_close(&object->fid));
  }
};
template <typename Object>
using Owned = std::unique_ptr<Object, CloseObject>;

struct FreeInfo {
  void operator()(fi_info* info) const { fi_freeinfo(info); }
};
using Info = std::unique_ptr<fi_info, FreeInfo>;

// Has libfabric load the provider of this build. Called before ranks are forked, it saves each of
// them the time that this takes.
void use_provider();
// Hints for this provider; all capabilities, contexts with room.
[[nodiscard]] Info make_hints();
// What fi_getinfo returns for hints; NULL if nothing.
[[nodiscard]] Info get_info(const fi_info* hints, uint32_t version = api);

// What the endpoint of a test is like.
struct Settings {
  bool contexts = true;  // FI_CONTEXT2
  fi_av_type vector = FI_AV_MAP;
  fi_threading threading = FI_THREAD_DOMAIN;
  fi_progress progress = FI_PROGRESS_MANUAL;
  fi_cq_format format = FI_CQ_FORMAT_TAGGED;
  fi_wait_obj wait = FI_WAIT_UNSPEC;  // of completion queues
  uint64_t selective = 0;             // FI_SELECTIVE_COMPLETION
  uint64_t caps = 0;                  // 0: all
  int mr_mode = 0;
  uint64_t transmit_flags = 0;
  bool counters = false;
  fi_wait_obj counter_wait = FI_WAIT_UNSPEC;
  bool remote_counters = false;  // FI_RMA_EVENT
  // A driver of accelerators that the process loads before the domain is opened.
  const char* driver = nullptr;
};

// The only driver of a process; loaded at the first call.
[[nodiscard]] Accelerator& accelerator(const char* driver);

// A context of an operation. Its address identifies it.
struct Context {
  fi_context2 memory{};
};

// Waits for what the calls in `condition` bring about: calls often before it sleeps as
// Rank::await_condition() does, whose sleep the library does not end.
template <typename Condition>
void await_progress(const char* activity, Condition&& condition, Place place) {
  Rank::current().await_condition(
      activity,
      [&] {
        for (int left = 1000; left != 0; --left) {
          if (condition()) return true;
          sched_yield();
        }
        return false;
      },
      place);
}

class Side {
 public:
  explicit Side(const Settings& settings);

  // Puts the name of its peer into the address vector.
  void connect(const std::vector<std::byte>& name);
  [[nodiscard]] std::vector<std::byte> name() const;
  void close_endpoint() { endpoint_.reset(); }

  [[nodiscard]] fid_ep* endpoint() const { return endpoint_.get(); }
  [[nodiscard]] fid_domain* domain() const { return domain_.get(); }
  [[nodiscard]] fid_fabric* fabric() const { return fabric_.get(); }
  [[nodiscard]] fid_cq* sent() const { return sent_.get(); }
  [[nodiscard]] fid_cq* received() const { return received_.get(); }
  [[nodiscard]] fid_av* addresses() const { return addresses_.get(); }
  [[nodiscard]] fid_cntr* send_counter() const { return send_counter_.get(); }
  [[nodiscard]] fid_cntr* receive_counter() const { return receive_counter_.get(); }
  [[nodiscard]] fid_cntr* read_counter() const { return read_counter_.get(); }
  [[nodiscard]] fid_cntr* write_counter() const { return write_counter_.get(); }
  [[nodiscard]] fid_cntr* remote_read_counter() const { return remote_read_counter_.get(); }
  [[nodiscard]] fid_cntr* remote_write_counter() const { return remote_write_counter_.get(); }
  [[nodiscard]] fi_addr_t peer() const { return peer_; }
  [[nodiscard]] const fi_info& info() const { return *info_; }

  // The next entry of a queue, an error of it, or silence. They fail the rank after a time.
  fi_cq_tagged_entry next(fid_cq* queue, fi_addr_t* source = nullptr,
                          Place place = Place::current()) const;
  fi_cq_err_entry next_error(fid_cq* queue, Place place = Place::current()) const;
  void expect_nothing(fid_cq* queue, Place place = Place::current()) const;

  // Repeats a call while it returns -FI_EAGAIN, with progress.
  template <typename Call>
  void repeat(Call&& call, Place place = Place::current()) const {
    ssize_t code = -FI_EAGAIN;
    await_progress(
        "a call that returns -FI_EAGAIN",
        [&] {
          code = call();
          if (code == -FI_EAGAIN) fi_cq_read(received_.get(), nullptr, 0);
          return code != -FI_EAGAIN;
        },
        place);
    must(code, place);
  }

 private:
  void open_counter(Owned<fid_cntr>& counter, uint64_t flag, fi_wait_obj wait);

  Info info_;
  Owned<fid_fabric> fabric_;
  Owned<fid_domain> domain_;
  Owned<fid_av> addresses_;
  Owned<fid_cq> sent_;
  Owned<fid_cq> received_;
  Owned<fid_cntr> send_counter_;
  Owned<fid_cntr> receive_counter_;
  Owned<fid_cntr> read_counter_;
  Owned<fid_cntr> write_counter_;
  Owned<fid_cntr> remote_read_counter_;
  Owned<fid_cntr> remote_write_counter_;
  Owned<fid_ep> endpoint_;
  fi_addr_t peer_ = FI_ADDR_NOTAVAIL;
};

inline constexpr uint64_t all_access = FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;

[[nodiscard]] inline Owned<fid_mr> register_memory(const Side& side, void* start, size_t size,
                                                   uint64_t key = 0, uint64_t access = all_access,
                                                   uint64_t flags = 0) {
  fid_mr* region = nullptr;
  must(fi_mr_reg(side.domain(), start, size, access, 0, key, flags, &region, nullptr));
  return Owned<fid_mr>(region);
}
[[nodiscard]] inline Owned<fid_cntr> open_counter(const Side& side) {
  fid_cntr* opened = nullptr;
  must(fi_cntr_open(side.domain(), nullptr, &opened, nullptr));
  return Owned<fid_cntr>(opened);
}

}  // namespace lintel::test::ofi
