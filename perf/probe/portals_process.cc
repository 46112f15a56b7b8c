// The objects of one measuring process (set-up path), and the three calls that are timed.
#include "portals_process.h"

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

namespace probe {

namespace {

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::exit(1);
}

}  // namespace

void check(int code, const char* call) {
  if (code == PTL_OK) return;
  std::fprintf(stderr, "perf_probe: %s returned %d\n", call, code);
  std::exit(1);
}

void pin_to(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<unsigned>(cpu), &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0)
    fail("perf_probe: cannot pin to a core (--cpus)");
}

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void* allocate_shared(std::size_t length_bytes) {
  void* memory =
      mmap(nullptr, length_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) fail("perf_probe: mmap");
  return memory;
}

void wait_until(const std::function<bool()>& ready, const char* what, double deadline_s) {
  const double deadline = now_s() + deadline_s;
  while (!ready()) {
    if (now_s() > deadline) {
      std::fprintf(stderr, "perf_probe: waited %.0f s for %s\n", deadline_s, what);
      std::exit(1);
    }
    sched_yield();
  }
}

std::vector<pid_t> fork_children(int count, const std::function<void(int)>& body) {
  std::vector<pid_t> children;
  for (int index = 0; index < count; ++index) {
    const pid_t child = fork();
    if (child < 0) fail("perf_probe: fork");
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      body(index);
      _exit(0);
    }
    children.push_back(child);
  }
  return children;
}

void join_children(const std::vector<pid_t>& children) {
  for (const pid_t child : children) {
    int status = 0;
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
      std::fprintf(stderr, "perf_probe: a measuring process failed\n");
      std::exit(1);  // the others die with this process
    }
  }
}

PortalsProcess::PortalsProcess() {
  check(PtlInit(), "PtlInit");
  check(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, nullptr,
                  nullptr, &interface_),
        "PtlNIInit");
  check(PtlGetPhysId(interface_, &id_), "PtlGetPhysId");
  check(PtlEQAlloc(interface_, 1024, &events_), "PtlEQAlloc");
  ptl_pt_index_t index = 0;
  check(PtlPTAlloc(interface_, 0, events_, portal_index, &index), "PtlPTAlloc");
}

PortalsProcess::~PortalsProcess() {
  PtlNIFini(interface_);  // takes the objects with it (spec 3.6.3)
  PtlFini();
}

void PortalsProcess::expose(void* start, std::size_t length_bytes) {
  ptl_me_t entry{};
  entry.start = start;
  entry.length = length_bytes;
  entry.ct_handle = PTL_CT_NONE;
  entry.uid = PTL_UID_ANY;
  entry.options = PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE;
  entry.match_id.phys.nid = PTL_NID_ANY;
  entry.match_id.phys.pid = PTL_PID_ANY;
  entry.match_bits = match_bits;
  check(PtlMEAppend(interface_, portal_index, &entry, PTL_PRIORITY_LIST, nullptr, &entry_),
        "PtlMEAppend");
}

void PortalsProcess::bind(void* start, std::size_t length_bytes) {
  ptl_md_t memory{};
  memory.start = start;
  memory.length = length_bytes;
  memory.options = PTL_MD_EVENT_SEND_DISABLE;
  memory.eq_handle = events_;
  memory.ct_handle = PTL_CT_NONE;
  check(PtlMDBind(interface_, &memory, &memory_), "PtlMDBind");
}

void PortalsProcess::put(ptl_process_t target, std::size_t length_bytes) const {
  check(PtlPut(memory_, 0, length_bytes, PTL_NO_ACK_REQ, target, portal_index, match_bits, 0,
               nullptr, 0),
        "PtlPut");
}

void PortalsProcess::get(ptl_process_t target, std::size_t length_bytes) const {
  check(PtlGet(memory_, 0, length_bytes, target, portal_index, match_bits, 0, nullptr), "PtlGet");
}

void PortalsProcess::expect(ptl_event_kind_t kind) const {
  ptl_event_t event;
  check(PtlEQWait(events_, &event), "PtlEQWait");
  if (event.type != kind || event.ni_fail_type != PTL_NI_OK) {
    std::fprintf(stderr, "perf_probe: event %u with failure %u came in place of event %u\n",
                 event.type, event.ni_fail_type, kind);
    std::exit(1);
  }
}

}  // namespace probe
