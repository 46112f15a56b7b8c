// Threads that sleep, by what the kernel says of them. Set-up path.
#include "support/waiting_thread.h"

#include <unistd.h>

#include <fstream>
#include <string>
#include <utility>

namespace lintel::test {

bool is_asleep(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string text;
  std::getline(file, text);
  const auto name_end = text.rfind(')');
  return name_end != std::string::npos && text.compare(name_end, 3, ") S") == 0;
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
