#include "udp/udp_calls.h"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "util/log.h"
#include "util/text.h"

namespace lintel {

namespace {

// The error of a call that does nothing. Only a filter, or another kernel, answers these.
bool is_denied(long result) noexcept {
  return result < 0 && (errno == EPERM || errno == EACCES || errno == ENOSYS);
}

std::string denial(const char* call) {
  return text_of(call, " is denied (", strerror(errno),
                 "); permit it in the seccomp profile of the container");
}

// False: it is denied, and that is logged.
bool permits(const char* call, long result) {
  if (!is_denied(result)) return true;
  log_message(LogLevel::warn, "udp: %s; until then datagrams go one by one", denial(call).c_str());
  return false;
}

}  // namespace

bool UdpCalls::probe(int socket, std::string& reason) {
  constexpr int peek = MSG_DONTWAIT | MSG_PEEK;
  std::byte byte;
  // Without a message the call fails in any case, with another error than that of a filter.
  if (is_denied(syscall(SYS_sendmsg, socket, nullptr, MSG_DONTWAIT)))
    return explained(false, reason, denial("sendmsg"));
  receives_one = !is_denied(syscall(SYS_recvfrom, socket, &byte, 1, peek, nullptr, nullptr));
  const long several = syscall(SYS_recvmmsg, socket, nullptr, 0, peek, nullptr);
  if (!receives_one && is_denied(several))
    return explained(false, reason, denial("recvfrom, like recvmmsg,"));
  receives_several = permits("recvmmsg", several);
  sends_several = permits("sendmmsg", syscall(SYS_sendmmsg, socket, nullptr, 0, MSG_DONTWAIT));
  return true;
}

}  // namespace lintel
