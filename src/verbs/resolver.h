// Finds out where datagrams of a process go, given its nid and pid: user space has no well-known
// queue pair, so each process listens at the TCP port of its pid (ResolverPort) and asks others at
// theirs (ResolverInquiries). One thread, asleep unless there is a question; it also makes the
// calls that may wait, which the message path must not.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "transport/open_status.h"
#include "util/descriptor.h"
#include "util/service_thread.h"
#include "verbs/resolver_inquiries.h"
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
  void run() noexcept;
  void handle(uint32_t what) noexcept;

  ResolverPort port_;
  ResolverResults results_;
  ResolverInquiries inquiries_{results_};
  ResolverRecord record_{};
  Client* client_ = nullptr;
  Descriptor epoll_;
  Descriptor wake_event_;
  std::atomic<bool> stopping_{false};
  ServiceThread thread_;
};

}  // namespace lintel
