// Receiving datagrams. Message path.
#include "udp/udp_receiver.h"

#include <netinet/udp.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace lintel {

namespace {

constexpr uint32_t joined_bytes = 65536;  // maximum length of datagrams that the kernel joins
constexpr uint32_t short_bytes = 2048;
constexpr unsigned short_until_apart = 256;
constexpr unsigned few_datagrams = 4;

}  // namespace

// recvmmsg alone reports which datagrams were joined.
bool UdpReceiver::open(uint32_t mtu, const UdpCalls& calls) noexcept {
  calls_ = calls;
  can_join_ = calls_.receives_several && socket_.set_option(SOL_UDP, UDP_GRO, 0);
  buffer_bytes_ = can_join_ ? joined_bytes : (mtu + 63) & ~63u;
  void* const memory = mmap(nullptr, buffer_bytes_ * largest_read, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory != MAP_FAILED) buffers_ = static_cast<std::byte*>(memory);
  return buffers_ != nullptr;
}

UdpReceiver::~UdpReceiver() {
  if (buffers_ != nullptr) munmap(buffers_, buffer_bytes_ * largest_read);
}

unsigned UdpReceiver::receive(InboundFrame* frames, unsigned max) noexcept {
  if (empty()) read();
  unsigned count = 0;
  uint64_t bytes = 0;
  while (count < max && next_ < received_) {
    Datagram& datagram = datagrams_[next_];
    const uint32_t length = std::min(datagram.segment, datagram.length - datagram.offset);
    frames[count++] = {&datagram.from, buffer(next_) + datagram.offset, length};
    bytes += length;
    datagram.offset += length;
    if (datagram.offset >= datagram.length) ++next_;
  }
  if (count == 0) return 0;
  AtomicLinkCounters::add_alone(counters_.frames_received, count);
  AtomicLinkCounters::add_alone(counters_.bytes_received, bytes);
  return count;
}

// Requests several datagrams only while several wait at once: that costs more than a request for
// one.
void UdpReceiver::read() noexcept {
  received_ = next_ = 0;
  const bool asks_for_one = ask_for_ == 1 && !joining_;
  const int count = calls_.receives_several && (!asks_for_one || !calls_.receives_one)
                        ? read_several()
                        : read_one();
  if (count <= 0) {
    if (errno != EAGAIN && errno != EINTR) socket_.note_error();
    ask_for_ = 1;
    full_in_a_row_ = 0;
    return;
  }
  received_ = static_cast<unsigned>(count);
  full_in_a_row_ = received_ == ask_for_ ? full_in_a_row_ + 1 : 0;
  if (full_in_a_row_ > 1) ask_for_ = std::min(2 * ask_for_, largest_read);
  if (full_in_a_row_ == 0) ask_for_ = received_;
  adapt_joining();
  while (next_ < received_ && datagrams_[next_].length == 0) ++next_;
}

// The cheapest call for one datagram, which does not report that datagrams were joined. Not a
// cancellation point: see UdpSender::send_one().
int UdpReceiver::read_one() noexcept {
  Datagram& datagram = datagrams_[0];
  socklen_t address_bytes = sizeof datagram.from.bytes;
  const long bytes = syscall(SYS_recvfrom, socket_.descriptor(), buffer(0), buffer_bytes_,
                             MSG_DONTWAIT | MSG_TRUNC, datagram.from.bytes.data(), &address_bytes);
  if (bytes < 0) return -1;
  note(datagram, static_cast<uint32_t>(bytes), 0, static_cast<size_t>(bytes) > buffer_bytes_);
  return 1;
}

int UdpReceiver::read_several() noexcept {
  mmsghdr messages[largest_read];
  iovec vectors[largest_read];
  alignas(cmsghdr) char controls[largest_read][CMSG_SPACE(sizeof(int))];
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
  const auto count = static_cast<int>(
      syscall(SYS_recvmmsg, socket_.descriptor(), messages, ask_for_, MSG_DONTWAIT, nullptr));
  for (int i = 0; i < count; ++i) {
    msghdr& header = messages[i].msg_hdr;
    int segment = 0;
    for (cmsghdr* control = CMSG_FIRSTHDR(&header); control != nullptr;
         control = CMSG_NXTHDR(&header, control))
      if (control->cmsg_level == SOL_UDP && control->cmsg_type == UDP_GRO)
        std::memcpy(&segment, CMSG_DATA(control), sizeof segment);
    note(datagrams_[i], messages[i].msg_len, segment, (header.msg_flags & MSG_TRUNC) != 0);
  }
  return count;
}

void UdpReceiver::note(Datagram& datagram, uint32_t length, int segment, bool truncated) noexcept {
  datagram.length = length;
  datagram.segment = segment > 0 ? static_cast<uint32_t>(segment) : length;
  datagram.offset = 0;
  if (!truncated && length != 0) return;
  counters_.frames_malformed.fetch_add(1, std::memory_order_relaxed);
  datagram.length = 0;
}

// The kernel joins datagrams while long ones arrive, or many at once, and not while they are few
// and short: the control message makes every call more expensive. Datagrams that are joined when
// this ends arrive as one malformed frame, and are sent again like lost ones.
void UdpReceiver::adapt_joining() noexcept {
  if (!can_join_) return;
  const bool few_and_short =
      received_ <= few_datagrams &&
      std::all_of(datagrams_.begin(), datagrams_.begin() + received_,
                  [](const Datagram& datagram) { return datagram.length <= short_bytes; });
  short_in_a_row_ = few_and_short ? short_in_a_row_ + 1 : 0;
  if (joining_ ? short_in_a_row_ < short_until_apart : few_and_short) return;
  if (socket_.set_option(SOL_UDP, UDP_GRO, joining_ ? 0 : 1)) joining_ = !joining_;
  short_in_a_row_ = 0;
}

}  // namespace lintel
