// The descriptor of a sleep in poll(2) or epoll(7), for FI_WAIT_FD. Set-up path, but for
// raise() and clear(), which are system calls.
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include <rdma/fabric.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>

namespace lintel::ofi {

class WaitDescriptor {
 public:
  WaitDescriptor() = default;
  ~WaitDescriptor() {
    if (number_ >= 0) ::close(number_);
  }
  WaitDescriptor(const WaitDescriptor&) = delete;
  WaitDescriptor& operator=(const WaitDescriptor&) = delete;

  // Returns 0 or a negative error number.
  [[nodiscard]] int open() noexcept {
    number_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    return number_ >= 0 ? 0 : -errno;
  }
  [[nodiscard]] bool is_open() const noexcept { return number_ >= 0; }
  // Makes it readable, until clear().
  void raise() noexcept {
    const uint64_t one = 1;
    (void)!::write(number_, &one, sizeof one);
  }
  void clear() noexcept {
    uint64_t count = 0;
    (void)!::read(number_, &count, sizeof count);
  }
  // FI_GETWAIT and FI_GETWAITOBJ of the object that it belongs to; `otherwise` is what that one has
  // without it.
  [[nodiscard]] int control(int command, void* argument, fi_wait_obj otherwise) const noexcept {
    if (command == FI_GETWAITOBJ) {
      *static_cast<fi_wait_obj*>(argument) = is_open() ? FI_WAIT_FD : otherwise;
      return 0;
    }
    if (command != FI_GETWAIT) return -FI_ENOSYS;
    if (!is_open()) return -FI_ENODATA;
    *static_cast<int*>(argument) = number_;
    return 0;
  }

 private:
  int number_ = -1;
};

}  // namespace lintel::ofi
