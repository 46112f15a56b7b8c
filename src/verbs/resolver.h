// Finds out where datagrams of a process go, given its nid and pid: user space has no well-known
// queue pair, so each process listens at the TCP port of its pid (ResolverPort) and asks others at
// theirs. One thread, asleep unless there is a question; it also makes the calls that may wait,
// which the message path must not.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "transport/open_status.h"
#include "transport/packet_link.h"
#include "util/descriptor.h"
#include "util/lock.h"
#include "util/service_thread.h"
#include "verbs/resolver_record.h"

namespace lintel {

// The TCP port that belongs to the pid of this process: a process that connects there is sent one
// record. Set-up and connection path.
class ResolverPort {
 public:
  ResolverPort() = default;
  ResolverPort(const ResolverPort&) = delete;
  ResolverPort& operator=(const ResolverPort&) = delete;
  ~ResolverPort();

  // Takes the port of `id` at the address that is its nid. Processes that connect wait until
  // serve().
  [[nodiscard]] OpenStatus claim(ProcessId id, std::string& reason);
  [[nodiscard]] ProcessId id() const noexcept { return id_; }
  [[nodiscard]] int descriptor() const noexcept { return listener_; }
  // Sends the record to processes that have connected.
  void serve(const ResolverRecord& record) const noexcept;

 private:
  ProcessId id_{};
  int listener_ = -1;
};

// Functions that the resolver's thread calls.
class ResolverClient {
 public:
  // May wait. False: `reason` receives a clause that says why nothing can be sent there.
  virtual bool make_route(const UdDestination& destination, Route& route, std::string& reason) = 0;
  virtual void work() noexcept = 0;  // after wake(); may wait
  // Returns another descriptor to poll, or a negative number. handle_events() is called when it is
  // readable, and never waits.
  [[nodiscard]] virtual int event_descriptor() const noexcept = 0;
  virtual void handle_events() noexcept = 0;

 protected:
  ~ResolverClient() = default;
};

class Resolver {
 public:
  using Client = ResolverClient;

  Resolver() = default;
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;
  ~Resolver() { stop(); }

  // Set-up path. Takes the port of `id`. Processes that connect to it wait until start().
  [[nodiscard]] OpenStatus claim(ProcessId id, std::string& reason) {
    return port_.claim(id, reason);
  }
  // Set-up path. `timeout_ns`: after this a node that does not answer counts as unreachable. False:
  // `reason` says why not.
  [[nodiscard]] bool start(const UdDestination& own, Client& client, uint64_t timeout_ns,
                           std::string& reason);
  // Set-up path; idempotent. The client is not called any more.
  void stop() noexcept;

  // Connection path; any thread; never waits. `refused`: requests whether the process exists, and
  // receives whether its node answered that it does not.
  [[nodiscard]] ResolveStatus resolve(ProcessId peer, Route& route, std::string* reason,
                                      bool* refused = nullptr) noexcept;
  // Any thread: the client has work. A system call.
  void wake() noexcept;

 private:
  static constexpr unsigned most_asked = 64;  // maximum number of processes asked at a time

  struct Answer {
    ResolveStatus status = ResolveStatus::pending;
    bool refused = false;  // the node answers that no process is there
    Route route;
    std::string reason;
    uint64_t settled_ns = 0;
  };
  // A question, from resolve() until its answer was fetched, or is old.
  struct Inquiry {
    ProcessId peer{};
    Answer answer;  // under the mutex
    // --- the thread, while there is no answer
    Descriptor socket;
    uint64_t started_ns = 0;
    uint64_t next_ns = 0;  // time of the next attempt, or of giving up
    uint64_t retry_ns = 0;
    unsigned filled = 0;  // bytes of the record
    ResolverRecord record{};
  };

  bool take(ProcessId peer, bool whether_gone, Answer& answer);
  [[nodiscard]] Inquiry* next_question() noexcept;

  // --- the thread
  void run() noexcept;
  void handle(uint64_t what) noexcept;
  void take_questions() noexcept;
  void run_timers() noexcept;
  [[nodiscard]] int wait_ms() const noexcept;
  void attempt(Inquiry& inquiry, uint64_t now) noexcept;
  void read_answer(Inquiry& inquiry) noexcept;
  void try_again(Inquiry& inquiry, int error, uint64_t now) noexcept;
  void give_up(Inquiry& inquiry, const char* why, bool refused = false) noexcept;
  void take_record(Inquiry& inquiry) noexcept;
  void settle(Inquiry& inquiry, Answer&& answer) noexcept;

  ResolverPort port_;
  UdDestination own_;
  Client* client_ = nullptr;
  uint64_t timeout_ns_ = 0;
  Descriptor epoll_;
  Descriptor wake_event_;
  std::vector<Inquiry*> asked_;  // the thread: those under way
  Mutex mutex_;
  std::unordered_map<uint64_t, Inquiry> inquiries_ LINTEL_GUARDED_BY(mutex_);
  std::vector<Inquiry*> waiting_ LINTEL_GUARDED_BY(mutex_);  // not asked yet
  std::atomic<bool> stopping_{false};
  ServiceThread thread_;
};

}  // namespace lintel
