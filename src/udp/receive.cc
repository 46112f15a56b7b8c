// Receiving datagrams, several per system call, and cutting up those that the kernel joined.
// Message path; arm() lies on the path to sleep, take_unreachable() is reached when
// timers are due.
#include <arpa/inet.h>
#include <linux/errqueue.h>
#include <netinet/udp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "udp/udp_link.h"

namespace lintel {

unsigned UdpLink::receive(InboundFrame* frames, unsigned max) noexcept {
  if (next_ == received_ && receive_datagrams() == 0) return 0;
  unsigned count = 0;
  uint64_t bytes = 0;
  while (count < max && next_ < received_) {
    Received& datagram = datagrams_[next_];
    const uint32_t length = std::min(datagram.segment, datagram.length - datagram.offset);
    frames[count++] = {&datagram.from, buffer(next_) + datagram.offset, length};
    bytes += length;
    datagram.offset += length;
    if (datagram.offset >= datagram.length) ++next_;
  }
  AtomicLinkCounters::add_alone(counters_.frames_received, count);
  AtomicLinkCounters::add_alone(counters_.bytes_received, bytes);
  return count;
}

unsigned UdpLink::receive_datagrams() noexcept {
  received_ = next_ = 0;
  const int count = ask_for_ == 1 && !joining_ ? receive_one() : receive_burst();
  if (count <= 0) {
    if (errno != EAGAIN && errno != EINTR) errors_pending_.store(true, std::memory_order_relaxed);
    ask_for_ = 1;
    full_in_a_row_ = 0;
    return 0;
  }
  // More at once only while more are there at once: asking for several costs more than for one.
  const auto got = static_cast<unsigned>(count);
  full_in_a_row_ = got == ask_for_ ? full_in_a_row_ + 1 : 0;
  if (full_in_a_row_ > 1) ask_for_ = std::min(2 * ask_for_, largest_receive);
  if (full_in_a_row_ == 0) ask_for_ = std::max(got, 1u);
  received_ = got;
  adapt_joining();
  while (next_ < received_ && datagrams_[next_].length == 0) ++next_;
  return received_ - next_;
}

// The cheapest call for one datagram, which has no room to tell of joined ones. Not a point of
// cancellation: see send_one().
int UdpLink::receive_one() noexcept {
  Received& datagram = datagrams_[0];
  socklen_t address_bytes = sizeof datagram.from.bytes;
  const long bytes = syscall(SYS_recvfrom, socket_, buffer(0), buffer_bytes_,
                             MSG_DONTWAIT | MSG_TRUNC, datagram.from.bytes.data(), &address_bytes);
  if (bytes < 0) return -1;
  note_datagram(datagram, static_cast<uint32_t>(bytes), 0,
                static_cast<size_t>(bytes) > buffer_bytes_);
  return 1;
}

int UdpLink::receive_burst() noexcept {
  mmsghdr messages[largest_receive];
  iovec vectors[largest_receive];
  alignas(cmsghdr) char controls[largest_receive][CMSG_SPACE(sizeof(int))];
  for (unsigned i = 0; i < ask_for_; ++i) {
    vectors[i] = {buffer(i), buffer_bytes_};
    messages[i] = {};
    msghdr& header = messages[i].msg_hdr;
    header.msg_name = datagrams_[i].from.bytes.data();
    header.msg_namelen = sizeof datagrams_[i].from.bytes;
    header.msg_iov = &vectors[i];
    header.msg_iovlen = 1;
    header.msg_control = controls[i];
    header.msg_controllen = sizeof controls[i];
  }
  int count = 0;
  if (ask_for_ == 1) {
    const long bytes = syscall(SYS_recvmsg, socket_, &messages[0].msg_hdr, MSG_DONTWAIT);
    if (bytes >= 0) messages[0].msg_len = static_cast<unsigned>(bytes);
    count = bytes >= 0 ? 1 : -1;
  } else {
    count = recvmmsg(socket_, messages, ask_for_, MSG_DONTWAIT, nullptr);
  }
  for (int i = 0; i < count; ++i) {
    msghdr& header = messages[i].msg_hdr;
    int segment = 0;
    for (cmsghdr* control = CMSG_FIRSTHDR(&header); control != nullptr;
         control = CMSG_NXTHDR(&header, control))
      if (control->cmsg_level == SOL_UDP && control->cmsg_type == UDP_GRO)
        std::memcpy(&segment, CMSG_DATA(control), sizeof segment);
    note_datagram(datagrams_[i], messages[i].msg_len, segment, (header.msg_flags & MSG_TRUNC) != 0);
  }
  return count;
}

void UdpLink::note_datagram(Received& datagram, uint32_t length, int segment,
                            bool truncated) noexcept {
  datagram.length = length;
  datagram.segment = segment > 0 ? static_cast<uint32_t>(segment) : length;
  datagram.offset = 0;
  if (!truncated && length != 0) return;
  counters_.frames_malformed.fetch_add(1, std::memory_order_relaxed);
  datagram.length = 0;
}

// The kernel joins datagrams while long ones arrive, or many, and leaves it while they are few and
// short: telling of it makes every call dearer. Datagrams that it has joined when it is told to
// stop arrive as one that makes no sense, and are sent again like any that was lost.
void UdpLink::adapt_joining() noexcept {
  if (!can_join_) return;
  const Received& last = datagrams_[received_ - 1];
  const bool few_and_short = received_ == 1 && last.length <= short_bytes;
  short_in_a_row_ = few_and_short ? short_in_a_row_ + 1 : 0;
  if (joining_ ? short_in_a_row_ < short_until_apart : few_and_short) return;
  const int join = joining_ ? 0 : 1;
  if (setsockopt(socket_, SOL_UDP, UDP_GRO, &join, sizeof join) == 0) joining_ = join != 0;
  short_in_a_row_ = 0;
}

// Errors wait in a queue of their own, and as long as they do, the descriptor is ready: nobody
// could sleep on it.
void UdpLink::drain_errors() noexcept {
  errors_pending_.store(false, std::memory_order_relaxed);
  for (;;) {
    LinkAddress to;
    alignas(cmsghdr) char control[256];
    char data[64];
    iovec vector{data, sizeof data};
    msghdr header{};
    header.msg_name = to.bytes.data();
    header.msg_namelen = sizeof to.bytes;
    header.msg_iov = &vector;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    if (recvmsg(socket_, &header, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) return;
    for (cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr; c = CMSG_NXTHDR(&header, c)) {
      const bool about_error = (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_RECVERR) ||
                               (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_RECVERR);
      if (!about_error) continue;
      sock_extended_err error;
      std::memcpy(&error, CMSG_DATA(c), sizeof error);
      const bool unreachable = error.ee_errno == ECONNREFUSED || error.ee_errno == EHOSTUNREACH ||
                               error.ee_errno == ENETUNREACH;
      if (unreachable && unreachable_count_ < most_unreachable)
        unreachable_[unreachable_count_++] = to;
      break;
    }
  }
}

bool UdpLink::arm() noexcept {
  drain_errors();
  return next_ == received_;
}

unsigned UdpLink::take_unreachable(LinkAddress* addresses, unsigned max) noexcept {
  if (errors_pending_.load(std::memory_order_relaxed)) drain_errors();
  const unsigned count = std::min(unreachable_count_, max);
  std::copy_n(unreachable_, count, addresses);
  unreachable_count_ = 0;  // what did not fit comes again
  return count;
}

}  // namespace lintel
