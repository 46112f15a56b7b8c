// Datagrams that refer to the application's memory. Message path, but for open() and describe().
#include "udp/udp_splicer.h"

#include <fcntl.h>
#include <netinet/udp.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <utility>

#include "util/log.h"
#include "util/new_descriptor.h"

namespace lintel {

namespace {

constexpr uint64_t page_bytes = 4096;
// Of a datagram in the kernel (MAX_SKB_FRAGS). What is copied in one call takes one; sometimes two,
// where it does not fit into the page that the kernel filled before. The kernel refuses such a
// datagram if it has one fragment too many.
constexpr uint64_t most_fragments = 17;
// That the kernel, and a pipe, takes in one go.
constexpr uint64_t most_spliced_pages = 16;
// Longer than any datagram, so that none is cut up. Where segments are permitted the kernel does
// not compute a checksum of what is collected in steps.
constexpr int segment_bytes = 65000;

uint64_t offset_in_page(const std::byte* address) noexcept {
  return reinterpret_cast<uintptr_t>(address) % page_bytes;
}

uint64_t pages_of(const Piece& piece) noexcept {
  return (offset_in_page(piece.base) + piece.length + page_bytes - 1) / page_bytes;
}

}  // namespace

// A payload: what is copied with the piece before it, what is referred to, and what is copied with
// the pieces behind it.
struct UdpSplicer::Parts {
  Piece head, pages, tail;

  // Parts of pages are copied where that is needed to have few fragments.
  explicit Parts(const OutboundFrame& frame) noexcept
      : head{frame.pieces[1].base, 0}, pages(frame.pieces[1]), tail{nullptr, 0} {
    if (fit(frame)) return;
    head.length = (page_bytes - offset_in_page(pages.base)) % page_bytes;
    tail.length = offset_in_page(pages.base + pages.length);
    pages.base += head.length;
    pages.length -= head.length + tail.length;
    tail.base = pages.base + pages.length;
  }
  [[nodiscard]] bool fit(const OutboundFrame& frame) const noexcept {
    const uint64_t copied_behind = tail.length != 0 || frame.count > 2 ? 1 : 0;
    return pages_of(pages) <= most_spliced_pages &&
           1 + pages_of(pages) + copied_behind <= most_fragments;
  }
};

// From Linux 6.5 on, all pages of a splice() become one datagram.
const char* UdpSplicer::why_not() noexcept {
  utsname name;
  int major = 0;
  int minor = 0;
  const bool is_known =
      uname(&name) == 0 && std::sscanf(name.release, "%d.%d", &major, &minor) == 2;
  return is_known && (major > 6 || (major == 6 && minor >= 5)) ? nullptr
                                                               : "Linux is older than 6.5";
}

void UdpSplicer::open() noexcept {
  const char* obstacle = why_not();
  if (obstacle == nullptr) obstacle = open_pipe();
  if (obstacle == nullptr && !open_socket()) obstacle = "no second socket for the port";
  obstacle_.store(obstacle, std::memory_order_release);
}

const char* UdpSplicer::open_pipe() noexcept {
  Pipe pipe = make_pipe(O_NONBLOCK);
  if (!pipe.out.is_open()) return "no pipe";
  pipe_out_ = std::move(pipe.out);
  pipe_in_ = std::move(pipe.in);
  return fcntl(pipe_out_.get(), F_GETPIPE_SZ) >= static_cast<int>(most_spliced_pages * page_bytes)
             ? nullptr
             : "pipes are short, because this user has many: raise fs.pipe-user-pages-soft";
}

bool UdpSplicer::open_socket() noexcept {
  collector_ = socket_.open_sender();
  return collector_.is_open() && setsockopt(collector_.get(), SOL_UDP, UDP_SEGMENT, &segment_bytes,
                                            sizeof segment_bytes) == 0;
}

std::string UdpSplicer::describe() const {
  const char* const obstacle = obstacle_.load(std::memory_order_acquire);
  if (obstacle == nullptr) return "no copies of long payloads to processes of this node";
  const int error = error_.load(std::memory_order_relaxed);
  return std::string("long payloads to processes of this node are copied (") + obstacle +
         (error != 0 ? std::string(": ") + strerror(error) : "") + ")";
}

bool UdpSplicer::splice(const OutboundFrame& frame) noexcept {
  const Parts parts(frame);
  if (!parts.fit(frame) || !socket_.is_on_this_node(*frame.to) || !lock_.try_lock()) return false;
  const std::lock_guard guard(lock_, std::adopt_lock);
  return works() && splice_locked(frame, parts);
}

// Not cancellation points: see UdpSender::send_one().
bool UdpSplicer::send_pieces(const iovec* pieces, unsigned count, int flags,
                             const LinkAddress* to) const noexcept {
  auto* const name = to == nullptr ? nullptr : const_cast<std::byte*>(to->bytes.data());
  const socklen_t name_bytes = to == nullptr ? 0 : socket_.address_bytes();
  if (count == 1)
    return syscall(SYS_sendto, collector_.get(), pieces[0].iov_base, pieces[0].iov_len,
                   MSG_DONTWAIT | flags, name, name_bytes) >= 0;
  msghdr header{};
  header.msg_name = name;
  header.msg_namelen = name_bytes;
  header.msg_iov = const_cast<iovec*>(pieces);
  header.msg_iovlen = count;
  return syscall(SYS_sendmsg, collector_.get(), &header, MSG_DONTWAIT | flags) >= 0;
}

bool UdpSplicer::fill_pipe(const Piece& piece) noexcept {
  iovec pages{piece.base, piece.length};
  if (syscall(SYS_vmsplice, pipe_in_.get(), &pages, 1, SPLICE_F_NONBLOCK) ==
      static_cast<long>(piece.length))
    return true;
  empty_pipe();  // memory that is not there, or that cannot be referred to
  return false;
}

// What fill_pipe() took. `more`: it does not complete the datagram.
bool UdpSplicer::move(const Piece& piece, int to, bool more) noexcept {
  const unsigned flags = SPLICE_F_NONBLOCK | (more ? SPLICE_F_MORE : 0u);
  const long moved =
      syscall(SYS_splice, pipe_out_.get(), nullptr, to, nullptr, piece.length, flags);
  if (moved == static_cast<long>(piece.length)) return true;
  if (moved >= 0)
    give_up("splice", 0);
  else
    note_refusal("splice", errno);
  return false;
}

// The kernel makes one datagram of it, which no other thread's can come between.
bool UdpSplicer::splice_whole(const OutboundFrame& frame) noexcept {
  const Piece& piece = frame.pieces[0];
  const int connected = peers_.find(*frame.to);
  if (connected < 0 || pages_of(piece) > most_spliced_pages || !lock_.try_lock()) return false;
  const std::lock_guard guard(lock_, std::adopt_lock);
  if (!works() || !fill_pipe(piece) || !move(piece, connected, false)) return false;
  refusals_in_a_row_ = 0;
  return true;
}

// The first piece begins the datagram and names its destination, the last one completes it. A call
// that fails ends the datagram.
bool UdpSplicer::splice_locked(const OutboundFrame& frame, const Parts& parts) noexcept {
  const iovec before[] = {{frame.pieces[0].base, frame.pieces[0].length},
                          {parts.head.base, parts.head.length}};
  iovec behind[PacketLink::most_pieces];
  unsigned count = 0;
  if (parts.tail.length != 0) behind[count++] = {parts.tail.base, parts.tail.length};
  for (unsigned i = 2; i < frame.count; ++i)
    behind[count++] = {frame.pieces[i].base, frame.pieces[i].length};
  if (!fill_pipe(parts.pages)) return false;
  if (!send_pieces(before, parts.head.length != 0 ? 2 : 1, MSG_MORE, frame.to)) {
    empty_pipe();  // a full socket, or a head that is not there
    return false;
  }
  if (!move(parts.pages, collector_.get(), count != 0)) return false;
  if (count != 0 && !send_pieces(behind, count, 0, nullptr)) {
    note_refusal("send", errno);
    return false;
  }
  refusals_in_a_row_ = 0;
  return true;
}

void UdpSplicer::empty_pipe() noexcept {
  std::byte scratch[512];
  // It holds the pages of one frame at most, each of which may be read in two parts.
  constexpr size_t most_reads = 2 * most_spliced_pages * page_bytes / sizeof scratch;
  for (size_t i = 0; i < most_reads; ++i)
    if (syscall(SYS_read, pipe_out_.get(), scratch, sizeof scratch) <= 0) return;
}

// A full socket, and the report about an earlier frame to a port without a socket, say nothing
// about this one.
void UdpSplicer::note_refusal(const char* call, int error) noexcept {
  if (error == EAGAIN || error == ECONNREFUSED) return empty_pipe();
  if (++refusals_in_a_row_ == most_refusals) return give_up(call, error);
  empty_pipe();
}

void UdpSplicer::give_up(const char* call, int error) noexcept {
  error_.store(error, std::memory_order_relaxed);
  obstacle_.store(call, std::memory_order_release);
  collector_.close();
  pipe_out_.close();
  pipe_in_.close();
  log_message(LogLevel::warn,
              "udp: the kernel does not send by reference (%s: %s); long payloads to processes of "
              "this node are copied from now on",
              call, error != 0 ? strerror(error) : "only a part was sent");
}

}  // namespace lintel
