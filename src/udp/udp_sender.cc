// Sending bursts of frames. Message path.
#include "udp/udp_sender.h"

#include <netinet/udp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "util/assert.h"
#include "util/guarded_memory.h"
#include "util/loan.h"

namespace lintel {

namespace {

constexpr unsigned largest_batch = 16;  // datagrams (segmented or not) of one call
constexpr unsigned batch_pieces = PacketLink::largest_burst * 2;
constexpr unsigned most_senders = 64;        // threads in send() at the same time; others wait
constexpr uint32_t segmented_bytes = 65000;  // maximum length of a datagram that the kernel cuts
constexpr unsigned most_segments = 64;
constexpr unsigned most_repetitions = 64;  // maximum number of repetitions of a call
constexpr unsigned refusals_per_loss = 8;
// The kernel takes about 100 ns for each piece of a datagram. Frames up to this length are joined
// by a copy, which takes less.
constexpr uint32_t joined_frame_bytes = 4096;

constexpr size_t controls_bytes = CMSG_SPACE(sizeof(uint16_t)) + CMSG_SPACE(sizeof(in6_pktinfo));

// Adds a control message to a header whose buffer is zero and has room for it.
template <typename Value>
void add_control(msghdr& header, char* buffer, int level, int type, const Value& value) noexcept {
  header.msg_control = buffer;
  auto* const control = reinterpret_cast<cmsghdr*>(buffer + header.msg_controllen);
  control->cmsg_level = level;
  control->cmsg_type = type;
  control->cmsg_len = CMSG_LEN(sizeof value);
  std::memcpy(CMSG_DATA(control), &value, sizeof value);
  header.msg_controllen += CMSG_SPACE(sizeof value);
}

// Has the datagram sent from that address, and by that interface.
void add_source(msghdr& header, char* buffer, const UdpRail& source, bool ipv6) noexcept {
  if (ipv6) {
    in6_pktinfo info{};
    info.ipi6_ifindex = static_cast<unsigned>(source.index);
    std::memcpy(&info.ipi6_addr, source.address.data(), source.address.size());
    add_control(header, buffer, IPPROTO_IPV6, IPV6_PKTINFO, info);
  } else {
    in_pktinfo info{};
    info.ipi_ifindex = source.index;
    std::memcpy(&info.ipi_spec_dst, &source.address[12], sizeof info.ipi_spec_dst);
    add_control(header, buffer, IPPROTO_IP, IP_PKTINFO, info);
  }
}

// The pieces of several frames in order.
struct Join {
  const OutboundFrame* frames;
  unsigned count;
  std::byte* to;

  void copy() const noexcept {
    std::byte* next = to;
    for (unsigned i = 0; i < count; ++i)
      for (unsigned piece = 0; piece < frames[i].count; ++piece) {
        std::memcpy(next, frames[i].pieces[piece].base, frames[i].pieces[piece].length);
        next += frames[i].pieces[piece].length;
      }
  }
};

// False: a piece is not readable memory.
bool join(Join join) noexcept {
  return guarded_call([](void* argument) { static_cast<const Join*>(argument)->copy(); }, &join);
}

}  // namespace

// The datagrams of one system call.
struct UdpSender::Batch {
  std::atomic<uint32_t> next_free{0};
  mmsghdr messages[largest_batch];
  unsigned frames[largest_batch];  // number of frames in each message
  uint64_t bytes[largest_batch];
  uint8_t rails[largest_batch];  // further rails; 0: the first one
  iovec pieces[batch_pieces];
  alignas(cmsghdr) char controls[largest_batch][controls_bytes];
  unsigned count = 0;
  uint32_t joined_bytes = 0;                      // bytes of `joined` in use
  alignas(64) std::byte joined[segmented_bytes];  // datagrams whose pieces were joined

  // Does not clear the bytes: those that are not used take no memory.
  Batch() noexcept {}
};

UdpSender::UdpSender(UdpSocket& socket, AtomicLinkCounters& counters) noexcept
    : socket_(socket), counters_(counters) {}

UdpSender::~UdpSender() = default;

// The option with 0 changes nothing, and fails where the kernel does not have it.
bool UdpSender::open(const UdpCalls& calls) noexcept {
  batches_.reset(new (std::nothrow) Arena<Batch>);
  if (batches_ == nullptr || !batches_->open(most_senders)) return false;
  sends_several_ = calls.sends_several;
  segments_.store(socket_.set_option(SOL_UDP, UDP_SEGMENT, 0), std::memory_order_relaxed);
  return true;
}

// Returns how many of the frames, from the first one on, can be sent as one datagram that the
// kernel cuts.
unsigned UdpSender::group(const OutboundFrame* frames, unsigned count,
                          unsigned most_pieces) const noexcept {
  const auto segment = static_cast<uint32_t>(frame_bytes(frames[0]));
  if (count == 1 || 2 * segment > segmented_bytes || !segments()) return 1;
  uint64_t bytes = segment;
  unsigned pieces = frames[0].count;
  unsigned grouped = 1;
  while (grouped < std::min(count, most_segments)) {
    const OutboundFrame& frame = frames[grouped];
    const uint64_t length = frame_bytes(frame);
    bytes += length;
    pieces += frame.count;
    if (length > segment || bytes > segmented_bytes || pieces > most_pieces ||
        !(*frame.to == *frames[0].to))
      break;
    ++grouped;
    if (length < segment) break;  // a shorter one ends the datagram
  }
  return grouped;
}

void UdpSender::fill(Batch& batch, const OutboundFrame* frames, unsigned count) const noexcept {
  unsigned used = 0;
  while (count != 0 && batch.count < largest_batch && used + frames[0].count <= batch_pieces) {
    const unsigned grouped = group(frames, count, batch_pieces - used);
    msghdr& header = batch.messages[batch.count].msg_hdr;
    header = {};
    header.msg_name = const_cast<std::byte*>(frames[0].to->bytes.data());
    header.msg_namelen = socket_.address_bytes();
    header.msg_iov = batch.pieces + used;
    uint64_t bytes = 0;
    for (unsigned i = 0; i < grouped; ++i) bytes += frame_bytes(frames[i]);
    const bool joins = grouped > 1 && frame_bytes(frames[0]) <= joined_frame_bytes;
    // The next call sends what has no room in this one.
    if (joins && bytes > sizeof batch.joined - batch.joined_bytes) return;
    std::byte* const joined = batch.joined + batch.joined_bytes;
    if (joins && join({frames, grouped, joined})) {
      batch.joined_bytes += static_cast<uint32_t>(bytes);
      batch.pieces[used++] = {joined, bytes};
    } else {
      for (unsigned i = 0; i < grouped; ++i)
        for (unsigned piece = 0; piece < frames[i].count; ++piece)
          batch.pieces[used++] = {frames[i].pieces[piece].base, frames[i].pieces[piece].length};
    }
    header.msg_iovlen = static_cast<size_t>(batch.pieces + used - header.msg_iov);
    // All of it: the kernel reads what lies behind a number, too.
    char* const controls = batch.controls[batch.count];
    const bool names_source = socket_.names_source(*frames[0].to);
    if (grouped > 1 || names_source) std::memset(controls, 0, controls_bytes);
    if (grouped > 1)
      add_control(header, controls, SOL_UDP, UDP_SEGMENT,
                  static_cast<uint16_t>(frame_bytes(frames[0])));
    if (names_source)
      add_source(header, controls, socket_.source_of(*frames[0].to), socket_.host().ipv6);
    const uint8_t rail = frames[0].to->rail();
    batch.rails[batch.count] = rail < most_rails ? rail : 0;
    batch.frames[batch.count] = grouped;
    batch.bytes[batch.count++] = bytes;
    frames += grouped;
    count -= grouped;
  }
}

unsigned UdpSender::send(const OutboundFrame* frames, unsigned count) noexcept {
  if (count == 1 && frames[0].count == 1 && send_one(frames[0])) return 1;
  unsigned taken = 0;
  while (taken < count) {
    const Loan<Batch> loan(*batches_);
    Batch& batch = loan.get();
    batch.count = 0;
    batch.joined_bytes = 0;
    fill(batch, frames + taken, count - taken);
    LINTEL_ASSERT(batch.count != 0 && batch.joined_bytes <= sizeof batch.joined);
    const unsigned sent = transmit(batch);
    for (unsigned i = 0; i < sent; ++i) taken += batch.frames[i];
    // The buffer is full, unless segments were just found refused: then the frames go one by one.
    if (sent < batch.count && (segments() || batch.frames[sent] == 1)) break;
  }
  if (taken < count) counters_.send_full.fetch_add(count - taken, std::memory_order_relaxed);
  return taken;
}

// The frequent case with the cheapest call. The C library's functions are cancellation points,
// which cost time in programs with threads, and which calls of Portals are not; hence the bare
// system call. False: it failed, and the general case finds out why; or its source is to be named.
bool UdpSender::send_one(const OutboundFrame& frame) noexcept {
  const Piece& piece = frame.pieces[0];
  if (socket_.names_source(*frame.to)) return false;
  if (syscall(SYS_sendto, socket_.descriptor(), piece.base, piece.length, MSG_DONTWAIT,
              frame.to->bytes.data(), socket_.address_bytes()) < 0)
    return false;
  counters_.frames_sent.fetch_add(1, std::memory_order_relaxed);
  counters_.bytes_sent.fetch_add(piece.length, std::memory_order_relaxed);
  return true;
}

// Returns how many datagrams were sent or can never be. The next one found the socket's buffer
// full, or a kernel that takes nothing, or is to be sent again without segments.
unsigned UdpSender::transmit(Batch& batch) noexcept {
  unsigned done = 0;
  unsigned reported = largest_batch;
  for (unsigned repetitions = 0; done < batch.count && repetitions < most_repetitions;) {
    const unsigned left = batch.count - done;
    mmsghdr* const next = batch.messages + done;
    // These calls are no cancellation points: see send_one().
    const bool one = left == 1 || !sends_several_;
    const long result =
        one ? syscall(SYS_sendmsg, socket_.descriptor(), &next->msg_hdr, MSG_DONTWAIT)
            : syscall(SYS_sendmmsg, socket_.descriptor(), next, left, MSG_DONTWAIT);
    if (result > 0 || (result == 0 && one)) {
      const unsigned end = one ? done + 1 : done + static_cast<unsigned>(result);
      uint64_t frames = 0;
      uint64_t bytes = 0;
      for (; done < end; ++done) {
        frames += batch.frames[done];
        bytes += batch.bytes[done];
        if (const uint8_t rail = batch.rails[done]; rail != 0)
          counters_.rail_bytes[rail - 1u].fetch_add(batch.bytes[done], std::memory_order_relaxed);
      }
      counters_.frames_sent.fetch_add(frames, std::memory_order_relaxed);
      counters_.bytes_sent.fetch_add(bytes, std::memory_order_relaxed);
      continue;
    }
    ++repetitions;
    switch (result == 0 ? EAGAIN : errno) {
      case ENOBUFS:
        // The interface dropped it: its queue is full, or, as veth does, the other end takes no
        // frames of this length. So that these count as lost at last, some are not tried again.
        if (++refusals_ % refusals_per_loss != 0) return done;
        counters_.send_errors.fetch_add(batch.frames[done], std::memory_order_relaxed);
        ++done;
        continue;
      case EAGAIN:
        return done;
      case EINTR:
        continue;
      case ECONNREFUSED:  // the error of an earlier frame, to an address without a socket
        socket_.note_error();
        continue;
      case EMSGSIZE:
        // A router's report about an earlier frame comes once. If there is another one, the
        // interface has become narrower.
        if (reported != done) {
          reported = done;
          socket_.note_error();
          continue;
        }
        if (socket_.permit_fragments()) continue;
        [[fallthrough]];
      case EINVAL:
      case EIO:
        if (batch.frames[done] > 1) {
          // The device does not cut up, or not frames of this size.
          segments_.store(false, std::memory_order_relaxed);
          return done;
        }
        [[fallthrough]];
      default:
        counters_.send_errors.fetch_add(batch.frames[done], std::memory_order_relaxed);
        ++done;
    }
  }
  return done;
}

}  // namespace lintel
