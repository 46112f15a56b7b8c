// What was asked of the resolver and is not asked of the network yet, and answers that were not
// fetched yet. Connection path; any thread.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "transport/packet_link.h"

namespace lintel {

struct ResolverQuestion {
  ProcessId peer{};
  // Not where the process is, but whether it is there: the answer says nothing about one that takes
  // its place later.
  bool whether_gone = false;
};

struct ResolverResult {
  ResolveStatus status = ResolveStatus::pending;
  bool refused = false;  // the node says that nobody is there
  uint64_t settled_ns = 0;
  Route route;
  std::string reason;
};

class ResolverResults {
 public:
  // An answer is handed out once: a later question is asked again, as another process may be there
  // by then. `asked`: the question is a new one. Throws when there is no memory.
  [[nodiscard]] ResolverResult take(const ResolverQuestion& question, bool& asked);
  // False: no question waits.
  [[nodiscard]] bool next_question(ResolverQuestion& question) noexcept;
  void settle(const ResolverQuestion& question, ResolverResult&& result) noexcept;

 private:
  static uint64_t key_of(const ResolverQuestion& question) noexcept {
    return uint64_t{question.peer.nid} << 32 | uint64_t{question.whether_gone} << 31 |
           question.peer.pid;
  }

  std::mutex mutex_;
  std::unordered_map<uint64_t, ResolverResult> results_;
  std::vector<ResolverQuestion> questions_;
};

}  // namespace lintel
