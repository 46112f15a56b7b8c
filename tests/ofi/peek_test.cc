// FI_PEEK, FI_CLAIM, FI_DISCARD: man fi_tagged.
#include "ofi/pair.h"

namespace lintel::test::ofi {
namespace {

class PeekTest : public testing::TestWithParam<PairKind> {};
INSTANTIATE_TEST_SUITE_P(Ofi, PeekTest, testing::ValuesIn(all_pairs()), name_of);

ssize_t ask(const Side& side, Context& context, uint64_t tag, uint64_t flags,
            std::vector<std::byte>* in = nullptr) {
  iovec piece = {in != nullptr ? in->data() : nullptr, in != nullptr ? in->size() : 0};
  fi_msg_tagged message{};
  message.msg_iov = &piece;
  message.iov_count = in != nullptr ? 1 : 0;
  message.addr = FI_ADDR_UNSPEC;
  message.tag = tag;
  message.context = &context;
  return fi_trecvmsg(side.endpoint(), &message, flags | FI_COMPLETION);
}

TEST_P(PeekTest, NothingIsThere) {
  run_pair(GetParam(), {}, [](Pair& pair) {
    pair.receiver([&](Side& side) {
      Context context;
      must(ask(side, context, 5, FI_PEEK));
      const fi_cq_err_entry error = side.next_error(side.received());
      EXPECT_EQ(error.err, FI_ENOMSG);
      EXPECT_EQ(error.op_context, &context);
      EXPECT_EQ(error.tag, 5);
    });
  });
}

// Short, eager and long messages.
TEST_P(PeekTest, AMessageIsSeenClaimedAndReceived) {
  for (const size_t size : {size_t{100}, size_t{20000}, size_t{300000}}) {
    run_pair(GetParam(), {}, [&](Pair& pair) {
      const std::vector<std::byte> out = bytes(size, 2);
      Context sending;
      pair.sender([&](Side& side) {
        must(
            fi_tsenddata(side.endpoint(), out.data(), size, nullptr, 31, side.peer(), 5, &sending));
      });
      pair.receiver([&](Side& side) {
        Context context;
        for (const uint64_t flags : {FI_PEEK, FI_PEEK | FI_CLAIM}) {
          pair.rank().await_condition("the message to arrive", [&] {
            must(ask(side, context, 5, flags));
            fi_cq_tagged_entry entry{};
            ssize_t code = 0;
            while ((code = fi_cq_read(side.received(), &entry, 1)) == -FI_EAGAIN) {
            }
            if (code == -FI_EAVAIL) {
              fi_cq_err_entry error{};
              EXPECT_EQ(fi_cq_readerr(side.received(), &error, 0), 1);
              EXPECT_EQ(error.err, FI_ENOMSG);
              return false;
            }
            EXPECT_EQ(entry.len, size);
            EXPECT_EQ(entry.data, 31);
            EXPECT_EQ(entry.tag, 5);
            EXPECT_EQ(entry.op_context, &context);
            return true;
          });
        }
        // It cannot be seen any more.
        Context other;
        must(ask(side, other, 5, FI_PEEK));
        EXPECT_EQ(side.next_error(side.received()).err, FI_ENOMSG);
        std::vector<std::byte> in(size);
        must(ask(side, context, 5, FI_CLAIM, &in));
        const fi_cq_tagged_entry entry = side.next(side.received());
        EXPECT_EQ(entry.op_context, &context);
        EXPECT_EQ(entry.len, size);
        EXPECT_EQ(entry.data, 31);
        EXPECT_EQ(in, out);
      });
      pair.sender([&](Side& side) { EXPECT_EQ(side.next(side.sent()).op_context, &sending); });
    });
  }
}

TEST_P(PeekTest, MessagesAreDiscarded) {
  for (const size_t size : {size_t{100}, size_t{300000}}) {
    run_pair(GetParam(), {}, [&](Pair& pair) {
      const std::vector<std::byte> out = bytes(size, 2);
      Context sends[2];
      pair.sender([&](Side& side) {
        for (Context& each : sends)
          must(fi_tsend(side.endpoint(), out.data(), size, nullptr, side.peer(), 5, &each));
        const char last = 1;
        must(fi_tinject(side.endpoint(), &last, 1, side.peer(), 6));
      });
      pair.receiver([&](Side& side) {
        char last = 0;
        Context context;
        must(fi_trecv(side.endpoint(), &last, 1, nullptr, FI_ADDR_UNSPEC, 6, 0, &context));
        side.next(side.received());  // so both are there
        must(ask(side, context, 5, FI_PEEK | FI_DISCARD));
        EXPECT_EQ(side.next(side.received()).len, size);
        must(ask(side, context, 5, FI_PEEK | FI_CLAIM));
        EXPECT_EQ(side.next(side.received()).len, size);
        must(ask(side, context, 5, FI_CLAIM | FI_DISCARD));
        EXPECT_EQ(side.next(side.received()).op_context, &context);
        must(ask(side, context, 5, FI_PEEK));
        EXPECT_EQ(side.next_error(side.received()).err, FI_ENOMSG);
      });
      pair.sender([&](Side& side) {
        side.next(side.sent());
        side.next(side.sent());
      });
    });
  }
}

}  // namespace
}  // namespace lintel::test::ofi
