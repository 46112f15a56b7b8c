// The thread of the resolver, and questions of others. Set-up and connection path.
#include "verbs/resolver.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "portals4.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/new_descriptor.h"
#include "util/node_identity.h"
#include "util/text.h"

namespace lintel {

namespace {

constexpr int askers_waiting = 1024;
constexpr unsigned most_served = 64;  // before the thread does other work
constexpr int pause_without_descriptors_ms = 10;

constexpr uint64_t answer_lasts_ns = 1'000'000'000;
constexpr size_t most_answers = 4096;  // maximum number of answers that were not fetched
constexpr uint64_t first_retry_ns = 2'000'000;
constexpr uint64_t longest_retry_ns = 50'000'000;
// Time for which refusals are ignored: a process may be about to listen. For this node the second
// value applies: its kernel answers.
constexpr uint64_t believe_refused_ns = 1'000'000'000;
constexpr uint64_t believe_own_node_ns = 10'000'000;

// Data of events of epoll. Larger values are the address of an inquiry.
constexpr uint64_t about_listener = 1;
constexpr uint64_t about_wake = 2;
constexpr uint64_t about_client = 3;

bool watch(const Descriptor& epoll, int descriptor, uint64_t what) noexcept {
  epoll_event event{.events = EPOLLIN, .data = {.u64 = what}};
  return epoll_ctl(epoll.get(), EPOLL_CTL_ADD, descriptor, &event) == 0;
}

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

bool Resolver::start(const UdDestination& own, Client& client, uint64_t timeout_ns,
                     std::string& reason) {
  own_ = own;
  client_ = &client;
  timeout_ns_ = timeout_ns;
  asked_.reserve(most_asked);
  epoll_ = make_epoll();
  wake_event_ = make_event();
  const int of_client = client.event_descriptor();
  if (!watch(epoll_, port_.descriptor(), about_listener) ||
      !watch(epoll_, wake_event_.get(), about_wake) ||
      (of_client >= 0 && !watch(epoll_, of_client, about_client)))
    return explained(false, reason, std::string("epoll: ") + strerror(errno));
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
  Answer answer;
  answer.status = ResolveStatus::unreachable;
  try {
    if (peer.pid >= PTL_PID_MAX || !is_ipv4_host(peer.nid))
      answer.reason = "no process has such an address";
    else if (take(peer, refused != nullptr, answer))
      wake();
  } catch (...) {
    answer.reason.clear();
  }
  route = answer.route;
  if (refused != nullptr) *refused = answer.refused;
  if (reason != nullptr) *reason = std::move(answer.reason);
  return answer.status;
}

// Returns an answer once: a later question is sent again, as another process may be there by then.
// `whether_gone`: the question is whether the process is gone, not where it is; its answer is not
// about a process that takes its place later. True: the question is a new one. Throws when there is
// no memory.
bool Resolver::take(ProcessId peer, bool whether_gone, Answer& answer) {
  const uint64_t now = now_ns();
  const auto is_old = [now](const Answer& known) {
    return known.status != ResolveStatus::pending && now - known.settled_ns >= answer_lasts_ns;
  };
  const uint64_t key = uint64_t{peer.nid} << 32 | uint64_t{whether_gone} << 31 | peer.pid;
  const LockGuard guard(mutex_);
  const auto [place, is_new] = inquiries_.try_emplace(key);
  Inquiry& inquiry = place->second;
  if (is_new || is_old(inquiry.answer)) {
    waiting_.push_back(&inquiry);
    inquiry.peer = peer;
    inquiry.answer = answer = {};
    if (inquiries_.size() > most_answers)
      std::erase_if(inquiries_, [&](const auto& entry) { return is_old(entry.second.answer); });
    return true;
  }
  if (inquiry.answer.status == ResolveStatus::pending) {
    answer = {};
  } else {
    answer = std::move(inquiry.answer);
    inquiries_.erase(place);
  }
  return false;
}

// Returns nullptr if no question waits.
Resolver::Inquiry* Resolver::next_question() noexcept {
  const LockGuard guard(mutex_);
  if (waiting_.empty()) return nullptr;
  Inquiry* const next = waiting_.back();
  waiting_.pop_back();
  return next;
}

void Resolver::run() noexcept {
  constexpr int most_events = 16;
  epoll_event events[most_events];
  while (!stopping_.load(std::memory_order_acquire)) {
    const int count = epoll_wait(epoll_.get(), events, most_events, wait_ms());
    if (count < 0 && errno != EINTR) return;
    for (int i = 0; i < count; ++i) handle(events[i].data.u64);
    run_timers();
    take_questions();
  }
}

void Resolver::handle(uint64_t what) noexcept {
  if (what > about_client) return read_answer(*reinterpret_cast<Inquiry*>(what));
  if (what == about_listener) port_.serve(make_record(port_.id(), own_));
  if (what == about_client) client_->handle_events();
  if (what != about_wake) return;
  uint64_t ignored = 0;
  static_cast<void>(!read(wake_event_.get(), &ignored, sizeof ignored));
  client_->work();
}

void Resolver::take_questions() noexcept {
  while (asked_.size() < most_asked) {
    Inquiry* const inquiry = next_question();
    if (inquiry == nullptr) return;
    const uint64_t now = now_ns();
    inquiry->started_ns = now;
    inquiry->retry_ns = first_retry_ns;
    asked_.push_back(inquiry);
    attempt(*inquiry, now);
  }
}

void Resolver::attempt(Inquiry& inquiry, uint64_t now) noexcept {
  inquiry.filled = 0;
  inquiry.next_ns = inquiry.started_ns + timeout_ns_;
  inquiry.socket = open_socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK);
  const int socket = inquiry.socket.get();
  const sockaddr_in address = ipv4_address_of(inquiry.peer.nid, inquiry.peer.pid);
  if (socket < 0 ||
      (connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 &&
       errno != EINPROGRESS) ||
      !watch(epoll_, socket, reinterpret_cast<uintptr_t>(&inquiry)))
    try_again(inquiry, errno, now);
}

// The socket is readable, closed, or not connected at all.
void Resolver::read_answer(Inquiry& inquiry) noexcept {
  auto* const into = reinterpret_cast<std::byte*>(&inquiry.record);
  while (inquiry.filled < sizeof inquiry.record) {
    const ssize_t got = recv(inquiry.socket.get(), into + inquiry.filled,
                             sizeof inquiry.record - inquiry.filled, MSG_DONTWAIT);
    if (got > 0) {
      inquiry.filled += static_cast<unsigned>(got);
      continue;
    }
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    // A process that is just closing accepts and sends nothing.
    return try_again(inquiry, got == 0 ? ECONNREFUSED : errno, now_ns());
  }
  take_record(inquiry);
}

int Resolver::wait_ms() const noexcept {
  uint64_t earliest = UINT64_MAX;
  for (const Inquiry* inquiry : asked_) earliest = std::min(earliest, inquiry->next_ns);
  if (earliest == UINT64_MAX) return -1;
  const uint64_t now = now_ns();
  return earliest <= now ? 0 : static_cast<int>((earliest - now + 999'999) / 1'000'000);
}

void Resolver::try_again(Inquiry& inquiry, int error, uint64_t now) noexcept {
  inquiry.socket.close();
  const bool refused = error == ECONNREFUSED || error == ECONNRESET;
  const bool short_of_something = error == EMFILE || error == ENFILE || error == ENOBUFS ||
                                  error == ENOMEM || error == EADDRNOTAVAIL;
  const bool own_node = inquiry.peer.nid == port_.id().nid;
  // These errors may be temporary, as while a link is down for a moment.
  const bool no_way_now = error == EHOSTUNREACH || error == ENETUNREACH || error == ENETDOWN ||
                          error == EHOSTDOWN || error == ETIMEDOUT;
  const uint64_t patience_ns = short_of_something || no_way_now ? timeout_ns_
                               : refused && own_node            ? believe_own_node_ns
                               : refused ? std::min(believe_refused_ns, timeout_ns_)
                                         : 0;
  if (now - inquiry.started_ns >= patience_ns) {
    give_up(inquiry, refused ? "no process listens there" : strerror(error), refused);
    return;
  }
  inquiry.next_ns = now + inquiry.retry_ns;
  inquiry.retry_ns = std::min(inquiry.retry_ns * 2, longest_retry_ns);
}

void Resolver::run_timers() noexcept {
  const uint64_t now = now_ns();
  // From the end, as those that are settled leave the list.
  for (size_t i = asked_.size(); i-- > 0;) {
    Inquiry& inquiry = *asked_[i];
    if (now < inquiry.next_ns) continue;
    if (!inquiry.socket.is_open())
      attempt(inquiry, now);
    else
      give_up(inquiry, "the node does not answer");
  }
}

void Resolver::give_up(Inquiry& inquiry, const char* why, bool refused) noexcept {
  Answer answer;
  answer.status = ResolveStatus::unreachable;
  answer.refused = refused;
  try {
    const ProcessId peer = inquiry.peer;
    answer.reason = text_of("no answer from TCP port ", port_of_pid(peer.pid), " of ",
                            nid_text(peer.nid), " (", why, ")");
  } catch (...) {
    answer.reason.clear();
  }
  settle(inquiry, std::move(answer));
}

void Resolver::take_record(Inquiry& inquiry) noexcept {
  UdDestination destination;
  Answer answer;
  answer.status = ResolveStatus::unreachable;
  try {
    const char* const wrong = read_record(inquiry.record, inquiry.peer, own_.is_roce, destination);
    if (wrong != nullptr) {
      answer.reason = wrong;
    } else if (client_->make_route(destination, answer.route, answer.reason)) {
      answer.status = ResolveStatus::resolved;
    }
  } catch (...) {
    answer.reason.clear();
  }
  settle(inquiry, std::move(answer));
}

// From then on the inquiry belongs to resolve().
void Resolver::settle(Inquiry& inquiry, Answer&& answer) noexcept {
  if (answer.status == ResolveStatus::unreachable)
    log_message(LogLevel::info, "verbs: %s cannot be reached: %s",
                ProcessText(inquiry.peer.nid, inquiry.peer.pid).c_str(), answer.reason.c_str());
  answer.settled_ns = now_ns();
  inquiry.socket.close();
  std::erase(asked_, &inquiry);
  const LockGuard guard(mutex_);
  inquiry.answer = std::move(answer);
}

}  // namespace lintel
