// Messages without tags, and buffers for several of them: man fi_msg.
#include "ofi/pair.h"

namespace lintel::test::ofi {
namespace {

class MessageTest : public testing::TestWithParam<PairKind> {};
INSTANTIATE_TEST_SUITE_P(Ofi, MessageTest, testing::ValuesIn(all_pairs()), name_of);

TEST_P(MessageTest, MessagesArriveInOrder) {
  run_pair(GetParam(), {}, [](Pair& pair) {
    const size_t sizes[] = {0, 100, 5000, 300000, 8};
    std::vector<std::vector<std::byte>> out;
    Context sends[5];
    pair.sender([&](Side& side) {
      for (size_t i = 0; i < 5; ++i) {
        out.push_back(bytes(sizes[i], static_cast<unsigned>(i)));
        must(fi_senddata(side.endpoint(), out[i].data(), sizes[i], nullptr, i, side.peer(),
                         &sends[i]));
      }
      const char last = 'x';
      must(fi_inject(side.endpoint(), &last, 1, side.peer()));
      must(fi_injectdata(side.endpoint(), &last, 1, 55, side.peer()));
    });
    pair.receiver([&](Side& side) {
      std::vector<std::byte> in(300000);
      for (size_t i = 0; i < 7; ++i) {
        Context context;
        must(fi_recv(side.endpoint(), in.data(), in.size(), nullptr,
                     i % 2 ? side.peer() : FI_ADDR_UNSPEC, &context));
        fi_addr_t source = 0;
        const fi_cq_tagged_entry entry = side.next(side.received(), &source);
        EXPECT_EQ(source, side.peer());
        EXPECT_EQ(entry.op_context, &context);
        EXPECT_EQ(entry.len, i < 5 ? sizes[i] : 1);
        EXPECT_EQ(entry.flags, FI_RECV | FI_MSG | (i != 5 ? FI_REMOTE_CQ_DATA : 0));
        EXPECT_EQ(entry.data, i < 5 ? i : i == 6 ? 55 : 0);
        if (i < 5) {
          EXPECT_TRUE(std::equal(out.empty() ? in.begin() : in.begin(), in.begin() + entry.len,
                                 bytes(sizes[i], static_cast<unsigned>(i)).begin()));
        }
      }
    });
    pair.sender([&](Side& side) {
      for (int i = 0; i < 5; ++i) EXPECT_EQ(side.next(side.sent()).flags, FI_SEND | FI_MSG);
      side.expect_nothing(side.sent());
    });
  });
}

// Delivery and match are told by the target.
TEST_P(MessageTest, LevelsOfCompletion) {
  run_pair(GetParam(), {}, [](Pair& pair) {
    std::vector<std::byte> out = bytes(100, 1);
    Context context;
    const auto send = [&](Side& side, uint64_t flags) {
      iovec piece = {out.data(), out.size()};
      fi_msg message{};
      message.msg_iov = &piece;
      message.iov_count = 1;
      message.addr = side.peer();
      message.context = &context;
      must(fi_sendmsg(side.endpoint(), &message, flags | FI_COMPLETION));
    };
    for (const uint64_t level : {FI_INJECT_COMPLETE, FI_TRANSMIT_COMPLETE, FI_DELIVERY_COMPLETE,
                                 FI_INJECT | FI_DELIVERY_COMPLETE})
      pair.sender([&](Side& side) {
        send(side, level);
        EXPECT_EQ(side.next(side.sent()).op_context, &context);
      });
    pair.sender([&](Side& side) {
      send(side, FI_MATCH_COMPLETE);
      std::this_thread::sleep_for(quiet_time);
      side.expect_nothing(side.sent());
    });
    pair.receiver([&](Side& side) {
      for (int i = 0; i < 5; ++i) {
        std::vector<std::byte> in(100);
        Context receiving;
        must(fi_recv(side.endpoint(), in.data(), 100, nullptr, FI_ADDR_UNSPEC, &receiving));
        EXPECT_EQ(side.next(side.received()).len, 100);
        EXPECT_EQ(in, out.empty() ? in : bytes(100, 1));
      }
    });
    pair.sender([&](Side& side) { EXPECT_EQ(side.next(side.sent()).op_context, &context); });
  });
}

void post_buffer(const Side& side, std::vector<std::byte>& buffer, Context& context) {
  iovec piece = {buffer.data(), buffer.size()};
  fi_msg message{};
  message.msg_iov = &piece;
  message.iov_count = 1;
  message.addr = FI_ADDR_UNSPEC;
  message.context = &context;
  must(fi_recvmsg(side.endpoint(), &message, FI_MULTI_RECV | FI_COMPLETION));
}

// Messages lie in the buffer one after the other, and its end is told once.
void expect_in_buffer(const Side& side, const std::vector<std::byte>& buffer,
                      const Context& context, const std::vector<size_t>& sizes) {
  const std::byte* place = buffer.data();
  size_t seen = 0;
  bool released = false;
  while (seen < sizes.size() || !released) {
    const fi_cq_tagged_entry entry = side.next(side.received());
    EXPECT_EQ(entry.op_context, &context);
    released = released || (entry.flags & FI_MULTI_RECV) != 0;
    if ((entry.flags & FI_RECV) == 0) continue;
    ASSERT_LT(seen, sizes.size());
    const size_t i = entry.data;
    EXPECT_EQ(entry.len, sizes[i]);
    EXPECT_TRUE(std::ranges::equal(std::span(static_cast<std::byte*>(entry.buf), entry.len),
                                   bytes(sizes[i], static_cast<unsigned>(i))));
    EXPECT_GE(entry.buf, buffer.data());
    EXPECT_LE(static_cast<std::byte*>(entry.buf) + entry.len, buffer.data() + buffer.size());
    place += entry.len;
    ++seen;
  }
  EXPECT_LE(place, buffer.data() + buffer.size());
}

TEST_P(MessageTest, ABufferTakesSeveralMessages) {
  for (const bool expected : {true, false}) {
    run_pair(GetParam(), {}, [&](Pair& pair) {
      const std::vector<size_t> sizes = {100, 3000, 1, 70000, 20000, 8};
      std::vector<std::byte> buffer(93109 + 996);
      Context context;
      const auto post = [&](Side& side) {
        const size_t least = 1000;
        must(fi_setopt(&side.endpoint()->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least,
                       sizeof least));
        post_buffer(side, buffer, context);
      };
      std::vector<std::vector<std::byte>> out;
      std::vector<Context> sends(sizes.size());
      if (expected) pair.receiver(post);
      pair.sender([&](Side& side) {
        for (size_t i = 0; i < sizes.size(); ++i) {
          out.push_back(bytes(sizes[i], static_cast<unsigned>(i)));
          must(fi_senddata(side.endpoint(), out[i].data(), sizes[i], nullptr, i, side.peer(),
                           &sends[i]));
        }
      });
      if (!expected) pair.receiver(post);
      pair.receiver([&](Side& side) {
        expect_in_buffer(side, buffer, context, sizes);
        side.expect_nothing(side.received());
      });
      pair.sender([&](Side& side) {
        for (size_t i = 0; i < sizes.size(); ++i) side.next(side.sent());
      });
    });
  }
}

TEST_P(MessageTest, ABufferIsCancelled) {
  run_pair(GetParam(), {}, [](Pair& pair) {
    pair.receiver([&](Side& side) {
      std::vector<std::byte> buffer(10000);
      Context context;
      post_buffer(side, buffer, context);
      must(fi_cancel(&side.endpoint()->fid, &context));
      const fi_cq_err_entry error = side.next_error(side.received());
      EXPECT_EQ(error.err, FI_ECANCELED);
      EXPECT_EQ(error.op_context, &context);
      EXPECT_NE(error.flags & FI_MULTI_RECV, 0);
    });
  });
}

}  // namespace
}  // namespace lintel::test::ofi
