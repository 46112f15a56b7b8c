// PtlAbort: from another thread, from a signal handler, and afterwards.
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>

#include <atomic>
#include <deque>
#include <thread>

#include <gtest/gtest.h>

#include "support/interface.h"
#include "support/objects.h"
#include "support/ranks.h"
#include "support/text.h"
#include "support/waiting_thread.h"

namespace lintel::test {
namespace {

// The four functions that wait. They wait for a queue and a counter on which nothing happens.
struct Waiting {
  explicit Waiting(const Interface& interface)
      : events(interface.handle()), counter(interface.handle()) {}

  [[nodiscard]] int wait_with(int function) const {
    const ptl_handle_eq_t queue = events.handle();
    const ptl_handle_ct_t count = counter.handle();
    const ptl_size_t test = 1;
    ptl_event_t event{};
    ptl_ct_event_t value{};
    unsigned which = 0;
    switch (function) {
      case 0:
        return PtlEQWait(queue, &event);
      case 1:
        return PtlEQPoll(&queue, 1, PTL_TIME_FOREVER, &event, &which);
      case 2:
        return PtlCTWait(count, 1, &value);
      default:
        return PtlCTPoll(&count, &test, 1, PTL_TIME_FOREVER, &value, &which);
    }
  }

  EventQueue events;
  Counter counter;
};

// spec 3.5.3, 3.13.8, 3.13.9, 3.14.6, 3.14.7
TEST(AbortTest, EndsEveryWaitOfOtherThreads) {
  run_ranks(1, [](Rank& rank) {
    const Interface interface(rank, matching_physical);
    const Waiting waiting(interface);
    std::deque<WaitingThread> threads;
    for (int i = 0; i < 8; ++i)
      threads.emplace_back([&, i] { EXPECT_EQ(PTL_ABORTED, waiting.wait_with(i % 4)); });
    for (const WaitingThread& thread : threads) thread.await_sleep();
    PtlAbort();
    for (WaitingThread& thread : threads) thread.join();
  });
}

// spec 3.5.3, 3.13.6, 3.14.3
TEST(AbortTest, LaterWaitsReturnAtOnceAndObjectsCanBeFreed) {
  run_ranks(1, [](Rank& rank) {
    const Interface interface(rank, matching_physical);
    Waiting waiting(interface);
    waiting.counter.add(5);
    PtlAbort();
    for (int repetition = 0; repetition < 3; ++repetition) {
      for (int function = 0; function < 4; ++function)
        EXPECT_EQ(PTL_ABORTED, waiting.wait_with(function));
    }
    // Calls that do not wait are not affected.
    ptl_event_t event{};
    EXPECT_EQ(PTL_EQ_EMPTY, PtlEQGet(waiting.events.handle(), &event));
    EXPECT_EQ(waiting.counter.value().success, 5u);
    waiting.events.free();
    waiting.counter.free();
    PtlAbort();
  });
}

// spec 3.5.3, 3.13.6, 3.14.3
TEST(AbortTest, FreeAfterAbortWaitsForTheWaiters) {
  for (int function = 0; function < 4; ++function) {
    run_ranks(1, [function](Rank& rank) {
      const Interface interface(rank, matching_physical);
      const Waiting waiting(interface);
      std::atomic<int> entered = 0;
      std::vector<std::thread> threads;
      for (int i = 0; i < 4; ++i) {
        threads.push_back(start_thread([&] {
          ++entered;
          EXPECT_EQ(PTL_ABORTED, waiting.wait_with(function));
        }));
      }
      rank.await_condition("waiting for threads to start", [&] { return entered == 4; });
      PtlAbort();
      must(PtlEQFree(waiting.events.handle()));
      must(PtlCTFree(waiting.counter.handle()));
      for (std::thread& thread : threads) thread.join();
    });
  }
}

// A thread calls a waiting function again after another thread has aborted waiting and freed the
// object.
// spec 3.5.3, 3.13.8, 3.13.9, 3.14.6, 3.14.7
TEST(AbortTest, WaitsForWhatIsFreedReturnAborted) {
  run_ranks(1, [](Rank& rank) {
    const Interface interface(rank, matching_physical);
    Waiting waiting(interface);
    const Waiting before = waiting;
    PtlAbort();
    waiting.events.free();
    waiting.counter.free();
    for (int function = 0; function < 4; ++function)
      EXPECT_EQ(PTL_ABORTED, before.wait_with(function)) << function;
  });
}

// Workers wait in a loop until a flag is set, while another thread frees the objects.
// spec 3.5.3, 3.13.6, 3.14.3
TEST(AbortTest, ThreadsThatComeBackToTheirWaitsAreToldAgain) {
  for (int function = 0; function < 4; ++function) {
    run_ranks(1, [function](Rank& rank) {
      const Interface interface(rank, matching_physical);
      const Waiting waiting(interface);
      std::atomic<int> aborted = 0;
      std::atomic<bool> over = false;
      std::vector<std::thread> threads;
      for (int i = 0; i < 4; ++i) {
        threads.push_back(start_thread([&] {
          while (!over) {
            EXPECT_EQ(PTL_ABORTED, waiting.wait_with(function));
            ++aborted;
          }
        }));
      }
      PtlAbort();
      rank.await_condition("waiting for aborts", [&] { return aborted >= 8; });
      must(PtlEQFree(waiting.events.handle()));
      must(PtlCTFree(waiting.counter.handle()));
      const int before = aborted;
      rank.await_condition("waiting for more aborts", [&] { return aborted >= before + 8; });
      over = true;
      for (std::thread& thread : threads) thread.join();
    });
  }
}

// A handle that the library finds unreadable once: the thread that reads it stops there until the
// page is opened again.
class HandleReadLate {
 public:
  explicit HandleReadLate(ptl_handle_any_t handle)
      : page_(static_cast<ptl_handle_any_t*>(
            mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    *page_ = handle;
    struct sigaction action {};
    action.sa_handler = [](int) {
      was_read.store(true);
      while (!may_go_on.load()) sched_yield();
    };
    EXPECT_EQ(sigaction(SIGSEGV, &action, &former_), 0);
    was_read = may_go_on = false;
    EXPECT_EQ(mprotect(page_, bytes, PROT_NONE), 0);
  }
  ~HandleReadLate() {
    EXPECT_EQ(sigaction(SIGSEGV, &former_, nullptr), 0);
    munmap(page_, bytes);
  }
  HandleReadLate(const HandleReadLate&) = delete;
  HandleReadLate& operator=(const HandleReadLate&) = delete;

  [[nodiscard]] const ptl_handle_any_t* get() const { return page_; }
  void go_on() const {
    EXPECT_EQ(mprotect(page_, bytes, PROT_READ), 0);
    may_go_on = true;
  }

  static inline std::atomic<bool> was_read;

 private:
  static constexpr size_t bytes = 65'536;
  static inline std::atomic<bool> may_go_on;

  ptl_handle_any_t* page_;
  struct sigaction former_ {};
};

// Between the first look of a waiting function at PtlAbort and its look at its handles another
// thread aborts and frees.
// spec 3.5.3, 3.13.9, 3.14.7
TEST(AbortTest, FreedJustBeforeTheHandleIsReadReturnsAborted) {
  for (const bool counts : {false, true}) {
    run_ranks(1, [counts](Rank& rank) {
      const Interface interface(rank, matching_physical);
      Waiting waiting(interface);
      const HandleReadLate handle(counts ? waiting.counter.handle() : waiting.events.handle());
      std::thread thread = start_thread([&] {
        const ptl_size_t test = 1;
        ptl_event_t event{};
        ptl_ct_event_t value{};
        unsigned which = 0;
        EXPECT_EQ(PTL_ABORTED,
                  counts ? PtlCTPoll(handle.get(), &test, 1, PTL_TIME_FOREVER, &value, &which)
                         : PtlEQPoll(handle.get(), 1, PTL_TIME_FOREVER, &event, &which));
      });
      rank.await_condition("waiting for the handle to be read",
                           [] { return HandleReadLate::was_read.load(); });
      PtlAbort();
      waiting.events.free();
      waiting.counter.free();
      handle.go_on();
      thread.join();
    });
  }
}

// spec 3.5.3
TEST(AbortTest, WorksFromASignalHandler) {
  for (int function = 0; function < 4; ++function) {
    run_ranks(1, [function](Rank& rank) {
      const Interface interface(rank, matching_physical);
      const Waiting waiting(interface);
      struct sigaction action {};
      action.sa_handler = [](int) { PtlAbort(); };
      ASSERT_EQ(sigaction(SIGALRM, &action, nullptr), 0);
      WaitingThread waiter([&] { EXPECT_EQ(PTL_ABORTED, waiting.wait_with(function)); });
      waiter.await_sleep();
      waiter.interrupt(SIGALRM);
      waiter.join();
    });
  }
}

// spec 3.13.8, C.1
TEST(AbortTest, OtherSignalsDoNotEndAWait) {
  run_ranks(1, [](Rank& rank) {
    const Interface interface(rank, matching_physical);
    const Waiting waiting(interface);
    static std::atomic<int> signals;
    struct sigaction action {};
    action.sa_handler = [](int) { ++signals; };  // without SA_RESTART
    ASSERT_EQ(sigaction(SIGALRM, &action, nullptr), 0);
    const itimerval often{{0, 5'000}, {0, 5'000}};
    ASSERT_EQ(setitimer(ITIMER_REAL, &often, nullptr), 0);
    std::thread waker = start_thread([&] {
      rank.await_condition("waiting for signals", [] { return signals >= 10; });
      waiting.counter.add(1);
    });
    EXPECT_EQ(PTL_OK, waiting.wait_with(2));
    waker.join();
  });
}

}  // namespace
}  // namespace lintel::test
