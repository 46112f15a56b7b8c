// Tagged messages: man fi_tagged.
#include <unistd.h>

#include <fstream>

#include "ofi/pair.h"

namespace lintel::test::ofi {
namespace {

class TaggedTest : public testing::TestWithParam<PairKind> {};
INSTANTIATE_TEST_SUITE_P(Ofi, TaggedTest, testing::ValuesIn(all_pairs()), name_of);

// Below and above the limits of injection and of eager messages.
constexpr size_t sizes[] = {0, 8, 512, 513, 4096, 65536, 65537, 1 << 20};

TEST_P(TaggedTest, PostedReceivesGetTheirMessages) {
  run_pair(GetParam(), {}, [](Pair& pair) {
    std::vector<std::vector<std::byte>> in;
    std::vector<Context> contexts(std::size(sizes));
    for (const size_t size : sizes) in.emplace_back(size);
    pair.receiver([&](Side& side) {
      for (size_t i = 0; i < std::size(sizes); ++i)
        must(fi_trecv(side.endpoint(), in[i].data(), in[i].size(), nullptr, FI_ADDR_UNSPEC, i, 0,
                      &contexts[i]));
    });
    std::vector<std::vector<std::byte>> out;
    std::vector<Context> sends(std::size(sizes));
    pair.sender([&](Side& side) {
      for (size_t i = 0; i < std::size(sizes); ++i) {
        out.push_back(bytes(sizes[i], static_cast<unsigned>(i)));
        must(fi_tsenddata(side.endpoint(), out[i].data(), sizes[i], nullptr, 100 + i, side.peer(),
                          i, &sends[i]));
      }
    });
    pair.receiver([&](Side& side) {
      for (size_t n = 0; n < std::size(sizes); ++n) {
        const fi_cq_tagged_entry entry = side.next(side.received());
        const size_t i = entry.tag;
        ASSERT_LT(i, std::size(sizes));
        EXPECT_EQ(entry.op_context, &contexts[i]);
        EXPECT_EQ(entry.flags, FI_RECV | FI_TAGGED | FI_REMOTE_CQ_DATA);
        EXPECT_EQ(entry.len, sizes[i]);
        EXPECT_EQ(entry.data, 100 + i);
        EXPECT_EQ(in[i], bytes(sizes[i], static_cast<unsigned>(i))) << sizes[i];
      }
      side.expect_nothing(side.received());
    });
    pair.sender([&](Side& side) {
      std::vector<bool> seen(std::size(sizes));
      for (size_t n = 0; n < std::size(sizes); ++n) {
        const fi_cq_tagged_entry entry = side.next(side.sent());
        EXPECT_EQ(entry.flags, FI_SEND | FI_TAGGED);
        seen.at(static_cast<size_t>(static_cast<Context*>(entry.op_context) - sends.data())) = true;
      }
      EXPECT_EQ(std::count(seen.begin(), seen.end(), true), std::ssize(seen));
    });
  });
}

TEST_P(TaggedTest, UnexpectedMessagesWait) {
  run_pair(GetParam(), {}, [](Pair& pair) {
    std::vector<std::vector<std::byte>> out;
    std::vector<Context> contexts(std::size(sizes));
    pair.sender([&](Side& side) {
      for (size_t i = 0; i < std::size(sizes); ++i) {
        out.push_back(bytes(sizes[i], static_cast<unsigned>(i)));
        must(fi_tsend(side.endpoint(), out[i].data(), sizes[i], nullptr, side.peer(), i,
                      &contexts[i]));
      }
    });
    pair.receiver([&](Side& side) {
      for (size_t i = std::size(sizes); i-- > 0;) {
        std::vector<std::byte> in(sizes[i]);
        Context context;
        must(fi_trecv(side.endpoint(), in.data(), in.size(), nullptr, side.peer(), i, 0, &context));
        fi_addr_t source = 0;
        const fi_cq_tagged_entry entry = side.next(side.received(), &source);
        EXPECT_EQ(entry.op_context, &context);
        EXPECT_EQ(entry.flags, FI_RECV | FI_TAGGED);
        EXPECT_EQ(entry.len, sizes[i]);
        EXPECT_EQ(entry.tag, i);
        EXPECT_EQ(source, side.peer());
        EXPECT_EQ(in, bytes(sizes[i], static_cast<unsigned>(i))) << sizes[i];
      }
    });
    pair.sender([&](Side& side) {
      for (size_t i = 0; i < std::size(sizes); ++i) side.next(side.sent());
      side.expect_nothing(side.sent());
    });
  });
}

TEST_P(TaggedTest, IgnoredBitsAndTheHighestTag) {
  run_pair(GetParam(), {}, [](Pair& pair) {
    uint64_t in[3] = {};
    Context contexts[3];
    const uint64_t highest = ~uint64_t{0} >> 1;
    pair.receiver([&](Side& side) {
      must(fi_trecv(side.endpoint(), &in[0], 8, nullptr, FI_ADDR_UNSPEC, highest, 0, &contexts[0]));
      must(fi_trecv(side.endpoint(), &in[1], 8, nullptr, FI_ADDR_UNSPEC, 0x1200, 0xff,
                    &contexts[1]));
      must(fi_trecv(side.endpoint(), &in[2], 8, nullptr, FI_ADDR_UNSPEC, 0, ~uint64_t{0},
                    &contexts[2]));
    });
    pair.sender([&](Side& side) {
      for (const uint64_t tag : {uint64_t{0x1234}, uint64_t{0x1235}, highest})
        must(fi_tinject(side.endpoint(), &tag, 8, side.peer(), tag));
      side.expect_nothing(side.sent());
    });
    pair.receiver([&](Side& side) {
      for (int i = 0; i < 3; ++i) {
        const fi_cq_tagged_entry entry = side.next(side.received());
        uint64_t value = 0;
        std::memcpy(&value, entry.buf, sizeof value);
        EXPECT_EQ(value, entry.tag);
      }
      EXPECT_EQ(in[0], highest);
      EXPECT_EQ(in[1], 0x1234);
      EXPECT_EQ(in[2], 0x1235);
    });
  });
}

TEST_P(TaggedTest, ALongerMessageIsCutWithAnError) {
  for (const bool expected : {true, false}) {
    for (const size_t size : {size_t{100}, size_t{5000}, size_t{200000}}) {
      run_pair(GetParam(), {}, [&](Pair& pair) {
        std::vector<std::byte> in(40);
        Context context;
        const auto post = [&](Side& side) {
          must(fi_trecv(side.endpoint(), in.data(), in.size(), nullptr, FI_ADDR_UNSPEC, 7, 0,
                        &context));
        };
        const std::vector<std::byte> out = bytes(size, 1);
        Context sending;
        if (expected) pair.receiver(post);
        pair.sender([&](Side& side) {
          must(fi_tsenddata(side.endpoint(), out.data(), size, nullptr, 9, side.peer(), 7,
                            &sending));
        });
        if (!expected) pair.receiver(post);
        pair.receiver([&](Side& side) {
          const fi_cq_err_entry error = side.next_error(side.received());
          EXPECT_EQ(error.err, FI_ETRUNC);
          EXPECT_EQ(error.op_context, &context);
          EXPECT_EQ(error.len, in.size());
          EXPECT_EQ(error.olen, size - in.size());
          EXPECT_EQ(error.tag, 7);
          EXPECT_EQ(error.data, 9);
          EXPECT_EQ(error.flags, FI_RECV | FI_TAGGED | FI_REMOTE_CQ_DATA);
          EXPECT_TRUE(std::equal(in.begin(), in.end(), out.begin()));
        });
        pair.sender([&](Side& side) { EXPECT_EQ(side.next(side.sent()).op_context, &sending); });
      });
    }
  }
}

TEST_P(TaggedTest, MessagesInPieces) {
  run_pair(GetParam(), {}, [](Pair& pair) {
    for (const size_t piece : {size_t{10}, size_t{1000}, size_t{50000}}) {
      for (const bool expected : {true, false}) {
        std::vector<std::byte> in(4 * piece);
        Context context;
        iovec to[2] = {{in.data(), piece}, {in.data() + piece, 3 * piece}};
        const auto post = [&](Side& side) {
          must(fi_trecvv(side.endpoint(), to, nullptr, 2, FI_ADDR_UNSPEC, 3, 0, &context));
        };
        std::vector<std::byte> out = bytes(4 * piece, 5);
        iovec from[4];
        for (size_t i = 0; i < 4; ++i) from[i] = {out.data() + i * piece, piece};
        Context sending;
        if (expected) pair.receiver(post);
        pair.sender([&](Side& side) {
          must(fi_tsendv(side.endpoint(), from, nullptr, 4, side.peer(), 3, &sending));
        });
        if (!expected) pair.receiver(post);
        pair.receiver([&](Side& side) {
          EXPECT_EQ(side.next(side.received()).len, in.size());
          EXPECT_EQ(in, bytes(4 * piece, 5));
        });
        pair.sender([&](Side& side) { EXPECT_EQ(side.next(side.sent()).op_context, &sending); });
      }
    }
  });
}

TEST_P(TaggedTest, AReceiveIsCancelled) {
  run_pair(GetParam(), {}, [](Pair& pair) {
    uint64_t first = 0;
    uint64_t second = 0;
    Context contexts[2];
    pair.receiver([&](Side& side) {
      must(fi_trecv(side.endpoint(), &first, 8, nullptr, FI_ADDR_UNSPEC, 4, 0, &contexts[0]));
      must(fi_trecv(side.endpoint(), &second, 8, nullptr, FI_ADDR_UNSPEC, 4, 0, &contexts[1]));
      must(fi_cancel(&side.endpoint()->fid, &contexts[0]));
      const fi_cq_err_entry error = side.next_error(side.received());
      EXPECT_EQ(error.err, FI_ECANCELED);
      EXPECT_EQ(error.op_context, &contexts[0]);
      EXPECT_EQ(error.tag, 4);
      must(fi_cancel(&side.endpoint()->fid, &contexts[0]));  // nothing to cancel is no error
      side.expect_nothing(side.received());
    });
    pair.sender([&](Side& side) {
      const uint64_t value = 77;
      must(fi_tinject(side.endpoint(), &value, 8, side.peer(), 4));
    });
    pair.receiver([&](Side& side) {
      EXPECT_EQ(side.next(side.received()).op_context, &contexts[1]);
      EXPECT_EQ(first, 0);
      EXPECT_EQ(second, 77);
    });
  });
}

TEST_P(TaggedTest, DirectedReceivesTakeTheirSenderOnly) {
  run_pair(GetParam(), {}, [](Pair& pair) {
    uint64_t in = 0;
    Context context;
    if (pair.rank().count() == 1) return;  // one process is one sender
    pair.receiver([&](Side& side) {
      // Itself: a receive from a process that does not exist ends with an error.
      fi_addr_t itself = FI_ADDR_NOTAVAIL;
      const std::vector<std::byte> name = side.name();
      EXPECT_EQ(fi_av_insert(side.addresses(), name.data(), 1, &itself, 0, nullptr), 1);
      must(fi_trecv(side.endpoint(), &in, 8, nullptr, itself, 4, 0, &context));
    });
    pair.sender([&](Side& side) {
      const uint64_t value = 77;
      must(fi_tinject(side.endpoint(), &value, 8, side.peer(), 4));
    });
    pair.receiver([&](Side& side) {
      Context right;
      uint64_t value = 0;
      must(fi_trecv(side.endpoint(), &value, 8, nullptr, side.peer(), 4, 0, &right));
      EXPECT_EQ(side.next(side.received()).op_context, &right);
      EXPECT_EQ(value, 77);
      must(fi_cancel(&side.endpoint()->fid, &context));
      EXPECT_EQ(side.next_error(side.received()).op_context, &context);
    });
  });
}

TEST_P(TaggedTest, ManyReceivesArePostedAtOnce) {
  run_pair(GetParam(), {}, [](Pair& pair) {
    constexpr size_t count = 20000;  // more than there are events in the queue
    std::vector<uint64_t> in(count);
    std::vector<Context> contexts(count);
    pair.receiver([&](Side& side) {
      for (size_t i = 0; i < count; ++i)
        must(fi_trecv(side.endpoint(), &in[i], 8, nullptr, FI_ADDR_UNSPEC, 1, 0, &contexts[i]));
    });
    pair.sender([&](Side& side) {
      for (uint64_t i = 0; i < count; ++i) must(fi_tinject(side.endpoint(), &i, 8, side.peer(), 1));
    });
    pair.receiver([&](Side& side) {
      for (size_t i = 0; i < count; ++i)
        ASSERT_EQ(side.next(side.received()).op_context, &contexts[i]);
      for (size_t i = 0; i < count; ++i) ASSERT_EQ(in[i], i);
    });
  });
}

TEST_P(TaggedTest, AFloodOfUnexpectedMessagesIsKept) {
  run_pair(GetParam(), {}, [](Pair& pair) {
    constexpr size_t count = 3000;
    constexpr size_t size = 4096;
    pair.sender([&](Side& side) {
      std::vector<std::byte> out = bytes(size, 3);
      std::vector<Context> contexts(count);
      size_t completed = 0;
      for (size_t i = 0; i < count; ++i) {
        side.repeat([&] {
          return fi_tsend(side.endpoint(), out.data(), size, nullptr, side.peer(), i, &contexts[i]);
        });
      }
      while (completed < count) {
        side.next(side.sent());
        ++completed;
      }
    });
    pair.receiver([&](Side& side) {
      std::vector<std::byte> in(size);
      for (size_t i = 0; i < count; ++i) {
        Context context;
        must(fi_trecv(side.endpoint(), in.data(), size, nullptr, side.peer(), i, 0, &context));
        ASSERT_EQ(side.next(side.received()).len, size);
      }
      EXPECT_EQ(in, bytes(size, 3));
    });
  });
}

uint64_t resident_bytes() {
  uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages >> pages;
  return pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

// Memory is taken by messages that wait only.
TEST(TaggedFloodTest, HundredsOfMegabytesWaitWhileTheProgramDoesNotCall) {
  constexpr size_t size = 1 << 15;
  constexpr uint64_t count = 12'000;
  run_pair({"shm", "shm", 2}, {}, [&](Pair& pair) {
    pair.sender([&](Side& side) {
      constexpr uint64_t window = 32;
      std::vector<std::byte> out(window * size);
      std::vector<Context> contexts(window);
      for (uint64_t begin = 0; begin < count; begin += window) {
        for (uint64_t i = 0; i < window; ++i) {
          const uint64_t number = begin + i;
          memcpy(&out[i * size], &number, sizeof number);
          side.repeat([&] {
            return fi_tsend(side.endpoint(), &out[i * size], size, nullptr, side.peer(), number,
                            &contexts[i]);
          });
        }
        for (uint64_t i = 0; i < window; ++i) side.next(side.sent());
      }
    });
    pair.receiver([&](Side& side) {
      const uint64_t before = resident_bytes();
      std::vector<std::byte> in(size);
      for (uint64_t i = 0; i < count; ++i) {
        Context context;
        must(fi_trecv(side.endpoint(), in.data(), size, nullptr, side.peer(), i, 0, &context));
        ASSERT_EQ(side.next(side.received()).len, size);
        uint64_t number = 0;
        memcpy(&number, in.data(), sizeof number);
        ASSERT_EQ(number, i);
      }
      EXPECT_LT(resident_bytes(), before - count * size / 2);
    });
  });
}

// The message that nobody receives does not keep its endpoint open.
TEST(TaggedCloseTest, AnEndpointClosesWithAMessageThatNobodyGot) {
  const std::vector<std::byte> out(300'000);
  Context context;
  const auto begin = std::chrono::steady_clock::now();
  run_pair({"shm", "shm", 2}, {}, [&](Pair& pair) {
    pair.sender([&](Side& side) {
      must(fi_tsend(side.endpoint(), out.data(), out.size(), nullptr, side.peer(), 1, &context));
      must(fi_tsend(side.endpoint(), out.data(), 1000, nullptr, side.peer(), 1, nullptr));
      side.next(side.sent());
    });
  });
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(4));
}

// FI_PEEK, FI_CLAIM, FI_DISCARD: man fi_tagged.

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
