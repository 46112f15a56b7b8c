// Guarded accesses: faults are reported, and successful accesses work as without the guard.
#include "util/guarded_memory.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "util/config.h"
#include "util/log.h"
#include "util/page_size.h"

namespace lintel {
namespace {

const size_t page_bytes = system_page_bytes();
// SS_AUTODISARM of the kernel, which the headers of the C library lack.
constexpr unsigned ss_autodisarm = 1u << 31;

// Two pages; the second is inaccessible.
class Brink {
 public:
  Brink() {
    void* memory =
        mmap(nullptr, 2 * page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(memory, MAP_FAILED);
    start_ = static_cast<char*>(memory);
    EXPECT_EQ(mprotect(end(), page_bytes, PROT_NONE), 0);
  }
  ~Brink() { munmap(start_, 2 * page_bytes); }
  Brink(const Brink&) = delete;
  Brink& operator=(const Brink&) = delete;
  [[nodiscard]] char* end() const { return start_ + page_bytes; }

 private:
  char* start_ = nullptr;
};

[[nodiscard]] bool call(std::function<void()> action) {
  return guarded_call([](void* f) { (*static_cast<std::function<void()>*>(f))(); }, &action);
}

class GuardedMemoryTest : public testing::Test {
 protected:
  void SetUp() override { install_fault_handler(); }
};

TEST_F(GuardedMemoryTest, CopiesEverySizeExactly) {
  std::array<unsigned char, 700> source{};
  for (size_t i = 0; i < source.size(); ++i) source[i] = static_cast<unsigned char>(i * 7 + 1);
  for (size_t size = 0; size <= 520; ++size) {
    for (const size_t shift : {0u, 1u, 3u, 7u, 13u}) {
      std::array<unsigned char, 700> target{};
      ASSERT_TRUE(guarded_copy(target.data() + 8 + shift, source.data() + shift, size));
      std::array<unsigned char, 700> expected{};
      std::memcpy(expected.data() + 8 + shift, source.data() + shift, size);
      ASSERT_EQ(target, expected) << size << " bytes, shifted by " << shift;
    }
  }
}

// Long copies are made in parts.
TEST_F(GuardedMemoryTest, CopiesLongRangesExactly) {
  constexpr size_t most = 9000;
  std::vector<unsigned char> source(most);
  for (size_t i = 0; i < most; ++i) source[i] = static_cast<unsigned char>(i * 7 + i / 256);
  for (const size_t bytes :
       {2047u, 2048u, 2049u, 2112u, 4095u, 4096u, 4097u, 6145u, 8192u, 8999u}) {
    std::vector<unsigned char> target(most, 0xee);
    ASSERT_TRUE(guarded_copy(target.data(), source.data(), bytes));
    EXPECT_TRUE(
        std::equal(source.begin(), source.begin() + static_cast<ptrdiff_t>(bytes), target.begin()))
        << bytes;
    EXPECT_TRUE(std::all_of(target.begin() + static_cast<ptrdiff_t>(bytes), target.end(),
                            [](unsigned char c) { return c == 0xee; }))
        << bytes;
  }
}

TEST_F(GuardedMemoryTest, ShortCopiesMayOverlap) {
  for (size_t bytes = 1; bytes <= largest_overlapping_copy; ++bytes) {
    for (size_t distance = 1; distance <= bytes; ++distance) {
      for (const bool forward : {true, false}) {
        std::array<unsigned char, 2 * largest_overlapping_copy + 1> memory{};
        for (size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<unsigned char>(i);
        const std::array before = memory;
        const size_t from = forward ? 0 : distance;
        const size_t to = forward ? distance : 0;
        ASSERT_TRUE(guarded_copy(&memory[to], &memory[from], bytes));
        ASSERT_TRUE(std::equal(&before[from], &before[from] + bytes, &memory[to]))
            << bytes << " bytes, " << distance << (forward ? " forward" : " backward");
      }
    }
  }
}

TEST_F(GuardedMemoryTest, ReportsEveryCopyThatTouchesAnInaccessiblePage) {
  const Brink brink;
  std::array<char, 200> buffer{};
  for (size_t size = 1; size <= 150; ++size) {
    ASSERT_TRUE(guarded_copy(brink.end() - size, buffer.data(), size)) << size;
    ASSERT_TRUE(guarded_copy(buffer.data(), brink.end() - size, size)) << size;
    ASSERT_FALSE(guarded_copy(brink.end() - size + 1, buffer.data(), size)) << size;
    ASSERT_FALSE(guarded_copy(buffer.data(), brink.end() - size + 1, size)) << size;
    ASSERT_FALSE(guarded_copy(brink.end(), buffer.data(), size)) << size;
  }
}

TEST_F(GuardedMemoryTest, StraightCopiesReportTheSame) {
  const Brink brink;
  std::array<char, 64> buffer{};
  for (const size_t size : {1u, 7u, 8u, 9u, 64u}) {
    std::iota(buffer.begin(), buffer.end(), static_cast<char>(size));
    const auto expected = buffer;
    ASSERT_TRUE(guarded_copy_straight(brink.end() - size, buffer.data(), size)) << size;
    buffer.fill(0);
    ASSERT_TRUE(guarded_copy_straight(buffer.data(), brink.end() - size, size)) << size;
    ASSERT_TRUE(std::equal(&buffer[0], &buffer[0] + size, &expected[0])) << size;
    ASSERT_FALSE(guarded_copy_straight(brink.end() - size + 1, buffer.data(), size)) << size;
    ASSERT_FALSE(guarded_copy_straight(buffer.data(), brink.end() - size + 1, size)) << size;
  }
  EXPECT_TRUE(guarded_copy_straight(nullptr, nullptr, 0));
}

TEST_F(GuardedMemoryTest, ReportsAddressesThatNobodyCanMap) {
  char buffer[64] = {};
  const uintptr_t addresses[] = {0, 16, UINTPTR_MAX - 4, UINTPTR_MAX / 2, uintptr_t{1} << 60};
  for (const uintptr_t address : addresses) {
    for (const size_t size : {1u, 8u, 64u}) {
      EXPECT_FALSE(guarded_copy(reinterpret_cast<void*>(address), buffer, size)) << address;
      EXPECT_FALSE(guarded_copy(buffer, reinterpret_cast<void*>(address), size)) << address;
    }
  }
}

TEST_F(GuardedMemoryTest, ReportsWritesToReadOnlyMemory) {
  static const char constant[16] = "do not change";
  void* memory = mmap(nullptr, page_bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  char buffer[16];
  EXPECT_TRUE(guarded_copy(buffer, memory, 16));
  EXPECT_FALSE(guarded_copy(memory, constant, 16));
  munmap(memory, page_bytes);
}

TEST_F(GuardedMemoryTest, NoLengthTouchesNothing) {
  EXPECT_TRUE(guarded_copy(nullptr, nullptr, 0));
  EXPECT_TRUE(guarded_copy(reinterpret_cast<void*>(UINTPTR_MAX), reinterpret_cast<void*>(8), 0));
}

TEST_F(GuardedMemoryTest, ReportsFilesThatBecameShorter) {
  std::string name = testing::TempDir() + "guarded_memory_test_XXXXXX";
  const int file = mkstemp(name.data());
  ASSERT_GE(file, 0) << name;
  unlink(name.c_str());
  ASSERT_EQ(ftruncate(file, static_cast<off_t>(page_bytes)), 0);
  void* memory = mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ASSERT_NE(memory, MAP_FAILED);
  char buffer[8] = {};
  EXPECT_TRUE(guarded_copy(memory, buffer, 8));
  ASSERT_EQ(ftruncate(file, 0), 0);
  EXPECT_FALSE(guarded_copy(memory, buffer, 8));  // SIGBUS
  munmap(memory, page_bytes);
  close(file);
}

TEST_F(GuardedMemoryTest, ThreadsRecoverIndependently) {
  const Brink brink;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (unsigned number = 0; number < 4; ++number) {
    threads.emplace_back([&, number] {
      char target[100];
      for (unsigned i = 0; i < 3000; ++i) {
        const size_t size = 1 + (i + number) % sizeof(target);
        const auto value = static_cast<char>(i + number);
        const std::string source(size, value);
        if (!guarded_copy(target, source.data(), size)) ++wrong;
        if (std::memcmp(target, source.data(), size) != 0) ++wrong;
        if (guarded_copy(target, brink.end(), size)) ++wrong;
        if (guarded_call([](void* p) { *static_cast<volatile char*>(p) = 1; },
                         brink.end() + number))
          ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(GuardedMemoryTest, CallIsAbandonedWhereItFaults) {
  const Brink brink;
  volatile int steps = 0;
  volatile char* const bad = brink.end();
  EXPECT_FALSE(call([&] {
    steps = 1;
    *bad = 1;
    steps = 2;
  }));
  EXPECT_EQ(steps, 1);
  EXPECT_TRUE(call([&] { steps = 3; }));
  EXPECT_EQ(steps, 3);
}

TEST_F(GuardedMemoryTest, InnerFaultLeavesTheOuterCallGoing) {
  const Brink brink;
  char* const bad = brink.end();
  bool inner = true;
  bool copied = true;
  bool after = false;
  EXPECT_TRUE(call([&] {
    inner = call([bad] { *static_cast<volatile char*>(bad) = 1; });
    char byte = 0;
    copied = guarded_copy(&byte, bad, 1);
    after = true;
  }));
  EXPECT_FALSE(inner);
  EXPECT_FALSE(copied);
  EXPECT_TRUE(after);
  // After a successful inner call, a fault of the outer call is reported by the outer call.
  EXPECT_FALSE(call([&] {
    inner = call([] {});
    *static_cast<volatile char*>(bad) = 1;
  }));
  EXPECT_TRUE(inner);
}

TEST_F(GuardedMemoryTest, RecoveryRestoresMaskAndAlternateStack) {
  std::vector<char> memory(65536);
  stack_t alternate{};
  alternate.ss_sp = memory.data();
  alternate.ss_size = memory.size();
  alternate.ss_flags = static_cast<int>(ss_autodisarm);
  stack_t previous{};
  ASSERT_EQ(sigaltstack(&alternate, &previous), 0);
  sigset_t usr1;
  sigemptyset(&usr1);
  sigaddset(&usr1, SIGUSR1);
  ASSERT_EQ(pthread_sigmask(SIG_BLOCK, &usr1, nullptr), 0);

  const Brink brink;
  char byte = 0;
  EXPECT_FALSE(guarded_copy(&byte, brink.end(), 1));

  stack_t now{};
  EXPECT_EQ(sigaltstack(nullptr, &now), 0);
  EXPECT_EQ(now.ss_sp, memory.data());
  sigset_t mask;
  EXPECT_EQ(pthread_sigmask(SIG_UNBLOCK, &usr1, &mask), 0);
  EXPECT_EQ(sigismember(&mask, SIGUSR1), 1);
  EXPECT_EQ(sigismember(&mask, SIGSEGV), 0);
  EXPECT_EQ(sigaltstack(&previous, nullptr), 0);
}

TEST_F(GuardedMemoryTest, ForkedChildRecoversToo) {
  const Brink brink;
  const pid_t child = fork();
  if (child == 0) {
    install_fault_handler();
    char byte = 0;
    _exit(!guarded_copy(&byte, brink.end(), 1) && guarded_copy(&byte, &byte, 1) ? 0 : 1);
  }
  ASSERT_GT(child, 0);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

// Each of these tests runs in a new process, since the order of the handlers matters.
class GuardedMemoryDeathTest : public testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }

  static void set_handler(int signal_number, void (*handler)(int, siginfo_t*, void*),
                          int flags = SA_SIGINFO) {
    struct sigaction action {};
    action.sa_sigaction = handler;
    action.sa_flags = flags;
    sigemptyset(&action.sa_mask);
    sigaddset(&action.sa_mask, SIGUSR2);
    sigaction(signal_number, &action, nullptr);
  }
  static void touch(void* address) { *static_cast<volatile char*>(address) = 1; }
};

void* volatile const nowhere = reinterpret_cast<void*>(24);  // hidden from the compiler
int passed_on = 0;

TEST_F(GuardedMemoryDeathTest, ForeignFaultGoesToTheHandlerBefore) {
  EXPECT_EXIT(
      {
        set_handler(SIGSEGV, [](int signal_number, siginfo_t* info, void* context) {
          sigset_t mask;
          pthread_sigmask(SIG_SETMASK, nullptr, &mask);
          const bool as_asked = signal_number == SIGSEGV && info->si_addr == nowhere &&
                                context != nullptr && sigismember(&mask, SIGUSR2) == 1 &&
                                sigismember(&mask, SIGSEGV) == 1;
          _exit(as_asked ? 42 : 43);
        });
        install_fault_handler();
        install_fault_handler();
        char byte = 0;
        if (guarded_copy(nowhere, &byte, 1)) _exit(44);
        touch(nowhere);
        _exit(45);
      },
      testing::ExitedWithCode(42),
      "^lintel.[0-9]+. error: SIGSEGV: the program touched 0x18 by the instruction at 0x[0-9a-f]+, "
      "outside the copies that this library guards; passed on to the handler before\n$");
}

TEST_F(GuardedMemoryDeathTest, PlainHandlerGetsTheSignal) {
  EXPECT_EXIT(
      {
        signal(SIGSEGV, [](int signal_number) { _exit(signal_number == SIGSEGV ? 42 : 43); });
        install_fault_handler();
        touch(nowhere);
      },
      testing::ExitedWithCode(42), "");
}

TEST_F(GuardedMemoryDeathTest, HandlerForOneFaultIsCalledOnce) {
  EXPECT_EXIT(
      {
        set_handler(
            SIGSEGV,
            [](int, siginfo_t*, void*) {
              if (++passed_on > 1) _exit(0);
            },
            static_cast<int>(SA_SIGINFO | SA_RESETHAND));
        install_fault_handler();
        touch(nowhere);
      },
      testing::KilledBySignal(SIGSEGV), "");
}

TEST_F(GuardedMemoryDeathTest, ForeignFaultEndsAProcessWithoutHandler) {
  EXPECT_EXIT(
      {
        install_fault_handler();
        char byte = 0;
        if (guarded_copy(nowhere, &byte, 1)) _exit(0);
        signal(SIGSEGV, SIG_DFL);
        install_fault_handler();
        if (guarded_copy(nowhere, &byte, 1)) _exit(0);
        touch(nowhere);
        _exit(0);
      },
      testing::KilledBySignal(SIGSEGV), "touched 0x18 .*; the signal ends the process\n$");
}

// Descriptor 2 was closed when the library looked, and is a file of the program now.
TEST_F(GuardedMemoryDeathTest, TheLineIsNotWrittenIntoAFileOfTheProgram) {
  EXPECT_EXIT(
      {
        set_handler(SIGSEGV, [](int, siginfo_t*, void*) {
          _exit(lseek(STDERR_FILENO, 0, SEEK_END) == 0 ? 42 : 43);
        });
        install_fault_handler();
        close(STDERR_FILENO);
        find_standard_error();
        while (memfd_create("of the program", MFD_CLOEXEC) < STDERR_FILENO) {
        }
        touch(nowhere);
        _exit(45);
      },
      testing::ExitedWithCode(42), "^$");
}

// Some programs handle faults of their own all the time.
TEST_F(GuardedMemoryDeathTest, AHandlerThatMendsItsFaultsGetsOneLine) {
  EXPECT_EXIT(
      {
        static Brink brink;
        set_handler(SIGSEGV, [](int, siginfo_t*, void*) {
          ++passed_on;
          mprotect(brink.end(), page_bytes, PROT_READ | PROT_WRITE);
        });
        install_fault_handler();
        for (int i = 0; i < 3; ++i) {
          touch(brink.end());
          mprotect(brink.end(), page_bytes, PROT_NONE);
        }
        _exit(passed_on == 3 ? 42 : 43);
      },
      testing::ExitedWithCode(42), "^[^\n]*passed on to the handler before\n$");
}

TEST_F(GuardedMemoryDeathTest, SentSignalsAreNotTakenForFaults) {
  EXPECT_EXIT(
      {
        set_handler(SIGSEGV, [](int, siginfo_t*, void*) { ++passed_on; });
        install_fault_handler();
        raise(SIGSEGV);
        const bool finished = call([] { raise(SIGSEGV); });
        _exit(finished && passed_on == 2 ? 42 : 43);
      },
      testing::ExitedWithCode(42), "");
}

TEST_F(GuardedMemoryDeathTest, SentSignalEndsAProcessWithoutHandler) {
  EXPECT_EXIT(
      {
        signal(SIGBUS, SIG_DFL);
        install_fault_handler();
        raise(SIGBUS);
        _exit(0);
      },
      testing::KilledBySignal(SIGBUS), "");
}

TEST_F(GuardedMemoryDeathTest, LaterHandlerThatPassesOnIsNoCircle) {
  EXPECT_EXIT(
      {
        static struct sigaction ours;
        set_handler(SIGSEGV, [](int, siginfo_t*, void*) { _exit(42); });
        install_fault_handler();
        struct sigaction later {};
        later.sa_sigaction = [](int number, siginfo_t* info, void* context) {
          if (++passed_on > 2) _exit(43);
          ours.sa_sigaction(number, info, context);
        };
        later.sa_flags = static_cast<int>(SA_SIGINFO | SA_NODEFER);
        sigaction(SIGSEGV, &later, &ours);
        install_fault_handler();
        char byte = 0;
        if (guarded_copy(nowhere, &byte, 1)) _exit(44);  // through the later handler
        touch(nowhere);
      },
      testing::ExitedWithCode(42), "");
}

TEST_F(GuardedMemoryDeathTest, HandlerCanBeDeclined) {
  EXPECT_EXIT(
      {
        set_handler(SIGSEGV, [](int, siginfo_t*, void*) { _exit(42); });
        setenv("PTL_SEGV_HANDLER", "0", 1);
        config_reload();
        install_fault_handler();
        char byte = 0;
        static_cast<void>(guarded_copy(nowhere, &byte, 1));
        _exit(43);
      },
      testing::ExitedWithCode(42), "");
}

}  // namespace
}  // namespace lintel
