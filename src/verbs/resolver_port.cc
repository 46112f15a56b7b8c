// Listening at the port. Set-up and connection path.
#include "verbs/resolver_port.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "util/descriptors_in_children.h"
#include "util/node_identity.h"
#include "util/pid_port.h"
#include "util/text.h"

namespace lintel {

namespace {

constexpr int askers_waiting = 1024;
constexpr unsigned most_served = 64;  // before the thread does other work
constexpr int pause_without_descriptors_ms = 10;

}  // namespace

ResolverPort::~ResolverPort() {
  if (listener_ < 0) return;
  forget_in_children(listener_);
  close(listener_);
}

// The kernel accepts at bind() a port that is in use, because of connections that linger, and
// refuses it at listen().
OpenStatus ResolverPort::claim(ProcessId id, std::string& reason) {
  id_ = id;
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const sockaddr_in address = ipv4_address_of(id.nid, id.pid);
  const int on = 1;
  if (listener_ >= 0) {
    close_in_children(listener_);
    setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
        listen(listener_, askers_waiting) == 0)
      return OpenStatus::opened;
  }
  const int error = errno;
  reason =
      text_of("TCP port ", port_of_pid(id.pid), " of ", nid_text(id.nid),
              ", by which others find this process: ", strerror(error),
              error == EADDRNOTAVAIL ? "; the nid must be an address of this node (PTL_NID)" : "");
  return error == EADDRINUSE ? OpenStatus::pid_in_use : OpenStatus::failed;
}

// A record fits into the buffer of any socket, so that nothing is waited for.
void ResolverPort::serve(const ResolverRecord& record) const noexcept {
  for (unsigned i = 0; i < most_served; ++i) {
    const int asker = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (asker < 0) {
      // Without a descriptor to accept with, the next attempt would fail as well.
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
        poll(nullptr, 0, pause_without_descriptors_ms);
      return;
    }
    static_cast<void>(!send(asker, &record, sizeof record, MSG_DONTWAIT | MSG_NOSIGNAL));
    close(asker);
  }
}

}  // namespace lintel
