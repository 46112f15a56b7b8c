// An interface is closed while other threads use it: their calls end, and later ones are refused.
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "support/interface.h"
#include "support/memory.h"
#include "support/objects.h"
#include "support/ranks.h"
#include "support/text.h"

namespace lintel::test {
namespace {

constexpr ptl_pt_index_t pt_index = 4;
constexpr int rounds = 8;

// What the calls of the other threads use.
struct Used {
  ptl_handle_ni_t interface;
  ptl_handle_eq_t events;
  ptl_handle_ct_t counter;
  ptl_handle_md_t descriptor;
  ptl_process_t target;
  std::span<std::byte> memory;
};

// A call, or several, of which the last tells whether the interface is still open.
struct Usage {
  const char* name;
  int (*call)(const Used&);
};

int put(const Used& used) {
  return PtlPut(used.descriptor, 0, 8, PTL_NO_ACK_REQ, used.target, pt_index, 0, 0, nullptr, 0);
}
int get_event(const Used& used) {
  ptl_event_t event;
  const int code = PtlEQGet(used.events, &event);
  return code == PTL_EQ_EMPTY ? PTL_OK : code;
}
int poll_events(const Used& used) {
  ptl_event_t event;
  unsigned which = 0;
  const int code = PtlEQPoll(&used.events, 1, 1, &event, &which);
  return code == PTL_EQ_EMPTY ? PTL_OK : code;
}
int wait_for_event(const Used& used) {
  ptl_event_t event;
  return PtlEQWait(used.events, &event);
}
int get_count(const Used& used) {
  ptl_ct_event_t value;
  return PtlCTGet(used.counter, &value);
}
int poll_counts(const Used& used) {
  ptl_ct_event_t value;
  unsigned which = 0;
  const ptl_size_t test = PTL_SIZE_MAX;
  const int code = PtlCTPoll(&used.counter, &test, 1, 0, &value, &which);
  return code == PTL_CT_NONE_REACHED ? PTL_OK : code;
}
int wait_for_count(const Used& used) {
  ptl_ct_event_t value;
  return PtlCTWait(used.counter, PTL_SIZE_MAX, &value);
}
int bind(const Used& used) {
  const ptl_md_t md{used.memory.data(), used.memory.size(), 0, used.events, used.counter};
  ptl_handle_md_t handle = PTL_INVALID_HANDLE;
  const int code = PtlMDBind(used.interface, &md, &handle);
  if (code == PTL_OK) static_cast<void>(PtlMDRelease(handle));
  return code;
}
int append(const Used& used) {
  ptl_le_t entry{used.memory.data(), used.memory.size(), PTL_CT_NONE, PTL_UID_ANY,
                 PTL_LE_OP_PUT | PTL_LE_EVENT_LINK_DISABLE | PTL_LE_EVENT_UNLINK_DISABLE};
  ptl_handle_le_t handle = PTL_INVALID_HANDLE;
  const int code =
      PtlLEAppend(used.interface, pt_index, &entry, PTL_PRIORITY_LIST, nullptr, &handle);
  while (code == PTL_OK && PtlLEUnlink(handle) == PTL_IN_USE) continue;
  return code;
}

constexpr Usage usages[] = {{"put", put},
                            {"get_event", get_event},
                            {"poll_events", poll_events},
                            {"wait_for_event", wait_for_event},
                            {"get_count", get_count},
                            {"poll_counts", poll_counts},
                            {"wait_for_count", wait_for_count},
                            {"bind", bind},
                            {"append", append}};

class ClosingTest : public testing::TestWithParam<Usage> {};
INSTANTIATE_TEST_SUITE_P(Usages, ClosingTest, testing::ValuesIn(usages),
                         [](const auto& info) { return std::string(info.param.name); });

// Rank 1 receives; rank 0 opens and closes its interface again and again. In every other round a
// thread waits at another interface over the same network, which stays open.
// spec 3.6.3, 2.9
TEST_P(ClosingTest, EndsTheCallsOfOtherThreads) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the end of short calls is known by time, which the sanitizer does not see";
#endif
  run_ranks(2, [&](Rank& rank) {
    std::vector<std::byte> memory(64);
    Interface first(rank, nonmatching_physical);
    const ptl_process_t target = first.physical_id(1);
    if (rank.index() == 1) {
      ptl_pt_index_t index = 0;
      must(PtlPTAlloc(first.handle(), 0, PTL_EQ_NONE, pt_index, &index));
      first.append(pt_index, {.start = memory.data(),
                              .length = memory.size(),
                              .options = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE});
    }
    rank.barrier();
    if (rank.index() == 0) first.close();
    for (int round = 0; rank.index() == 0 && round < rounds; ++round) {
      Interface closed(nonmatching_physical, {});
      std::optional<Interface> open;
      if (round % 2 != 0) open.emplace(matching_physical, Interface::Settings{});
      const EventQueue events(closed.handle());
      const Counter counter(closed.handle());
      const Descriptor descriptor(closed.handle(), memory);
      ptl_pt_index_t index = 0;
      must(PtlPTAlloc(closed.handle(), 0, events.handle(), pt_index, &index));
      const Used used{closed.handle(),     events.handle(), counter.handle(),
                      descriptor.handle(), target,          memory};
      std::atomic<int> started{0};
      const auto use_until_closed = [&started](int (*call)(const Used&), const Used& objects) {
        started.fetch_add(1);
        int code = PTL_OK;
        while (code == PTL_OK) code = call(objects);
        EXPECT_EQ(return_code_name(code), "PTL_ARG_INVALID");
      };
      std::vector<std::thread> threads;
      for (int i = 0; i < 2; ++i)
        threads.push_back(start_thread([&] { use_until_closed(GetParam().call, used); }));
      Used others = used;
      std::thread other;
      if (open) {
        others.events = EventQueue(open->handle()).handle();
        other = start_thread([&] { use_until_closed(wait_for_event, others); });
      }
      rank.await_condition("waiting for the threads",
                           [&] { return started.load() == (open ? 3 : 2); });
      std::this_thread::sleep_for(std::chrono::milliseconds(1 + round % 4));
      closed.close();
      for (std::thread& thread : threads) thread.join();
      if (!open) continue;
      open->close();
      other.join();
    }
    rank.barrier();
  });
}

// Threads that are cancelled (pthread_cancel). Calls of Portals are not cancellation points.

constexpr std::size_t bytes = 100'000;

class CancellationTest : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Transports, CancellationTest, testing::Values("shm", "udp"),
                         [](const auto& info) { return std::string(info.param); });

// Connects, then sends and fetches messages of all lengths.
void communicate(const Rank& rank) {
  const Interface interface(nonmatching_physical, {.iface = PTL_IFACE_DEFAULT});
  const EventQueue events(interface.handle());
  std::vector<std::byte> memory(bytes);
  const Descriptor descriptor(interface.handle(), memory, PTL_MD_EVENT_SEND_DISABLE,
                              events.handle());
  const auto target = rank.published<ptl_process_t>(1, 0);
  for (std::size_t length = 1; length <= bytes; length *= 10) {
    must(PtlPut(descriptor.handle(), 0, length, PTL_ACK_REQ, target, pt_index, 0, 0, nullptr, 0));
    events.expect(PTL_EVENT_ACK);
    must(PtlGet(descriptor.handle(), 0, length, target, pt_index, 0, 0, nullptr));
    events.expect(PTL_EVENT_REPLY);
  }
}

// The cancellation takes effect at a cancellation point after the calls.
// spec 2.9
TEST_P(CancellationTest, ACancelledThreadFinishesItsCalls) {
  const RunOptions options{.environment = {{"PTL_TRANSPORT", std::string("local,") + GetParam()}}};
  run_ranks(2, options, [](Rank& rank) {
    rank.initialise();
    std::vector<std::byte> memory(bytes);
    if (rank.index() == 1) {
      const Interface interface(nonmatching_physical, {});
      ptl_pt_index_t index = 0;
      must(PtlPTAlloc(interface.handle(), 0, PTL_EQ_NONE, pt_index, &index));
      interface.append(pt_index, {.start = memory.data(),
                                  .length = memory.size(),
                                  .options = PTL_ME_OP_PUT | PTL_ME_OP_GET});
      ptl_process_t id{};
      must(PtlGetPhysId(interface.handle(), &id));
      rank.publish(0, id);
      rank.barrier();
      rank.barrier();
      return;
    }
    rank.barrier();
    bool finished = false;
    pthread_t thread{};
    struct Arguments {
      const Rank& rank;
      bool& finished;
    } arguments{rank, finished};
    ASSERT_EQ(pthread_create(
                  &thread, nullptr,
                  [](void* given) -> void* {
                    const auto& [the_rank, is_finished] = *static_cast<Arguments*>(given);
                    pthread_cancel(pthread_self());
                    communicate(the_rank);
                    is_finished = true;
                    pthread_testcancel();
                    return nullptr;
                  },
                  &arguments),
              0);
    void* result = nullptr;
    ASSERT_EQ(pthread_join(thread, &result), 0);
    EXPECT_EQ(result, PTHREAD_CANCELED);
    EXPECT_TRUE(finished);
    communicate(rank);
    rank.barrier();
  });
}

}  // namespace
}  // namespace lintel::test
