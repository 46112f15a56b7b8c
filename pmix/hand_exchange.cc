// Barrier, storing and fetching over Portals. Set-up path.
#include "hand_exchange.h"

#include <portals4_lintel.h>

#include <algorithm>
#include <map>
#include <thread>

#include "util/awaited_process.h"
#include "util/log.h"
#include "util/node_identity.h"

namespace lintel {

namespace {

constexpr ptl_pt_index_t signal_index = 247;  // every interface has entries up to 249 (3.6.1)
constexpr ptl_pt_index_t stored_index = 248;
constexpr size_t stored_bytes = size_t{64} << 10;
constexpr size_t counter_bytes = StoredValues::counter_bytes;
constexpr auto longest_pause = std::chrono::milliseconds(20);
constexpr uint64_t tree_base = 8;           // base of the tree of a barrier
constexpr ptl_time_t look_after_ms = 1000;  // interval of checks while waiting for a signal
constexpr unsigned looks = 10;              // maximum number of waits for the end of an operation
constexpr auto told_after = std::chrono::seconds(1);

std::string call_failed(const char* call, int code) {
  return std::string(call) + " returned " + PtlLintelStrError(code);
}

// Tells the children of one process in the tree apart.
uint64_t child_number(uint32_t rank) {
  uint64_t number = 0;
  uint64_t digits = rank;
  for (; digits % tree_base == 0; digits /= tree_base) number += tree_base;
  return number + digits % tree_base;
}

}  // namespace

HandExchange::HandExchange(uint32_t rank, const std::vector<ptl_process_t>& processes,
                           std::chrono::seconds wait)
    : rank_(rank),
      processes_(processes),
      wait_(wait),
      stored_(stored_bytes),
      reached_(processes.size()) {}

HandExchange::~HandExchange() {
  if (memory_ != PTL_INVALID_HANDLE) PtlMDRelease(memory_);
  for (const ptl_handle_le_t entry : entries_)
    while (PtlLEUnlink(entry) == PTL_IN_USE) std::this_thread::yield();
  for (const ptl_pt_index_t index : portals_) PtlPTFree(ni_, index);
  if (arrivals_ != PTL_EQ_NONE) PtlEQFree(arrivals_);
  if (ends_ != PTL_EQ_NONE) PtlEQFree(ends_);
  if (ni_ != PTL_INVALID_HANDLE) PtlNIFini(ni_);
}

std::string HandExchange::describe(uint32_t rank) const {
  return "rank " + std::to_string(rank) + " (nid " + nid_text(processes_[rank].phys.nid) +
         ", pid " + std::to_string(processes_[rank].phys.pid) + ")";
}

std::string HandExchange::why_unreached(uint32_t rank) const {
  ptl_lintel_path_t path;
  return PtlLintelGetPath(ni_, processes_[rank], &path) == PTL_FAIL && path.reason[0] != '\0'
             ? std::string(" (") + path.reason + ")"
             : "";
}

std::string HandExchange::within_the_wait() const {
  return " within " + std::to_string(wait_.count()) + " s (PTL_WAIT_S)";
}

std::string HandExchange::open(ptl_interface_t iface) {
  int code = PtlNIInit(iface, PTL_NI_NO_MATCHING | PTL_NI_PHYSICAL, processes_[rank_].phys.pid,
                       nullptr, nullptr, &ni_);
  if (code != PTL_OK) {
    ni_ = PTL_INVALID_HANDLE;
    if (code == PTL_PID_IN_USE)
      return "PTL_PIDMAP gives " + describe(rank_) +
             " a pid that another process of this node uses: choose another one";
    return call_failed(
        "the processes of a job by hand use Portals to find each other, but PtlNIInit", code);
  }
  if ((code = PtlEQAlloc(ni_, 1024, &arrivals_)) != PTL_OK) return call_failed("PtlEQAlloc", code);
  if ((code = PtlEQAlloc(ni_, 64, &ends_)) != PTL_OK) return call_failed("PtlEQAlloc", code);

  ptl_md_t md{};
  md.start = nullptr;
  md.length = PTL_SIZE_MAX;
  md.options = PTL_MD_EVENT_SEND_DISABLE;
  md.eq_handle = ends_;
  md.ct_handle = PTL_CT_NONE;
  if ((code = PtlMDBind(ni_, &md, &memory_)) != PTL_OK) return call_failed("PtlMDBind", code);

  const auto expose = [&](ptl_pt_index_t wanted, ptl_handle_eq_t events,
                          std::span<std::byte> memory, unsigned options) {
    ptl_pt_index_t index = 0;
    int result = PtlPTAlloc(ni_, 0, events, wanted, &index);
    if (result != PTL_OK)
      return call_failed(("PtlPTAlloc of entry " + std::to_string(wanted) +
                          " of the physical non-matching interface, which jobs by hand need,")
                             .c_str(),
                         result);
    portals_.push_back(index);
    ptl_le_t le{};
    le.start = memory.data();
    le.length = memory.size();
    le.ct_handle = PTL_CT_NONE;
    le.uid = PTL_UID_ANY;
    le.options = options | PTL_LE_EVENT_LINK_DISABLE | PTL_LE_EVENT_UNLINK_DISABLE;
    ptl_handle_le_t entry = PTL_INVALID_HANDLE;
    result = PtlLEAppend(ni_, index, &le, PTL_PRIORITY_LIST, nullptr, &entry);
    if (result != PTL_OK) return call_failed("PtlLEAppend", result);
    entries_.push_back(entry);
    return std::string();
  };
  // The values first: a process that can signal this one may then read them.
  std::string why = expose(stored_index, PTL_EQ_NONE, stored_.memory(), PTL_LE_OP_GET);
  if (why.empty()) why = expose(signal_index, arrivals_, {}, PTL_LE_OP_PUT);
  return why;
}

// A wait for a process that may not have started yet. The library logs no warning about it
// meanwhile.
struct HandExchange::Wait {
  Wait(uint32_t of, const ptl_process_t& process, bool expects_silence) : peer(of) {
    if (expects_silence) awaited_process.store(awaited_key(process.phys.nid, process.phys.pid));
  }
  ~Wait() { awaited_process.store(0); }
  Wait(const Wait&) = delete;
  Wait& operator=(const Wait&) = delete;

  const uint32_t peer;
  const Clock::time_point began = Clock::now();
  bool told = false;
};

void HandExchange::tell_of(Wait& wait) const {
  if (wait.told || Clock::now() - wait.began < told_after) return;
  wait.told = true;
  log_message(LogLevel::warn, "rank %u waits for %s, for %lld s at most (PTL_WAIT_S)", rank_,
              describe(wait.peer).c_str(), static_cast<long long>(wait_.count()));
}

HandExchange::Outcome HandExchange::await_end(int code, uintptr_t attempt, Wait& wait) {
  if (code != PTL_OK) return Outcome::failed;
  for (unsigned look = 0;;) {
    ptl_event_t event;
    unsigned which = 0;
    code = PtlEQPoll(&ends_, 1, look_after_ms, &event, &which);
    tell_of(wait);
    if (code == PTL_EQ_EMPTY) {
      if (++look == looks) return Outcome::not_there_yet;
      continue;
    }
    if (code != PTL_OK && code != PTL_EQ_DROPPED) return Outcome::failed;
    if (reinterpret_cast<uintptr_t>(event.user_ptr) != attempt) continue;  // an earlier attempt
    if (event.ni_fail_type == PTL_NI_OK) return Outcome::done;
    return event.ni_fail_type == PTL_NI_UNDELIVERABLE ? Outcome::unreachable
                                                      : Outcome::not_there_yet;
  }
}

// Repeats an operation until the peer has answered; it may not have started yet.
template <typename Start>
std::string HandExchange::until_reached(uint32_t peer, Start&& start) {
  Wait wait(peer, processes_[peer], !reached_[peer]);
  auto pause = std::chrono::milliseconds(2);
  for (;;) {
    const uintptr_t attempt = ++attempts_;
    switch (await_end(start(attempt), attempt, wait)) {
      case Outcome::done:
        reached_[peer] = true;
        return "";
      case Outcome::failed:
        return "Portals does not work any more (PtlAbort?)";
      case Outcome::unreachable:
        if (reached_[peer]) return describe(peer) + " is gone";
        if (const char* const why =
                refusal_of(processes_[peer].phys.nid, processes_[peer].phys.pid);
            why != nullptr)
          return describe(peer) + " and this process do not connect: " + why;
        break;
      case Outcome::not_there_yet:
        break;
    }
    if (Clock::now() > wait.began + wait_)
      return describe(peer) + " cannot be reached: it was not started" + within_the_wait() +
             ", with these numbers and with the same PTL_JOB_KEY" + why_unreached(peer);
    std::this_thread::sleep_for(pause);
    pause = std::min(longest_pause, pause * 2);
  }
}

int HandExchange::start_signal(uint32_t to, uint64_t data, uintptr_t attempt) {
  return PtlPut(memory_, reinterpret_cast<ptl_size_t>(stored_.memory().data()), 0, PTL_ACK_REQ,
                processes_[to], signal_index, 0, 0, reinterpret_cast<void*>(attempt), data);
}

std::string HandExchange::signal(uint32_t to, uint64_t data) {
  return until_reached(to, [&](uintptr_t attempt) { return start_signal(to, data, attempt); });
}

// Signals processes that wait for it, and so run. All signals are sent at once: most processes
// sleep.
std::string HandExchange::signal_all(const std::vector<uint32_t>& targets, uint64_t data) {
  std::map<uintptr_t, uint32_t> on_the_way;
  std::vector<uint32_t> others;
  for (const uint32_t to : targets) {
    const uintptr_t attempt = ++attempts_;
    if (start_signal(to, data, attempt) == PTL_OK)
      on_the_way.emplace(attempt, to);
    else
      others.push_back(to);
  }
  for (unsigned look = 0; look < looks && !on_the_way.empty();) {
    ptl_event_t event;
    unsigned which = 0;
    const int code = PtlEQPoll(&ends_, 1, look_after_ms, &event, &which);
    if (code == PTL_EQ_EMPTY) {
      ++look;
      continue;
    }
    if (code != PTL_OK && code != PTL_EQ_DROPPED) break;
    const auto found = on_the_way.find(reinterpret_cast<uintptr_t>(event.user_ptr));
    if (found == on_the_way.end()) continue;  // an earlier attempt
    if (event.ni_fail_type == PTL_NI_OK)
      reached_[found->second] = true;
    else
      others.push_back(found->second);
    on_the_way.erase(found);
  }
  for (const auto& [attempt, to] : on_the_way) others.push_back(to);
  std::string why;
  for (const uint32_t to : others)
    if (why.empty()) why = signal(to, data);
  return why;
}

std::string HandExchange::read(uint32_t from, size_t offset, std::span<std::byte> into) {
  return until_reached(from, [&](uintptr_t attempt) {
    return PtlGet(memory_, reinterpret_cast<ptl_size_t>(into.data()), into.size(), processes_[from],
                  stored_index, 0, offset, reinterpret_cast<void*>(attempt));
  });
}

std::string HandExchange::await(uint32_t from, uint64_t data) {
  while (arrived_.erase(data) == 0) {
    ptl_event_t event;
    unsigned which = 0;
    const int code = PtlEQPoll(&arrivals_, 1, look_after_ms, &event, &which);
    if (code == PTL_EQ_EMPTY) {
      // The signal may take long, but its process must run.
      std::byte counter[counter_bytes];
      if (std::string why = read(from, 0, counter); !why.empty()) return why;
      continue;
    }
    if (code != PTL_OK && code != PTL_EQ_DROPPED) return call_failed("PtlEQPoll", code);
    // A signal whose acknowledgment was lost comes twice; those of barriers passed are not kept.
    if (event.type == PTL_EVENT_PUT && event.hdr_data >> 8 >= generation_)
      arrived_.insert(event.hdr_data);
  }
  return "";
}

// A tree, from the leaves to rank 0 and back: connections are what takes the time, and each process
// needs few. The parent of a rank has a 0 in the place of its last digit, to the base 8, that is
// not 0. Lower ranks often start first, so that parents are there when their children call.
std::string HandExchange::barrier() {
  const uint64_t go_on = ++generation_ << 8;
  const uint64_t size = processes_.size();
  uint64_t step = 1;
  std::vector<uint32_t> children;
  for (; step < size && rank_ % (step * tree_base) == 0; step *= tree_base)
    for (uint64_t child = rank_ + step; child < std::min(size, rank_ + step * tree_base);
         child += step)
      children.push_back(static_cast<uint32_t>(child));
  std::string why;
  for (const uint32_t child : children)
    if (why.empty()) why = await(child, go_on | (child_number(child) + 1));
  if (why.empty() && rank_ != 0) {
    const auto parent = static_cast<uint32_t>(rank_ - rank_ % (step * tree_base));
    why = signal(parent, go_on | (child_number(rank_) + 1));
    if (why.empty()) why = await(parent, go_on);
  }
  return why.empty() ? signal_all(children, go_on) : why;
}

std::string HandExchange::store(const std::string& key, std::span<const std::byte> value) {
  if (!stored_.add(key, value))
    return "no room for " + key + ": keys and values of a process share 64 KiB";
  return "";
}

std::string HandExchange::fetch(uint32_t rank, const std::string& key,
                                std::vector<std::byte>& value) {
  const Clock::time_point deadline = Clock::now() + wait_;
  for (;;) {
    uint64_t used = 0;
    if (std::string why = read(rank, 0, std::as_writable_bytes(std::span(&used, 1))); !why.empty())
      return why;
    if (used > stored_bytes - counter_bytes) return describe(rank) + " stores malformed values";
    std::vector<std::byte> all(used);
    if (used > 0)
      if (std::string why = read(rank, counter_bytes, all); !why.empty()) return why;
    const FoundValue found = find_value(all, key);
    if (found.status == FoundValue::Status::nonsense)
      return describe(rank) + " stores malformed values";
    if (found.status == FoundValue::Status::found) {
      value.assign(found.value.begin(), found.value.end());
      return "";
    }
    if (Clock::now() > deadline)
      return describe(rank) + " has stored no " + key + within_the_wait();
    std::this_thread::sleep_for(longest_pause);
  }
}

}  // namespace lintel
