// The thread of the resolver, and questions of others. Set-up and connection path.
#include "verbs/resolver.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "portals4.h"
#include "util/new_descriptor.h"
#include "util/node_identity.h"
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
  listener_ = open_socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK).release();
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
    const Descriptor asker = accept_connection(listener_, SOCK_NONBLOCK);
    if (!asker.is_open()) {
      // If no descriptor is free for the connection, the next attempt would fail as well.
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
        poll(nullptr, 0, pause_without_descriptors_ms);
      return;
    }
    static_cast<void>(!send(asker.get(), &record, sizeof record, MSG_DONTWAIT | MSG_NOSIGNAL));
  }
}

namespace {

// Data of events of epoll. Smaller values are the index of an inquiry.
constexpr uint32_t about_listener = 1000;
constexpr uint32_t about_wake = 1001;
constexpr uint32_t about_client = 1002;

bool watch(const Descriptor& epoll, int descriptor, uint32_t what) noexcept {
  epoll_event event{.events = EPOLLIN, .data = {.u32 = what}};
  return epoll_ctl(epoll.get(), EPOLL_CTL_ADD, descriptor, &event) == 0;
}

}  // namespace

bool Resolver::start(const UdDestination& own, Client& client, uint64_t timeout_ns,
                     std::string& reason) {
  record_ = make_record(port_.id(), own);
  client_ = &client;
  epoll_ = make_epoll();
  wake_event_ = make_event();
  const int of_client = client.event_descriptor();
  if (!watch(epoll_, port_.descriptor(), about_listener) ||
      !watch(epoll_, wake_event_.get(), about_wake) ||
      (of_client >= 0 && !watch(epoll_, of_client, about_client)))
    return explained(false, reason, std::string("epoll: ") + strerror(errno));
  inquiries_.open(epoll_.get(), port_.id().nid, own.is_roce, client, timeout_ns);
  return thread_.start<&Resolver::run>(*this, "ptl-resolver", reason);
}

void Resolver::stop() noexcept {
  if (!thread_.running()) return;
  stopping_.store(true, std::memory_order_release);
  wake();
  thread_.join();
}

void Resolver::wake() noexcept {
  const uint64_t one = 1;
  static_cast<void>(!write(wake_event_.get(), &one, sizeof one));
}

ResolveStatus Resolver::resolve(ProcessId peer, Route& route, std::string* reason,
                                bool* refused) noexcept {
  ResolverResult result;
  result.status = ResolveStatus::unreachable;
  try {
    bool asked = false;
    if (peer.pid >= PTL_PID_MAX || !is_ipv4_host(peer.nid))
      result.reason = "no process has such an address";
    else
      result = results_.take({peer, refused != nullptr}, asked);
    if (asked) wake();
  } catch (...) {
    result.reason.clear();
  }
  route = result.route;
  if (refused != nullptr) *refused = result.refused;
  if (reason != nullptr) *reason = std::move(result.reason);
  return result.status;
}

void Resolver::run() noexcept {
  constexpr int most_events = 16;
  epoll_event events[most_events];
  while (!stopping_.load(std::memory_order_acquire)) {
    const int count = epoll_wait(epoll_.get(), events, most_events, inquiries_.wait_ms());
    if (count < 0 && errno != EINTR) return;
    for (int i = 0; i < count; ++i) handle(events[i].data.u32);
    inquiries_.run_timers();
    inquiries_.take_questions();
  }
}

void Resolver::handle(uint32_t what) noexcept {
  if (what < ResolverInquiries::most) inquiries_.read_answer(what);
  if (what == about_listener) port_.serve(record_);
  if (what == about_client) client_->handle_events();
  if (what != about_wake) return;
  uint64_t ignored = 0;
  static_cast<void>(!read(wake_event_.get(), &ignored, sizeof ignored));
  client_->work();
}

}  // namespace lintel
