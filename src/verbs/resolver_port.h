// The TCP port that belongs to the pid of this process: a process that connects there is sent one
// record. Set-up and connection path.
#pragma once

#include <string>

#include "transport/open_status.h"
#include "verbs/resolver_record.h"

namespace lintel {

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

}  // namespace lintel
