// The calls for entries of this endpoint's portals, and their results. Each thread makes its own
// calls. Set-up path.
#pragma once

#include <vector>

#include "fuzz/event_taker.h"
#include "fuzz/history.h"
#include "fuzz/phase.h"

namespace lintel::fuzz {

// A call for one portal.
struct PortalCall {
  Action action;
  uint32_t id;  // entry or portal
  int portal;
  CallSeen seen;
};

class ListCalls {
 public:
  ListCalls(const Phase& phase, EventTaker& events);

  void append(const Entry& entry);
  void search(const Entry& entry);
  // Called by the thread with this number. Does nothing if the handle is known to be invalid.
  void unlink(int thread, const Entry& entry);
  // Cancels an append that has not been triggered.
  void cancel(const Entry& entry);
  void unlink_later(int thread, const Entry& entry, uint64_t threshold);
  void disable(int thread, int portal);
  void enable(int thread, int portal);
  // Triggered operations were executed during a call.
  void note_fired(int thread, const Fired& fired, uint64_t begin_ns);
  // Called after the phase: forgets appends that will not be triggered.
  void forget_triggered();

  // The calls of each thread in order, followed by those that the endpoint made after the phase.
  [[nodiscard]] const std::vector<std::vector<PortalCall>>& calls() const noexcept {
    return calls_;
  }

 private:
  struct Handle {
    ptl_handle_any_t handle = PTL_INVALID_HANDLE;
    bool ended = false;  // by a call of this endpoint
  };

  [[nodiscard]] ptl_me_t match_entry(const Entry& entry);
  [[nodiscard]] ptl_pt_index_t index_of(int portal) const {
    return first_portal + static_cast<ptl_pt_index_t>(portal);
  }
  void note(int thread, Action action, uint32_t id, int portal, CallSeen seen);

  const Phase& phase_;
  EventTaker& events_;
  std::vector<Handle> handles_;                    // by entry
  std::vector<std::vector<ptl_iovec_t>> vectors_;  // by entry
  std::vector<ptl_me_t> descriptions_;             // by entry, of triggered appends
  std::vector<std::vector<PortalCall>> calls_;     // by thread
};

}  // namespace lintel::fuzz
