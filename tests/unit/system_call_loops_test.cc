// Loops around system calls end, whatever the kernel, an emulator of one or a filter answers. Each
// test is a process, which is killed if it does not end.
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "registration_test_support.h"
#include "reliable/connection_table.h"
#include "support/system_calls.h"
#include "udp_test_support.h"
#include "util/descriptor_watch.h"
#include "util/new_descriptor.h"
#include "util/random.h"
#include "util/uninterrupted.h"

namespace lintel::test {
namespace {

constexpr int no_filters = 77;

// Runs `body` in a child, which must return true within the time.
template <typename Body>
int ended(const Body& body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(5);
    _exit(body());
  }
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

// Of this process, within 200 ms in which it should sleep.
int64_t processor_time_us() {
  const auto so_far_us = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * int64_t{1'000'000} +
           usage.ru_utime.tv_usec + usage.ru_stime.tv_usec;
  };
  usleep(50'000);
  const int64_t before_us = so_far_us();
  usleep(200'000);
  return so_far_us() - before_us;
}

#define EXPECT_ENDS(...)                                                          \
  do {                                                                            \
    const int code = ended(__VA_ARGS__);                                          \
    if (code == no_filters) GTEST_SKIP() << "the kernel has no filters of calls"; \
    EXPECT_EQ(code, 0);                                                           \
  } while (false)

TEST(SystemCallLoopsTest, AnErrorQueueThatNeverEmpties) {
  const auto link = open_link();
  EXPECT_ENDS([&] {
    if (!answer_calls({{SYS_recvmsg, 0}})) return no_filters;
    return link->arm() ? 0 : 1;
  });
}

// A frame that the kernel does not take stays with the caller.
TEST(SystemCallLoopsTest, DatagramsThatAreNeverSent) {
  for (const int error : {EINTR, ECONNREFUSED, 0}) {
    const auto first = open_link();
    const auto second = open_link();
    const Route route = route_between(*first, *second);
    std::vector<std::byte> bytes = pattern(1, 300);
    const Piece pieces[] = {{bytes.data(), 100}, {bytes.data() + 100, 200}};
    EXPECT_ENDS([&] {
      if (!answer_calls({{SYS_sendmmsg, error}, {SYS_sendmsg, error == 0 ? EAGAIN : error}}))
        return no_filters;
      // Different lengths, so that they do not go as one datagram that the kernel divides.
      const OutboundFrame frames[] = {{&route.address, pieces, 1}, {&route.address, pieces, 2}};
      return first->send(frames, 2) == 0 && first->send(frames + 1, 1) == 0 ? 0 : 1;
    });
  }
}

TEST(SystemCallLoopsTest, RandomNumbersThatAreDenied) {
  for (const int error : {EINTR, EPERM, ENOSYS, 0})
    EXPECT_ENDS([&] {
      if (!answer_calls({{SYS_getrandom, error}})) return no_filters;
      std::set<uint64_t> numbers;
      for (unsigned i = 0; i < 100; ++i) numbers.insert(random_u64());
      uint64_t secret = 0;
      if (fill_random(&secret, sizeof secret)) return 1;
      ConnectionTable table;
      if (numbers.size() != 100 || !table.open(16)) return 2;
      return table.find_or_make({1, 2}) != nullptr ? 0 : 3;
    });
}

TEST(SystemCallLoopsTest, ACallThatIsAlwaysInterrupted) {
  unsigned calls = 0;
  const auto call = [&calls](int answer, unsigned interruptions) {
    calls = 0;
    return uninterrupted([&calls, answer, interruptions] {
      errno = EINTR;
      return calls++ < interruptions ? -1 : answer;
    });
  };
  EXPECT_EQ(call(5, 3), 5);
  EXPECT_EQ(calls, 4u);
  EXPECT_EQ(call(5, 2 * most_interruptions), -1);
  EXPECT_EQ(calls, 1 + most_interruptions);
}

TEST(SystemCallLoopsTest, AWatchThatIsAlwaysInterrupted) {
#ifdef SYS_epoll_wait
  constexpr int wait_call = SYS_epoll_wait;
#else
  constexpr int wait_call = SYS_epoll_pwait;
#endif
  EXPECT_ENDS([] {
    if (!answer_calls({{wait_call, EINTR}})) return no_filters;
    const Descriptor event = make_event();
    std::atomic<bool> noticed{false};
    Doorbell doorbell;
    DescriptorWatch watch;
    std::string reason;
    if (!watch.start(event.get(), noticed, doorbell, reason)) return 1;
    const int64_t used_us = processor_time_us();
    watch.stop();
    if (!noticed) return 2;
    return used_us < 100'000 ? 0 : 3;
  });
}

// The kernel refuses poll() with more descriptors than the process may have.
TEST(SystemCallLoopsTest, AReaderOfMemoryChangesThatCannotWait) {
  if (const std::string reason = test::why_not_watched(); !reason.empty())
    GTEST_SKIP() << "memory cannot be watched: " << reason;
  EXPECT_ENDS([] {
    test::FakeRegistrar registrar;
    WatchedCache cache({});
    auto attached = cache.attach(registrar);
    if (!cache.watching()) return 1;
    rlimit usual{};
    if (getrlimit(RLIMIT_NOFILE, &usual) != 0) return 2;
    const rlimit one{1, usual.rlim_max};
    if (setrlimit(RLIMIT_NOFILE, &one) != 0) return 2;
    const int64_t used_us = processor_time_us();
    // A sanitizer needs descriptors to look at objects.
    if (setrlimit(RLIMIT_NOFILE, &usual) != 0) return 4;
    attached.reset();
    return used_us < 100'000 ? 0 : 3;
  });
}

}  // namespace
}  // namespace lintel::test
