// Requests records of other processes, several at once: each over a TCP connection that is tried
// again for a while. Connection path, the resolver's thread.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "transport/packet_link.h"
#include "util/descriptor.h"
#include "util/lock.h"
#include "verbs/resolver_record.h"

namespace lintel {

// A question to the resolver.
struct ResolverQuestion {
  ProcessId peer{};
  // The question is whether the process is gone, not where it is. The answer is not about a process
  // that takes its place later.
  bool whether_gone = false;
};

struct ResolverResult {
  ResolveStatus status = ResolveStatus::pending;
  bool refused = false;  // the node answers that no process is there
  uint64_t settled_ns = 0;
  Route route;
  std::string reason;
};

// Questions that were not sent to the network yet, and answers that were not fetched yet.
// Connection path; any thread.
class ResolverResults {
 public:
  // Returns an answer once: a later question is sent again, as another process may be there by
  // then. `asked`: the question is a new one. Throws when there is no memory.
  [[nodiscard]] ResolverResult take(const ResolverQuestion& question, bool& asked);
  // False: no question waits.
  [[nodiscard]] bool next_question(ResolverQuestion& question) noexcept;
  void settle(const ResolverQuestion& question, ResolverResult&& result) noexcept;

 private:
  static uint64_t key_of(const ResolverQuestion& question) noexcept {
    return uint64_t{question.peer.nid} << 32 | uint64_t{question.whether_gone} << 31 |
           question.peer.pid;
  }

  Mutex mutex_;
  std::unordered_map<uint64_t, ResolverResult> results_ LINTEL_GUARDED_BY(mutex_);
  std::vector<ResolverQuestion> questions_ LINTEL_GUARDED_BY(mutex_);
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

class ResolverInquiries {
 public:
  static constexpr unsigned most = 64;  // maximum number of inquiries at a time

  explicit ResolverInquiries(ResolverResults& results) noexcept : results_(results) {}

  // Set-up path. `epoll` reports sockets by their index. See Resolver::start().
  void open(int epoll, uint32_t own_nid, bool is_roce, ResolverClient& client,
            uint64_t timeout_ns) noexcept;

  void take_questions() noexcept;
  // The socket of this inquiry is readable.
  void read_answer(uint32_t index) noexcept;
  void run_timers() noexcept;
  // Returns the time until run_timers() has to be called; negative: no timer is set.
  [[nodiscard]] int wait_ms() const noexcept;

 private:
  struct Inquiry {
    ResolverQuestion question;
    bool used = false;
    Descriptor socket;
    uint64_t started_ns = 0;
    uint64_t next_ns = 0;  // time of the next attempt, or of giving up
    uint64_t retry_ns = 0;
    unsigned filled = 0;  // bytes of the record
    ResolverRecord record{};
  };

  void attempt(Inquiry& inquiry, uint64_t now) noexcept;
  void try_again(Inquiry& inquiry, int error, uint64_t now) noexcept;
  void give_up(Inquiry& inquiry, const char* why, bool refused = false) noexcept;
  void handle_record(Inquiry& inquiry) noexcept;
  void settle(Inquiry& inquiry, ResolverResult&& result) noexcept;

  ResolverResults& results_;
  int epoll_ = -1;
  uint32_t own_nid_ = 0;
  bool is_roce_ = false;
  ResolverClient* client_ = nullptr;
  uint64_t timeout_ns_ = 0;
  std::array<Inquiry, most> inquiries_{};
};

}  // namespace lintel
