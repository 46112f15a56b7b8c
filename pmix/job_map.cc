// Publishing and fetching identifiers, one by one or by a few processes of a node for all of it.
#include "job_map.h"

#include <span>
#include <utility>
#include <vector>

#include "groups.h"
#include "util/node_identity.h"

namespace lintel {

namespace {

// Minimum number of ranks for a common fetch. In smaller jobs each process fetches the few values
// itself.
constexpr uint32_t fewest_fetched_together = 32;

std::string key_of(uint32_t number) { return "lintel.id." + std::to_string(number); }
std::string fetch_key_of(uint32_t number) { return "lintel.fetch." + std::to_string(number); }

}  // namespace

void JobMap::clear() noexcept {
  publications_.clear();
  fetched_.clear();
}

std::string JobMap::publish(ptl_handle_ni_t ni, const ptl_process_t& own) {
  if (const std::vector<ptl_process_t>* known = launcher_->known_processes(); known != nullptr) {
    const ptl_process_t& expected = (*known)[place_->rank];
    if (own.phys.nid != expected.phys.nid || own.phys.pid != expected.phys.pid)
      return "this process is nid " + nid_text(own.phys.nid) + " pid " +
             std::to_string(own.phys.pid) + ", but PTL_NIDMAP and PTL_PIDMAP say nid " +
             nid_text(expected.phys.nid) + " pid " + std::to_string(expected.phys.pid) +
             " (ptl_info shows the nid)";
    if (published_ == 0) launcher_->use_interface(groups().number_of(ni));
  } else {
    own_ = {identifiers_version, own.phys.nid, own.phys.pid, 0, number_of_network()};
    std::string why = launcher_->put(key_of(published_), std::as_bytes(std::span(&own_, 1)));
    if (!why.empty()) return why;
    if (fetches_together() && place_->rank == place_->local_leader) {
      // If there is no such memory, an empty announcement reports that to the others.
      auto shared = SharedFetch::create(published_, place_->size);
      const std::vector<std::byte> announcement =
          shared != nullptr ? shared->announcement() : std::vector<std::byte>();
      why = launcher_->put(fetch_key_of(published_), announcement);
      if (!why.empty()) return why;
      fetched_[published_] = std::move(shared);
    }
  }
  publications_[ni] = {published_++, false};
  return "";
}

void JobMap::withdraw(ptl_handle_ni_t ni) {
  const auto found = publications_.find(ni);
  if (found == publications_.end()) return;
  fetched_.erase(found->second.number);
  publications_.erase(found);
}

void JobMap::note_fence() noexcept {
  for (auto& [ni, publication] : publications_) publication.exchanged = true;
}

bool JobMap::fetches_together() const noexcept {
  return place_->size >= fewest_fetched_together && place_->local_size > 1;
}

std::string JobMap::fetch_one(uint32_t rank, const std::string& key, ptl_process_t& id) {
  std::vector<std::byte> bytes;
  if (std::string why = launcher_->get(rank, key, bytes); !why.empty()) return why;
  Identifiers identifiers;
  if (!read_identifiers(bytes, identifiers))
    return "rank " + std::to_string(rank) +
           " published its identifiers in another form: it runs another version of Lintel";
  id.phys.nid = identifiers.nid;
  id.phys.pid = identifiers.pid;
  return why_mistaken(rank, identifiers);
}

// The launcher is asked only if there is something to ask.
std::string JobMap::why_mistaken(uint32_t rank, const Identifiers& identifiers) const {
  if (identifiers.nid != own_.nid || identifiers.network == own_.network) return "";
  std::vector<uint64_t> node_of(place_->size);
  if (!launcher_->nodes(node_of).empty() || node_of[rank] == node_of[place_->rank]) return "";
  return "rank " + std::to_string(rank) + " is on another node, but both nodes have nid " +
         nid_text(own_.nid) + ": set PTL_NID on each (ptl_info shows the nid)";
}

std::string JobMap::find(ptl_handle_ni_t ni, const std::function<void(const ptl_process_t*)>& use) {
  if (const std::vector<ptl_process_t>* known = launcher_->known_processes(); known != nullptr) {
    use(known->data());
    return "";
  }
  const uint32_t number = publications_.at(ni).number;
  const std::string key = key_of(number);
  const auto fetch = [&](uint32_t rank, ptl_process_t& id) { return fetch_one(rank, key, id); };
  std::unique_ptr<SharedFetch>& shared = fetched_[number];
  std::string why;
  if (fetches_together() && shared == nullptr && place_->rank != place_->local_leader) {
    std::vector<std::byte> announcement;
    why = launcher_->get(place_->local_leader, fetch_key_of(number), announcement);
    if (why.empty()) shared = SharedFetch::attach(announcement, number, place_->size);
  }
  if (!why.empty()) return why;
  if (shared != nullptr) {
    why = shared->run(place_->local_rank, place_->local_size, fetch);
    if (why.empty()) use(shared->map());
    return why;
  }
  std::vector<ptl_process_t> map(place_->size);
  for (uint32_t rank = 0; rank < place_->size && why.empty(); ++rank) why = fetch(rank, map[rank]);
  if (why.empty()) use(map.data());
  return why;
}

}  // namespace lintel
