// Support for the tests of the shared-memory transport: a sink that records messages, and processes
// that end with the test.
#pragma once

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "portals4.h"
#include "shm/segment_directory.h"
#include "shm/shm_transport.h"
#include "support/deadlines.h"
#include "support/quiet_sink.h"
#include "util/asymmetric_fence.h"
#include "util/guarded_memory.h"

namespace lintel::test {

inline constexpr uint32_t test_nid = 0x7f000001;

// Polls until `done()`, at most for `limit`.
template <typename Done>
[[nodiscard]] bool wait_until(Done&& done, Milliseconds limit = wait_deadline) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (!done()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    sched_yield();  // there are more processes than processors
  }
  return true;
}

// Bytes that depend on the number of the message and on their position.
inline std::vector<std::byte> pattern(uint64_t number, size_t length) {
  std::vector<std::byte> bytes(length);
  for (size_t i = 0; i < length; ++i)
    bytes[i] = static_cast<std::byte>(number * 131 + i * 17 + (i >> 8));
  return bytes;
}

inline MessageHeader put_header(uint64_t number) {
  MessageHeader header{};
  header.kind = MessageKind::put;
  header.match_bits = number;
  return header;
}

class RecordingSink final : public QuietSink {
 public:
  struct Received {
    MessageHeader header;
    std::vector<std::byte> payload;
  };

  void* on_new_link(Link& link) noexcept override {
    new_links.push_back(&link);
    return link.context != nullptr ? link.context : this;
  }
  void on_messages(Link& link, const InboundMessage* messages, unsigned count) noexcept override {
    for (unsigned i = 0; i < count; ++i) {
      ++total;
      const InboundMessage& m = messages[i];
      if (failures.contains(&link)) ++after_failure;
      by_link[&link].push_back(
          {m.header, std::vector<std::byte>(m.payload, m.payload + m.payload_length)});
    }
  }
  void on_peer_failed(Link& link) noexcept override { ++failures[&link]; }

  std::vector<Link*> new_links;
  std::map<Link*, std::vector<Received>> by_link;
  std::map<Link*, int> failures;
  uint64_t total = 0;
  uint64_t after_failure = 0;
};

// Gives the test a directory of its own for segments. Each starting process removes what dead
// processes left in the common directory, and these tests leave files deliberately.
inline void isolate_segments() {
  static const bool done = [] {
    char name[] = "/dev/shm/lintel-test-XXXXXX";
    EXPECT_NE(mkdtemp(name), nullptr);
    set_segment_root(name);
    static const pid_t owner = getpid();
    std::atexit([] {
      std::error_code ignored;
      if (getpid() == owner) std::filesystem::remove_all(segment_root(), ignored);
    });
    return true;
  }();
  static_cast<void>(done);
}

// A directory for segments in which nothing is yet, for as long as this exists: other tests of the
// same process leave files. What is opened meanwhile is closed before this ends.
class EmptySegmentRoot {
 public:
  EmptySegmentRoot() {
    isolate_segments();
    former_ = segment_root();
    std::string name = former_ + "/root-XXXXXX";
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    set_segment_root(name);
  }
  ~EmptySegmentRoot() {
    std::error_code ignored;
    std::filesystem::remove_all(segment_root(), ignored);
    set_segment_root(former_);
  }
  EmptySegmentRoot(const EmptySegmentRoot&) = delete;
  EmptySegmentRoot& operator=(const EmptySegmentRoot&) = delete;

 private:
  std::string former_;
};

// The segments of this test with this pid.
inline std::vector<std::string> segments_of(uint32_t pid) {
  std::vector<std::string> found;
  if (const auto directory = SegmentDirectory::open(false)) {
    directory->for_each([&](const SegmentName& name) {
      if (name.id.pid == pid) found.push_back(directory->path_of(name));
      return true;
    });
  }
  return found;
}

// Settings of a job that no other process of a test has, nor an earlier run of this test.
inline ShmSettings test_settings(uint32_t pid = PTL_PID_ANY) {
  isolate_segments();
  static const std::string key =
      "test " + std::to_string(getpid()) + " " +
      std::to_string(std::chrono::steady_clock::now().time_since_epoch().count());
  ShmSettings settings;
  settings.nid = test_nid;
  settings.pid = pid;
  settings.job_key = key;
  settings.memory_bytes = 1 << 20;
  settings.cma_threshold_bytes = 16384;
  return settings;
}

inline std::unique_ptr<ShmTransport> open_transport(const ShmSettings& settings = test_settings()) {
  register_asymmetric_fence();
  install_fault_handler();
  std::unique_ptr<ShmTransport> transport;
  std::string reason;
  const OpenStatus status = ShmTransport::open(settings, transport, reason);
  EXPECT_EQ(status, OpenStatus::opened) << reason;
  return transport;
}

inline OpenStatus try_open(const ShmSettings& settings) {
  std::unique_ptr<ShmTransport> transport;
  std::string reason;
  return ShmTransport::open(settings, transport, reason);
}

inline Link* connect_or_fail(ShmTransport& from, ProcessId to) {
  std::string reason;
  Link* link = from.connect(to, &reason);
  EXPECT_NE(link, nullptr) << reason;
  return link;
}

// Sends, and polls while the lane is full.
inline SendStatus send_message(ShmTransport& transport, Link& link, uint64_t number, size_t length,
                               MessageSink& sink) {
  std::vector<std::byte> payload = pattern(number, length);
  const Piece piece{payload.data(), payload.size()};
  SendStatus status = SendStatus::queue_full;
  static_cast<void>(wait_until([&] {
    status = transport.send(link, put_header(number), &piece, 1);
    if (status != SendStatus::queue_full && status != SendStatus::connecting) return true;
    transport.poll(sink, 64);
    return false;
  }));
  return status;
}

// A forked process that runs a function and exits with its result. The destructor kills it if
// necessary.
class ChildProcess {
 public:
  template <typename Body>
  explicit ChildProcess(Body&& body) {
    std::fflush(nullptr);
    pid_ = fork();
    if (pid_ == 0) {
      alarm(static_cast<unsigned>(test_deadline.count() / 1000));
      _exit(body());
    }
  }
  ChildProcess(ChildProcess&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}
  ChildProcess& operator=(ChildProcess&&) = delete;
  ~ChildProcess() {
    if (pid_ > 0) kill_and_wait();
  }

  [[nodiscard]] pid_t pid() const { return pid_; }
  void kill_and_wait() {
    kill(pid_, SIGKILL);
    waitpid(std::exchange(pid_, -1), nullptr, 0);
  }
  // The value that the body returned, or 1000 plus the signal that ended the process, or -1 after
  // the deadline.
  [[nodiscard]] int wait() {
    int status = 0;
    if (!wait_until([&] { return waitpid(pid_, &status, WNOHANG) == pid_; })) return -1;
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
  }

 private:
  pid_t pid_ = -1;
};

// An object in memory that parent and children share.
template <typename T>
class Shared {
 public:
  Shared()
      : object_(new (mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                          -1, 0)) T{}) {}
  ~Shared() { munmap(object_, sizeof(T)); }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  T* operator->() const { return object_; }
  T& operator*() const { return *object_; }

 private:
  T* object_;
};

}  // namespace lintel::test
