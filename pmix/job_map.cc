// Telling the job this process's identifiers, and learning those of the others. Set-up path.
#include <algorithm>
#include <cstring>

#include "groups.h"
#include "job.h"
#include "job_values.h"
#include "util/node_identity.h"

namespace lintel {

namespace {

// In smaller jobs each process fetches the few values itself.
constexpr uint32_t fewest_fetched_together = 32;

std::string key_of(uint32_t number) { return "lintel.id." + std::to_string(number); }
std::string fetch_key_of(uint32_t number) { return "lintel.fetch." + std::to_string(number); }

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
      return fail("this process is nid " + nid_text(own.phys.nid) + " pid " +
                  std::to_string(own.phys.pid) + ", but PTL_NIDMAP and PTL_PIDMAP say nid " +
                  nid_text(expected.phys.nid) + " pid " + std::to_string(expected.phys.pid) +
                  " (ptl_info shows the nid)");
    if (published_ == 0) launcher_->use_interface(groups().number_of(ni));
  } else {
    const Identifiers identifiers{identifiers_version, own.phys.nid, own.phys.pid};
    const std::string why =
        launcher_->put(key_of(published_), std::as_bytes(std::span(&identifiers, 1)));
    if (!why.empty()) return fail(why);
    if (fetches_together() && place_.rank == place_.local_leader) {
      // Without such memory, an empty announcement lets the others know.
      auto shared = SharedFetch::create(published_, place_.size);
      const std::vector<std::byte> announcement =
          shared != nullptr ? shared->announcement() : std::vector<std::byte>();
      if (const std::string failed = launcher_->put(fetch_key_of(published_), announcement);
          !failed.empty())
        return fail(failed);
      fetched_[published_] = std::move(shared);
    }
  }
  publications_[ni] = {published_++, false};
  return PTL_OK;
}

bool Job::fetches_together() const noexcept {
  return place_.size >= fewest_fetched_together && place_.local_size > 1;
}

std::string Job::fetch_one(uint32_t rank, const std::string& key, ptl_process_t& id) {
  std::vector<std::byte> bytes;
  if (std::string why = launcher_->get(rank, key, bytes); !why.empty()) return why;
  if (!read_identifiers(bytes, id))
    return "rank " + std::to_string(rank) +
           " published its identifiers in another form: it runs another version of Lintel";
  return "";
}

int Job::with_fetched_map(uint32_t number, const std::function<int(const ptl_process_t*)>& use) {
  const std::string key = key_of(number);
  const auto fetch = [&](uint32_t rank, ptl_process_t& id) { return fetch_one(rank, key, id); };
  std::unique_ptr<SharedFetch>& shared = fetched_[number];
  std::string why;
  if (fetches_together() && shared == nullptr && place_.rank != place_.local_leader) {
    std::vector<std::byte> announcement;
    why = launcher_->get(place_.local_leader, fetch_key_of(number), announcement);
    if (why.empty()) shared = SharedFetch::attach(announcement, number, place_.size);
  }
  if (!why.empty()) return fail("the map of the job: " + why);
  if (shared != nullptr) {
    why = shared->run(place_.local_rank, place_.local_size, fetch);
    return why.empty() ? use(shared->map()) : fail("the map of the job: " + why);
  }
  std::vector<ptl_process_t> map(place_.size);
  for (uint32_t rank = 0; rank < place_.size && why.empty(); ++rank) why = fetch(rank, map[rank]);
  return why.empty() ? use(map.data()) : fail("the map of the job: " + why);
}

int Job::with_map(ptl_handle_ni_t ni, const std::function<int(const ptl_process_t*)>& use) {
  const auto found = publications_.find(ni);
  if (found == publications_.end()) return PTL_ARG_INVALID;
  if (!found->second.exchanged)
    if (const std::string why = fence(); !why.empty()) return fail("the map of the job: " + why);
  if (const std::vector<ptl_process_t>* known = launcher_->known_processes(); known != nullptr)
    return use(known->data());
  return with_fetched_map(found->second.number, use);
}

bool Job::is_published(ptl_handle_ni_t ni) {
  std::lock_guard guard(mutex_);
  return publications_.contains(ni);
}

void Job::withdraw(ptl_handle_ni_t ni) {
  std::lock_guard guard(mutex_);
  const auto found = publications_.find(ni);
  if (found == publications_.end()) return;
  fetched_.erase(found->second.number);
  publications_.erase(found);
}

int Job::get_map(ptl_handle_ni_t ni, std::span<ptl_process_t> map) {
  std::lock_guard guard(mutex_);
  if (references_ == 0) return PTL_NO_INIT;
  if (map.size() != place_.size) return PTL_ARG_INVALID;
  return with_map(ni, [&](const ptl_process_t* fetched) {
    std::copy_n(fetched, map.size(), map.begin());
    return PTL_OK;
  });
}

int Job::set_map(ptl_handle_ni_t ni) {
  std::lock_guard guard(mutex_);
  if (references_ == 0) return PTL_NO_INIT;
  ptl_size_t size = 0;
  if (const int code = PtlGetMap(ni, 0, nullptr, &size); code != PTL_OK && code != PTL_IGNORED)
    return code;                              // not logically addressed
  if (groups().is_of_job(ni)) return PTL_OK;  // it has this map already
  return with_map(ni, [&](const ptl_process_t* map) {
    if (!groups().adopt_job(ni, place_.rank, place_.size))
      return fail("PtlJobSetMap: the interface has a group that PtlSetRank set");
    return PtlSetMap(ni, place_.size, map);
  });
}

}  // namespace lintel
