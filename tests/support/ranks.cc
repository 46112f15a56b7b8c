// Starting the ranks of a test, and reporting how they ended. Set-up path.
#include "support/ranks.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <exception>
#include <sstream>

#include <gtest/gtest.h>

#include "support/accelerator.h"
#include "support/rdma.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/lsan_interface.h>
#endif

#if defined(__SANITIZE_THREAD__)
// Here, children that a process with threads forks start threads of their own (spec 3.5).
extern "C" [[gnu::visibility("default")]] const char* __tsan_default_options() {
  return "die_after_fork=0";
}
#endif

namespace lintel::test {

namespace {

using Clock = std::chrono::steady_clock;

// Ends the rank at its first failed assertion and stores the text for the parent.
class FailureReporter : public testing::EmptyTestEventListener {
 public:
  explicit FailureReporter(Rank& rank) : rank_(rank) {}

 private:
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (!result.failed()) return;
    std::ostringstream text;
    text << (result.file_name() == nullptr ? "?" : result.file_name()) << ":"
         << result.line_number() << ":\n"
         << result.message();
    rank_.fail(text.str());
  }

  Rank& rank_;
};

// Not beside the threads of a driver, at which the search itself ends with SIGSEGV at times.
bool leaks_memory() {
  if (Accelerator::is_loaded()) return false;
#if defined(__SANITIZE_ADDRESS__)
  return __lsan_do_recoverable_leak_check() != 0;
#else
  return false;
#endif
}

[[noreturn]] void run_rank(SharedArea& area, int index, int count, const RunOptions& options,
                           const std::function<void(Rank&)>& body, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  area.pids[index].store(getpid());
  wait_deadline = std::max(wait_deadline, options.deadline * 3 / 5);
  for (const auto& [name, value] : options.environment) setenv(name.c_str(), value.c_str(), 1);
  take_rdma_device(index);

  Rank rank(area, index, count);
  testing::TestEventListeners& listeners = testing::UnitTest::GetInstance()->listeners();
  delete listeners.Release(listeners.default_result_printer());
  listeners.Append(new FailureReporter(rank));
  try {
    body(rank);
  } catch (const std::exception& error) {
    rank.fail(std::string("exception: ") + error.what());
  }
  rank.finalise();
  if (leaks_memory()) rank.fail("memory leaked; the report is on stderr");
  _exit(0);
}

class Children {
 public:
  Children(SharedArea& area, int count) : area_(area), count_(count) {}

  // False when the deadline has passed with ranks still running.
  [[nodiscard]] bool await_all(Clock::time_point deadline) {
    std::vector<pollfd> running;
    for (const pid_t pid : pids_) {
      running.push_back({static_cast<int>(syscall(SYS_pidfd_open, pid, 0)), POLLIN, 0});
    }
    std::size_t left = running.size();
    while (left > 0) {
      const auto remaining =
          std::chrono::duration_cast<Milliseconds>(deadline - Clock::now()).count();
      if (remaining <= 0) break;
      poll(running.data(), running.size(), static_cast<int>(remaining));
      for (std::size_t i = 0; i < running.size(); ++i) {
        if (running[i].fd < 0 || (running[i].revents & POLLIN) == 0) continue;
        waitpid(pids_[i], &statuses_[i], 0);
        note_end(static_cast<int>(i));
        close(running[i].fd);
        running[i].fd = -1;
        --left;
      }
    }
    for (std::size_t i = 0; i < running.size(); ++i) {
      if (running[i].fd < 0) continue;
      describe_hang(static_cast<int>(i));
      ::kill(pids_[i], SIGKILL);
      waitpid(pids_[i], &statuses_[i], 0);
      close(running[i].fd);
    }
    return left == 0;
  }

  void start(const RunOptions& options, const std::function<void(Rank&)>& body) {
    const pid_t parent = getpid();
    for (int index = 0; index < count_; ++index) {
      const pid_t pid = fork();
      if (pid == 0) run_rank(area_, index, count_, options, body, parent);
      if (pid < 0) {
        ADD_FAILURE() << "cannot fork rank " << index;
        area_.any_failed.store(1);
        break;
      }
      pids_.push_back(pid);
      statuses_.push_back(0);
    }
  }

  void report(bool in_time) const {
    if (!in_time) ADD_FAILURE() << "the ranks did not end in time" << hangs_.str();
    for (std::size_t i = 0; i < pids_.size(); ++i) {
      const RankState& state = area_.ranks[i];
      if (state.failed.load() != 0) {
        ADD_FAILURE() << "rank " << i << " of " << count_ << ": " << state.message;
      } else if (crashed(i) && in_time) {
        ADD_FAILURE() << "rank " << i << " of " << count_ << " ended with "
                      << (WIFSIGNALED(statuses_[i])
                              ? std::string("signal ") + strsignal(WTERMSIG(statuses_[i]))
                              : "status " + std::to_string(WEXITSTATUS(statuses_[i])))
                      << ", last seen at " << place(i);
      }
    }
  }

 private:
  [[nodiscard]] bool crashed(std::size_t i) const {
    const int status = statuses_[i];
    if (WIFEXITED(status)) return WEXITSTATUS(status) != 0;
    return area_.ranks[i].killed_on_purpose.load() == 0;
  }

  // A rank that has crashed enters no further barrier, so the others stop.
  void note_end(int i) {
    if (crashed(static_cast<std::size_t>(i))) area_.any_failed.store(1);
    area_.announce();
  }

  [[nodiscard]] std::string place(std::size_t i) const {
    const RankState& state = area_.ranks[i];
    const char* file = state.file.load();
    if (file == nullptr) return "its start";
    std::ostringstream text;
    text << file << ":" << state.line.load() << " (" << state.activity.load() << ")";
    return text.str();
  }

  void describe_hang(int i) {
    hangs_ << "\n  rank " << i << " was at " << place(static_cast<std::size_t>(i));
  }

  SharedArea& area_;
  int count_;
  std::vector<pid_t> pids_;
  std::vector<int> statuses_;
  std::ostringstream hangs_;
};

}  // namespace

void run_ranks(int count, const RunOptions& options, const std::function<void(Rank&)>& body) {
  if (count < 1 || count > max_ranks) throw std::invalid_argument("number of ranks");
  const SharedMapping mapping;
  Children children(mapping.area(), count);
  children.start(options, body);
  const bool in_time = children.await_all(Clock::now() + options.deadline);
  children.report(in_time);
}

void run_ranks(int count, const std::function<void(Rank&)>& body) {
  run_ranks(count, RunOptions{}, body);
}

int run_child(const std::function<void()>& body) {
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    body();
    _exit(0);
  }
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

}  // namespace lintel::test
