// Links about whose queue pairs something is left to do in the next rounds. The poller.
#pragma once

#include <cstddef>
#include <vector>

#include "util/log.h"
#include "util/node_identity.h"
#include "verbs/verbs_link.h"

namespace lintel {

class UnfinishedLinks {
 public:
  [[nodiscard]] bool is_empty() const noexcept { return links_.empty(); }

  void add(VerbsLink& link) noexcept {
    if (link.listed) return;
    try {
      links_.push_back(&link);
      link.listed = true;
    } catch (...) {
      log_message(LogLevel::error, "verbs: no memory to go on with %s",
                  ProcessText(link.peer.nid, link.peer.pid).c_str());
    }
  }

  // Calls serve() with each; those for which it is true are finished.
  template <typename Serve>
  void serve(const Serve& serve) noexcept {
    for (size_t i = 0; i < links_.size();) {
      VerbsLink& link = *links_[i];
      if (serve(link)) {
        link.listed = false;
        links_[i] = links_.back();
        links_.pop_back();
      } else {
        ++i;
      }
    }
  }

 private:
  std::vector<VerbsLink*> links_;
};

}  // namespace lintel
