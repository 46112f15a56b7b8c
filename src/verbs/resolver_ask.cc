// Asking other processes for their records. Connection path, in the resolver's thread.
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "util/clock.h"
#include "util/log.h"
#include "util/pid_port.h"
#include "verbs/port_choice.h"
#include "verbs/resolver.h"

namespace lintel {

void Resolver::drop_socket(Asking& asking) noexcept {
  if (asking.socket >= 0) close(asking.socket);
  asking.socket = -1;
}

void Resolver::take_questions() noexcept {
  for (Asking& asking : asking_) {
    if (asking.used) continue;
    {
      const std::lock_guard guard(mutex_);
      if (questions_.empty()) return;
      asking.question = questions_.back();
      questions_.pop_back();
    }
    const uint64_t now = now_ns();
    asking.used = true;
    asking.started_ns = now;
    asking.retry_ns = first_retry_ns;
    attempt(asking, now);
  }
}

void Resolver::attempt(Asking& asking, uint64_t now) noexcept {
  asking.filled = 0;
  asking.next_ns = asking.started_ns + timeout_ns_;
  asking.socket = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (asking.socket < 0) {
    try_again(asking, errno, now);
    return;
  }
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port_of_pid(asking.question.peer.pid));
  address.sin_addr.s_addr = htonl(asking.question.peer.nid);
  epoll_event event{.events = EPOLLIN,
                    .data = {.u32 = static_cast<uint32_t>(&asking - asking_.data())}};
  if ((connect(asking.socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 &&
       errno != EINPROGRESS) ||
      epoll_ctl(epoll_, EPOLL_CTL_ADD, asking.socket, &event) != 0)
    try_again(asking, errno, now);
}

// Readable, closed, or not connected at all.
void Resolver::read_answer(Asking& asking) noexcept {
  if (asking.socket < 0) return;
  auto* const into = reinterpret_cast<std::byte*>(&asking.record);
  while (asking.filled < sizeof asking.record) {
    const ssize_t got = recv(asking.socket, into + asking.filled,
                             sizeof asking.record - asking.filled, MSG_DONTWAIT);
    if (got > 0) {
      asking.filled += static_cast<unsigned>(got);
      continue;
    }
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    // A process that is just closing accepts and says nothing.
    try_again(asking, got == 0 ? ECONNREFUSED : errno, now_ns());
    return;
  }
  drop_socket(asking);
  answered(asking);
}

void Resolver::try_again(Asking& asking, int error, uint64_t now) noexcept {
  drop_socket(asking);
  const bool refused = error == ECONNREFUSED || error == ECONNRESET;
  const bool short_of_something = error == EMFILE || error == ENFILE || error == ENOBUFS ||
                                  error == ENOMEM || error == EADDRNOTAVAIL;
  const bool own_node = asking.question.peer.nid == id_.nid;
  const uint64_t patience_ns = short_of_something    ? timeout_ns_
                               : refused && own_node ? believe_own_node_ns
                               : refused             ? std::min(believe_refused_ns, timeout_ns_)
                                                     : 0;
  if (now - asking.started_ns >= patience_ns) {
    give_up(asking, refused ? "nobody listens there" : strerror(error), refused);
    return;
  }
  asking.next_ns = now + asking.retry_ns;
  asking.retry_ns = std::min(asking.retry_ns * 2, longest_retry_ns);
}

void Resolver::run_timers(uint64_t now) noexcept {
  for (Asking& asking : asking_) {
    if (!asking.used || now < asking.next_ns) continue;
    if (asking.socket < 0)
      attempt(asking, now);
    else
      give_up(asking, "the node does not answer");
  }
}

void Resolver::give_up(Asking& asking, const char* why, bool refused) noexcept {
  Result result;
  result.status = ResolveStatus::unreachable;
  result.refused = refused;
  try {
    result.reason = "no answer from TCP port ";
    result.reason.append(std::to_string(port_of_pid(asking.question.peer.pid))).append(" of ");
    result.reason.append(nid_text(asking.question.peer.nid)).append(" (").append(why).append(")");
  } catch (...) {
    result.reason.clear();
  }
  settle(asking, std::move(result));
}

void Resolver::answered(Asking& asking) noexcept {
  UdDestination destination;
  Result result;
  result.status = ResolveStatus::unreachable;
  try {
    const char* const wrong =
        read_record(asking.record, asking.question.peer, is_roce_, destination);
    if (wrong != nullptr) {
      result.reason = wrong;
    } else if (client_->make_route(destination, result.route, result.reason)) {
      result.status = ResolveStatus::resolved;
    }
  } catch (...) {
    result.reason.clear();
  }
  settle(asking, std::move(result));
}

void Resolver::settle(Asking& asking, Result&& result) noexcept {
  if (result.status == ResolveStatus::unreachable)
    log_message(LogLevel::info, "verbs: nid 0x%08x pid %u cannot be reached: %s",
                asking.question.peer.nid, asking.question.peer.pid, result.reason.c_str());
  drop_socket(asking);
  asking.used = false;
  result.settled_ns = now_ns();
  const std::lock_guard guard(mutex_);
  const auto place = results_.find(key_of(asking.question));
  if (place != results_.end()) place->second = std::move(result);
}

}  // namespace lintel
