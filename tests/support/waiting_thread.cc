// Whether threads sleep and whether processes have stopped, from /proc. Set-up path.
#include "support/waiting_thread.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

namespace lintel::test {

namespace {

// Whether a stat file of /proc has that state in the field after the program's name (proc(5)).
bool has_state(const std::string& file, char state) {
  std::ifstream lines(file);
  std::string text;
  std::getline(lines, text);
  const auto name_end = text.rfind(')');
  return name_end != std::string::npos && text.compare(name_end, 3, std::string(") ") + state) == 0;
}

}  // namespace

bool is_asleep(pid_t thread) {
  return has_state("/proc/self/task/" + std::to_string(thread) + "/stat", 'S');
}

bool others_are_asleep() {
  const std::filesystem::directory_iterator threads("/proc/self/task");
  return std::all_of(begin(threads), end(threads), [](const auto& entry) {
    const pid_t thread = std::stoi(entry.path().filename());
    return thread == gettid() || is_asleep(thread);
  });
}

bool is_stopped(pid_t process) {
  return has_state("/proc/" + std::to_string(process) + "/stat", 'T');
}

WaitingThread::WaitingThread(std::function<void()> body)
    : thread_(start_thread([this, body = std::move(body)] {
        id_ = gettid();
        body();
      })) {}

void WaitingThread::await_sleep(Place place) const {
  Rank::current().await_condition(
      "waiting until a thread sleeps", [this] { return id_ != 0 && is_asleep(id_); }, place);
}

}  // namespace lintel::test
