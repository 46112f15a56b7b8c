// Setting, checking and keeping process groups. Set-up path.
#include "groups.h"

#include <portals4_lintel.h>

#include <algorithm>
#include <forward_list>
#include <string>
#include <utility>

#include "hand_environment.h"
#include "util/lock.h"
#include "util/log.h"
#include "util/node_identity.h"

namespace lintel {

namespace {

constexpr uint32_t from_environment = UINT32_MAX;

thread_local ptl_interface_t opening_number = PTL_IFACE_DEFAULT;

Groups*& instance() noexcept {
  static Groups* groups = new Groups;  // threads may still be here while static objects go
  return groups;
}

int complain(int code, const std::string& text) {
  log_message(LogLevel::error, "%s", text.c_str());
  return code;
}

int check_nids(const Group& group, ptl_nid_t own) {
  if (!group.nids_set || group.rank == PTL_RANK_ANY || group.nids[group.rank] == own) return PTL_OK;
  return complain(PTL_FAIL, "the nid map has nid " + nid_text(group.nids[group.rank]) +
                                " for rank " + std::to_string(group.rank) +
                                ", but the interface has nid " + nid_text(own) +
                                " (ptl_info shows it)");
}

int check_pids(const Group& group, ptl_pid_t own) {
  if (!group.pids_set || group.rank == PTL_RANK_ANY || group.pids[group.rank] == own) return PTL_OK;
  return complain(PTL_PID_INVALID, "the pid map has pid " + std::to_string(group.pids[group.rank]) +
                                       " for rank " + std::to_string(group.rank) +
                                       ", but the interface has pid " + std::to_string(own));
}

// PTL_IGNORED: there is no map yet.
bool is_logical(ptl_handle_ni_t ni) {
  ptl_size_t size = 0;
  const int code = PtlGetMap(ni, 0, nullptr, &size);
  return code == PTL_OK || code == PTL_IGNORED;
}

bool library_is_ready() { return PtlAtomicSync() != PTL_NO_INIT; }

int read_environment(Group& group, HandEnvironment& environment) {
  if (const std::string why = read_hand_environment(environment); !why.empty())
    return complain(PTL_FAIL, why);
  group.rank_set = true;
  if (!environment.rank) return PTL_OK;
  if (group.nids_set) return PTL_FAIL;
  if (group.pids_set) return PTL_PID_INVALID;
  group.rank = *environment.rank;
  group.size = static_cast<uint32_t>(std::max(environment.nids.size(), environment.pids.size()));
  group.nids_set = !environment.nids.empty();
  group.pids_set = !environment.pids.empty();
  group.nids = environment.nids;
  group.pids = environment.pids;
  return PTL_OK;
}

}  // namespace

Groups& groups() noexcept { return *instance(); }

void forget_groups() {
  // Locks of the parent may be held for good; what they guard stays where it is.
  static std::forward_list<Groups*>& of_parents = *new std::forward_list<Groups*>;
  of_parents.push_front(std::exchange(instance(), new Groups));
}

int Groups::install_hooks() {
  static const ptl_lintel_hooks_t hooks = {
      [](ptl_interface_t iface, unsigned, ptl_pid_t* pid) { return groups().opening(iface, pid); },
      [](ptl_handle_ni_t ni, int code) { return groups().opened(ni, code); },
      [](ptl_handle_ni_t ni) { groups().closed(ni); }};
  return PtlLintelSetHooks(&hooks);
}

// Compares what is known of the group with the interface, and sets the map when it is complete.
int Groups::settle(ptl_handle_ni_t ni, const ptl_process_t& own, Group& group) {
  if (const int code = check_nids(group, own.phys.nid); code != PTL_OK) return code;
  if (const int code = check_pids(group, own.phys.pid); code != PTL_OK) return code;
  if (!group.nids_set || !group.pids_set || group.map_in_library || !is_logical(ni)) return PTL_OK;
  std::vector<ptl_process_t> map(group.size);
  for (uint32_t rank = 0; rank < group.size; ++rank) {
    map[rank].phys.nid = group.nids[rank];
    map[rank].phys.pid = group.pids[rank];
  }
  if (const int code = PtlSetMap(ni, map.size(), map.data()); code != PTL_OK) return code;
  group.map_in_library = true;
  group.nids = {};
  group.pids = {};
  return PTL_OK;
}

// Works on a copy, so that a failure changes nothing.
template <typename Change>
int Groups::change(ptl_handle_ni_t ni, Change&& change_group) {
  if (!library_is_ready()) return PTL_NO_INIT;
  if (const int code = install_hooks(); code != PTL_OK)
    return complain(PTL_FAIL, "another run-time library has set the hooks of PtlNIInit");
  try {
    if (ni == PTL_INVALID_HANDLE) {
      const LockGuard pending_guard(pending_mutex_);
      Group group = pending_;
      if (const int code = change_group(group); code != PTL_OK) return code;
      pending_ = std::move(group);
      return PTL_OK;
    }
    const LockGuard guard(table_mutex_);
    ptl_process_t own;
    if (PtlGetPhysId(ni, &own) != PTL_OK) return PTL_NI_INVALID;
    Group group;
    if (const auto found = of_interface_.find(ni); found != of_interface_.end())
      group = found->second;
    int code = change_group(group);
    if (code == PTL_OK) code = settle(ni, own, group);
    if (code != PTL_OK) return code;
    if (job_is_pid_ && !job_) job_ = own.phys.pid;
    of_interface_[ni] = std::move(group);
    return PTL_OK;
  } catch (...) {
    return PTL_NO_SPACE;
  }
}

int Groups::set_job(uint32_t job) {
  if (!library_is_ready()) return PTL_NO_INIT;
  const LockGuard guard(table_mutex_);
  job_ = job;
  return PTL_OK;
}

int Groups::get_job(uint32_t* job) {
  if (!library_is_ready()) return PTL_NO_INIT;
  if (job == nullptr) return PTL_ARG_INVALID;
  const LockGuard guard(table_mutex_);
  *job = job_.value_or(PTL_JID_NONE);
  return PTL_OK;
}

int Groups::set_rank(ptl_handle_ni_t ni, uint32_t rank, uint32_t size) {
  HandEnvironment environment;
  const bool from_variables = rank == from_environment && size == from_environment;
  const int code = change(ni, [&](Group& group) {
    if (group.rank_set) return complain(PTL_FAIL, "PtlSetRank: the rank of the interface is set");
    if (from_variables) return read_environment(group, environment);
    if (rank >= size)
      return complain(PTL_ARG_INVALID, "PtlSetRank: rank " + std::to_string(rank) +
                                           " is not below the size of the group, " +
                                           std::to_string(size));
    group.rank_set = true;
    group.rank = rank;
    group.size = size;
    return PTL_OK;
  });
  if (code != PTL_OK || !from_variables) return code;
  const LockGuard guard(table_mutex_);
  if (environment.job) {
    job_ = environment.job;
  } else if (!job_) {
    job_is_pid_ = true;
    ptl_process_t own;
    if (environment.rank && !environment.pids.empty())
      job_ = environment.pids[*environment.rank];
    else if (ni != PTL_INVALID_HANDLE && PtlGetPhysId(ni, &own) == PTL_OK)
      job_ = own.phys.pid;
  }
  return PTL_OK;
}

int Groups::set_nids(ptl_handle_ni_t ni, const ptl_nid_t* map, uint32_t size) {
  return change(ni, [&](Group& group) {
    if (map == nullptr) return PTL_ARG_INVALID;
    if (!group.rank_set) return PTL_NO_INIT;
    if (group.nids_set) return complain(PTL_FAIL, "PtlSetNIDMap: the map is set already");
    if (size != group.size)
      return complain(PTL_FAIL, "PtlSetNIDMap: " + std::to_string(size) + " nids for a group of " +
                                    std::to_string(group.size));
    group.nids.assign(map, map + size);
    group.nids_set = size > 0;
    return PTL_OK;
  });
}

int Groups::set_pids(ptl_handle_ni_t ni, const ptl_pid_t* map, uint32_t size) {
  return change(ni, [&](Group& group) {
    if (map == nullptr) return PTL_ARG_INVALID;
    if (!group.rank_set) return PTL_NO_INIT;
    if (group.pids_set) return complain(PTL_PID_INVALID, "PtlSetPIDMap: the map is set already");
    if (size != group.size)
      return complain(PTL_PID_INVALID, "PtlSetPIDMap: " + std::to_string(size) +
                                           " pids for a group of " + std::to_string(group.size));
    group.pids.assign(map, map + size);
    group.pids_set = size > 0;
    return PTL_OK;
  });
}

int Groups::get_rank(ptl_handle_ni_t ni, uint32_t* rank, uint32_t* size) {
  if (!library_is_ready()) return PTL_NO_INIT;
  ptl_process_t own;
  if (PtlGetPhysId(ni, &own) != PTL_OK || rank == nullptr || size == nullptr) return PTL_NI_INVALID;
  const LockGuard guard(table_mutex_);
  const auto found = of_interface_.find(ni);
  if (found == of_interface_.end() || !found->second.rank_set) return PTL_NO_INIT;
  *rank = found->second.rank;
  *size = found->second.size;
  return PTL_OK;
}

int Groups::get_id(ptl_handle_ni_t ni, uint32_t rank, ptl_process_t* id) {
  if (!library_is_ready()) return PTL_NO_INIT;
  ptl_process_t own;
  if (PtlGetPhysId(ni, &own) != PTL_OK || id == nullptr) return PTL_NI_INVALID;
  const LockGuard guard(table_mutex_);
  const auto found = of_interface_.find(ni);
  if (found == of_interface_.end() || rank >= found->second.size) return PTL_NO_INIT;
  const Group& group = found->second;
  if (group.map_in_library)
    return PtlLintelGetMapEntry(ni, rank, id) == PTL_OK ? PTL_OK : PTL_NO_INIT;
  if (!group.nids_set || !group.pids_set) return PTL_NO_INIT;
  id->phys.nid = group.nids[rank];
  id->phys.pid = group.pids[rank];
  return PTL_OK;
}

bool Groups::adopt_job(ptl_handle_ni_t ni, uint32_t rank, uint32_t size) {
  const LockGuard guard(table_mutex_);
  Group& group = of_interface_[ni];
  if (group.rank_set) return false;
  group.rank_set = true;
  group.rank = rank;
  group.size = size;
  group.nids_set = true;
  group.pids_set = true;
  group.map_in_library = true;
  group.is_of_job = true;
  return true;
}

bool Groups::is_of_job(ptl_handle_ni_t ni) {
  const LockGuard guard(table_mutex_);
  const auto found = of_interface_.find(ni);
  return found != of_interface_.end() && found->second.is_of_job;
}

void Groups::prefer_pid(ptl_pid_t pid) {
  const LockGuard guard(pending_mutex_);
  preferred_pid_ = pid;
}

ptl_interface_t Groups::number_of(ptl_handle_ni_t ni) {
  const LockGuard guard(table_mutex_);
  const auto found = numbers_.find(ni);
  return found == numbers_.end() ? PTL_IFACE_DEFAULT : found->second;
}

int Groups::opening(ptl_interface_t iface, ptl_pid_t* pid) {
  pending_mutex_.lock();  // held until opened()
  opening_number = iface;
  if (!pending_.rank_set || !pending_.pids_set || pending_.rank == PTL_RANK_ANY) {
    if (*pid == PTL_PID_ANY) *pid = preferred_pid_;
    return PTL_OK;
  }
  if (*pid == PTL_PID_ANY) *pid = pending_.pids[pending_.rank];
  const int code = check_pids(pending_, *pid);
  if (code != PTL_OK) pending_mutex_.unlock();
  return code;
}

int Groups::opened(ptl_handle_ni_t ni, int code) {
  const LockGuard pending_guard(pending_mutex_, std::adopt_lock);
  if (code != PTL_OK) return code;
  try {
    const LockGuard guard(table_mutex_);
    numbers_[ni] = opening_number;
    if (!pending_.rank_set) return PTL_OK;
    if (const auto found = of_interface_.find(ni);
        found != of_interface_.end() && found->second.rank_set)
      return complain(PTL_FAIL, "PtlNIInit: the interface is open and has a group already");
    ptl_process_t own;
    if (PtlGetPhysId(ni, &own) != PTL_OK) return PTL_FAIL;
    Group group = pending_;
    if (const int verdict = settle(ni, own, group); verdict != PTL_OK) return verdict;
    if (job_is_pid_ && !job_) job_ = own.phys.pid;
    of_interface_[ni] = std::move(group);
    pending_ = Group();
    return PTL_OK;
  } catch (...) {
    return PTL_NO_SPACE;
  }
}

void Groups::closed(ptl_handle_ni_t ni) {
  const LockGuard guard(table_mutex_);
  of_interface_.erase(ni);
  numbers_.erase(ni);
}

}  // namespace lintel
