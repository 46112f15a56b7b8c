#include "util/other_threads.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

#include "util/asymmetric_fence.h"
#include "util/clock.h"
#include "util/new_descriptor.h"

namespace lintel {

namespace {

constexpr uint64_t limit_ns = 5'000'000'000;
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

struct Thread {
  pid_t id = 0;
  ProvenRunTime run{0};
};

bool has_ended(pid_t thread) noexcept { return tgkill(getpid(), thread, 0) != 0; }

// Whether `threads` are all of the directory of threads, which tells their number and two more.
// Threads of the list that are alive afterwards were counted.
bool is_complete(const std::vector<pid_t>& threads, DIR* tasks) noexcept {
  struct stat status;
  return fstat(dirfd(tasks), &status) == 0 && status.st_nlink == threads.size() + 2 &&
         std::none_of(threads.begin(), threads.end(), has_ended);
}

// Lists the threads. When one ends while the kernel lists it, the list may stop there: such a list
// is made again. False: /proc is not readable, memory is short, or the deadline has passed.
bool list_threads(std::vector<pid_t>& threads, uint64_t deadline_ns) noexcept {
  for (;;) {
    const DirectoryStream tasks = open_directory("/proc/self/task");
    if (tasks == nullptr || now_ns() >= deadline_ns) return false;
    threads.clear();
    while (const dirent* const entry = readdir(tasks.get())) {
      const auto thread = static_cast<pid_t>(std::strtol(entry->d_name, nullptr, 10));
      if (thread <= 0) continue;
      try {
        threads.push_back(thread);
      } catch (const std::bad_alloc&) {
        return false;
      }
    }
    if (is_complete(threads, tasks.get())) return true;
  }
}

// Finds the other threads among them that are under way. False: memory is short.
bool find_those_under_way(const std::vector<pid_t>& ids, std::vector<Thread>& found) noexcept {
  const pid_t own = gettid();
  for (const pid_t id : ids) {
    uint64_t run_ns = 0;
    if (id == own || !is_under_way(id) || !read_run_time(id, &run_ns)) continue;
    try {
      found.push_back({id, ProvenRunTime(run_ns)});
    } catch (const std::bad_alloc&) {
      return false;
    }
  }
  return true;
}

}  // namespace

void OtherThreads::let_run(uint64_t processor_ns) noexcept {
  const uint64_t deadline_ns = now_ns() + limit_ns;
  std::vector<pid_t> ids;
  std::vector<Thread> left;
  if (!list_threads(ids, deadline_ns) || !find_those_under_way(ids, left)) {
    // The pause is long enough for a thread that does not wait for a processor.
    const timespec long_pause{0, 20'000'000};
    nanosleep(&long_pause, nullptr);
    return;
  }
  const auto has_left = [processor_ns](Thread& one) {
    uint64_t run_ns = 0;
    return !is_under_way(one.id) || !read_run_time(one.id, &run_ns) ||
           one.run.add_sample(run_ns) >= processor_ns;
  };
  for (;;) {
    left.erase(std::remove_if(left.begin(), left.end(), has_left), left.end());
    if (left.empty() || now_ns() >= deadline_ns) return;
    nanosleep(&pause, nullptr);
    // Interrupts the processors of the threads, so none stands still throughout two samples.
    heavy_fence();
  }
}

}  // namespace lintel
