// The services of a job by hand. Set-up path.
#include "hand_launcher.h"

#include <set>

#include "hand_exchange.h"

namespace lintel {

namespace {

constexpr uint32_t default_wait_s = 60;

}  // namespace

HandLauncher::HandLauncher(const HandEnvironment& environment)
    : rank_(*environment.rank),
      job_(environment.job),
      wait_(environment.wait_s.value_or(default_wait_s)),
      processes_(environment.nids.size()),
      memory_(environment.memory) {
  for (size_t rank = 0; rank < processes_.size(); ++rank) {
    processes_[rank].phys.nid = environment.nids[rank];
    processes_[rank].phys.pid = environment.pids[rank];
  }
}

HandLauncher::~HandLauncher() = default;

std::string HandLauncher::start(JobPlace& place) {
  place = JobPlace();
  place.name = "environment." + (job_ ? std::to_string(*job_) : "0");
  place.rank = rank_;
  place.size = static_cast<uint32_t>(processes_.size());
  place.local_size = 0;
  std::set<ptl_nid_t> nodes;
  for (uint32_t rank = 0; rank < place.size; ++rank) {
    nodes.insert(processes_[rank].phys.nid);
    if (processes_[rank].phys.nid != processes_[rank_].phys.nid) continue;
    ++place.local_size;
    if (rank < rank_) ++place.local_rank;
  }
  place.node_count = static_cast<uint32_t>(nodes.size());
  return memory_.empty() ? "" : barrier_.open(memory_, place.size);
}

void HandLauncher::finish() { exchange_.reset(); }

std::string HandLauncher::open_exchange() {
  if (exchange_ != nullptr) return "";
  auto exchange = std::make_unique<HandExchange>(rank_, processes_, wait_);
  if (std::string why = exchange->open(interface_); !why.empty()) return why;
  exchange_ = std::move(exchange);
  return "";
}

std::string HandLauncher::put(const std::string& key, std::span<const std::byte> value) {
  std::string why = open_exchange();
  return why.empty() ? exchange_->store(key, value) : why;
}

std::string HandLauncher::get(uint32_t rank, const std::string& key,
                              std::vector<std::byte>& value) {
  std::string why = open_exchange();
  return why.empty() ? exchange_->fetch(rank, key, value) : why;
}

std::string HandLauncher::fence() {
  if (processes_.size() == 1) return "";
  if (barrier_.is_open()) return barrier_.wait(wait_);
  std::string why = open_exchange();
  return why.empty() ? exchange_->barrier() : why;
}

std::string HandLauncher::nodes(std::vector<uint64_t>& node_of_rank) {
  for (size_t rank = 0; rank < node_of_rank.size(); ++rank)
    node_of_rank[rank] = processes_[rank].phys.nid;
  return "";
}

}  // namespace lintel
