// Exchange of the identifiers of interfaces between the processes of a job: each publishes its own,
// then finds those of the others. Set-up path; the lock of the Job is held.
#pragma once

#include <portals4.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "job_values.h"
#include "launcher.h"
#include "shared_fetch.h"

namespace lintel {

// Functions that return a text say why they failed, and an empty one if they did not.
class JobMap {
 public:
  // Called when the job is joined; both arguments must stay.
  void open(Launcher& launcher, const JobPlace& place) noexcept {
    launcher_ = &launcher;
    place_ = &place;
  }
  void clear() noexcept;

  [[nodiscard]] bool contains(ptl_handle_ni_t ni) const { return publications_.contains(ni); }
  // `own`: the identifiers of this process at an interface that is not published yet.
  [[nodiscard]] std::string publish(ptl_handle_ni_t ni, const ptl_process_t& own);
  // The handle is no interface any more; another one may get it.
  void withdraw(ptl_handle_ni_t ni);
  // All processes have met: what they published can be found.
  void note_fence() noexcept;
  // Whether the identifiers of a published interface were exchanged.
  [[nodiscard]] bool is_exchanged(ptl_handle_ni_t ni) const {
    return publications_.at(ni).exchanged;
  }
  // Calls `use` with the identifiers of all ranks at an interface that is exchanged.
  [[nodiscard]] std::string find(ptl_handle_ni_t ni,
                                 const std::function<void(const ptl_process_t*)>& use);

 private:
  struct Publication {
    uint32_t number;
    bool exchanged;
  };
  [[nodiscard]] bool fetches_together() const noexcept;
  std::string fetch_one(uint32_t rank, const std::string& key, ptl_process_t& id);
  // Why no message to that rank would reach it, if its nid is that of this node.
  [[nodiscard]] std::string why_mistaken(uint32_t rank, const Identifiers& identifiers) const;

  Launcher* launcher_ = nullptr;
  const JobPlace* place_ = nullptr;
  std::map<ptl_handle_ni_t, Publication> publications_;
  uint32_t published_ = 0;
  Identifiers own_{};  // identifiers that were published last
  // Shared fetches by number: the leader of a node has made each, others have found it. Kept for
  // the next find().
  std::map<uint32_t, std::unique_ptr<SharedFetch>> fetched_;
};

}  // namespace lintel
