// Many processes of a node send to one process: more than its shared segment has lanes.
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "support/interface.h"
#include "support/objects.h"
#include "support/ranks.h"
#include "support/text.h"

namespace lintel::test {
namespace {

constexpr ptl_pt_index_t pt_index = 4;

// A barrier for processes.
class ProcessBarrier {
 public:
  explicit ProcessBarrier(int processes)
      : barrier_(static_cast<pthread_barrier_t*>(mmap(nullptr, sizeof(pthread_barrier_t),
                                                      PROT_READ | PROT_WRITE,
                                                      MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {
    pthread_barrierattr_t shared;
    pthread_barrierattr_init(&shared);
    pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(barrier_, &shared, static_cast<unsigned>(processes));
  }
  ~ProcessBarrier() { munmap(barrier_, sizeof(pthread_barrier_t)); }
  ProcessBarrier(const ProcessBarrier&) = delete;
  ProcessBarrier& operator=(const ProcessBarrier&) = delete;
  void wait() const { pthread_barrier_wait(barrier_); }

 private:
  pthread_barrier_t* barrier_;
};

struct Senders {
  int processes;
  ptl_size_t puts;         // by each of the two threads of a process
  bool with_least_memory;  // small limits and segments, no progress thread, low priority
};

// Body of a forked sender: two threads send, and all of their puts are acknowledged. The
// connections of all senders exist at the same time.
void send_puts(ptl_process_t target, const Senders& senders, const ProcessBarrier& all_senders) {
  ptl_ni_limits_t least{};
  if (senders.with_least_memory) {
    least.max_entries = least.max_unexpected_headers = least.max_triggered_ops = 1;
    least.max_mds = least.max_eqs = least.max_cts = 1;
    EXPECT_NE(nice(19), -1);  // thousands are ready to run, and only the receiver can free cells
    setenv("PTL_PROGRESS", "caller", 1);
    setenv("PTL_SHM_MEMORY_KIB", "1024", 1);
  }
  must(PtlInit());
  const Interface interface(matching_physical,
                            {.desired = senders.with_least_memory ? &least : nullptr});
  std::vector<std::byte> memory(4096);
  const Counter acknowledged(interface.handle());
  const Descriptor descriptor(interface.handle(), memory, PTL_MD_EVENT_CT_ACK, PTL_EQ_NONE,
                              acknowledged.handle());
  all_senders.wait();
  const auto send = [&] {
    for (ptl_size_t i = 0; i < senders.puts; ++i)
      must(PtlPut(descriptor.handle(), 0, i % 7 == 0 ? 3000 : 40, PTL_CT_ACK_REQ, target, pt_index,
                  0, 0, nullptr, 0));
  };
  std::thread other(send);
  send();
  other.join();
  acknowledged.expect(2 * senders.puts);
  all_senders.wait();
}

// Returns when all senders have ended. The caller has no threads: some sanitizers do not permit a
// child of a process with threads to start threads.
void run_senders(const Senders& senders, ptl_process_t target, const RunOptions& options) {
  const ProcessBarrier all_senders(senders.processes);
  std::vector<pid_t> children;
  for (int i = 0; i < senders.processes; ++i) {
    children.push_back(fork());
    if (children.back() != 0) continue;
    alarm(static_cast<unsigned>(options.deadline.count() / 1000));
    send_puts(target, senders, all_senders);
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
}

void receive_puts(Rank& rank, ptl_size_t puts) {
  must(PtlInit());
  const Interface interface(matching_physical, {});
  std::vector<std::byte> memory(4096);
  const Counter arrived(interface.handle());
  ptl_pt_index_t index = 0;
  must(PtlPTAlloc(interface.handle(), 0, PTL_EQ_NONE, pt_index, &index));
  interface.append(pt_index,
                   {.start = memory.data(),
                    .length = memory.size(),
                    .options = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_CT_COMM,
                    .counter = arrived.handle()});
  ptl_process_t own;
  must(PtlGetPhysId(interface.handle(), &own));
  rank.publish(1, own);
  rank.barrier();
  arrived.expect(puts);
  rank.barrier();
}

void send_to_one(const Senders& senders, const RunOptions& options) {
  run_ranks(2, options, [&](Rank& rank) {
    if (rank.index() == 0) {
      receive_puts(rank, 2 * senders.puts * static_cast<ptl_size_t>(senders.processes));
    } else {
      rank.barrier();
      run_senders(senders, rank.published<ptl_process_t>(0, 1), options);
      rank.barrier();
    }
  });
}

// 45 lanes.
// spec 2.9, 3.13.3
TEST(ManySendersTest, ShareTheLanesOfOneProcess) {
  send_to_one({.processes = 64, .puts = 300, .with_least_memory = false},
              {.environment = {{"PTL_SHM_MEMORY_KIB", "1024"}, {"PTL_TRANSPORT", "shm"}},
               .deadline = 2 * test_deadline});
}

// 574 lanes.
// spec 2.9, 3.13.3
TEST(ManySendersTest, ShareTheLanesOfTheDefaultSegment) {
  if (!long_tests()) GTEST_SKIP() << "set LINTEL_TEST_LONG=1";
  send_to_one({.processes = 700, .puts = 100, .with_least_memory = false},
              {.environment = {{"PTL_TRANSPORT", "shm"}}, .deadline = 15 * test_deadline});
}

// One process on each core of a large node.
// spec 2.9, 3.13.3
TEST(ManySendersTest, FourThousandProcessesShareTheDefaultSegment) {
  if (!long_tests()) GTEST_SKIP() << "set LINTEL_TEST_LONG=1";
  send_to_one({.processes = 4096, .puts = 10, .with_least_memory = true},
              {.environment = {{"PTL_TRANSPORT", "shm"}}, .deadline = 90 * test_deadline});
}

}  // namespace
}  // namespace lintel::test
