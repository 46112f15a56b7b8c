// A peer that is killed: what was begun with it ends with an error, and does not hang.
#include <chrono>

#include <rdma/fi_trigger.h>

#include "ofi/pair.h"

namespace lintel::test::ofi {
namespace {

class DeadPeerTest : public testing::TestWithParam<PairKind> {};
INSTANTIATE_TEST_SUITE_P(Ofi, DeadPeerTest, testing::ValuesIn(pairs_of_two()), name_of);

// Runs `begin` at the sender, kills the receiver, and expects `errors` errors.
void expect_errors(const PairKind& kind, int errors, const std::function<void(Side&)>& begin) {
  PairKind impatient = kind;
  impatient.environment = {{"PTL_PEER_TIMEOUT_MS", "2000"}};
  run_pair(impatient, {}, [&](Pair& pair) {
    std::vector<std::byte> memory(4096);
    fid_mr* region = nullptr;
    pair.receiver([&](Side& side) {
      must(fi_mr_reg(side.domain(), memory.data(), memory.size(), all_access, 0, 0, 0, &region,
                     nullptr));
    });
    pair.sender([&](Side& side) { begin(side); });
    pair.kill_receiver();
    pair.sender([&](Side& side) {
      for (int i = 0; i < errors; ++i) {
        const fi_cq_err_entry error = side.next_error(side.sent());
        EXPECT_TRUE(error.err == FI_EIO) << fi_strerror(error.err);
      }
    });
  });
}

TEST_P(DeadPeerTest, AMessageThatWaitsForItsReceiverFails) {
  const std::vector<std::byte> out(300'000);
  Context contexts[2];
  expect_errors(GetParam(), 2, [&](Side& side) {
    for (Context& each : contexts)
      must(fi_tsend(side.endpoint(), out.data(), out.size(), nullptr, side.peer(), 1, &each));
    const char last = 0;
    must(fi_tsend(side.endpoint(), &last, 1, nullptr, side.peer(), 2, nullptr));
    side.next(side.sent());
  });
}

// Receives from the peer fail, and what it had sent before its end has arrived. Those from anyone
// wait.
TEST_P(DeadPeerTest, DirectedReceivesFail) {
  PairKind impatient = GetParam();
  impatient.environment = {{"PTL_PEER_TIMEOUT_MS", "2000"}};
  run_pair(impatient, {}, [&](Pair& pair) {
    uint64_t in[6] = {};
    Context contexts[6];
    Owned<fid_cntr> counters[2];
    fi_op_tagged held_back{};
    fi_deferred_work work{};
    pair.sender([&](Side& side) {
      must(fi_trecv(side.endpoint(), &in[0], 8, nullptr, side.peer(), 1, 0, &contexts[0]));
      must(fi_trecv(side.endpoint(), &in[1], 8, nullptr, side.peer(), 2, 0, &contexts[1]));
      must(fi_recv(side.endpoint(), &in[2], 8, nullptr, side.peer(), &contexts[2]));
      must(fi_trecv(side.endpoint(), &in[3], 8, nullptr, FI_ADDR_UNSPEC, 3, 0, &contexts[3]));
      for (Owned<fid_cntr>& each : counters) {
        fid_cntr* opened = nullptr;
        must(fi_cntr_open(side.domain(), nullptr, &opened, nullptr));
        each.reset(opened);
      }
      held_back.ep = side.endpoint();
      held_back.msg.addr = side.peer();
      held_back.msg.context = &contexts[5];
      work.triggering_cntr = counters[0].get();
      work.threshold = 1;
      work.completion_cntr = counters[1].get();
      work.op_type = FI_OP_TRECV;
      work.op.tagged = &held_back;
      must(fi_control(&side.domain()->fid, FI_QUEUE_WORK, &work));
    });
    pair.receiver([&](Side& side) {
      uint64_t value = 9;
      const iovec piece = {&value, 8};
      Context context;
      fi_msg_tagged message{};
      message.msg_iov = &piece;
      message.iov_count = 1;
      message.addr = side.peer();
      message.tag = 1;
      message.context = &context;
      must(fi_tsendmsg(side.endpoint(), &message, FI_COMPLETION | FI_DELIVERY_COMPLETE));
      side.next(side.sent());
    });
    pair.kill_receiver();
    pair.sender([&](Side& side) {
      EXPECT_EQ(side.next(side.received()).op_context, &contexts[0]);
      EXPECT_EQ(in[0], 9);
      // Posted after its end.
      must(fi_trecv(side.endpoint(), &in[4], 8, nullptr, side.peer(), 4, 0, &contexts[4]));
      bool failed[6] = {};
      for (int i = 0; i < 3; ++i) {
        const fi_cq_err_entry error = side.next_error(side.received());
        EXPECT_EQ(error.err, FI_EIO);
        for (size_t j = 0; j < 6; ++j) failed[j] |= error.op_context == &contexts[j];
      }
      EXPECT_TRUE(failed[1] && failed[2] && failed[4]);
      side.expect_nothing(side.received());
      must(fi_cntr_add(counters[0].get(), 1));
      EXPECT_EQ(side.next_error(side.received()).op_context, &contexts[5]);
      EXPECT_EQ(fi_cntr_readerr(counters[1].get()), 1);
      for (Owned<fid_cntr>& each : counters) each.reset();
      must(fi_cancel(&side.endpoint()->fid, &contexts[3]));
      EXPECT_EQ(side.next_error(side.received()).op_context, &contexts[3]);
    });
  });
}

// A peer that lives is waited for.
TEST_P(DeadPeerTest, AReceiveFromALivingPeerWaits) {
  run_pair(GetParam(), {}, [](Pair& pair) {
    uint64_t in = 0;
    Context context;
    pair.sender([&](Side& side) {
      must(fi_trecv(side.endpoint(), &in, 8, nullptr, side.peer(), 1, 0, &context));
      const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(1500);
      while (std::chrono::steady_clock::now() < end) side.expect_nothing(side.received());
    });
    pair.receiver([&](Side& side) {
      const uint64_t value = 9;
      must(fi_tinject(side.endpoint(), &value, 8, side.peer(), 1));
    });
    pair.sender([&](Side& side) {
      EXPECT_EQ(side.next(side.received()).op_context, &context);
      EXPECT_EQ(in, 9);
    });
  });
}

TEST_P(DeadPeerTest, WhatIsBegunAfterItsDeathFails) {
  Context contexts[3];
  uint64_t value = 0;
  PairKind impatient = GetParam();
  impatient.environment = {{"PTL_PEER_TIMEOUT_MS", "2000"}};
  run_pair(impatient, {}, [&](Pair& pair) {
    pair.kill_receiver();
    pair.sender([&](Side& side) {
      iovec piece = {&value, 8};
      fi_msg_tagged message{};
      message.msg_iov = &piece;
      message.iov_count = 1;
      message.addr = side.peer();
      message.context = &contexts[0];
      must(fi_tsendmsg(side.endpoint(), &message, FI_COMPLETION | FI_DELIVERY_COMPLETE));
      must(fi_write(side.endpoint(), &value, 8, nullptr, side.peer(), 0, 0, &contexts[1]));
      must(fi_read(side.endpoint(), &value, 8, nullptr, side.peer(), 0, 0, &contexts[2]));
      for (int i = 0; i < 3; ++i) EXPECT_EQ(side.next_error(side.sent()).err, FI_EIO);
    });
  });
}

}  // namespace
}  // namespace lintel::test::ofi
