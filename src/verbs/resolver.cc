// The port that stands for the pid, the thread, and answering those who ask. Set-up and connection path.
#include "verbs/resolver.h"

#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "portals4.h"
#include "util/clock.h"
#include "util/descriptors_in_children.h"
#include "util/pid_port.h"
#include "verbs/port_choice.h"

namespace lintel {

namespace {

// What an event of epoll is about; below these: the index of a question.
constexpr uint32_t about_listener = 1000;
constexpr uint32_t about_wake = 1001;
constexpr uint32_t about_client = 1002;

constexpr int askers_waiting = 1024;
constexpr unsigned most_served = 64;  // before others get their turn
constexpr int pause_without_descriptors_ms = 10;

bool watch(int epoll, int descriptor, uint32_t what) noexcept {
  epoll_event event{.events = EPOLLIN, .data = {.u32 = what}};
  return epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event) == 0;
}

void close_descriptor(int& descriptor) noexcept {
  if (descriptor >= 0) close(descriptor);
  descriptor = -1;
}

bool can_be_a_process(ProcessId peer) noexcept {
  return peer.pid < PTL_PID_MAX && peer.nid != INADDR_ANY && !IN_MULTICAST(peer.nid) &&
         !IN_BADCLASS(peer.nid);
}

}  // namespace

Resolver::~Resolver() {
  stop();
  close_descriptors();
}

void Resolver::close_descriptors() noexcept {
  if (listener_ >= 0) forget_in_children(listener_);
  close_descriptor(listener_);
  close_descriptor(epoll_);
  close_descriptor(wake_event_);
}

// The kernel notices at listen() what it lets pass at bind(), for the sake of connections that linger.
OpenStatus Resolver::claim(ProcessId id, std::string& reason) {
  id_ = id;
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port_of_pid(id.pid));
  address.sin_addr.s_addr = htonl(id.nid);
  const int on = 1;
  if (listener_ >= 0) {
    close_in_children(listener_);
    setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
        listen(listener_, askers_waiting) == 0)
      return OpenStatus::opened;
  }
  const int error = errno;
  close_descriptors();
  reason = "TCP port ";
  reason.append(std::to_string(port_of_pid(id.pid))).append(" of ").append(nid_text(id.nid));
  reason.append(", by which others find this process: ").append(strerror(error));
  if (error == EADDRNOTAVAIL) reason.append("; the nid must be an address of this node (PTL_NID)");
  return error == EADDRINUSE ? OpenStatus::pid_in_use : OpenStatus::failed;
}

bool Resolver::start(const UdDestination& own, Client& client, uint64_t timeout_ns,
                     std::string& reason) {
  record_ = make_record(id_, own);
  is_roce_ = own.is_roce;
  client_ = &client;
  timeout_ns_ = timeout_ns;
  epoll_ = epoll_create1(EPOLL_CLOEXEC);
  wake_event_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  const int of_client = client.event_descriptor();
  if (epoll_ < 0 || wake_event_ < 0 || !watch(epoll_, listener_, about_listener) ||
      !watch(epoll_, wake_event_, about_wake) ||
      (of_client >= 0 && !watch(epoll_, of_client, about_client))) {
    reason = "epoll: ";
    reason.append(strerror(errno));
    return false;
  }
  // Signals are the application's: none is to be handled on this thread.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int error = pthread_create(&thread_, nullptr, &Resolver::entry, this);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error != 0) {
    reason = "cannot start a thread: ";
    reason.append(strerror(error));
    return false;
  }
  running_ = true;
  pthread_setname_np(thread_, "ptl-resolver");
  return true;
}

void Resolver::stop() noexcept {
  if (!running_) return;
  stopping_.store(true, std::memory_order_release);
  wake();
  pthread_join(thread_, nullptr);
  running_ = false;
  for (Asking& asking : asking_) drop_socket(asking);
}

void Resolver::wake() noexcept {
  const uint64_t one = 1;
  static_cast<void>(!write(wake_event_, &one, sizeof one));
}

ResolveStatus Resolver::resolve(ProcessId peer, Route& route, std::string* reason,
                                bool* refused) noexcept {
  if (refused != nullptr) *refused = false;
  try {
    if (!can_be_a_process(peer)) {
      if (reason != nullptr) *reason = "no process has such an address";
      return ResolveStatus::unreachable;
    }
    const uint64_t now = now_ns();
    const std::lock_guard guard(mutex_);
    const Question question{peer, refused != nullptr};
    const auto [place, is_new] = results_.try_emplace(key_of(question));
    Result& result = place->second;
    const bool settled = result.status != ResolveStatus::pending;
    if (settled && now - result.settled_ns < result_lasts_ns) {
      const ResolveStatus status = result.status;
      route = result.route;
      if (refused != nullptr) *refused = result.refused;
      if (reason != nullptr) *reason = std::move(result.reason);
      results_.erase(place);
      return status;
    }
    if (is_new || settled) {
      result = Result{};
      questions_.push_back(question);
      if (results_.size() > most_results) forget_old_results(now);
      wake();
    }
    return ResolveStatus::pending;
  } catch (...) {
    if (reason != nullptr) reason->clear();
    return ResolveStatus::unreachable;
  }
}

void Resolver::forget_old_results(uint64_t now) noexcept {
  std::erase_if(results_, [now](const auto& entry) {
    const Result& result = entry.second;
    return result.status != ResolveStatus::pending && now - result.settled_ns >= result_lasts_ns;
  });
}

void* Resolver::entry(void* self) noexcept {
  static_cast<Resolver*>(self)->run();
  return nullptr;
}

int Resolver::wait_ms() const noexcept {
  uint64_t earliest = UINT64_MAX;
  for (const Asking& asking : asking_)
    if (asking.used) earliest = std::min(earliest, asking.next_ns);
  if (earliest == UINT64_MAX) return -1;
  const uint64_t now = now_ns();
  return earliest <= now ? 0 : static_cast<int>((earliest - now + 999'999) / 1'000'000);
}

void Resolver::run() noexcept {
  constexpr int most_events = 16;
  epoll_event events[most_events];
  while (!stopping_.load(std::memory_order_acquire)) {
    const int count = epoll_wait(epoll_, events, most_events, wait_ms());
    if (count < 0 && errno != EINTR) return;
    for (int i = 0; i < count; ++i) handle(events[i].data.u32);
    run_timers(now_ns());
    take_questions();
  }
}

void Resolver::handle(uint32_t what) noexcept {
  switch (what) {
    case about_listener:
      serve();
      return;
    case about_client:
      client_->handle_events();
      return;
    case about_wake: {
      uint64_t ignored = 0;
      static_cast<void>(!read(wake_event_, &ignored, sizeof ignored));
      client_->work();
      return;
    }
    default:
      break;
  }
  if (what < most_asking && asking_[what].used) read_answer(asking_[what]);
}

// A record fits into any socket's buffer, so nobody is waited for.
void Resolver::serve() noexcept {
  for (unsigned i = 0; i < most_served; ++i) {
    const int asker = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (asker < 0) {
      // Without a descriptor to accept with, the next attempt fails as well: others first.
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
        poll(nullptr, 0, pause_without_descriptors_ms);
      return;
    }
    static_cast<void>(!send(asker, &record_, sizeof record_, MSG_DONTWAIT | MSG_NOSIGNAL));
    close(asker);
  }
}

}  // namespace lintel
