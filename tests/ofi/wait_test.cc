// Sleeping on descriptors (FI_WAIT_FD): man fi_cq, man fi_cntr, man fi_eq, man fi_trywait.
#include <poll.h>

#include <functional>
#include <thread>

#include <rdma/fi_trigger.h>

#include "ofi/pair.h"

namespace lintel::test::ofi {
namespace {

class WaitTest : public testing::TestWithParam<PairKind> {};
INSTANTIATE_TEST_SUITE_P(Ofi, WaitTest, testing::ValuesIn(pairs_of_two()), name_of);

int descriptor_of(fid* object) {
  int number = -1;
  must(fi_control(object, FI_GETWAIT, &number));
  return number;
}

// True: it became readable.
bool sleep_on(fid* object, int timeout_ms) {
  pollfd entry = {.fd = descriptor_of(object), .events = POLLIN, .revents = 0};
  return poll(&entry, 1, timeout_ms) == 1;
}

// As programs do: looks, sleeps only if fi_trywait permits it.
fi_cq_tagged_entry sleep_for(const Side& side, fid_cq* queue) {
  fid* object = &queue->fid;
  fi_cq_tagged_entry entry{};
  while (true) {
    const ssize_t code = fi_cq_read(queue, &entry, 1);
    if (code == 1) return entry;
    must(code + FI_EAGAIN);
    const int permitted = fi_trywait(side.fabric(), &object, 1);
    if (permitted == -FI_EAGAIN) continue;
    must(permitted);
    if (!sleep_on(object, 20'000)) Rank::current().fail("nothing woke the sleeper");
  }
}

// Messages to and fro, both sides at the same time. `sleep(side, i)` returns the context of message
// i, after a sleep.
template <typename Sleep>
void exchange(Pair& pair, const Sleep& sleep) {
  constexpr uint64_t rounds = 200;
  const bool begins = pair.rank().index() == 0;
  pair.concurrently([&](Side& side) {
    for (uint64_t i = 0; i < rounds; ++i) {
      uint64_t in = 0;
      Context context;
      must(fi_trecv(side.endpoint(), &in, 8, nullptr, FI_ADDR_UNSPEC, i, 0, &context));
      const auto send = [&] {
        side.repeat([&] { return fi_tinject(side.endpoint(), &i, 8, side.peer(), i); });
      };
      if (begins) send();
      EXPECT_EQ(sleep(side, i), &context);
      EXPECT_EQ(in, i);
      if (!begins) send();
    }
  });
}

TEST_P(WaitTest, EachMessageWakesTheSleeper) {
  Settings settings;
  settings.wait = FI_WAIT_FD;
  run_pair(GetParam(), settings, [](Pair& pair) {
    exchange(pair, [](const Side& side, uint64_t) {
      return sleep_for(side, side.received()).op_context;
    });
  });
}

TEST_P(WaitTest, LongMessagesCompleteWhileBothSleep) {
  Settings settings;
  settings.wait = FI_WAIT_FD;
  run_pair(GetParam(), settings, [](Pair& pair) {
    const std::vector<std::byte> out = bytes(1 << 20, 3);
    std::vector<std::byte> in(out.size());
    Context context;
    pair.concurrently([&](Side& side) {
      if (pair.rank().index() == 0) {
        must(fi_tsend(side.endpoint(), out.data(), out.size(), nullptr, side.peer(), 1, &context));
        EXPECT_EQ(sleep_for(side, side.sent()).op_context, &context);
      } else {
        must(fi_trecv(side.endpoint(), in.data(), in.size(), nullptr, FI_ADDR_UNSPEC, 1, 0,
                      &context));
        EXPECT_EQ(sleep_for(side, side.received()).op_context, &context);
        EXPECT_EQ(in, out);
      }
    });
  });
}

TEST(WaitObjectTest, NothingIsReadableWithoutACompletion) {
  run_alone([](Rank&) {
    Side side({.threading = FI_THREAD_SAFE, .wait = FI_WAIT_FD});
    side.connect(side.name());
    fid* object = &side.received()->fid;
    fi_wait_obj kind = FI_WAIT_NONE;
    must(fi_control(object, FI_GETWAITOBJ, &kind));
    EXPECT_EQ(kind, FI_WAIT_FD);
    must(fi_trywait(side.fabric(), &object, 1));
    EXPECT_FALSE(sleep_on(object, 20));
    uint64_t in = 0;
    const uint64_t value = 5;
    Context context;
    must(fi_trecv(side.endpoint(), &in, 8, nullptr, FI_ADDR_UNSPEC, 1, 0, &context));
    must(fi_tinject(side.endpoint(), &value, 8, side.peer(), 1));
    EXPECT_TRUE(sleep_on(object, 20'000));
    EXPECT_EQ(fi_trywait(side.fabric(), &object, 1), -FI_EAGAIN);
    EXPECT_EQ(side.next(side.received()).op_context, &context);
    EXPECT_EQ(in, value);
  });
}

TEST(WaitObjectTest, ASignalWakesAnotherThread) {
  run_alone([](Rank&) {
    Side side({.threading = FI_THREAD_SAFE, .wait = FI_WAIT_FD});
    fid* object = &side.received()->fid;
    must(fi_trywait(side.fabric(), &object, 1));
    std::thread sleeper([&] { EXPECT_TRUE(sleep_on(object, 20'000)); });
    must(fi_cq_signal(side.received()));
    sleeper.join();
  });
}

TEST(WaitObjectTest, QueuesWithoutADescriptorSaySo) {
  run_alone([](Rank&) {
    const Side side(Settings{});
    fid* object = &side.received()->fid;
    int number = 0;
    EXPECT_EQ(fi_control(object, FI_GETWAIT, &number), -FI_ENODATA);
    EXPECT_EQ(fi_trywait(side.fabric(), &object, 1), -FI_EINVAL);
  });
}

TEST(WaitObjectTest, AnEventQueueIsReadableWhileItHasEvents) {
  run_alone([](Rank&) {
    const Side side(Settings{});
    fi_eq_attr attr{};
    attr.wait_obj = FI_WAIT_FD;
    fid_eq* opened = nullptr;
    must(fi_eq_open(side.fabric(), &attr, &opened, nullptr));
    const Owned<fid_eq> queue(opened);
    fid* object = &opened->fid;
    must(fi_trywait(side.fabric(), &object, 1));
    EXPECT_FALSE(sleep_on(object, 0));
    const fi_eq_entry entry = {.fid = object, .context = nullptr, .data = 7};
    EXPECT_EQ(fi_eq_write(opened, FI_NOTIFY, &entry, sizeof entry, 0), sizeof entry);
    EXPECT_TRUE(sleep_on(object, 0));
    EXPECT_EQ(fi_trywait(side.fabric(), &object, 1), -FI_EAGAIN);
    uint32_t event = 0;
    fi_eq_entry read{};
    EXPECT_EQ(fi_eq_read(opened, &event, &read, sizeof read, 0), sizeof read);
    EXPECT_EQ(read.data, 7);
    EXPECT_FALSE(sleep_on(object, 0));
  });
}

// As programs do: reads, sleeps only if fi_trywait permits it.
void sleep_until(const Side& side, fid_cntr* counter, uint64_t value) {
  fid* object = &counter->fid;
  while (fi_cntr_read(counter) < value) {
    const int permitted = fi_trywait(side.fabric(), &object, 1);
    if (permitted == -FI_EAGAIN) continue;
    must(permitted);
    if (!sleep_on(object, 20'000)) Rank::current().fail("nothing woke the sleeper");
  }
}

TEST_P(WaitTest, EachCountWakesTheSleeper) {
  Settings settings;
  settings.counters = true;
  settings.counter_wait = FI_WAIT_FD;
  run_pair(GetParam(), settings, [](Pair& pair) {
    exchange(pair, [](Side& side, uint64_t i) {
      sleep_until(side, side.receive_counter(), i + 1);
      return side.next(side.received()).op_context;
    });
  });
}

// Portals counts these, without an event.
TEST_P(WaitTest, RemoteWritesWakeTheSleeper) {
  Settings settings;
  settings.remote_counters = true;
  settings.counter_wait = FI_WAIT_FD;
  run_pair(GetParam(), settings, [](Pair& pair) {
    constexpr uint64_t rounds = 100;
    uint64_t memory = 0;
    Owned<fid_mr> region;
    pair.concurrently([&](Side& side) {
      fid_mr* opened = nullptr;
      must(fi_mr_reg(side.domain(), &memory, 8, FI_REMOTE_WRITE, 0, 4, 0, &opened, nullptr));
      region.reset(opened);
    });
    const bool begins = pair.rank().index() == 0;
    pair.concurrently([&](Side& side) {
      for (uint64_t i = 1; i <= rounds; ++i) {
        const auto write = [&] {
          Context context;
          must(fi_write(side.endpoint(), &i, 8, nullptr, side.peer(), 0, 4, &context));
          fi_cq_tagged_entry entry{};  // Side::next() sleeps
          while (fi_cq_read(side.sent(), &entry, 1) == -FI_EAGAIN) std::this_thread::yield();
          EXPECT_EQ(entry.op_context, &context);
        };
        if (begins) write();
        sleep_until(side, side.remote_write_counter(), i);
        EXPECT_EQ(memory, i);
        if (!begins) write();
      }
    });
    pair.concurrently([&](Side&) { region.reset(); });
  });
}

TEST(WaitObjectTest, ACounterIsReadableAfterAChange) {
  run_alone([](Rank&) {
    const Side side({.threading = FI_THREAD_SAFE});
    fi_cntr_attr attr{};
    attr.wait_obj = FI_WAIT_FD;
    fid_cntr* opened = nullptr;
    must(fi_cntr_open(side.domain(), &attr, &opened, nullptr));
    const Owned<fid_cntr> counter(opened);
    fid* object = &opened->fid;
    fi_wait_obj kind = FI_WAIT_NONE;
    must(fi_control(object, FI_GETWAITOBJ, &kind));
    EXPECT_EQ(kind, FI_WAIT_FD);
    const std::function<int()> changes[] = {
        [&] { return fi_cntr_add(opened, 3); }, [&] { return fi_cntr_set(opened, 1); },
        [&] { return fi_cntr_adderr(opened, 1); }, [&] { return fi_cntr_seterr(opened, 5); }};
    for (const auto& change : changes) {
      must(fi_trywait(side.fabric(), &object, 1));
      must(fi_trywait(side.fabric(), &object, 1));
      EXPECT_FALSE(sleep_on(object, 10));
      must(change());
      EXPECT_TRUE(sleep_on(object, 20'000));
      EXPECT_EQ(fi_trywait(side.fabric(), &object, 1), -FI_EAGAIN);
      fi_cntr_read(opened);
      fi_cntr_readerr(opened);
    }
    fid_cntr* other = nullptr;
    must(fi_cntr_open(side.domain(), nullptr, &other, nullptr));
    const Owned<fid_cntr> plain(other);
    object = &other->fid;
    int number = 0;
    EXPECT_EQ(fi_control(object, FI_GETWAIT, &number), -FI_ENODATA);
    EXPECT_EQ(fi_trywait(side.fabric(), &object, 1), -FI_EINVAL);
  });
}

// The counter also triggers work, of which some is cancelled while the program sleeps.
TEST(WaitObjectTest, ACounterThatTriggersIsReadable) {
  run_alone([](Rank&) {
    const Side side({.threading = FI_THREAD_SAFE});
    fi_cntr_attr attr{};
    attr.wait_obj = FI_WAIT_FD;
    fid_cntr* opened = nullptr;
    must(fi_cntr_open(side.domain(), &attr, &opened, nullptr));
    const Owned<fid_cntr> counter(opened);
    fid* object = &opened->fid;
    fi_op_cntr change = {opened, 1};
    fi_deferred_work works[2] = {};
    for (fi_deferred_work& work : works) {
      work.triggering_cntr = opened;
      work.threshold = 2;
      work.op_type = FI_OP_CNTR_ADD;
      work.op.cntr = &change;
      must(fi_control(&side.domain()->fid, FI_QUEUE_WORK, &work));
    }
    for (uint64_t i = 1; i <= 2; ++i) {
      must(fi_trywait(side.fabric(), &object, 1));
      if (i == 1) must(fi_control(&side.domain()->fid, FI_CANCEL_WORK, &works[0]));
      EXPECT_FALSE(sleep_on(object, 10));
      must(fi_cntr_add(opened, 1));
      EXPECT_TRUE(sleep_on(object, 20'000));
      EXPECT_EQ(fi_cntr_read(opened), i == 1 ? 1 : 3);
    }
  });
}

// Several threads (FI_THREAD_SAFE), and progress without calls (FI_PROGRESS_AUTO): man fi_domain.

// Each thread sends to itself through one endpoint; completions come to whichever thread reads.
TEST(ThreadTest, ThreadsShareAnEndpoint) {
  for (const bool contexts : {true, false}) {
    run_alone([contexts](Rank&) {
      Side side({.contexts = contexts, .threading = FI_THREAD_SAFE});
      side.connect(side.name());
      constexpr size_t threads = 3;
      constexpr size_t rounds = 300;
      std::atomic<size_t> received{0};
      // Completions of sends are read when the threads have ended.
      std::vector<std::vector<Context>> contexts_of(2 * threads, std::vector<Context>(rounds));
      std::vector<std::vector<std::byte>> out_of(threads);
      const auto run = [&](size_t thread) {
        std::vector<std::byte>& out = out_of[thread];
        out = bytes(2000, static_cast<unsigned>(thread));
        std::vector<std::vector<std::byte>> in(rounds, std::vector<std::byte>(2000));
        std::vector<Context>& receives = contexts_of[2 * thread];
        std::vector<Context>& sends = contexts_of[2 * thread + 1];
        for (size_t i = 0; i < rounds; ++i) {
          if (fi_trecv(side.endpoint(), in[i].data(), 2000, nullptr, side.peer(), thread, 0,
                       &receives[i]) != 0 ||
              fi_tsend(side.endpoint(), out.data(), 1 + i * 6, nullptr, side.peer(), thread,
                       &sends[i]) != 0)
            return;
          fi_cq_tagged_entry entries[4];
          const ssize_t count = fi_cq_read(side.received(), entries, 4);
          if (count > 0) received += static_cast<size_t>(count);
        }
        while (received < threads * rounds) {
          fi_cq_tagged_entry entry{};
          if (fi_cq_sread(side.received(), &entry, 1, nullptr, 1) == 1) ++received;
        }
        for (size_t i = 0; i < rounds; ++i)
          EXPECT_TRUE(
              std::equal(out.begin(), out.begin() + 1 + static_cast<long>(i) * 6, in[i].begin()));
      };
      std::vector<std::thread> running;
      for (size_t thread = 0; thread < threads; ++thread) running.emplace_back(run, thread);
      for (std::thread& each : running) each.join();
      for (size_t i = 0; i < threads * rounds; ++i) side.next(side.sent());
      side.expect_nothing(side.sent());
      side.expect_nothing(side.received());
    });
  }
}

// A long message that was there before its receive: the receiver need not call again.
TEST(ProgressTest, TheReceiverNeedNotCallAgain) {
  for (const char* const transport : {"shm", "udp"}) {
    Settings settings;
    settings.progress = FI_PROGRESS_AUTO;
    run_pair({transport, transport, 2}, settings, [](Pair& pair) {
      const std::vector<std::byte> out = bytes(300000, 1);
      std::vector<std::byte> in(out.size());
      Context sending;
      Context receiving;
      pair.sender([&](Side& side) {
        must(fi_tsend(side.endpoint(), out.data(), out.size(), nullptr, side.peer(), 1, &sending));
        const char last = 'x';
        must(fi_inject(side.endpoint(), &last, 1, side.peer()));
      });
      pair.receiver([&](Side& side) {
        char last = 0;
        Context context;
        must(fi_recv(side.endpoint(), &last, 1, nullptr, FI_ADDR_UNSPEC, &context));
        side.next(side.received());  // so the long one is there
        must(fi_trecv(side.endpoint(), in.data(), in.size(), nullptr, FI_ADDR_UNSPEC, 1, 0,
                      &receiving));
      });
      pair.sender([&](Side& side) { EXPECT_EQ(side.next(side.sent()).op_context, &sending); });
      pair.receiver([&](Side& side) {
        EXPECT_EQ(side.next(side.received()).op_context, &receiving);
        EXPECT_EQ(in, out);
      });
    });
  }
}

}  // namespace
}  // namespace lintel::test::ofi
