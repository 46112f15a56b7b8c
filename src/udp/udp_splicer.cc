// Datagrams that refer to the application's memory. Message path, but for open().
#include "udp/udp_splicer.h"

#include <fcntl.h>
#include <netinet/udp.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdio>
#include <mutex>

namespace lintel {

namespace {

constexpr uint64_t page_bytes = 4096;
// Of a datagram in the kernel (MAX_SKB_FRAGS). The pieces that are copied take one each.
constexpr uint64_t most_fragments = 17;
// Longer than any datagram, so that none is cut up. Where segments are permitted the kernel does
// not compute a checksum of what is collected in steps.
constexpr int segment_bytes = 65000;

// From Linux 6.5 on, all pages of a splice() become one datagram.
bool kernel_collects() noexcept {
  utsname name;
  int major = 0;
  int minor = 0;
  return uname(&name) == 0 && std::sscanf(name.release, "%d.%d", &major, &minor) == 2 &&
         (major > 6 || (major == 6 && minor >= 5));
}

uint64_t pages_of(const Piece& piece) noexcept {
  const uint64_t start = reinterpret_cast<uintptr_t>(piece.base) % page_bytes;
  return (start + piece.length + page_bytes - 1) / page_bytes;
}

}  // namespace

void UdpSplicer::open() noexcept {
  works_.store(kernel_collects() && open_pipe() && open_socket(), std::memory_order_relaxed);
}

bool UdpSplicer::open_pipe() noexcept {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return false;
  pipe_out_ = Descriptor(ends[0]);
  pipe_in_ = Descriptor(ends[1]);
  return true;
}

bool UdpSplicer::open_socket() noexcept {
  collector_ = socket_.open_sender();
  return collector_.is_open() && setsockopt(collector_.get(), SOL_UDP, UDP_SEGMENT, &segment_bytes,
                                            sizeof segment_bytes) == 0;
}

bool UdpSplicer::splice(const OutboundFrame& frame) noexcept {
  if (pages_of(frame.pieces[1]) + frame.count - 1 > most_fragments ||
      !socket_.is_on_this_node(*frame.to) || !lock_.try_lock())
    return false;
  const std::lock_guard guard(lock_, std::adopt_lock);
  return works() && splice_locked(frame);
}

// The first piece begins the datagram and names its destination, the last one completes it. Not
// cancellation points: see UdpSender::send_one().
bool UdpSplicer::splice_locked(const OutboundFrame& frame) noexcept {
  const Piece& first = frame.pieces[0];
  const Piece& payload = frame.pieces[1];
  iovec pages{payload.base, payload.length};
  const auto bytes = static_cast<long>(payload.length);
  if (syscall(SYS_vmsplice, pipe_in_.get(), &pages, 1, SPLICE_F_NONBLOCK) != bytes) {
    empty_pipe();  // memory that is not there, or that cannot be referred to
    return false;
  }
  if (syscall(SYS_sendto, collector_.get(), first.base, first.length, MSG_DONTWAIT | MSG_MORE,
              frame.to->bytes.data(), socket_.address_bytes()) < 0) {
    empty_pipe();
    return false;
  }
  // A failure ends the datagram.
  const bool more = frame.count > 2;
  bool sent = syscall(SYS_splice, pipe_out_.get(), nullptr, collector_.get(), nullptr,
                      payload.length, SPLICE_F_NONBLOCK | (more ? SPLICE_F_MORE : 0u)) == bytes;
  for (unsigned i = 2; sent && i < frame.count; ++i)
    sent = syscall(SYS_sendto, collector_.get(), frame.pieces[i].base, frame.pieces[i].length,
                   MSG_DONTWAIT | (i + 1 < frame.count ? MSG_MORE : 0), nullptr, 0) >= 0;
  if (!sent) give_up();
  return sent;
}

void UdpSplicer::empty_pipe() noexcept {
  std::byte scratch[page_bytes];
  while (syscall(SYS_read, pipe_out_.get(), scratch, sizeof scratch) > 0) {
  }
}

void UdpSplicer::give_up() noexcept {
  works_.store(false, std::memory_order_relaxed);
  collector_.close();
  pipe_out_.close();
  pipe_in_.close();
}

}  // namespace lintel
