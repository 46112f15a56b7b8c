// fi_cq. Completions go to the array of the program that reads, if it reads just then and has room,
// otherwise to a ring. Message path, but for open() and close().
#pragma once

#include <atomic>
#include <cstring>

#include <rdma/fi_eq.h>

#include "base/object.h"
#include "base/wait_descriptor.h"
#include "completion/completion_ring.h"
#include "domain/event_pump.h"

namespace lintel::ofi {

class Domain;

class CompletionQueue : public fid_cq {
 public:
  CompletionQueue(Domain& domain, const fi_cq_attr& attr, void* context) noexcept;

  [[nodiscard]] static CompletionQueue& of(Object* object) noexcept {
    return *static_cast<CompletionQueue*>(reinterpret_cast<fid_cq*>(object));
  }
  // fi_cq_open.
  static int open(fid_domain* domain, fi_cq_attr* attr, fid_cq** result, void* context) noexcept;
  int close() noexcept;

  // With the lock of the domain.
  [[gnu::always_inline]] void push(const fi_cq_tagged_entry& entry,
                                   fi_addr_t source = FI_ADDR_NOTAVAIL) {
    if (room_ == 0 || !ring_.empty() || entry_bytes_ != sizeof entry || sources_ != nullptr)
      return push_in_general(entry, source);
    memcpy(place_, &entry, sizeof entry);
    place_ += sizeof entry;
    --room_;
  }
  // Adds the entry of an operation that ends in its own call, so nobody reads meanwhile.
  void push_to_ring(const fi_cq_tagged_entry& entry, fi_addr_t source = FI_ADDR_NOTAVAIL) {
    ring_.push(entry, source);
    wake_if_armed();
  }
  void push_error(const fi_cq_err_entry& entry, const void* data = nullptr, size_t size = 0);

  // The functions of fi_ops_cq.
  ssize_t read(void* buffer, size_t count, fi_addr_t* sources) noexcept;
  ssize_t wait(void* buffer, size_t count, fi_addr_t* sources, int timeout_ms) noexcept;
  ssize_t read_error(fi_cq_err_entry* entry) noexcept;
  void signal() noexcept;
  // fi_trywait: 0 if the program may sleep on the descriptor, or -FI_EAGAIN.
  [[nodiscard]] int try_wait() noexcept;
  // FI_GETWAIT, FI_GETWAITOBJ.
  [[nodiscard]] int control(int command, void* argument) const noexcept;

  void add_user() noexcept { ++users_; }
  void remove_user() noexcept { --users_; }

 private:
  // Reports in the queue that events were lost. A member, so that the queue begins with its fid_cq.
  class LossReport final : public LossObserver {
   public:
    explicit LossReport(CompletionQueue& queue) noexcept : queue_(queue) {}
    void events_were_lost() override;

   private:
    CompletionQueue& queue_;
  };

  void push_in_general(const fi_cq_tagged_entry& entry, fi_addr_t source);
  // Entries of the ring first, then those that events give.
  [[nodiscard]] size_t take_from_ring(size_t count, fi_addr_t*& sources) noexcept;
  [[nodiscard]] ssize_t read_in_general(size_t count, fi_addr_t* sources) noexcept;
  [[nodiscard]] size_t take_events(size_t count, fi_addr_t* sources) noexcept;
  void wake_if_armed() noexcept {
    if (is_armed_) [[unlikely]]
      wake();
  }
  void wake() noexcept;

  Domain& domain_;
  const size_t entry_bytes_;
  size_t users_ = 0;  // bindings of endpoints
  std::atomic<bool> is_signaled_{false};
  LossReport loss_report_{*this};
  CompletionRing ring_;
  WaitDescriptor descriptor_;  // FI_WAIT_FD
  bool is_armed_ = false;      // the next entry makes it readable
  // Where the thread that reads wants entries.
  char* place_ = nullptr;
  fi_addr_t* sources_ = nullptr;
  size_t room_ = 0;
  // The last read returned all that there was.
  bool found_end_ = false;
  // Data of the error that was read last.
  std::vector<std::byte> error_data_;
};

}  // namespace lintel::ofi
