// Functions for the slots of tables that the provider has nothing for. Programs call the slots
// without a look, so none may be NULL.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include "base/object.h"

namespace lintel::ofi {

template <typename Function>
struct Unsupported;

template <typename Result, typename... Arguments>
struct Unsupported<Result (*)(Arguments...)> {
  static Result call(Arguments...) { return static_cast<Result>(-FI_ENOSYS); }
};

// Returns a function for a slot: `.listen = unsupported(&fi_ops_cm::listen)`.
template <typename Table, typename Function>
[[nodiscard]] constexpr Function unsupported(Function Table::*) noexcept {
  return Unsupported<Function>::call;
}

inline int no_bind(Object*, Object*, uint64_t) { return -FI_ENOSYS; }
inline int no_control(Object*, int, void*) { return -FI_ENOSYS; }
inline int no_ops(Object*, const char*, uint64_t, void**, void*) { return -FI_ENOSYS; }
inline int no_set_ops(Object*, const char*, uint64_t, void*, void*) { return -FI_ENOSYS; }

// The common table of an object. `tostr` is left to the core, which checks it.
[[nodiscard]] constexpr fi_ops object_ops(int (*close)(Object*),
                                          int (*bind)(Object*, Object*, uint64_t) = no_bind,
                                          int (*control)(Object*, int,
                                                         void*) = no_control) noexcept {
  return {.size = sizeof(fi_ops),
          .close = close,
          .bind = bind,
          .control = control,
          .ops_open = no_ops,
          .tostr = [](const Object*, char*, size_t) { return -FI_ENOSYS; },
          .ops_set = no_set_ops};
}

// The same table of messages, or of tagged messages, for an endpoint that does not receive.
template <typename Table>
[[nodiscard]] constexpr Table without_receives(Table calls) noexcept {
  calls.recv = unsupported(&Table::recv);
  calls.recvv = unsupported(&Table::recvv);
  calls.recvmsg = unsupported(&Table::recvmsg);
  return calls;
}

// The same for an endpoint that does not send.
template <typename Table>
[[nodiscard]] constexpr Table without_sends(Table calls) noexcept {
  calls.send = unsupported(&Table::send);
  calls.sendv = unsupported(&Table::sendv);
  calls.sendmsg = unsupported(&Table::sendmsg);
  calls.inject = unsupported(&Table::inject);
  calls.senddata = unsupported(&Table::senddata);
  calls.injectdata = unsupported(&Table::injectdata);
  return calls;
}

}  // namespace lintel::ofi
