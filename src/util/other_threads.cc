#include "util/other_threads.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "util/clock.h"
#include "util/new_descriptor.h"

namespace lintel {

namespace {

constexpr uint64_t limit_ns = 1'000'000'000;
constexpr timespec pause{0, 200'000};

// Processor time of a thread. The kernel numbers the clocks of threads so: see
// clock_getcpuclockid() and pthread_getcpuclockid(), which take processes and pthread_t only.
// False: it has ended.
bool read_run_time(pid_t thread, uint64_t* ns) noexcept {
  constexpr clockid_t scheduled_time_of_thread = 6;
  timespec time;
  if (clock_gettime((~static_cast<clockid_t>(thread)) * 8 + scheduled_time_of_thread, &time) != 0)
    return false;
  *ns = static_cast<uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(time.tv_nsec);
  return true;
}

// Whether a thread runs, is ready to run, or waits for a page. Otherwise it is in a system call, or
// has ended.
bool is_under_way(pid_t thread) noexcept {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/self/task/%d/stat", static_cast<int>(thread));
  const Descriptor file = open_file(path, O_RDONLY);
  if (!file.is_open()) return false;
  char text[256];
  const ssize_t length = read(file.get(), text, sizeof text - 1);
  if (length <= 0) return false;
  text[length] = '\0';
  // The name of the thread, in parentheses, may contain any character.
  const char* const name_end = std::strrchr(text, ')');
  return name_end != nullptr && name_end[1] == ' ' && (name_end[2] == 'R' || name_end[2] == 'D');
}

// Some of the threads, so that they run at the same time.
class Batch {
 public:
  [[nodiscard]] bool is_full() const noexcept { return count_ == most; }
  void add(pid_t thread) noexcept {
    uint64_t run_ns = 0;
    if (is_under_way(thread) && read_run_time(thread, &run_ns)) at_[count_++] = {thread, run_ns};
  }
  void let_run(uint64_t processor_ns, uint64_t deadline_ns) noexcept {
    for (unsigned i = 0; i < count_; ++i) {
      const Thread& one = at_[i];
      uint64_t run_ns = 0;
      while (is_under_way(one.id) && now_ns() < deadline_ns && read_run_time(one.id, &run_ns) &&
             run_ns - one.began_ns < processor_ns)
        nanosleep(&pause, nullptr);
    }
    count_ = 0;
  }

 private:
  static constexpr unsigned most = 128;
  struct Thread {
    pid_t id;
    uint64_t began_ns;
  };
  Thread at_[most];
  unsigned count_ = 0;
};

}  // namespace

void OtherThreads::let_run(uint64_t processor_ns) noexcept {
  const uint64_t deadline_ns = now_ns() + limit_ns;
  const DirectoryStream tasks = open_directory("/proc/self/task");
  if (tasks == nullptr) {
    // /proc is not readable. The pause is long enough for a thread that does not wait for a
    // processor.
    const timespec long_pause{0, 20'000'000};
    nanosleep(&long_pause, nullptr);
    return;
  }
  const pid_t own = gettid();
  Batch batch;
  while (const dirent* const entry = readdir(tasks.get())) {
    const auto thread = static_cast<pid_t>(std::strtol(entry->d_name, nullptr, 10));
    if (thread > 0 && thread != own) batch.add(thread);
    if (batch.is_full()) batch.let_run(processor_ns, deadline_ns);
  }
  batch.let_run(processor_ns, deadline_ns);
}

}  // namespace lintel
