// Triggered operations and deferred work: man fi_trigger.
#include <algorithm>
#include <array>

#include <rdma/fi_trigger.h>

#include "ofi/pair.h"

namespace lintel::test::ofi {
namespace {

class TriggerTest : public testing::TestWithParam<PairKind> {};
INSTANTIATE_TEST_SUITE_P(Ofi, TriggerTest, testing::ValuesIn(all_pairs()), name_of);

constexpr uint64_t key = 5;

int queue(const Side& side, fi_deferred_work& work) {
  return fi_control(&side.domain()->fid, FI_QUEUE_WORK, &work);
}

// A work with all that it points to.
struct Work {
  explicit Work(const Side& side) : side_(side) {}
  Work(const Work&) = delete;

  void when(const Owned<fid_cntr>& counter, uint64_t threshold, const Owned<fid_cntr>& completion) {
    work.triggering_cntr = counter.get();
    work.threshold = threshold;
    work.completion_cntr = completion.get();
  }
  fi_op_msg& message(fi_op_type type, void* buffer, size_t size) {
    work.op_type = type;
    work.op.msg = &op.message;
    local = {buffer, size};
    op.message.ep = side_.endpoint();
    op.message.msg.msg_iov = &local;
    op.message.msg.iov_count = 1;
    op.message.msg.addr = type == FI_OP_SEND ? side_.peer() : FI_ADDR_UNSPEC;
    op.message.msg.context = &context;
    return op.message;
  }
  fi_op_tagged& tagged(fi_op_type type, void* buffer, size_t size, uint64_t tag) {
    work.op_type = type;
    work.op.tagged = &op.tagged;
    local = {buffer, size};
    op.tagged.ep = side_.endpoint();
    op.tagged.msg.msg_iov = &local;
    op.tagged.msg.iov_count = 1;
    op.tagged.msg.addr = type == FI_OP_TSEND ? side_.peer() : FI_ADDR_UNSPEC;
    op.tagged.msg.tag = tag;
    op.tagged.msg.context = &context;
    return op.tagged;
  }
  fi_op_rma& rma(fi_op_type type, void* buffer, size_t size, uint64_t offset) {
    work.op_type = type;
    work.op.rma = &op.rma;
    local = {buffer, size};
    remote = {offset, size, key};
    op.rma.ep = side_.endpoint();
    op.rma.msg.msg_iov = &local;
    op.rma.msg.iov_count = 1;
    op.rma.msg.addr = side_.peer();
    op.rma.msg.rma_iov = &remote;
    op.rma.msg.rma_iov_count = 1;
    op.rma.msg.context = &context;
    return op.rma;
  }
  // The three kinds begin alike, so one function fills all.
  fi_msg_atomic& atomic(fi_op_type type, fi_op operation, uint64_t* operand, uint64_t* comparand,
                        uint64_t* result, uint64_t offset) {
    work.op_type = type;
    work.op.compare_atomic = &op.compare;
    items = {operand, 1};
    comparands = {comparand, 1};
    results = {result, 1};
    remote_items = {offset, 1, key};
    if (type == FI_OP_ATOMIC) op.atomic.ep = side_.endpoint();
    if (type == FI_OP_FETCH_ATOMIC) {
      op.fetch.ep = side_.endpoint();
      op.fetch.fetch = {&results, nullptr, 1};
    }
    if (type == FI_OP_COMPARE_ATOMIC) {
      op.compare.ep = side_.endpoint();
      op.compare.fetch = {&results, nullptr, 1};
      op.compare.compare = {&comparands, nullptr, 1};
    }
    fi_msg_atomic& message = op.compare.msg;
    message.msg_iov = &items;
    message.iov_count = 1;
    message.addr = side_.peer();
    message.rma_iov = &remote_items;
    message.rma_iov_count = 1;
    message.datatype = FI_UINT64;
    message.op = operation;
    message.context = &context;
    return message;
  }
  void change(fi_op_type type, const Owned<fid_cntr>& counter, uint64_t value) {
    work.op_type = type;
    work.op.cntr = &op.counter;
    op.counter = {counter.get(), value};
  }

  fi_deferred_work work{};
  Context context;
  iovec local{};
  fi_rma_iov remote{};
  fi_ioc items{};
  fi_ioc comparands{};
  fi_ioc results{};
  fi_rma_ioc remote_items{};
  union Operations {
    Operations() : compare{} {}
    fi_op_msg message;
    fi_op_tagged tagged;
    fi_op_rma rma;
    fi_op_atomic atomic;
    fi_op_fetch_atomic fetch;
    fi_op_compare_atomic compare;
    fi_op_cntr counter;
  } op;

 private:
  const Side& side_;
};

// Queues a work, sees that it waits, lets it start, and waits for its end.
void run_work(const Side& side, Work& work) {
  const Owned<fid_cntr> counter = open_counter(side);
  const Owned<fid_cntr> completion = open_counter(side);
  must(fi_cntr_set(counter.get(), 6));
  work.when(counter, 8, completion);
  must(queue(side, work.work));
  must(fi_cntr_add(counter.get(), 1));
  EXPECT_EQ(fi_cntr_read(completion.get()), 0);
  EXPECT_EQ(fi_cntr_read(counter.get()), 7);
  must(fi_cntr_add(counter.get(), 1));
  must(fi_cntr_wait(completion.get(), 1, 10'000));
  EXPECT_EQ(fi_cntr_read(completion.get()), 1);
  EXPECT_EQ(fi_cntr_readerr(completion.get()), 0);
  side.expect_nothing(side.sent());
  side.expect_nothing(side.received());
}
void run_work(const Side& side, const std::function<void(Work&)>& fill) {
  Work work(side);
  fill(work);
  run_work(side, work);
}

TEST_P(TriggerTest, WorkThatSends) {
  run_pair(GetParam(), {}, [](Pair& pair) {
    for (const size_t size : {size_t{0}, size_t{8}, size_t{5000}, size_t{300'000}}) {
      std::vector<std::byte> out = bytes(size, 3);
      std::vector<std::byte> in[2] = {std::vector<std::byte>(size), std::vector<std::byte>(size)};
      Context contexts[2];
      pair.receiver([&](Side& side) {
        must(fi_trecv(side.endpoint(), in[0].data(), size, nullptr, FI_ADDR_UNSPEC, 9, 0,
                      &contexts[0]));
        must(fi_recv(side.endpoint(), in[1].data(), size, nullptr, FI_ADDR_UNSPEC, &contexts[1]));
      });
      pair.sender([&](Side& side) {
        Work tagged(side);
        fi_op_tagged& op = tagged.tagged(FI_OP_TSEND, out.data(), size, 9);
        op.flags = FI_REMOTE_CQ_DATA;
        op.msg.data = 77;
        run_work(side, tagged);
      });
      pair.receiver([&](Side& side) {
        const fi_cq_tagged_entry entry = side.next(side.received());
        EXPECT_EQ(entry.op_context, &contexts[0]);
        EXPECT_EQ(entry.data, 77);
        EXPECT_EQ(entry.tag, 9);
        EXPECT_EQ(in[0], out);
      });
      pair.sender([&](Side& side) {
        Work message(side);
        message.message(FI_OP_SEND, out.data(), size).flags = FI_DELIVERY_COMPLETE;
        run_work(side, message);
      });
      pair.receiver([&](Side& side) {
        EXPECT_EQ(side.next(side.received()).op_context, &contexts[1]);
        EXPECT_EQ(in[1], out);
      });
    }
  });
}

TEST_P(TriggerTest, WorkThatReceives) {
  run_pair(GetParam(), {}, [](Pair& pair) {
    for (const size_t size : {size_t{8}, size_t{5000}, size_t{300'000}}) {
      for (const bool is_tagged : {false, true}) {
        for (const bool is_early : {false, true}) {
          const std::vector<std::byte> out = bytes(size, 4);
          std::vector<std::byte> in(size);
          Context sending;
          const auto send = [&](Side& side) {
            must(
                is_tagged
                    ? fi_tsend(side.endpoint(), out.data(), size, nullptr, side.peer(), 3, &sending)
                    : fi_send(side.endpoint(), out.data(), size, nullptr, side.peer(), &sending));
          };
          Owned<fid_cntr> counter;
          Owned<fid_cntr> completion;
          std::optional<Work> work;
          pair.receiver([&](Side& side) {
            counter = open_counter(side);
            completion = open_counter(side);
            work.emplace(side);
            if (is_tagged) {
              work->tagged(FI_OP_TRECV, in.data(), size, 3).flags = FI_COMPLETION;
            } else {
              work->message(FI_OP_RECV, in.data(), size).flags = FI_COMPLETION;
            }
            work->when(counter, 1, completion);
            must(queue(side, work->work));
          });
          if (is_early) pair.sender(send);
          pair.receiver([&](Side& side) {
            side.expect_nothing(side.received());
            must(fi_cntr_add(counter.get(), 1));
          });
          if (!is_early) pair.sender(send);
          pair.receiver([&](Side& side) {
            must(fi_cntr_wait(completion.get(), 1, 10'000));
            const fi_cq_tagged_entry entry = side.next(side.received());
            EXPECT_EQ(entry.op_context, &work->context);
            EXPECT_EQ(entry.flags, FI_RECV | (is_tagged ? FI_TAGGED : FI_MSG));
            EXPECT_EQ(entry.len, size);
            EXPECT_EQ(in, out);
            side.expect_nothing(side.received());
            completion.reset();
            counter.reset();
          });
          pair.sender([&](Side& side) { EXPECT_EQ(side.next(side.sent()).op_context, &sending); });
        }
      }
    }
  });
}

TEST_P(TriggerTest, WorkOnRemoteMemory) {
  run_pair(GetParam(), {}, [](Pair& pair) {
    uint64_t memory[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    Owned<fid_mr> region;
    pair.receiver([&](Side& side) { region = register_memory(side, memory, sizeof memory, key); });
    pair.sender([&](Side& side) {
      uint64_t value = 100;
      uint64_t other = 7;
      uint64_t results[3] = {};
      run_work(side, [&](Work& work) { work.rma(FI_OP_WRITE, &value, 8, 0); });
      run_work(side, [&](Work& work) { work.rma(FI_OP_READ, &results[0], 8, 8); });
      EXPECT_EQ(results[0], 2);
      run_work(side, [&](Work& work) {
        work.atomic(FI_OP_ATOMIC, FI_SUM, &value, nullptr, nullptr, 16);
      });
      run_work(side, [&](Work& work) {
        work.atomic(FI_OP_ATOMIC, FI_ATOMIC_WRITE, &value, nullptr, nullptr, 24);
      });
      run_work(side, [&](Work& work) {
        work.atomic(FI_OP_FETCH_ATOMIC, FI_SUM, &value, nullptr, &results[1], 32);
      });
      EXPECT_EQ(results[1], 5);
      run_work(side, [&](Work& work) {
        work.atomic(FI_OP_FETCH_ATOMIC, FI_ATOMIC_READ, nullptr, nullptr, &results[1], 32);
      });
      EXPECT_EQ(results[1], 105);
      run_work(side, [&](Work& work) {
        work.atomic(FI_OP_COMPARE_ATOMIC, FI_CSWAP, &value, &other, &results[2], 48);
      });
      EXPECT_EQ(results[2], 7);
    });
    pair.receiver([&](Side&) {
      const uint64_t expected[8] = {100, 2, 103, 100, 105, 6, 100, 8};
      EXPECT_TRUE(std::equal(memory, memory + 8, expected));
      region.reset();
    });
  });
}

// Both sides in pieces: several operations of Portals, one count.
TEST_P(TriggerTest, WorkInPieces) {
  run_pair(GetParam(), {}, [](Pair& pair) {
    uint64_t memory[8] = {};
    Owned<fid_mr> region;
    pair.receiver([&](Side& side) { region = register_memory(side, memory, sizeof memory, key); });
    pair.sender([&](Side& side) {
      uint64_t values[4] = {1, 2, 3, 4};
      const iovec local[2] = {{values, 16}, {values + 2, 16}};
      const fi_rma_iov remote[2] = {{0, 8, key}, {32, 24, key}};
      Work work(side);
      fi_op_rma& op = work.rma(FI_OP_WRITE, nullptr, 0, 0);
      op.msg.msg_iov = local;
      op.msg.iov_count = 2;
      op.msg.rma_iov = remote;
      op.msg.rma_iov_count = 2;
      run_work(side, work);
    });
    pair.receiver([&](Side&) {
      const uint64_t expected[8] = {1, 0, 0, 0, 2, 3, 4, 0};
      EXPECT_TRUE(std::equal(memory, memory + 8, expected));
      region.reset();
    });
  });
}

// The first count starts all: each work is triggered by the end of the one before.
TEST_P(TriggerTest, ChainsOfWork) {
  run_pair(GetParam(), {}, [](Pair& pair) {
    constexpr size_t links = 20;
    uint64_t memory[2] = {};
    Owned<fid_mr> region;
    pair.receiver([&](Side& side) { region = register_memory(side, memory, sizeof memory, key); });
    pair.sender([&](Side& side) {
      uint64_t one = 1;
      uint64_t results[links] = {};
      std::vector<Owned<fid_cntr>> counters;
      std::vector<std::unique_ptr<Work>> works;
      counters.push_back(open_counter(side));
      for (size_t i = 0; i < links; ++i) {
        counters.push_back(open_counter(side));
        works.push_back(std::make_unique<Work>(side));
        works[i]->atomic(FI_OP_FETCH_ATOMIC, FI_SUM, &one, nullptr, &results[i], 0);
        works[i]->when(counters[i], 1, counters[i + 1]);
        must(queue(side, works[i]->work));
      }
      must(fi_cntr_add(counters[0].get(), 1));
      must(fi_cntr_wait(counters[links].get(), 1, 20'000));
      for (size_t i = 0; i < links; ++i) EXPECT_EQ(results[i], i);
    });
    pair.receiver([&](Side&) { region.reset(); });
  });
}

TEST_P(TriggerTest, CountersAreMoved) {
  run_pair(GetParam(), {}, [](Pair& pair) {
    pair.sender([&](Side& side) {
      const Owned<fid_cntr> counter = open_counter(side);
      const Owned<fid_cntr> added = open_counter(side);
      const Owned<fid_cntr> set = open_counter(side);
      const Owned<fid_cntr> none;
      must(fi_cntr_add(added.get(), 4));
      must(fi_cntr_add(set.get(), 4));
      Work adding(side);
      adding.change(FI_OP_CNTR_ADD, added, 3);
      adding.when(counter, 2, none);
      must(queue(side, adding.work));
      Work setting(side);
      setting.change(FI_OP_CNTR_SET, set, 50);
      setting.when(added, 7, none);
      must(queue(side, setting.work));
      EXPECT_EQ(fi_close(&set->fid), -FI_EBUSY);
      must(fi_cntr_add(counter.get(), 1));
      EXPECT_EQ(fi_cntr_read(added.get()), 4);
      must(fi_cntr_add(counter.get(), 1));
      EXPECT_EQ(fi_cntr_read(added.get()), 7);
      EXPECT_EQ(fi_cntr_read(set.get()), 50);
      must(fi_cntr_wait(set.get(), 50, 1000));
      adding.when(counter, 3, counter);
      EXPECT_EQ(queue(side, adding.work), -FI_EINVAL);  // completion_cntr must be NULL
      // Many, so that those that have ended are forgotten.
      for (int i = 0; i < 1000; ++i) {
        adding.when(counter, 1, none);
        must(queue(side, adding.work));
      }
      EXPECT_EQ(fi_cntr_read(added.get()), 7 + 3000);
    });
  });
}

// By thresholds, and among equal ones by their calls.
TEST_P(TriggerTest, TheOrderIsThatOfThresholds) {
  run_pair(GetParam(), {}, [](Pair& pair) {
    constexpr uint64_t count = 6;
    constexpr std::array<uint64_t, count> thresholds = {3, 1, 2, 1, 3, 2};
    std::array<uint64_t, count> in{};
    std::array<Context, count> contexts;
    pair.receiver([&](Side& side) {
      for (uint64_t i = 0; i < count; ++i)
        must(fi_recv(side.endpoint(), &in[i], 8, nullptr, FI_ADDR_UNSPEC, &contexts[i]));
    });
    pair.sender([&](Side& side) {
      const Owned<fid_cntr> counter = open_counter(side);
      const Owned<fid_cntr> completion = open_counter(side);
      std::array<uint64_t, count> out = {0, 1, 2, 3, 4, 5};
      std::vector<std::unique_ptr<Work>> works;
      for (uint64_t i = 0; i < count; ++i) {
        works.push_back(std::make_unique<Work>(side));
        works[i]->message(FI_OP_SEND, &out[i], 8);
        works[i]->when(counter, thresholds[i], completion);
        must(queue(side, works[i]->work));
      }
      must(fi_cntr_add(counter.get(), 10));
      must(fi_cntr_wait(completion.get(), count, 10'000));
    });
    pair.receiver([&](Side& side) {
      for (Context& each : contexts) EXPECT_EQ(side.next(side.received()).op_context, &each);
      const std::array<uint64_t, count> expected = {1, 3, 2, 5, 0, 4};
      EXPECT_EQ(in, expected);
    });
  });
}

TEST_P(TriggerTest, OneWorkIsCancelledAndTheOthersStay) {
  run_pair(GetParam(), {}, [](Pair& pair) {
    std::array<uint64_t, 4> memory{};
    Owned<fid_mr> region;
    pair.receiver([&](Side& side) { region = register_memory(side, &memory, sizeof memory, key); });
    pair.sender([&](Side& side) {
      const Owned<fid_cntr> counter = open_counter(side);
      const Owned<fid_cntr> completion = open_counter(side);
      uint64_t one = 1;
      std::vector<std::unique_ptr<Work>> works;
      for (uint64_t i = 0; i < 4; ++i) {
        works.push_back(std::make_unique<Work>(side));
        works[i]->rma(FI_OP_WRITE, &one, 8, 8 * i);
        works[i]->when(counter, i < 3 ? 1 : 2, completion);
        must(queue(side, works[i]->work));
      }
      const auto cancel = [&](size_t i) {
        return fi_control(&side.domain()->fid, FI_CANCEL_WORK, &works[i]->work);
      };
      must(cancel(1));
      EXPECT_EQ(cancel(1), -FI_ENOENT);
      must(fi_cntr_add(counter.get(), 1));
      must(fi_cntr_wait(completion.get(), 2, 10'000));
      EXPECT_EQ(cancel(0), -FI_ENOENT);  // it has been carried out
      must(cancel(3));
      must(fi_cntr_add(counter.get(), 1));
      EXPECT_EQ(fi_cntr_wait(completion.get(), 3, 20), -FI_ETIMEDOUT);
      side.expect_nothing(side.sent());
    });
    pair.receiver([&](Side&) {
      const std::array<uint64_t, 4> expected = {1, 0, 1, 0};
      EXPECT_EQ(memory, expected);
      region.reset();
    });
  });
}

// Works of every kind; nothing of them is left.
TEST_P(TriggerTest, AFlushCancelsAll) {
  run_pair(GetParam(), {}, [](Pair& pair) {
    pair.sender([&](Side& side) {
      const Owned<fid_cntr> counters[2] = {open_counter(side), open_counter(side)};
      const Owned<fid_cntr> completion = open_counter(side);
      const Owned<fid_cntr> none;
      std::vector<std::byte> memory(300'000);
      std::vector<std::unique_ptr<Work>> works;
      for (const Owned<fid_cntr>& counter : counters) {
        for (int kind = 0; kind < 7; ++kind) {
          works.push_back(std::make_unique<Work>(side));
          Work& work = *works.back();
          if (kind == 0) work.message(FI_OP_SEND, memory.data(), 8);
          if (kind == 1) work.tagged(FI_OP_TSEND, memory.data(), memory.size(), 4);
          if (kind == 2) work.message(FI_OP_RECV, memory.data(), 8);
          if (kind == 3) work.tagged(FI_OP_TRECV, memory.data(), 8, 4);
          if (kind == 4) work.rma(FI_OP_WRITE, memory.data(), 8, 0);
          if (kind == 5) work.rma(FI_OP_READ, memory.data(), 8, 0);
          if (kind == 6) work.change(FI_OP_CNTR_ADD, completion, 1);
          work.when(counter, 1, kind == 6 ? none : completion);
          must(queue(side, work.work));
        }
      }
      EXPECT_EQ(fi_close(&counters[0]->fid), -FI_EBUSY);
      must(fi_control(&side.domain()->fid, FI_FLUSH_WORK, &works[0]->work));
      must(fi_cntr_add(counters[0].get(), 1));
      EXPECT_EQ(fi_control(&side.domain()->fid, FI_CANCEL_WORK, &works[0]->work), -FI_ENOENT);
      must(fi_control(&side.domain()->fid, FI_CANCEL_WORK, &works[7]->work));
      must(fi_control(&side.domain()->fid, FI_FLUSH_WORK, nullptr));
      must(fi_cntr_add(counters[1].get(), 1));
      EXPECT_EQ(fi_cntr_wait(completion.get(), 1, 20), -FI_ETIMEDOUT);
      side.expect_nothing(side.sent());
    });
  });
}

// FI_TRIGGER at calls: their context says when, and they are reported like others.
TEST_P(TriggerTest, CallsWithATriggeredContext) {
  Settings settings;
  settings.counters = true;
  run_pair(GetParam(), settings, [](Pair& pair) {
    std::array<uint64_t, 4> memory = {1, 2, 3, 4};
    uint64_t in[2] = {};
    Owned<fid_mr> region;
    Owned<fid_cntr> receiving;
    fi_triggered_context2 receive_contexts[2] = {};
    const auto at = [](fi_triggered_context2& context, const Owned<fid_cntr>& counter) {
      context.event_type = FI_TRIGGER_THRESHOLD;
      context.trigger.threshold = {counter.get(), 1};
    };
    pair.receiver([&](Side& side) {
      region = register_memory(side, &memory, sizeof memory, key);
      receiving = open_counter(side);
      const iovec pieces[2] = {{&in[0], 8}, {&in[1], 8}};
      for (int i = 0; i < 2; ++i) at(receive_contexts[i], receiving);
      fi_msg_tagged tagged{};
      tagged.msg_iov = &pieces[0];
      tagged.iov_count = 1;
      tagged.addr = FI_ADDR_UNSPEC;
      tagged.tag = 6;
      tagged.context = &receive_contexts[0];
      must(fi_trecvmsg(side.endpoint(), &tagged, FI_TRIGGER | FI_COMPLETION));
      fi_msg message{};
      message.msg_iov = &pieces[1];
      message.iov_count = 1;
      message.addr = FI_ADDR_UNSPEC;
      message.context = &receive_contexts[1];
      must(fi_recvmsg(side.endpoint(), &message, FI_TRIGGER | FI_COMPLETION));
      must(fi_cntr_add(receiving.get(), 1));
    });
    pair.sender([&](Side& side) {
      const Owned<fid_cntr> counter = open_counter(side);
      std::array<fi_triggered_context2, 7> contexts{};
      for (fi_triggered_context2& each : contexts) at(each, counter);
      constexpr uint64_t flags = FI_TRIGGER | FI_COMPLETION;
      uint64_t value = 40;
      uint64_t other = 4;
      uint64_t results[3] = {};
      const iovec piece = {&value, 8};
      fi_msg_tagged tagged{};
      tagged.msg_iov = &piece;
      tagged.iov_count = 1;
      tagged.addr = side.peer();
      tagged.tag = 6;
      tagged.context = &contexts[0];
      must(fi_tsendmsg(side.endpoint(), &tagged, flags | FI_INJECT));
      fi_msg message{};
      message.msg_iov = &piece;
      message.iov_count = 1;
      message.addr = side.peer();
      message.context = &contexts[1];
      must(fi_sendmsg(side.endpoint(), &message, flags));
      fi_rma_iov remote = {0, 8, key};
      fi_msg_rma rma{};
      rma.msg_iov = &piece;
      rma.iov_count = 1;
      rma.addr = side.peer();
      rma.rma_iov = &remote;
      rma.rma_iov_count = 1;
      rma.context = &contexts[2];
      must(fi_writemsg(side.endpoint(), &rma, flags | FI_INJECT));
      const iovec result_piece = {&results[0], 8};
      remote.addr = 8;
      rma.msg_iov = &result_piece;
      rma.context = &contexts[3];
      must(fi_readmsg(side.endpoint(), &rma, flags));
      const fi_ioc item = {&value, 1};
      fi_rma_ioc remote_item = {16, 1, key};
      fi_msg_atomic atomic{};
      atomic.msg_iov = &item;
      atomic.iov_count = 1;
      atomic.addr = side.peer();
      atomic.rma_iov = &remote_item;
      atomic.rma_iov_count = 1;
      atomic.datatype = FI_UINT64;
      atomic.op = FI_SUM;
      atomic.context = &contexts[4];
      must(fi_atomicmsg(side.endpoint(), &atomic, flags | FI_INJECT));
      fi_ioc result = {&results[1], 1};
      remote_item.addr = 8;
      atomic.context = &contexts[5];
      must(fi_fetch_atomicmsg(side.endpoint(), &atomic, &result, nullptr, 1, flags));
      fi_ioc swapped = {&results[2], 1};
      const fi_ioc comparand = {&other, 1};
      remote_item.addr = 24;
      atomic.op = FI_CSWAP;
      atomic.context = &contexts[6];
      must(fi_compare_atomicmsg(side.endpoint(), &atomic, &comparand, nullptr, 1, &swapped, nullptr,
                                1, flags));
      side.expect_nothing(side.sent());
      value = 50;  // what was injected keeps 40
      must(fi_cntr_add(counter.get(), 1));
      std::vector<void*> ended;
      for (size_t i = 0; i < contexts.size(); ++i)
        ended.push_back(side.next(side.sent()).op_context);
      for (fi_triggered_context2& each : contexts)
        EXPECT_EQ(std::count(ended.begin(), ended.end(), &each), 1);
      EXPECT_TRUE(results[0] == 2 || results[0] == 52);
      EXPECT_EQ(results[1], 2);
      EXPECT_EQ(results[2], 4);
      EXPECT_EQ(fi_cntr_read(side.send_counter()), 2);
      EXPECT_EQ(fi_cntr_read(side.write_counter()), 2);
      EXPECT_EQ(fi_cntr_read(side.read_counter()), 3);
    });
    pair.receiver([&](Side& side) {
      std::vector<void*> ended = {side.next(side.received()).op_context,
                                  side.next(side.received()).op_context};
      for (fi_triggered_context2& each : receive_contexts)
        EXPECT_EQ(std::count(ended.begin(), ended.end(), &each), 1);
      EXPECT_EQ(in[0], 40);
      EXPECT_EQ(in[1], 50);
      const std::array<uint64_t, 4> expected = {40, 52, 43, 50};
      EXPECT_EQ(memory, expected);
      EXPECT_EQ(fi_cntr_read(side.receive_counter()), 2);
      region.reset();
      receiving.reset();
    });
  });
}

TEST_P(TriggerTest, ATriggeredCallIsCancelled) {
  run_pair(GetParam(), {}, [](Pair& pair) {
    pair.sender([&](Side& side) {
      const Owned<fid_cntr> counter = open_counter(side);
      uint64_t value = 0;
      const iovec piece = {&value, 8};
      for (const bool receives : {false, true}) {
        fi_triggered_context2 context{};
        context.event_type = FI_TRIGGER_THRESHOLD;
        context.trigger.threshold = {counter.get(), 1};
        fi_msg_tagged message{};
        message.msg_iov = &piece;
        message.iov_count = 1;
        message.addr = side.peer();
        message.context = &context;
        must(receives ? fi_trecvmsg(side.endpoint(), &message, FI_TRIGGER)
                      : fi_tsendmsg(side.endpoint(), &message, FI_TRIGGER));
        must(fi_cancel(&side.endpoint()->fid, &context));
        const fi_cq_err_entry error = side.next_error(receives ? side.received() : side.sent());
        EXPECT_EQ(error.err, FI_ECANCELED);
        EXPECT_EQ(error.op_context, &context);
        EXPECT_EQ(error.flags, FI_TAGGED | (receives ? FI_RECV : FI_SEND));
      }
      must(fi_cntr_add(counter.get(), 1));
      side.expect_nothing(side.sent());
    });
  });
}

// A receive that has started is one like others.
TEST_P(TriggerTest, AStartedReceiveIsCancelled) {
  run_pair(GetParam(), {}, [](Pair& pair) {
    pair.sender([&](Side& side) {
      const Owned<fid_cntr> counter = open_counter(side);
      const Owned<fid_cntr> completion = open_counter(side);
      uint64_t value = 0;
      Work work(side);
      work.tagged(FI_OP_TRECV, &value, 8, 3);
      work.when(counter, 1, completion);
      must(fi_cntr_add(counter.get(), 1));
      must(queue(side, work.work));
      EXPECT_EQ(fi_control(&side.domain()->fid, FI_CANCEL_WORK, &work.work), -FI_ENOENT);
      must(fi_cancel(&side.endpoint()->fid, &work.context));
      EXPECT_EQ(side.next_error(side.received()).err, FI_ECANCELED);
      EXPECT_EQ(fi_cntr_readerr(completion.get()), 1);
      EXPECT_EQ(fi_cntr_read(completion.get()), 0);
    });
  });
}

TEST_P(TriggerTest, WorkThatFailsCountsAnError) {
  run_pair(GetParam(), {}, [](Pair& pair) {
    pair.sender([&](Side& side) {
      const Owned<fid_cntr> counter = open_counter(side);
      const Owned<fid_cntr> completion = open_counter(side);
      uint64_t value = 0;
      Work work(side);
      work.rma(FI_OP_WRITE, &value, 8, 0);  // nobody has this key
      work.when(counter, 1, completion);
      must(queue(side, work.work));
      must(fi_cntr_add(counter.get(), 1));
      Rank::current().await_condition("an error",
                                      [&] { return fi_cntr_readerr(completion.get()) == 1; });
      EXPECT_EQ(fi_cntr_read(completion.get()), 0);
      const fi_cq_err_entry error = side.next_error(side.sent());
      EXPECT_EQ(error.op_context, &work.context);
      EXPECT_EQ(error.err, FI_ENOKEY);
    });
  });
}

// A write of a peer triggers an answer, without a call of this process in between.
TEST_P(TriggerTest, ARemoteWriteTriggersAnAnswer) {
  Settings settings;
  settings.remote_counters = true;
  run_pair(GetParam(), settings, [](Pair& pair) {
    constexpr uint64_t rounds = 10;
    uint64_t there = 0;
    uint64_t here = 0;
    uint64_t answer = 1;
    Owned<fid_mr> regions[2];
    Owned<fid_cntr> completion;
    std::vector<std::unique_ptr<Work>> works;
    pair.sender([&](Side& side) { regions[0] = register_memory(side, &here, 8, key + 1); });
    pair.receiver([&](Side& side) {
      regions[1] = register_memory(side, &there, 8, key);
      completion = open_counter(side);
      for (uint64_t i = 0; i < rounds; ++i) {
        works.push_back(std::make_unique<Work>(side));
        works[i]->atomic(FI_OP_ATOMIC, FI_SUM, &answer, nullptr, nullptr, 0);
        works[i]->remote_items.key = key + 1;
        works[i]->work.triggering_cntr = side.remote_write_counter();
        works[i]->work.threshold = i + 1;
        works[i]->work.completion_cntr = completion.get();
        must(queue(side, works[i]->work));
      }
    });
    pair.sender([&](Side& side) {
      for (uint64_t i = 1; i <= rounds; ++i) {
        Context context;
        must(fi_write(side.endpoint(), &i, 8, nullptr, side.peer(), 0, key, &context));
        side.next(side.sent());
        must(fi_cntr_wait(side.remote_write_counter(), i, 10'000));
        EXPECT_EQ(here, i);
      }
    });
    pair.receiver([&](Side&) {
      must(fi_cntr_wait(completion.get(), rounds, 10'000));
      regions[1].reset();
      completion.reset();
    });
    pair.sender([&](Side&) { regions[0].reset(); });
  });
}

TEST(TriggerLimitsTest, WhatCannotBeDeferredIsRefused) {
  run_alone([](Rank&) {
    Side side({});
    side.connect(side.name());
    const Owned<fid_cntr> counter = open_counter(side);
    const Owned<fid_cntr> completion = open_counter(side);
    uint64_t value = 0;
    Work work(side);
    work.when(counter, 1, completion);
    work.rma(FI_OP_WRITE, &value, 8, 0).flags = FI_FENCE;
    EXPECT_EQ(queue(side, work.work), -FI_ENOSYS);
    work.message(FI_OP_RECV, &value, 8).flags = FI_MULTI_RECV;
    EXPECT_EQ(queue(side, work.work), -FI_ENOSYS);
    work.tagged(FI_OP_TRECV, &value, 8, 1).flags = FI_PEEK;
    EXPECT_EQ(queue(side, work.work), -FI_ENOSYS);
    std::vector<std::byte> much(513);
    work.message(FI_OP_SEND, much.data(), much.size()).flags = FI_INJECT;
    EXPECT_EQ(queue(side, work.work), -FI_EMSGSIZE);
    work.op.message.flags = 0;
    work.work.triggering_cntr = nullptr;
    EXPECT_EQ(queue(side, work.work), -FI_EINVAL);
    // Another domain's counter.
    Side other({});
    const Owned<fid_cntr> foreign = open_counter(other);
    work.when(foreign, 1, completion);
    EXPECT_EQ(queue(side, work.work), -FI_EINVAL);
    // An endpoint without the capability.
    Side plain({.caps = FI_TAGGED});
    const Owned<fid_cntr> own = open_counter(plain);
    Work refused(plain);
    refused.tagged(FI_OP_TSEND, &value, 8, 1);
    refused.when(own, 1, own);
    EXPECT_EQ(queue(plain, refused.work), -FI_EOPNOTSUPP);
    fi_triggered_context2 context{};
    context.event_type = FI_TRIGGER_XPU;
    refused.op.tagged.msg.context = &context;
    EXPECT_EQ(fi_tsendmsg(side.endpoint(), &refused.op.tagged.msg, FI_TRIGGER), -FI_ENOSYS);
  });
}

// Closing an endpoint cancels what waits; more works than there is room for are refused, not lost.
TEST(TriggerLimitsTest, ManyWorksAndAClose) {
  run_alone([](Rank&) {
    Side side({});
    side.connect(side.name());
    const Owned<fid_cntr> counter = open_counter(side);
    const Owned<fid_cntr> completion = open_counter(side);
    uint64_t memory[1] = {};
    uint64_t one = 1;
    const Owned<fid_mr> region = register_memory(side, memory, sizeof memory, key);
    Work work(side);
    work.atomic(FI_OP_ATOMIC, FI_SUM, &one, nullptr, nullptr, 0);
    uint64_t queued = 0;
    int code = 0;
    for (; code == 0; ++queued) {
      work.when(counter, queued + 1, completion);
      code = queue(side, work.work);
    }
    --queued;
    EXPECT_EQ(code, -FI_EAGAIN);
    EXPECT_GE(queued, 1000);
    // They do not keep others from starting.
    std::vector<std::byte> out(5000);
    std::vector<std::byte> in(out.size());
    Context contexts[2];
    must(fi_trecv(side.endpoint(), in.data(), in.size(), nullptr, FI_ADDR_UNSPEC, 9, 0,
                  &contexts[0]));
    must(fi_tsend(side.endpoint(), out.data(), out.size(), nullptr, side.peer(), 9, &contexts[1]));
    side.next(side.sent());
    side.next(side.received());
    must(fi_cntr_add(counter.get(), queued - 5));
    must(fi_cntr_wait(completion.get(), queued - 5, 20'000));
    EXPECT_EQ(memory[0], queued - 5);
    Work receive(side);
    receive.tagged(FI_OP_TRECV, &one, 8, 1);
    receive.when(counter, queued, completion);
    must(queue(side, receive.work));
    must(fi_control(&side.domain()->fid, FI_CANCEL_WORK, &receive.work));
    must(queue(side, receive.work));
    side.close_endpoint();
    must(fi_cntr_add(counter.get(), 5));
    EXPECT_EQ(memory[0], queued - 5);
  });
}

}  // namespace
}  // namespace lintel::test::ofi
