// One process of a job in the tests of jobs. Its first argument selects what it does, using only
// the public interface. It exits with 0 if all checks succeeded.
#include <fcntl.h>
#include <portals4_runtime.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr ptl_pt_index_t pt_index = 12;
using Clock = std::chrono::steady_clock;

ptl_job_info_t job;

[[noreturn]] void fail(const std::string& text) {
  std::fprintf(stderr, "job_probe: rank %u: %s\n", job.rank, text.c_str());
  std::fflush(nullptr);
  _exit(9);
}

void must(int code, const char* what) {
  if (code != PTL_OK)
    fail(std::string(what) + " returned " + std::to_string(code) + ": " + PtlJobError());
}

void expect(bool condition, const char* what) {
  if (!condition) fail(std::string("not so: ") + what);
}

ptl_handle_ni_t open_job(unsigned options = PTL_NI_NO_MATCHING | PTL_NI_LOGICAL) {
  ptl_handle_ni_t ni = PTL_INVALID_HANDLE;
  must(PtlJobOpen(PTL_IFACE_DEFAULT, options, nullptr, nullptr, &ni), "PtlJobOpen");
  must(PtlJobGetInfo(&job), "PtlJobGetInfo");
  return ni;
}

// One word from every rank, and a counter of arrived words.
struct Mailbox {
  explicit Mailbox(ptl_handle_ni_t ni) : words(job.size) {
    must(PtlCTAlloc(ni, &arrived), "PtlCTAlloc");
    must(PtlEQAlloc(ni, 4096, &events), "PtlEQAlloc");
    ptl_pt_index_t index = 0;
    must(PtlPTAlloc(ni, 0, PTL_EQ_NONE, pt_index, &index), "PtlPTAlloc");
    ptl_le_t le{};
    le.start = words.data();
    le.length = words.size() * sizeof words[0];
    le.ct_handle = arrived;
    le.uid = PTL_UID_ANY;
    le.options = PTL_LE_OP_PUT | PTL_LE_EVENT_CT_COMM;
    ptl_handle_le_t entry = PTL_INVALID_HANDLE;
    must(PtlLEAppend(ni, index, &le, PTL_PRIORITY_LIST, nullptr, &entry), "PtlLEAppend");
    ptl_md_t descriptor{};
    descriptor.start = &word;
    descriptor.length = sizeof word;
    descriptor.options = PTL_MD_EVENT_SEND_DISABLE;
    descriptor.eq_handle = events;
    descriptor.ct_handle = PTL_CT_NONE;
    must(PtlMDBind(ni, &descriptor, &md), "PtlMDBind");
  }
  // Puts to the process and returns how the put ended.
  ptl_ni_fail_t put(ptl_process_t to, uint64_t value) {
    word = value;
    must(PtlPut(md, 0, sizeof word, PTL_ACK_REQ, to, pt_index, 0, job.rank * sizeof word, nullptr,
                0),
         "PtlPut");
    ptl_event_t event;
    unsigned which = 0;
    must(PtlEQPoll(&events, 1, 30000, &event, &which), "PtlEQPoll");
    return event.ni_fail_type;
  }
  ptl_ni_fail_t put(ptl_rank_t to, uint64_t value) {
    ptl_process_t process{};
    process.rank = to;
    return put(process, value);
  }
  void await(ptl_size_t count) {
    ptl_ct_event_t event;
    unsigned which = 0;
    must(PtlCTPoll(&arrived, &count, 1, 30000, &event, &which), "PtlCTPoll");
  }

  std::vector<uint64_t> words;
  uint64_t word = 0;
  ptl_handle_ct_t arrived = PTL_CT_NONE;
  ptl_handle_eq_t events = PTL_EQ_NONE;
  ptl_handle_md_t md = PTL_INVALID_HANDLE;
};

void close_job(ptl_handle_ni_t ni) {
  must(PtlJobBarrier(), "PtlJobBarrier");
  must(PtlJobClose(ni), "PtlJobClose");
}

uint64_t word_of(ptl_rank_t from, ptl_rank_t to) { return uint64_t{from} << 32 | (to + 1); }

// Rank, map and group are consistent, and all processes (with "local": of this node) reach each
// other.
void check_map(bool only_local) {
  const ptl_handle_ni_t ni = open_job();
  expect(job.rank < job.size && job.local_rank < job.local_size && job.local_size <= job.size,
         "the place is within the job");
  std::vector<ptl_process_t> map(job.size);
  ptl_size_t size = 0;
  must(PtlGetMap(ni, map.size(), map.data(), &size), "PtlGetMap");
  expect(size == job.size, "the map has the size of the job");
  for (int i = 0; i < 2; ++i) {
    std::vector<ptl_process_t> again(job.size);
    must(PtlJobGetMap(ni, job.size, again.data()), "PtlJobGetMap");
    expect(std::memcmp(again.data(), map.data(), size * sizeof map[0]) == 0,
           "the job has the same map each time");
  }
  ptl_process_t own;
  must(PtlGetPhysId(ni, &own), "PtlGetPhysId");
  expect(map[job.rank].phys.nid == own.phys.nid && map[job.rank].phys.pid == own.phys.pid,
         "the map has this process at its rank");
  ptl_process_t by_rank;
  must(PtlGetId(ni, &by_rank), "PtlGetId");
  expect(by_rank.rank == job.rank, "PtlGetId gives the rank of the job");
  ptl_rid_t rank = 0;
  unsigned group_size = 0;
  must(PtlGetRank(ni, &rank, &group_size), "PtlGetRank");
  expect(rank == job.rank && group_size == job.size, "PtlGetRank gives the place in the job");
  for (ptl_rank_t i = 0; i < job.size; ++i) {
    must(PtlGetRankId(ni, i, &by_rank), "PtlGetRankId");
    expect(by_rank.phys.nid == map[i].phys.nid && by_rank.phys.pid == map[i].phys.pid,
           "PtlGetRankId gives the map");
  }
  expect(PtlGetRankId(ni, job.size, &by_rank) == PTL_NO_INIT, "there is no rank beyond the map");

  uint32_t own_node = 0;
  uint32_t local_size = 0;
  uint32_t local_rank = 0;
  uint32_t nodes = 0;
  must(PtlJobGetNode(job.rank, &own_node), "PtlJobGetNode");
  std::vector<uint32_t> node_of(job.size);
  for (ptl_rank_t i = 0; i < job.size; ++i) {
    must(PtlJobGetNode(i, &node_of[i]), "PtlJobGetNode");
    expect(node_of[i] <= nodes, "nodes are numbered by their lowest ranks");
    if (node_of[i] == nodes) ++nodes;
    if (node_of[i] != own_node) continue;
    ++local_size;
    if (i < job.rank) ++local_rank;
  }
  expect(nodes == job.node_count, "as many nodes as the job says");
  expect(local_size == job.local_size, "as many local ranks as the job says");
  expect(local_rank == job.local_rank, "the local rank as the job says");

  Mailbox mailbox(ni);
  must(PtlJobBarrier(), "PtlJobBarrier");
  for (ptl_rank_t i = 0; i < job.size; ++i)
    if (!only_local || node_of[i] == own_node)
      expect(mailbox.put(i, word_of(job.rank, i)) == PTL_NI_OK, "a put arrives");
  mailbox.await(only_local ? local_size : job.size);
  for (ptl_rank_t i = 0; i < job.size; ++i)
    if (!only_local || node_of[i] == own_node)
      expect(mailbox.words[i] == word_of(i, job.rank), "the word of a rank is here");
  std::printf("rank %u of %u local %u of %u node %u of %u by %s nid %u\n", job.rank, job.size,
              job.local_rank, job.local_size, own_node, job.node_count, job.launcher, own.phys.nid);
  close_job(ni);
}

// Each process gets the values that others store, even if it requests them earlier, and no other
// values.
void check_values() {
  must(PtlJobInit(), "PtlJobInit");
  must(PtlInit(), "PtlInit");
  ptl_handle_ni_t ni = PTL_INVALID_HANDLE;
  must(PtlJobGetInfo(&job), "PtlJobGetInfo");
  must(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, nullptr,
                 nullptr, &ni),
       "PtlNIInit");
  must(PtlJobPublish(ni), "PtlJobPublish");
  expect(PtlJobPublish(ni) == PTL_ARG_INVALID, "an interface is published once");
  std::vector<ptl_process_t> map(job.size);
  expect(PtlJobGetMap(ni, job.size + 1, map.data()) == PTL_ARG_INVALID, "the map has its size");
  expect(PtlJobSetMap(ni) == PTL_ARG_INVALID, "a physical interface has no map");
  must(PtlJobGetMap(ni, job.size, map.data()), "PtlJobGetMap");
  must(PtlJobGetMap(ni, job.size, map.data()), "PtlJobGetMap once more");
  ptl_process_t own;
  must(PtlGetPhysId(ni, &own), "PtlGetPhysId");
  expect(map[job.rank].phys.pid == own.phys.pid, "the map has this process");

  const std::string mine = "value of " + std::to_string(job.rank);
  // Rank 0 stores its value when the others are about to request it. They may or may not be
  // earlier; the checks apply in both orders.
  if (job.rank != 0) must(PtlJobPut("requests", "x", 1), "PtlJobPut");
  for (ptl_rank_t i = 1; job.rank == 0 && i < job.size; ++i) {
    char value = '\0';
    size_t bytes = sizeof value;
    must(PtlJobGet(i, "requests", &value, &bytes), "PtlJobGet");
  }
  must(PtlJobPut("name", mine.data(), mine.size()), "PtlJobPut");
  for (ptl_rank_t i = 0; i < job.size; ++i) {
    char value[64];
    size_t bytes = sizeof value;
    must(PtlJobGet(i, "name", value, &bytes), "PtlJobGet");
    expect(std::string(value, bytes) == "value of " + std::to_string(i), "the value of a rank");
    bytes = 3;
    expect(PtlJobGet(i, "name", value, &bytes) == PTL_NO_SPACE && bytes > 3,
           "no room, and how much");
  }
  size_t none = 0;
  expect(PtlJobGet(job.size, "name", nullptr, &none) == PTL_ARG_INVALID, "no rank beyond the job");
  expect(PtlJobPut("lintel.secret", "x", 1) == PTL_ARG_INVALID, "keys of the library are its own");

  // All processes have the same secret.
  char secret[256] = "";
  const int code = PtlJobSecret(secret, sizeof secret);
  expect(code == PTL_OK || code == PTL_IGNORED, "there is a secret or none");
  must(PtlJobPut("secret", secret, std::strlen(secret)), "PtlJobPut");
  char other[256] = "";
  size_t bytes = sizeof other - 1;
  must(PtlJobGet((job.rank + 1) % job.size, "secret", other, &bytes), "PtlJobGet");
  other[bytes] = '\0';
  expect(std::strcmp(secret, other) == 0, "the secret is the same everywhere");
  std::printf("secret of %zu characters\n", std::strlen(secret));
  must(PtlJobBarrier(), "PtlJobBarrier");
  must(PtlJobFini(), "PtlJobFini");
  expect(PtlJobBarrier() == PTL_NO_INIT, "the job has been left");
  expect(PtlJobInit() == PTL_FAIL, "a process joins once");
  PtlFini();
}

// Four interfaces of one process, opened and closed in different orders.
void check_interfaces() {
  must(PtlInit(), "PtlInit");
  must(PtlJobInit(), "PtlJobInit");
  ptl_handle_ni_t first = open_job(PTL_NI_MATCHING | PTL_NI_LOGICAL);
  ptl_handle_ni_t second = open_job(PTL_NI_NO_MATCHING | PTL_NI_LOGICAL);
  ptl_handle_ni_t physical = open_job(PTL_NI_NO_MATCHING | PTL_NI_PHYSICAL);
  std::vector<ptl_process_t> map(job.size);
  must(PtlJobGetMap(second, job.size, map.data()), "PtlJobGetMap once more");
  ptl_process_t id;
  for (ptl_rank_t rank = 0; rank < job.size; ++rank) {
    expect(map[rank].phys.pid != 0, "the map is complete");
    must(PtlGetRankId(first, rank, &id), "PtlGetRankId");
    ptl_process_t other;
    must(PtlGetRankId(second, rank, &other), "PtlGetRankId");
    expect(id.phys.nid == other.phys.nid && id.phys.pid == other.phys.pid, "both have one map");
  }
  expect(PtlGetRankId(physical, 0, &id) == PTL_NO_INIT, "no group where there is no map");
  must(PtlJobBarrier(), "PtlJobBarrier");
  must(PtlJobClose(physical), "PtlJobClose");
  must(PtlJobClose(second), "PtlJobClose");
  must(PtlJobClose(first), "PtlJobClose");
  must(PtlJobFini(), "PtlJobFini");
  PtlFini();
}

// Two libraries of a process open the same interface. One of them closes it, and the other still
// uses it.
void check_same_interface() {
  const ptl_handle_ni_t of_one = open_job();
  Mailbox mailbox(of_one);
  const ptl_handle_ni_t of_other = open_job();
  expect(of_one == of_other, "it is one interface");
  must(PtlJobSetMap(of_other), "PtlJobSetMap once more");
  must(PtlJobClose(of_one), "PtlJobClose");
  must(PtlJobBarrier(), "PtlJobBarrier");
  std::vector<ptl_process_t> map(job.size);
  must(PtlJobGetMap(of_other, job.size, map.data()), "PtlJobGetMap");
  for (ptl_rank_t rank = 0; rank < job.size; ++rank)
    expect(mailbox.put(rank, word_of(job.rank, rank)) == PTL_NI_OK, "ranks are reached still");
  mailbox.await(job.size);
  must(PtlJobBarrier(), "PtlJobBarrier");
  must(PtlJobClose(of_other), "PtlJobClose");
  expect(PtlJobClose(of_other) == PTL_NO_INIT, "the job has been left");
}

// The last rank is killed. Operations to it end, and the other ranks continue.
void check_death() {
  const ptl_handle_ni_t ni = open_job();
  Mailbox mailbox(ni);
  must(PtlJobBarrier(), "PtlJobBarrier");
  const ptl_rank_t victim = job.size - 1;
  if (job.rank == victim) {
    mailbox.await(100);  // while the other ranks send to it
    kill(getpid(), SIGKILL);
  }
  const Clock::time_point deadline = Clock::now() + std::chrono::seconds(20);
  ptl_ni_fail_t outcome = PTL_NI_OK;
  while (outcome == PTL_NI_OK && Clock::now() < deadline) outcome = mailbox.put(victim, 2);
  expect(outcome == PTL_NI_UNDELIVERABLE, "operations to the victim are undeliverable");
  for (ptl_rank_t rank = 0; rank < victim; ++rank)
    expect(mailbox.put(rank, word_of(job.rank, rank)) == PTL_NI_OK, "survivors reach each other");
  mailbox.await(victim);
  // Each survivor has received all words. It may have ended before this final word arrives, so the
  // result is ignored.
  for (ptl_rank_t rank = 0; rank < victim; ++rank) static_cast<void>(mailbox.put(rank, 3));
  mailbox.await(2 * victim);
  std::printf("rank %u survived\n", job.rank);
  std::fflush(nullptr);
  // After the death of a process, a launcher may prevent an orderly exit of the others.
  PtlNIFini(ni);
  PtlFini();
  _exit(0);
}

// Rank 1 ends the job while all others wait for a count that never comes.
void abort_job() {
  const ptl_handle_ni_t ni = open_job();
  Mailbox mailbox(ni);
  must(PtlJobBarrier(), "PtlJobBarrier");
  if (job.rank == 1 || job.size == 1) PtlJobAbort(42, "aborted on purpose");
  ptl_ct_event_t count;
  PtlCTWait(mailbox.arrived, 1000000, &count);
  fail("the wait ended");
}

// PtlAbort concerns only this process (spec 3.5.3): the job continues.
void abort_portals() {
  const ptl_handle_ni_t ni = open_job();
  Mailbox mailbox(ni);
  // In a job started by hand, others read values of this process until they have opened the job.
  must(PtlJobBarrier(), "PtlJobBarrier");
  std::thread waiting([&] {
    ptl_ct_event_t count;
    expect(PtlCTWait(mailbox.arrived, 1000000, &count) == PTL_ABORTED, "PtlAbort ends the wait");
  });
  PtlAbort();
  waiting.join();
  if (std::strcmp(job.launcher, "environment") != 0) must(PtlJobBarrier(), "PtlJobBarrier");
  must(PtlJobClose(ni), "PtlJobClose");
}

// All ranks except rank 1 have the same job key: they reach each other, but not rank 1.
void check_keys() {
  const ptl_handle_ni_t ni = open_job();
  Mailbox mailbox(ni);
  must(PtlJobBarrier(), "PtlJobBarrier");
  for (ptl_rank_t rank = 0; rank < job.size; ++rank) {
    const bool same_key = (rank == 1) == (job.rank == 1);
    const ptl_ni_fail_t outcome = mailbox.put(rank, 1);
    expect(outcome == (same_key ? PTL_NI_OK : PTL_NI_UNDELIVERABLE), "the key decides");
  }
  std::printf("rank %u refused\n", job.rank);
  close_job(ni);
}

void set_up_only() {
  const ptl_handle_ni_t ni = open_job();
  must(PtlJobClose(ni), "PtlJobClose");
}

// Descriptors 0 to 2 belong to the program, though they are closed.
void start_without_descriptors() {
  for (int descriptor = 0; descriptor < 3; ++descriptor) close(descriptor);
  const ptl_handle_ni_t ni = open_job();
  must(PtlJobBarrier(), "PtlJobBarrier");
  for (int descriptor = 0; descriptor < 3; ++descriptor)
    expect(fcntl(descriptor, F_GETFD) < 0, "descriptors 0 to 2 stay closed");
  close_job(ni);
}

void print_nid() {
  must(PtlInit(), "PtlInit");
  ptl_handle_ni_t ni = PTL_INVALID_HANDLE;
  must(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, nullptr,
                 nullptr, &ni),
       "PtlNIInit");
  ptl_process_t own;
  must(PtlGetPhysId(ni, &own), "PtlGetPhysId");
  std::printf("%u\n", own.phys.nid);
  PtlFini();
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string, void (*)()> actions = {{"map", [] { check_map(false); }},
                                                     {"local-map", [] { check_map(true); }},
                                                     {"values", check_values},
                                                     {"interfaces", check_interfaces},
                                                     {"same-interface", check_same_interface},
                                                     {"death", check_death},
                                                     {"abort", abort_job},
                                                     {"ptl-abort", abort_portals},
                                                     {"keys", check_keys},
                                                     {"set-up", set_up_only},
                                                     {"no-descriptors", start_without_descriptors},
                                                     {"nid", print_nid}};
  const auto action = actions.find(argc == 2 ? argv[1] : "");
  if (action == actions.end()) return 2;
  action->second();
  return 0;
}
