// Sending bursts of frames with as few system calls as possible. Message path.
#include <netinet/udp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "udp/udp_link.h"

namespace lintel {

// What one entry of sendmmsg() is made of.
struct UdpLink::Datagram {
  mmsghdr message{};
  const OutboundFrame* first = nullptr;
  unsigned frames = 0;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(uint16_t))];
};

namespace {

uint32_t length_of(const OutboundFrame& frame) noexcept {
  uint64_t length = 0;
  for (unsigned i = 0; i < frame.count; ++i) length += frame.pieces[i].length;
  return static_cast<uint32_t>(length);
}

}  // namespace

// How many of the frames, from the first one on, can go as one datagram that the kernel cuts up.
unsigned UdpLink::group(const OutboundFrame* frames, unsigned count) const noexcept {
  const uint32_t segment = length_of(frames[0]);
  if (count == 1 || 2 * segment > segmented_bytes || !segments_.load(std::memory_order_relaxed))
    return 1;
  uint32_t bytes = segment;
  unsigned grouped = 1;
  while (grouped < std::min(count, most_segments)) {
    const OutboundFrame& frame = frames[grouped];
    const uint32_t length = length_of(frame);
    if (length > segment || bytes + length > segmented_bytes || !(*frame.to == *frames[0].to))
      break;
    bytes += length;
    ++grouped;
    if (length < segment) break;  // a shorter one ends the datagram
  }
  return grouped;
}

unsigned UdpLink::send(const OutboundFrame* frames, unsigned count) noexcept {
  if (count == 1 && frames[0].count == 1 && send_one(frames[0])) return 1;
  unsigned taken = 0;
  while (taken < count) {
    Datagram datagrams[largest_send];
    iovec vectors[largest_burst * 2];
    constexpr unsigned most_vectors = largest_burst * 2;
    unsigned used = 0;
    unsigned planned = 0;
    unsigned next = taken;
    while (next < count && planned < largest_send) {
      unsigned grouped = group(frames + next, count - next);
      unsigned needed = 0;
      for (unsigned i = 0; i < grouped; ++i) needed += frames[next + i].count;
      if (used + needed > most_vectors) {
        if (planned != 0) break;
        grouped = 1;
        needed = frames[next].count;
      }
      Datagram& datagram = datagrams[planned++];
      datagram.first = frames + next;
      datagram.frames = grouped;
      msghdr& header = datagram.message.msg_hdr;
      header.msg_name = const_cast<std::byte*>(frames[next].to->bytes.data());
      header.msg_namelen = udp_address_bytes(host_);
      header.msg_iov = vectors + used;
      header.msg_iovlen = needed;
      for (unsigned i = 0; i < grouped; ++i)
        for (unsigned p = 0; p < frames[next + i].count; ++p)
          vectors[used++] = {frames[next + i].pieces[p].base, frames[next + i].pieces[p].length};
      if (grouped > 1) {
        header.msg_control = datagram.control;
        header.msg_controllen = sizeof datagram.control;
        cmsghdr* const control = CMSG_FIRSTHDR(&header);
        control->cmsg_level = SOL_UDP;
        control->cmsg_type = UDP_SEGMENT;
        control->cmsg_len = CMSG_LEN(sizeof(uint16_t));
        const auto segment = static_cast<uint16_t>(length_of(frames[next]));
        std::memcpy(CMSG_DATA(control), &segment, sizeof segment);
      }
      next += grouped;
    }
    const unsigned sent = send_datagrams(datagrams, planned);
    for (unsigned i = 0; i < sent; ++i) taken += datagrams[i].frames;
    if (sent < planned && segments_.load(std::memory_order_relaxed)) break;
    if (sent < planned && datagrams[sent].frames == 1) break;
  }
  if (taken < count) counters_.send_full.fetch_add(count - taken, std::memory_order_relaxed);
  return taken;
}

// The frequent case with the cheapest call. The C library's functions are points of cancellation, which
// costs in programs with threads, and which calls of Portals are not; hence the bare system call. False:
// it did not work, and the long way finds out why.
bool UdpLink::send_one(const OutboundFrame& frame) noexcept {
  const Piece& piece = frame.pieces[0];
  if (syscall(SYS_sendto, socket_, piece.base, piece.length, MSG_DONTWAIT, frame.to->bytes.data(),
              udp_address_bytes(host_)) < 0)
    return false;
  counters_.frames_sent.fetch_add(1, std::memory_order_relaxed);
  counters_.bytes_sent.fetch_add(piece.length, std::memory_order_relaxed);
  return true;
}

// Returns how many were sent or can never be; the others found the socket's buffer full, or are to be
// tried again in pieces.
unsigned UdpLink::send_datagrams(Datagram* datagrams, unsigned count) noexcept {
  unsigned done = 0;
  mmsghdr messages[largest_send];
  for (unsigned i = 0; i < count; ++i) messages[i] = datagrams[i].message;
  while (done < count) {
    int sent = 0;
    if (count - done == 1) {
      // Cheaper than a burst of one.
      sent = sendmsg(socket_, &messages[done].msg_hdr, MSG_DONTWAIT) >= 0 ? 1 : -1;
    } else {
      sent = sendmmsg(socket_, messages + done, count - done, MSG_DONTWAIT);
    }
    if (sent > 0) {
      uint64_t frames = 0;
      uint64_t bytes = 0;
      for (int i = 0; i < sent; ++i) {
        const Datagram& datagram = datagrams[done + static_cast<unsigned>(i)];
        frames += datagram.frames;
        for (unsigned f = 0; f < datagram.frames; ++f) bytes += length_of(datagram.first[f]);
      }
      counters_.frames_sent.fetch_add(frames, std::memory_order_relaxed);
      counters_.bytes_sent.fetch_add(bytes, std::memory_order_relaxed);
      done += static_cast<unsigned>(sent);
      continue;
    }
    switch (errno) {
      case EAGAIN:
      case ENOBUFS:
        return done;
      case EINTR:
        continue;
      case ECONNREFUSED:  // about an earlier frame, to somebody who is not there
        errors_pending_.store(true, std::memory_order_relaxed);
        continue;
      case EMSGSIZE:  // the route has become narrower
        if (!fragments_.load(std::memory_order_relaxed)) {
          permit_fragments(true);
          continue;
        }
        [[fallthrough]];
      case EINVAL:
      case EIO:
        if (datagrams[done].frames > 1) {
          // The device does not cut up, or not frames of this size.
          segments_.store(false, std::memory_order_relaxed);
          return done;
        }
        [[fallthrough]];
      default:
        counters_.send_errors.fetch_add(datagrams[done].frames, std::memory_order_relaxed);
        ++done;
    }
  }
  return done;
}

}  // namespace lintel
