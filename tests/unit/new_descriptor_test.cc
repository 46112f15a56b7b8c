// New descriptors are never 0, 1 or 2, also where the program has closed those.
#include "util/new_descriptor.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "core/progress/long_call.h"
#include "reliable/quiet_link.h"
#include "shm_test_support.h"
#include "udp_test_support.h"
#include "util/awaited_process.h"
#include "util/clock.h"
#include "util/descriptor_watch.h"
#include "util/log.h"
#include "util/other_threads.h"

namespace lintel::test {
namespace {

using test::ChildProcess;

void close_standard() {
  for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) close(number);
}

bool none_standard() {
  for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(number, F_GETFD) >= 0) return false;
  return true;
}

bool is_fine(const Descriptor& made) {
  return made.get() > STDERR_FILENO && fcntl(made.get(), F_GETFD) == FD_CLOEXEC && none_standard();
}

int run_with_closed_descriptors(int (*body)()) {
  ChildProcess child([&] {
    close_standard();
    return body();
  });
  return child.wait();
}

TEST(NewDescriptor, IsAboveTheStandardOnes) {
  EXPECT_EQ(run_with_closed_descriptors([] {
              if (!is_fine(open_file("/proc/self/maps", O_RDONLY))) return 1;
              const Descriptor directory = open_file("/proc/self", O_RDONLY | O_DIRECTORY);
              if (!is_fine(open_file_at(directory.get(), "maps", O_RDONLY))) return 2;
              if (!is_fine(make_event()) || !is_fine(make_epoll())) return 3;
              if (!is_fine(make_memory_file("test", MFD_ALLOW_SEALING))) return 4;
              if (!is_fine(above_standard(dup(directory.get())))) return 5;
              if (fileno(open_for_reading("/proc/self/maps").get()) <= STDERR_FILENO) return 6;
              if (dirfd(open_directory("/proc").get()) <= STDERR_FILENO) return 7;
              return none_standard() ? 0 : 8;
            }),
            0);
}

TEST(NewDescriptor, OfSocketsIsAboveTheStandardOnes) {
  EXPECT_EQ(run_with_closed_descriptors([] {
              const Descriptor listener = open_socket(AF_UNIX, SOCK_STREAM);
              const Descriptor caller = open_socket(AF_UNIX, SOCK_STREAM);
              const sockaddr_un any{AF_UNIX, {}};
              sockaddr_un address{};
              socklen_t length = sizeof address;
              if (!is_fine(listener) || !is_fine(caller)) return 1;
              if (bind(listener.get(), reinterpret_cast<const sockaddr*>(&any),
                       sizeof any.sun_family) != 0 ||
                  listen(listener.get(), 1) != 0 ||
                  getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0)
                return 2;
              if (connect(caller.get(), reinterpret_cast<sockaddr*>(&address), length) != 0)
                return 3;
              return is_fine(accept_connection(listener.get(), SOCK_NONBLOCK)) ? 0 : 4;
            }),
            0);
}

// As a device that another library opens.
TEST(NewDescriptor, TheStandardOnesAreKeptFromOtherLibraries) {
  EXPECT_EQ(run_with_closed_descriptors([] {
              int device = -1;
              {
                const StandardDescriptorsTaken taken;
                device = memfd_create("of a library", MFD_CLOEXEC);
              }
              return device > STDERR_FILENO && none_standard() ? 0 : 1;
            }),
            0);
  const StandardDescriptorsTaken none;
  EXPECT_GE(fcntl(STDERR_FILENO, F_GETFD), 0);
}

TEST(NewDescriptor, WithoutRoomErrnoSaysSo) {
  EXPECT_FALSE(open_file("/proc/self/nothing", O_RDONLY).is_open());
  EXPECT_EQ(errno, ENOENT);
  EXPECT_EQ(open_directory("/proc/self/maps"), nullptr);
  EXPECT_EQ(errno, ENOTDIR);
}

// A program that closes standard error and opens a file gets number 2 for the file.
TEST(NewDescriptor, LogLinesDoNotGoIntoAFileOfTheProgram) {
  EXPECT_EQ(run_with_closed_descriptors([] {
              find_standard_error();
              for (int i = 0; i < 3; ++i)
                if (memfd_create("of the program", MFD_CLOEXEC) != i) return 1;
              log_message(LogLevel::error, "a line");
              write_to_standard_error("text", 4);
              if (lseek(STDERR_FILENO, 0, SEEK_END) != 0) return 2;
              find_standard_error();  // PtlInit, after the program has opened its own
              log_message(LogLevel::error, "a line");
              return lseek(STDERR_FILENO, 0, SEEK_END) > 0 ? 0 : 3;
            }),
            0);
}

// The thread that watches sockets, and the rule for which links it watches.

TEST(DescriptorWatchTest, NoticesWhatArrivesOnceWhileEnabled) {
  const auto first = open_link();
  const auto second = open_link();
  const Route route = route_between(*first, *second);
  std::atomic<bool> noticed{false};
  Doorbell doorbell;
  DescriptorWatch watch;
  std::string reason;
  ASSERT_TRUE(watch.start(second->descriptor(), noticed, doorbell, reason)) << reason;
  std::byte byte{};
  const Piece piece{&byte, 1};
  const OutboundFrame frame{&route.address, &piece, 1};
  // Data that arrived before enable() are reported, too.
  ASSERT_EQ(first->send(&frame, 1), 1u);
  const uint32_t seen = doorbell.announce_sleep();
  EXPECT_FALSE(noticed.load());
  watch.enable();
  EXPECT_TRUE(wait_until([&] { return noticed.load() && doorbell.rings.load() != seen; }));
  receive(*second, 1);
  noticed = false;
  EXPECT_TRUE(watch.is_idle());
  watch.enable();
  EXPECT_FALSE(watch.is_idle());
  ASSERT_EQ(first->send(&frame, 1), 1u);
  EXPECT_TRUE(wait_until([&] { return noticed.load(); }));
  // After detach(), the watch can be enabled again.
  receive(*second, 1);
  noticed = false;
  watch.detach();
  EXPECT_FALSE(watch.is_idle());
  ASSERT_EQ(first->send(&frame, 1), 1u);
  receive(*second, 1);
  EXPECT_FALSE(noticed.load());
  watch.enable();
  ASSERT_EQ(first->send(&frame, 1), 1u);
  EXPECT_TRUE(wait_until([&] { return noticed.load(); }));
  watch.stop();
  EXPECT_FALSE(watch.running());
}

// How many epoll descriptors of this process watch this descriptor.
unsigned watches_of(int descriptor) {
  unsigned count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fdinfo")) {
    std::ifstream file(entry.path());
    int watched = 0;
    for (std::string word; file >> word;)
      if (word == "tfd:" && file >> watched && watched == descriptor) ++count;
  }
  return count;
}

// An arrival then costs the sender less.
TEST(QuietUdpLinkTest, IsNotWatchedWhileItIsAskedOften) {
  const auto first = open_link();
  const auto second = open_link();
  const ReliableSettings settings;
  PollerWakeup wakeup;
  ConnectionTimers timers(wakeup);
  Doorbell doorbell;
  QuietLink quiet(*second, settings, wakeup, timers);
  quiet.watch(doorbell);
  for (unsigned turn = 0; turn < 2; ++turn) {
    ASSERT_TRUE(quiet.arm());
    EXPECT_EQ(watches_of(second->descriptor()), 1u);
    for (unsigned i = 0; i < 2 * QuietLink::polls_until_detached; ++i) quiet.asked(1, i);
    EXPECT_EQ(watches_of(second->descriptor()), 1u) << "another thread may sleep";
    const Route route = route_between(*first, *second);
    std::byte byte{};
    const Piece piece{&byte, 1};
    const OutboundFrame frame{&route.address, &piece, 1};
    ASSERT_EQ(first->send(&frame, 1), 1u);
    EXPECT_TRUE(wait_until([&] { return wakeup.is_set(); }));
    receive(*second, 1);
    for (unsigned i = 0; i < QuietLink::polls_until_detached; ++i) {
      EXPECT_EQ(watches_of(second->descriptor()), 1u);
      quiet.asked(1, i);
    }
    EXPECT_EQ(watches_of(second->descriptor()), 0u);
  }
  quiet.stop();
}

uint64_t processor_ns_of(std::thread& thread) {
  clockid_t clock = 0;
  timespec time{};
  EXPECT_EQ(pthread_getcpuclockid(thread.native_handle(), &clock), 0);
  EXPECT_EQ(clock_gettime(clock, &time), 0);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(time.tv_nsec);
}

TEST(OtherThreadsTest, AThreadThatComputesRunsForThatTime) {
  std::atomic<bool> stop{false};
  std::atomic<bool> runs{false};
  std::thread busy([&] {
    while (!stop.load(std::memory_order_relaxed)) runs.store(true, std::memory_order_relaxed);
  });
  while (!runs.load()) std::this_thread::yield();
  const uint64_t start_ns = now_ns();
  const uint64_t before_ns = processor_ns_of(busy);
  OtherThreads::let_run(3'000'000);
  const uint64_t ran_ns = processor_ns_of(busy) - before_ns;
  // On a machine without a free processor the limit of five seconds may end it.
  EXPECT_TRUE(ran_ns >= 3'000'000 || now_ns() - start_ns >= 5'000'000'000) << ran_ns;
  stop.store(true);
  busy.join();
}

// A thread that ends while the kernel lists threads may cut the list off.
TEST(OtherThreadsTest, AThreadIsWaitedForThoughOthersEndMeanwhile) {
  for (int round = 0; round < 50; ++round) {
    std::atomic<bool> stop{false};
    std::atomic<bool> stop_first{false};
    std::atomic<int> running{0};
    const auto run_until = [&running](const std::atomic<bool>& end) {
      running.fetch_add(1);
      while (!end.load(std::memory_order_relaxed)) continue;
    };
    std::vector<std::thread> first;
    for (int i = 0; i < 6; ++i) first.emplace_back(run_until, std::cref(stop_first));
    std::thread last(run_until, std::cref(stop));
    while (running.load() < 7) std::this_thread::yield();
    const uint64_t before_ns = processor_ns_of(last);
    stop_first.store(true);
    OtherThreads::let_run(1'000'000);
    EXPECT_GE(processor_ns_of(last) - before_ns, 1'000'000u) << "round " << round;
    for (std::thread& thread : first) thread.join();
    stop.store(true);
    last.join();
  }
}

// A host that stops a virtual processor lets the processor time of a thread jump by milliseconds.
TEST(OtherThreadsTest, AJumpOfTheProcessorTimeProvesLittle) {
  ProvenRunTime run(1'000);
  EXPECT_EQ(run.add_sample(1'000), 0u);
  EXPECT_EQ(run.add_sample(51'000), 50'000u);
  EXPECT_EQ(run.add_sample(9'000'000), 50'000u + ProvenRunTime::most_of_sample_ns);
  EXPECT_EQ(run.add_sample(9'000'001), 50'001u + ProvenRunTime::most_of_sample_ns);
  EXPECT_LE(4 * ProvenRunTime::most_of_sample_ns, LongCalls::shortest_long_ns);
}

TEST(OtherThreadsTest, AThreadThatSleepsIsNotWaitedFor) {
  std::mutex mutex;
  std::condition_variable changed;
  bool stop = false;
  std::thread asleep([&] {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return stop; });
  });
  // More processor time than it can get while it sleeps: the limit would end the wait.
  uint64_t shortest_ns = UINT64_MAX;
  for (int i = 0; i < 5 && shortest_ns >= 1'000'000'000; ++i) {
    const uint64_t start_ns = now_ns();
    OtherThreads::let_run(1'000'000'000);
    shortest_ns = std::min(shortest_ns, now_ns() - start_ns);
  }
  EXPECT_LT(shortest_ns, 1'000'000'000u);
  {
    const std::lock_guard guard(mutex);
    stop = true;
  }
  changed.notify_one();
  asleep.join();
}

// Refusals that the run-time library asks for.

TEST(RefusalsTest, TheLastFewAreKnown) {
  EXPECT_EQ(refusal_of(900, 1), nullptr);
  const char* const why = "another key";
  note_refusal(900, 1, why);
  note_refusal(901, 1, "another user");
  EXPECT_EQ(refusal_of(900, 1), why);
  EXPECT_EQ(refusal_of(900, 2), nullptr);
  // One that repeats takes no second place.
  for (int i = 0; i < 100; ++i) note_refusal(900, 1, why);
  EXPECT_STREQ(refusal_of(901, 1), "another user");
  for (uint32_t pid = 10; pid < 40; ++pid) note_refusal(900, pid, why);
  EXPECT_EQ(refusal_of(900, 1), nullptr);
  EXPECT_EQ(refusal_of(900, 39), why);
}

}  // namespace
}  // namespace lintel::test
