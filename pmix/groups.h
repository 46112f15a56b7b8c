// Process groups of interfaces: rank, size, nids and pids, as PtlSetRank and its companions set
// them. Set-up path.
#pragma once

#include <portals4_runtime.h>

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "util/lock.h"

namespace lintel {

struct Group {
  bool rank_set = false;
  uint32_t rank = PTL_RANK_ANY;
  uint32_t size = 0;
  // Empty until set; and after PtlSetMap, which keeps them for all processes of the node.
  std::vector<uint32_t> nids;
  std::vector<uint32_t> pids;
  bool nids_set = false;
  bool pids_set = false;
  bool map_in_library = false;
  bool is_of_job = false;  // set by adopt_job()
};

class Groups {
 public:
  // Installs the hooks by which PtlNIInit and PtlNIFini tell of interfaces.
  [[nodiscard]] static int install_hooks();

  int set_job(uint32_t job);
  int get_job(uint32_t* job);
  int set_rank(ptl_handle_ni_t ni, uint32_t rank, uint32_t size);
  int set_nids(ptl_handle_ni_t ni, const ptl_nid_t* map, uint32_t size);
  int set_pids(ptl_handle_ni_t ni, const ptl_pid_t* map, uint32_t size);
  int get_rank(ptl_handle_ni_t ni, uint32_t* rank, uint32_t* size);
  int get_id(ptl_handle_ni_t ni, uint32_t rank, ptl_process_t* id);

  // The interface has the ranks of the job as its map. False if it has a group of its own.
  [[nodiscard]] bool adopt_job(ptl_handle_ni_t ni, uint32_t rank, uint32_t size);
  [[nodiscard]] bool is_of_job(ptl_handle_ni_t ni);
  // The pid of interfaces that ask for none: that of a job by hand.
  void prefer_pid(ptl_pid_t pid);
  // The number that the interface was opened with, as far as it is known.
  [[nodiscard]] ptl_interface_t number_of(ptl_handle_ni_t ni);

  // --- hooks
  // Takes pending_mutex_ if it succeeds; opened() gives it back.
  int opening(ptl_interface_t iface, ptl_pid_t* pid) LINTEL_UNCHECKED_LOCKS;
  int opened(ptl_handle_ni_t ni, int code) LINTEL_UNCHECKED_LOCKS;
  void closed(ptl_handle_ni_t ni);

 private:
  template <typename Change>
  int change(ptl_handle_ni_t ni, Change&& change_group);
  int settle(ptl_handle_ni_t ni, const ptl_process_t& own, Group& group);

  // Guards the data of the next PtlNIInit; held from its beginning to its end. Taken before
  // table_mutex_.
  Mutex pending_mutex_;
  Group pending_ LINTEL_GUARDED_BY(pending_mutex_);
  ptl_pid_t preferred_pid_ LINTEL_GUARDED_BY(pending_mutex_) = PTL_PID_ANY;
  // Last in the order of locks, also of the library's: nothing is called that takes those.
  Mutex table_mutex_;
  std::map<ptl_handle_ni_t, Group> of_interface_ LINTEL_GUARDED_BY(table_mutex_);
  std::map<ptl_handle_ni_t, ptl_interface_t> numbers_ LINTEL_GUARDED_BY(table_mutex_);
  std::optional<uint32_t> job_ LINTEL_GUARDED_BY(table_mutex_);
  bool job_is_pid_ LINTEL_GUARDED_BY(table_mutex_) =
      false;  // until an interface or a map gives the pid
};

// Returns the groups of this process; a forked child gets new ones.
[[nodiscard]] Groups& groups() noexcept;
void forget_groups();

}  // namespace lintel
