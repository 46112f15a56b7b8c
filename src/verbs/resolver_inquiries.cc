// Connecting, reading, and giving up. Connection path.
#include "verbs/resolver_inquiries.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "util/clock.h"
#include "util/lock.h"
#include "util/log.h"
#include "util/new_descriptor.h"
#include "util/node_identity.h"
#include "util/text.h"

namespace lintel {

namespace {

constexpr uint64_t result_lasts_ns = 1'000'000'000;
constexpr size_t most_results = 4096;  // maximum number of results that were not fetched

}  // namespace

ResolverResult ResolverResults::take(const ResolverQuestion& question, bool& asked) {
  const uint64_t now = now_ns();
  const auto is_old = [now](const ResolverResult& result) {
    return result.status != ResolveStatus::pending && now - result.settled_ns >= result_lasts_ns;
  };
  const LockGuard guard(mutex_);
  const auto [place, is_new] = results_.try_emplace(key_of(question));
  ResolverResult& result = place->second;
  asked = is_new || is_old(result);
  if (!asked && result.status == ResolveStatus::pending) return {};
  ResolverResult taken = std::exchange(result, {});
  if (!asked) {
    results_.erase(place);
    return taken;
  }
  questions_.push_back(question);
  if (results_.size() > most_results)
    std::erase_if(results_, [&](const auto& entry) { return is_old(entry.second); });
  return {};
}

bool ResolverResults::next_question(ResolverQuestion& question) noexcept {
  const LockGuard guard(mutex_);
  if (questions_.empty()) return false;
  question = questions_.back();
  questions_.pop_back();
  return true;
}

void ResolverResults::settle(const ResolverQuestion& question, ResolverResult&& result) noexcept {
  result.settled_ns = now_ns();
  const LockGuard guard(mutex_);
  const auto place = results_.find(key_of(question));
  if (place != results_.end()) place->second = std::move(result);
}

namespace {

constexpr uint64_t first_retry_ns = 2'000'000;
constexpr uint64_t longest_retry_ns = 50'000'000;
// Time for which refusals are ignored: a process may be about to listen. For this node the second
// value applies: its kernel answers.
constexpr uint64_t believe_refused_ns = 1'000'000'000;
constexpr uint64_t believe_own_node_ns = 10'000'000;

}  // namespace

void ResolverInquiries::open(int epoll, uint32_t own_nid, bool is_roce, ResolverClient& client,
                             uint64_t timeout_ns) noexcept {
  epoll_ = epoll;
  own_nid_ = own_nid;
  is_roce_ = is_roce;
  client_ = &client;
  timeout_ns_ = timeout_ns;
}

void ResolverInquiries::take_questions() noexcept {
  for (Inquiry& inquiry : inquiries_) {
    if (inquiry.used) continue;
    if (!results_.next_question(inquiry.question)) return;
    const uint64_t now = now_ns();
    inquiry.used = true;
    inquiry.started_ns = now;
    inquiry.retry_ns = first_retry_ns;
    attempt(inquiry, now);
  }
}

void ResolverInquiries::attempt(Inquiry& inquiry, uint64_t now) noexcept {
  inquiry.filled = 0;
  inquiry.next_ns = inquiry.started_ns + timeout_ns_;
  inquiry.socket = open_socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK);
  const int socket = inquiry.socket.get();
  const ProcessId peer = inquiry.question.peer;
  const sockaddr_in address = ipv4_address_of(peer.nid, peer.pid);
  epoll_event event{.events = EPOLLIN,
                    .data = {.u32 = static_cast<uint32_t>(&inquiry - inquiries_.data())}};
  if (socket < 0 ||
      (connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 &&
       errno != EINPROGRESS) ||
      epoll_ctl(epoll_, EPOLL_CTL_ADD, socket, &event) != 0)
    try_again(inquiry, errno, now);
}

// Readable, closed, or not connected at all.
void ResolverInquiries::read_answer(uint32_t index) noexcept {
  Inquiry& inquiry = inquiries_[index];
  if (!inquiry.socket.is_open()) return;
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
    try_again(inquiry, got == 0 ? ECONNREFUSED : errno, now_ns());
    return;
  }
  inquiry.socket.close();
  handle_record(inquiry);
}

int ResolverInquiries::wait_ms() const noexcept {
  uint64_t earliest = UINT64_MAX;
  for (const Inquiry& inquiry : inquiries_)
    if (inquiry.used) earliest = std::min(earliest, inquiry.next_ns);
  if (earliest == UINT64_MAX) return -1;
  const uint64_t now = now_ns();
  return earliest <= now ? 0 : static_cast<int>((earliest - now + 999'999) / 1'000'000);
}

void ResolverInquiries::try_again(Inquiry& inquiry, int error, uint64_t now) noexcept {
  inquiry.socket.close();
  const bool refused = error == ECONNREFUSED || error == ECONNRESET;
  const bool short_of_something = error == EMFILE || error == ENFILE || error == ENOBUFS ||
                                  error == ENOMEM || error == EADDRNOTAVAIL;
  const bool own_node = inquiry.question.peer.nid == own_nid_;
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

void ResolverInquiries::run_timers() noexcept {
  const uint64_t now = now_ns();
  for (Inquiry& inquiry : inquiries_) {
    if (!inquiry.used || now < inquiry.next_ns) continue;
    if (!inquiry.socket.is_open())
      attempt(inquiry, now);
    else
      give_up(inquiry, "the node does not answer");
  }
}

void ResolverInquiries::give_up(Inquiry& inquiry, const char* why, bool refused) noexcept {
  ResolverResult result;
  result.status = ResolveStatus::unreachable;
  result.refused = refused;
  try {
    const ProcessId peer = inquiry.question.peer;
    result.reason = text_of("no answer from TCP port ", port_of_pid(peer.pid), " of ",
                            nid_text(peer.nid), " (", why, ")");
  } catch (...) {
    result.reason.clear();
  }
  settle(inquiry, std::move(result));
}

void ResolverInquiries::handle_record(Inquiry& inquiry) noexcept {
  UdDestination destination;
  ResolverResult result;
  result.status = ResolveStatus::unreachable;
  try {
    const char* const wrong =
        read_record(inquiry.record, inquiry.question.peer, is_roce_, destination);
    if (wrong != nullptr) {
      result.reason = wrong;
    } else if (client_->make_route(destination, result.route, result.reason)) {
      result.status = ResolveStatus::resolved;
    }
  } catch (...) {
    result.reason.clear();
  }
  settle(inquiry, std::move(result));
}

void ResolverInquiries::settle(Inquiry& inquiry, ResolverResult&& result) noexcept {
  if (result.status == ResolveStatus::unreachable)
    log_message(LogLevel::info, "verbs: %s cannot be reached: %s",
                ProcessText(inquiry.question.peer.nid, inquiry.question.peer.pid).c_str(),
                result.reason.c_str());
  inquiry.socket.close();
  inquiry.used = false;
  results_.settle(inquiry.question, std::move(result));
}

}  // namespace lintel
