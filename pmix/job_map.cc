// Telling the job this process's identifiers, and learning those of the others. Set-up path.
#include <algorithm>
#include <cstring>

#include "groups.h"
#include "job.h"

namespace lintel {

namespace {

// What a process publishes for an interface. Crosses nodes.
struct Identifiers {
  uint32_t version;
  uint32_t nid;
  uint32_t pid;
};
constexpr uint32_t identifiers_version = 1;
static_assert(sizeof(Identifiers) == 12);

std::string key_of(uint32_t number) { return "lintel.id." + std::to_string(number); }

}  // namespace

int Job::publish(ptl_handle_ni_t ni) {
  std::lock_guard guard(mutex_);
  if (references_ == 0) return PTL_NO_INIT;
  ptl_process_t own;
  if (const int code = PtlGetPhysId(ni, &own); code != PTL_OK) return code;
  if (publications_.contains(ni)) return PTL_ARG_INVALID;
  if (const std::vector<ptl_process_t>* known = launcher_->known_processes(); known != nullptr) {
    const ptl_process_t& expected = (*known)[place_.rank];
    if (own.phys.nid != expected.phys.nid || own.phys.pid != expected.phys.pid)
      return fail("this process is nid " + std::to_string(own.phys.nid) + " pid " +
                  std::to_string(own.phys.pid) + ", but PTL_NIDMAP and PTL_PIDMAP say nid " +
                  std::to_string(expected.phys.nid) + " pid " + std::to_string(expected.phys.pid) +
                  " (ptl_info shows the nid)");
    if (published_ == 0) launcher_->use_interface(groups().number_of(ni));
  } else {
    const Identifiers identifiers{identifiers_version, own.phys.nid, own.phys.pid};
    const std::string why =
        launcher_->put(key_of(published_), std::as_bytes(std::span(&identifiers, 1)));
    if (!why.empty()) return fail(why);
  }
  publications_[ni] = {published_++, false};
  return PTL_OK;
}

std::string Job::fetch_identifiers(uint32_t number, std::span<ptl_process_t> map) {
  if (const std::vector<ptl_process_t>* known = launcher_->known_processes(); known != nullptr) {
    std::copy(known->begin(), known->end(), map.begin());
    return "";
  }
  const std::string key = key_of(number);
  std::vector<std::byte> bytes;
  for (uint32_t rank = 0; rank < place_.size; ++rank) {
    if (std::string why = launcher_->get(rank, key, bytes); !why.empty()) return why;
    Identifiers identifiers{};
    if (bytes.size() == sizeof identifiers)
      std::memcpy(&identifiers, bytes.data(), sizeof identifiers);
    if (identifiers.version != identifiers_version)
      return "rank " + std::to_string(rank) +
             " published its identifiers in another form: it runs another version of Lintel";
    map[rank].phys.nid = identifiers.nid;
    map[rank].phys.pid = identifiers.pid;
  }
  return "";
}

int Job::fetch_map(ptl_handle_ni_t ni, std::span<ptl_process_t> map) {
  const auto found = publications_.find(ni);
  if (found == publications_.end() || map.size() != place_.size) return PTL_ARG_INVALID;
  std::string why = found->second.exchanged ? "" : fence();
  if (why.empty()) why = fetch_identifiers(found->second.number, map);
  return why.empty() ? PTL_OK : fail("the map of the job: " + why);
}

void Job::withdraw(ptl_handle_ni_t ni) {
  std::lock_guard guard(mutex_);
  publications_.erase(ni);
}

int Job::get_map(ptl_handle_ni_t ni, std::span<ptl_process_t> map) {
  std::lock_guard guard(mutex_);
  if (references_ == 0) return PTL_NO_INIT;
  return fetch_map(ni, map);
}

int Job::set_map(ptl_handle_ni_t ni) {
  std::lock_guard guard(mutex_);
  if (references_ == 0) return PTL_NO_INIT;
  ptl_size_t size = 0;
  if (const int code = PtlGetMap(ni, 0, nullptr, &size); code != PTL_OK && code != PTL_IGNORED)
    return code;  // not logically addressed
  std::vector<ptl_process_t> map(place_.size);
  if (const int code = fetch_map(ni, map); code != PTL_OK) return code;
  if (!groups().adopt_job(ni, place_.rank, place_.size))
    return fail("PtlJobSetMap: the interface has a group that PtlSetRank set");
  return PtlSetMap(ni, map.size(), map.data());
}

}  // namespace lintel
