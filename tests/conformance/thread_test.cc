// Several threads on one interface: putting, appending, waiting, allocating at the same time.
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include <gtest/gtest.h>

#include "operations.h"

namespace lintel::test {
namespace {

class ThreadTest : public testing::TestWithParam<PairKind> {};
INSTANTIATE_TEST_SUITE_P(Paths, ThreadTest, testing::ValuesIn(all_pairs()), pair_name);

constexpr uint64_t threads = 3;

void run_threads(uint64_t count, const std::function<void(uint64_t)>& body) {
  std::vector<std::thread> running;
  for (uint64_t t = 0; t < count; ++t) running.push_back(start_thread([&body, t] { body(t); }));
  for (std::thread& thread : running) thread.join();
}

// spec 2.9
TEST_P(ThreadTest, ThreadsPutThroughOneDescriptor) {
  run_pair(GetParam(), [](Pair& pair) {
    constexpr uint64_t each = 1500;
    TargetSide target(pair, {.bytes = threads * each * 8, .events = threads * each});
    InitiatorSide initiator(pair, {.bytes = threads * each * 8,
                                   .options = PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_SUCCESS_DISABLE});
    pair.on_target([&] { target.append(PTL_ME_OP_PUT); });
    pair.on_initiator([&] {
      fill(initiator.source.memory, 6);
      run_threads(threads, [&](uint64_t t) {
        for (uint64_t i = 0; i < each; ++i) {
          const ptl_size_t offset = 8 * (t * each + i);
          initiator.put({.length = 8,
                         .local_offset = offset,
                         .remote_offset = offset,
                         .ack = PTL_CT_ACK_REQ,
                         .hdr_data = (t << 32u) | i});
        }
      });
      initiator.source.counter.expect(threads * each);
    });
    pair.on_target([&] {
      // The messages of each thread arrive in order, and each exactly once.
      std::vector<uint64_t> next(threads);
      for (uint64_t i = 0; i < threads * each; ++i) {
        const uint64_t header = target.events.expect(PTL_EVENT_PUT).hdr_data;
        EXPECT_EQ(header & 0xffffffffu, next.at(header >> 32u)++);
      }
      expect_pattern(target.memory, 6);
    });
  });
}

// spec 2.9
TEST_P(ThreadTest, ThreadsGetAndAddAtTheSameTime) {
  run_pair(GetParam(), [](Pair& pair) {
    // Each round waits for the other process, for a time slice or more if other programs are
    // running.
    constexpr uint64_t least = 20;
    constexpr uint64_t most = 400;
    TargetSide target(pair);
    InitiatorSide initiator(pair);
    pair.on_target([&] {
      fill(target.memory.subspan(64), 2, 64);
      target.append(PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_COMM_DISABLE);
    });
    pair.on_initiator([&] {
      const auto end = std::chrono::steady_clock::now() + stress_time;
      std::atomic<uint64_t> added{0};
      run_threads(threads, [&](uint64_t t) {
        std::vector<std::byte> buffer(2048);
        const uint64_t one = 1;
        std::memcpy(buffer.data(), &one, 8);
        const EventQueue events(pair.ni());
        const Descriptor descriptor(pair.ni(), buffer, PTL_MD_EVENT_SEND_DISABLE, events.handle());
        for (uint64_t i = 0; i < most; ++i) {
          if (i >= least && std::chrono::steady_clock::now() > end) break;
          ++added;
          must(PtlAtomic(descriptor.handle(), 0, 8, PTL_ACK_REQ, pair.target_id(), default_pt_index,
                         0, 0, nullptr, 0, PTL_SUM, PTL_UINT64_T));
          must(PtlGet(descriptor.handle(), 64, 1000 + t, pair.target_id(), default_pt_index, 0,
                      64 + i, nullptr));
          events.expect_all({PTL_EVENT_ACK, PTL_EVENT_REPLY});
          expect_pattern(std::span(buffer).subspan(64, 1000 + t), 2, 64 + i);
        }
        must(PtlMDRelease(descriptor.handle()));
      });
      pair.rank().publish(0, added.load());
    });
    pair.on_target([&] {
      uint64_t sum = 0;
      std::memcpy(&sum, target.memory.data(), 8);
      EXPECT_EQ(sum, pair.rank().published<uint64_t>(pair.initiator_rank(), 0));
    });
  });
}

// spec 2.9, 3.11.2, 3.12.2
TEST_P(ThreadTest, ThreadsAppendWhileMessagesArrive) {
  run_pair(GetParam(), [](Pair& pair) {
    constexpr uint64_t each = 600;
    TargetSide target(pair, {.bytes = 8192, .events = 4 * threads * each});
    InitiatorSide initiator(pair, {.options = PTL_MD_EVENT_SUCCESS_DISABLE});
    pair.on_target([&] { target.append_overflow(PTL_ME_OP_PUT | PTL_ME_EVENT_COMM_DISABLE); });
    // Every message matches exactly one use-once entry, at its arrival or later.
    if (pair.is_initiator()) {
      for (uint64_t i = 0; i < threads * each; ++i)
        initiator.put({.length = 16, .ack = PTL_NO_ACK_REQ, .hdr_data = i});
    }
    if (pair.is_target()) {
      std::vector<std::atomic<int>> seen(threads * each);
      run_threads(threads, [&](uint64_t) {
        for (uint64_t i = 0; i < each; ++i) {
          target.append(PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE);
          const ptl_event_t event = target.events.next();
          EXPECT_TRUE(event.type == PTL_EVENT_PUT || event.type == PTL_EVENT_PUT_OVERFLOW);
          ++seen.at(event.hdr_data);
        }
      });
      for (const std::atomic<int>& count : seen) EXPECT_EQ(count, 1);
    }
    pair.barrier();
    pair.on_initiator([&] { initiator.fence(); });
    pair.on_target([&] {
      target.events.expect_empty();
      EXPECT_EQ(pair.interface().status(PTL_SR_DROP_COUNT), 0);
    });
  });
}

// spec 2.9
TEST_P(ThreadTest, ThreadsAllocateAndReleaseEverything) {
  run_pair(GetParam(), [](Pair& pair) {
    TargetSide target(pair);
    pair.on_target([&] {
      run_threads(4, [&](uint64_t t) {
        std::array<std::byte, 64> memory{};
        for (int i = 0; i < 500; ++i) {
          EventQueue events(pair.ni(), 8);
          Counter counter(pair.ni());
          Descriptor descriptor(pair.ni(), memory, 0, events.handle(), counter.handle());
          ptl_pt_index_t index = 0;
          must(PtlPTAlloc(pair.ni(), 0, events.handle(), PTL_PT_ANY, &index));
          EntrySpec spec{.start = memory.data(), .length = memory.size()};
          spec.counter = counter.handle();
          const ptl_handle_any_t own =
              pair.interface().append(index, spec, PTL_PRIORITY_LIST, tag(t));
          const ptl_handle_any_t shared =
              pair.interface().append(default_pt_index, {.options = PTL_ME_EVENT_LINK_DISABLE});
          EXPECT_EQ(events.expect(PTL_EVENT_LINK).user_ptr, tag(t));
          must(PtlTriggeredCTInc(counter.handle(), {5, 0}, counter.handle(), 3));
          counter.add(3);
          counter.expect(8);
          must(pair.interface().unlink(own));
          must(pair.interface().unlink(shared));
          must(PtlPTFree(pair.ni(), index));
          descriptor.release();
          counter.free();
          events.free();
        }
      });
      target.events.expect_empty();
    });
  });
}

// spec 2.9, 3.14.6
TEST_P(ThreadTest, ThreadsWaitForDifferentThingsAtTheSameTime) {
  run_pair(GetParam(), [](Pair& pair) {
    constexpr uint64_t rounds = 200;
    InitiatorSide initiator(pair);
    std::vector<TargetSide> targets;
    for (uint64_t t = 0; t < threads; ++t) {
      targets.emplace_back(pair, TargetSettings{.pt_index = static_cast<ptl_pt_index_t>(30 + t)});
      pair.on_target([&] {
        EntrySpec spec = targets[t].entry(PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM);
        spec.counter = targets[t].counter.handle();
        targets[t].append(spec);
      });
    }
    std::vector<std::thread> waiters;
    if (pair.is_target()) {
      for (uint64_t t = 0; t < threads; ++t) {
        waiters.push_back(start_thread([&, t] {
          for (uint64_t i = 0; i < rounds; ++i) {
            ptl_event_t event{};
            must(PtlEQWait(targets[t].events.handle(), &event));
            EXPECT_EQ(event.hdr_data, i);
            EXPECT_EQ(event.pt_index, 30 + t);
          }
        }));
        waiters.push_back(start_thread([&, t] {
          for (uint64_t i = 1; i <= rounds; ++i) {
            ptl_ct_event_t value{};
            must(PtlCTWait(targets[t].counter.handle(), i, &value));
            EXPECT_GE(value.success, i);
          }
        }));
      }
    }
    pair.on_initiator([&] {
      for (uint64_t i = 0; i < rounds; ++i) {
        for (uint64_t t = 0; t < threads; ++t) {
          initiator.put({.length = 8,
                         .ack = PTL_NO_ACK_REQ,
                         .hdr_data = i,
                         .pt_index = static_cast<ptl_pt_index_t>(30 + t)});
          initiator.source.events.expect(PTL_EVENT_SEND);
        }
      }
    });
    for (std::thread& waiter : waiters) waiter.join();
    pair.barrier();
  });
}

}  // namespace
}  // namespace lintel::test
