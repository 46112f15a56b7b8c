#include "soak/traffic.h"

#include <portals4.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <vector>

namespace lintel::soak {

namespace {

// Other runs on this node most likely use other pids. Children inherit the value.
const ptl_pid_t first_server_pid = 4000 + static_cast<ptl_pid_t>(getpid()) % 100 * 150;
const ptl_pid_t first_client_pid = first_server_pid + 10;
constexpr ptl_pt_index_t portal = 4;
constexpr size_t block_bytes = 64 << 10;
// The memory of a server contains a block and a separate counter for each client.
constexpr size_t counters_at = most_clients * block_bytes;
constexpr size_t server_bytes = counters_at + most_clients * sizeof(uint64_t);
constexpr ptl_time_t longest_wait_ms = 60'000;  // for the end of an operation

volatile sig_atomic_t told_to_end = 0;

int complain(const char* what, int code) {
  std::fprintf(stderr, "process %d: %s: %d\n", getpid(), what, code);
  return failed;
}

// SplitMix64.
uint64_t next(uint64_t& state) noexcept {
  uint64_t z = state += 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

class Client {
 public:
  Client(const ClientOrder& order, Tally& tally)
      : order_(order), tally_(tally), random_(order.seed), memory_(2 * block_bytes + 16) {}

  [[nodiscard]] int run() {
    int code = PtlInit();
    if (code != PTL_OK) return had_no_means;
    code = PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL,
                     first_client_pid + order_.slot, nullptr, nullptr, &ni_);
    if (code != PTL_OK) {
      PtlFini();
      const int ending = complain("PtlNIInit", code);
      // The predecessor with that pid may have been killed a moment ago.
      return code == PTL_PID_IN_USE || code == PTL_NO_SPACE || code == PTL_FAIL ? had_no_means
                                                                                : ending;
    }
    if ((code = PtlEQAlloc(ni_, 64, &events_)) != PTL_OK) return complain("PtlEQAlloc", code);
    ptl_md_t md{memory_.data(), memory_.size(), PTL_MD_EVENT_SEND_DISABLE, events_, PTL_CT_NONE};
    if ((code = PtlMDBind(ni_, &md, &md_)) != PTL_OK) return complain("PtlMDBind", code);
    counts_known_.resize(order_.servers);
    counts_.resize(order_.servers);
    int ending = ended_well;
    for (unsigned i = 0; ending == ended_well && told_to_end == 0; ++i) {
      if (order_.operations != 0 && i == order_.operations) break;
      ending = step();
    }
    PtlMDRelease(md_);
    PtlEQFree(events_);
    PtlNIFini(ni_);
    PtlFini();
    return ending;
  }

 private:
  enum class Outcome : uint8_t { good, undelivered, failed };

  [[nodiscard]] int step() {
    const bool to_volatile = order_.to_volatile && next(random_) % 4 == 0;
    const auto server =
        static_cast<unsigned>(to_volatile ? order_.servers : next(random_) % order_.servers);
    constexpr size_t lengths[] = {0, 1, 8, 64, 100, 1400, 4000, 8192, 8193, 30'000, block_bytes};
    const size_t length = lengths[next(random_) % std::size(lengths)];
    for (size_t i = 0; i < length; i += 64) memory_[i] = static_cast<char>(next(random_));
    // The other bytes differ from one message to the next as well.
    if (length != 0) memory_[length - 1] = static_cast<char>(next(random_));
    const ptl_size_t at = order_.slot * block_bytes;
    Outcome outcome =
        end_of(PtlPut(md_, 0, length, PTL_ACK_REQ, address(server), portal, 0, at, nullptr, 0),
               PTL_EVENT_ACK);
    if (outcome != Outcome::good) return judge(outcome, to_volatile);
    std::memset(memory_.data() + block_bytes, 0, length);
    outcome = end_of(PtlGet(md_, block_bytes, length, address(server), portal, 0, at, nullptr),
                     PTL_EVENT_REPLY);
    if (outcome != Outcome::good) return judge(outcome, to_volatile);
    if (!to_volatile && std::memcmp(memory_.data(), memory_.data() + block_bytes, length) != 0) {
      ++tally_.wrong;
      std::fprintf(stderr, "process %d: %zu bytes at server %u are not what was put there\n",
                   getpid(), length, server);
      return found_wrong_data;
    }
    return to_volatile ? ended_well : count(server);
  }

  // Each atomic operation must be executed exactly once.
  [[nodiscard]] int count(unsigned server) {
    constexpr size_t operand = 2 * block_bytes;
    const uint64_t one = 1;
    std::memcpy(memory_.data() + operand, &one, sizeof one);
    const Outcome outcome =
        end_of(PtlFetchAtomic(md_, operand + 8, md_, operand, 8, address(server), portal, 0,
                              counters_at + order_.slot * sizeof(uint64_t), nullptr, 0, PTL_SUM,
                              PTL_UINT64_T),
               PTL_EVENT_REPLY);
    if (outcome != Outcome::good) {
      counts_known_[server] = false;
      return judge(outcome, false);
    }
    uint64_t before = 0;
    std::memcpy(&before, memory_.data() + operand + 8, sizeof before);
    if (counts_known_[server] && before != counts_[server]) {
      ++tally_.wrong;
      std::fprintf(stderr, "process %d: the counter at server %u is %llu instead of %llu\n",
                   getpid(), server, static_cast<unsigned long long>(before),
                   static_cast<unsigned long long>(counts_[server]));
      return found_wrong_data;
    }
    counts_known_[server] = true;
    counts_[server] = before + 1;
    return ended_well;
  }

  [[nodiscard]] int judge(Outcome outcome, bool to_volatile) const {
    if (outcome == Outcome::failed) return failed;
    if (!to_volatile && !order_.may_fail)
      return complain("an operation ended as undeliverable", PTL_NI_UNDELIVERABLE);
    // Waits for the server to come back.
    usleep(20'000);
    return ended_well;
  }

  [[nodiscard]] ptl_process_t address(unsigned server) const {
    ptl_process_t address{};
    PtlGetPhysId(ni_, &address);
    address.phys.pid = first_server_pid + server;
    return address;
  }

  [[nodiscard]] Outcome end_of(int code, ptl_event_kind_t expected) {
    if (code != PTL_OK) {
      complain("an operation was refused", code);
      return Outcome::failed;
    }
    ptl_event_t event;
    unsigned which = 0;
    code = PtlEQPoll(&events_, 1, longest_wait_ms, &event, &which);
    if (code != PTL_OK) {
      complain("waiting for the end of an operation", code);
      return Outcome::failed;
    }
    // A server that has just started drops messages until it has posted an entry.
    if (event.ni_fail_type == PTL_NI_UNDELIVERABLE ||
        (order_.to_volatile && event.ni_fail_type == PTL_NI_DROPPED)) {
      ++tally_.undelivered;
      return Outcome::undelivered;
    }
    if (event.type != expected || event.ni_fail_type != PTL_NI_OK) {
      complain("an operation failed", event.ni_fail_type);
      return Outcome::failed;
    }
    ++tally_.good;
    return Outcome::good;
  }

  const ClientOrder order_;
  Tally& tally_;
  uint64_t random_;
  std::vector<char> memory_;  // data to put, data from gets, operand and result
  std::vector<bool> counts_known_;
  std::vector<uint64_t> counts_;
  ptl_handle_ni_t ni_ = PTL_INVALID_HANDLE;
  ptl_handle_eq_t events_ = PTL_EQ_NONE;
  ptl_handle_md_t md_ = PTL_INVALID_HANDLE;
};

// The runner has blocked the signal.
void end_when_told() {
  signal(SIGTERM, [](int) { told_to_end = 1; });
  sigset_t end;
  sigemptyset(&end);
  sigaddset(&end, SIGTERM);
  pthread_sigmask(SIG_UNBLOCK, &end, nullptr);
}

}  // namespace

int serve(unsigned number, int ready) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  // Before the library starts threads, which inherit the mask.
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  int code = PtlInit();
  if (code != PTL_OK) return complain("PtlInit", code);
  ptl_handle_ni_t ni{};
  code = PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, first_server_pid + number,
                   nullptr, nullptr, &ni);
  if (code != PTL_OK) return complain("PtlNIInit of a server", code);
  std::vector<char> memory(server_bytes);
  ptl_pt_index_t index = 0;
  code = PtlPTAlloc(ni, 0, PTL_EQ_NONE, portal, &index);
  if (code != PTL_OK) return complain("PtlPTAlloc", code);
  ptl_me_t me{};
  me.start = memory.data();
  me.length = memory.size();
  me.ct_handle = PTL_CT_NONE;
  me.uid = PTL_UID_ANY;
  me.match_id.phys = {PTL_NID_ANY, PTL_PID_ANY};
  me.options = PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE;
  ptl_handle_me_t entry{};
  code = PtlMEAppend(ni, index, &me, PTL_PRIORITY_LIST, nullptr, &entry);
  if (code != PTL_OK) return complain("PtlMEAppend", code);
  if (ready >= 0 && write(ready, "", 1) != 1) return failed;
  int signal = 0;
  sigwait(&signals, &signal);
  while (PtlMEUnlink(entry) == PTL_IN_USE) usleep(1000);
  PtlPTFree(ni, index);
  PtlNIFini(ni);
  PtlFini();
  return ended_well;
}

int work(const ClientOrder& order, Tally& tally) {
  end_when_told();
  return Client(order, tally).run();
}

}  // namespace lintel::soak
