// What the kernel reads beside datagrams is defined.
#include <dlfcn.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "udp_test_support.h"

namespace {

thread_local void (*on_sendmsg)(const msghdr& message) = nullptr;

long forward(long number, const long (&a)[6]) noexcept {
  using Call = long (*)(long, ...);
  static const auto next = reinterpret_cast<Call>(dlsym(RTLD_NEXT, "syscall"));
  return next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

}  // namespace

// This replaces the function of the C library. No system call has more than six arguments.
extern "C" [[gnu::visibility("default")]] long syscall(long number, ...) noexcept {
  va_list list;
  va_start(list, number);
  long arguments[6];
  for (long& argument : arguments) argument = va_arg(list, long);
  va_end(list);
  if (number == SYS_sendmsg && on_sendmsg != nullptr)
    on_sendmsg(*reinterpret_cast<const msghdr*>(arguments[1]));
  return forward(number, arguments);
}

namespace lintel {
namespace {

unsigned controls = 0;
unsigned undefined_bytes = 0;

// The stack contains nothing but this where nobody has written since.
constexpr auto paint = std::byte{0xa5};

[[gnu::noinline]] void paint_stack() {
  std::byte space[64 * 1024];
  std::fill(std::begin(space), std::end(space), paint);
  asm volatile("" : : "r"(space) : "memory");
}

void check_control(const msghdr& message) {
  if (message.msg_control == nullptr) return;
  ++controls;
  cmsghdr header;
  std::memcpy(&header, message.msg_control, sizeof header);
  const auto* const bytes = static_cast<const std::byte*>(message.msg_control);
  for (size_t i = header.cmsg_len; i < message.msg_controllen; ++i)
    undefined_bytes += bytes[i] == paint ? 1 : 0;
}

TEST(UdpControlTest, ControlMessagesAreDefinedToTheirEnd) {
  const auto first = test::open_link();
  const auto second = test::open_link();
  const Route route = test::route_between(*first, *second);
  std::vector<std::byte> bytes = test::pattern(1, 1000);
  const Piece piece{bytes.data(), bytes.size()};
  const std::vector<OutboundFrame> frames(12, {&route.address, &piece, 1});
  on_sendmsg = check_control;
  paint_stack();
  EXPECT_EQ(first->send(frames.data(), 12), 12u);
  on_sendmsg = nullptr;
  if (controls == 0) GTEST_SKIP() << "this kernel does not cut up datagrams (UDP_SEGMENT)";
  EXPECT_EQ(undefined_bytes, 0u);
}

}  // namespace
}  // namespace lintel
