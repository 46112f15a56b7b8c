// Finds out where datagrams of a process go, given its nid and pid: user space has no well-known queue
// pair, so each process listens on TCP at the port of its pid and writes one record (resolver_record.h)
// to whoever connects. One thread, asleep unless somebody asks; it also does what the message path has to
// leave to somebody who may wait. resolver.cc: the port and the thread; resolver_ask.cc: asking others.
#pragma once

#include <pthread.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "transport/open_status.h"
#include "transport/packet_link.h"
#include "verbs/resolver_record.h"

namespace lintel {

class Resolver {
 public:
  // What the resolver's thread calls.
  class Client {
   public:
    // May wait. False: `reason` receives a clause that says why nothing can be sent there.
    virtual bool make_route(const UdDestination& destination, Route& route,
                            std::string& reason) = 0;
    virtual void work() noexcept = 0;  // after wake(); may wait
    // Another descriptor to look after, or negative; and when it is readable. Never waits.
    [[nodiscard]] virtual int event_descriptor() const noexcept = 0;
    virtual void handle_events() noexcept = 0;

   protected:
    ~Client() = default;
  };

  Resolver() = default;
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;
  ~Resolver();

  // Set-up path. Takes the port of `id` at the address that is its nid. Askers wait until start().
  [[nodiscard]] OpenStatus claim(ProcessId id, std::string& reason);
  // Set-up path. `timeout_ns`: after this a node that does not answer counts as unreachable. False:
  // `reason` says why not.
  [[nodiscard]] bool start(const UdDestination& own, Client& client, uint64_t timeout_ns,
                           std::string& reason);
  // Set-up path; idempotent. The client is not called any more.
  void stop() noexcept;

  // Connection path; any thread; never waits. A result is handed out once: what is asked later is looked
  // up again, as another process may be there by then. `refused`: unreachable as its node says that nobody is there.
  [[nodiscard]] ResolveStatus resolve(ProcessId peer, Route& route, std::string* reason,
                                      bool* refused = nullptr) noexcept;
  // Any thread: the client has work. A system call.
  void wake() noexcept;

 private:
  static constexpr unsigned most_asking = 64;  // at a time
  static constexpr uint64_t first_retry_ns = 2'000'000;
  static constexpr uint64_t longest_retry_ns = 50'000'000;
  // Where nobody listens somebody may be about to; on this very node the kernel knows better.
  static constexpr uint64_t believe_refused_ns = 1'000'000'000;
  static constexpr uint64_t believe_own_node_ns = 10'000'000;
  static constexpr uint64_t result_lasts_ns = 1'000'000'000;
  static constexpr size_t most_results = 4096;  // that nobody fetched

  struct Result {
    ResolveStatus status = ResolveStatus::pending;
    bool refused = false;
    uint64_t settled_ns = 0;
    Route route;
    std::string reason;
  };
  struct Question {
    ProcessId peer{};
    // Not where it is, but whether it is there: the answer says nothing of one that takes its place later.
    bool whether_gone = false;
  };
  // The thread's.
  struct Asking {
    Question question;
    bool used = false;
    int socket = -1;
    uint64_t started_ns = 0;
    uint64_t next_ns = 0;  // of the next attempt, or when to give up
    uint64_t retry_ns = 0;
    unsigned filled = 0;  // bytes of the record
    ResolverRecord record{};
  };

  static uint64_t key_of(const Question& question) noexcept {
    return uint64_t{question.peer.nid} << 32 | uint64_t{question.whether_gone} << 31 |
           question.peer.pid;
  }
  void forget_old_results(uint64_t now) noexcept;  // mutex_ held
  void close_descriptors() noexcept;

  static void* entry(void* self) noexcept;
  void run() noexcept;
  void handle(uint32_t what) noexcept;
  void serve() noexcept;
  [[nodiscard]] int wait_ms() const noexcept;

  // resolver_ask.cc; the thread's
  void take_questions() noexcept;
  void attempt(Asking& asking, uint64_t now) noexcept;
  void read_answer(Asking& asking) noexcept;
  void run_timers(uint64_t now) noexcept;
  void try_again(Asking& asking, int error, uint64_t now) noexcept;
  void give_up(Asking& asking, const char* why, bool refused = false) noexcept;
  void answered(Asking& asking) noexcept;
  void settle(Asking& asking, Result&& result) noexcept;
  void drop_socket(Asking& asking) noexcept;

  ProcessId id_{};
  bool is_roce_ = false;
  ResolverRecord record_{};
  Client* client_ = nullptr;
  uint64_t timeout_ns_ = 0;
  int listener_ = -1;
  int epoll_ = -1;
  int wake_event_ = -1;
  bool running_ = false;
  std::atomic<bool> stopping_{false};
  pthread_t thread_{};
  std::array<Asking, most_asking> asking_{};

  std::mutex mutex_;  // everything below
  std::unordered_map<uint64_t, Result> results_;
  std::vector<Question> questions_;
};

}  // namespace lintel
