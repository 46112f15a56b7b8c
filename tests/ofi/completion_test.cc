// Completion queues and counters: man fi_cq, man fi_cntr.
#include "ofi/pair.h"

namespace lintel::test::ofi {
namespace {

const PairKind local = {"local", "local", 1};
const PairKind shm = {"shm", "shm", 2};

class CompletionTest : public testing::TestWithParam<PairKind> {};
INSTANTIATE_TEST_SUITE_P(Ofi, CompletionTest, testing::ValuesIn(all_pairs()), name_of);

TEST(CompletionFormatTest, EachFormatIsTheBeginningOfTheLongest) {
  for (const auto& each : {std::pair{FI_CQ_FORMAT_CONTEXT, sizeof(fi_cq_entry)},
                           {FI_CQ_FORMAT_MSG, sizeof(fi_cq_msg_entry)},
                           {FI_CQ_FORMAT_DATA, sizeof(fi_cq_data_entry)},
                           {FI_CQ_FORMAT_TAGGED, sizeof(fi_cq_tagged_entry)}}) {
    const fi_cq_format format = each.first;
    const size_t size = each.second;
    Settings settings;
    settings.format = format;
    run_pair(local, settings, [&](Pair& pair) {
      uint64_t in[2] = {};
      Context contexts[2];
      pair.receiver([&](Side& side) {
        for (int i = 0; i < 2; ++i)
          must(fi_trecv(side.endpoint(), &in[i], 8, nullptr, FI_ADDR_UNSPEC, 3, 0, &contexts[i]));
      });
      pair.sender([&](Side& side) {
        for (uint64_t i = 0; i < 2; ++i)
          must(fi_tinjectdata(side.endpoint(), &i, 8, 40 + i, side.peer(), 3));
      });
      pair.receiver([&](Side& side) {
        std::byte raw[2 * sizeof(fi_cq_tagged_entry) + 8];
        std::memset(raw, 0xee, sizeof raw);
        ssize_t read = 0;
        while (read < 2) {
          const ssize_t code =
              fi_cq_read(side.received(), raw + static_cast<size_t>(read) * size, 2 - read);
          if (code > 0) read += code;
        }
        for (size_t i = 0; i < 2; ++i) {
          fi_cq_tagged_entry entry{};
          std::memcpy(&entry, raw + i * size, size);
          EXPECT_EQ(entry.op_context, &contexts[i]);
          if (format >= FI_CQ_FORMAT_MSG) {
            EXPECT_EQ(entry.len, 8);
          }
          if (format >= FI_CQ_FORMAT_DATA) {
            EXPECT_EQ(entry.data, 40 + i);
          }
          if (format >= FI_CQ_FORMAT_TAGGED) {
            EXPECT_EQ(entry.tag, 3);
          }
        }
        EXPECT_EQ(raw[2 * size], std::byte{0xee});
      });
    });
  }
}

TEST_P(CompletionTest, OnlySelectedOperationsGiveEntries) {
  Settings settings;
  settings.selective = FI_SELECTIVE_COMPLETION;
  run_pair(GetParam(), settings, [](Pair& pair) {
    std::vector<std::byte> out(1000);
    Context sends[2];
    pair.sender([&](Side& side) {
      must(fi_tsend(side.endpoint(), out.data(), 8, nullptr, side.peer(), 1, &sends[0]));
      must(fi_tsend(side.endpoint(), out.data(), 1000, nullptr, side.peer(), 1, &sends[0]));
      iovec piece = {out.data(), 1000};
      fi_msg_tagged message{};
      message.msg_iov = &piece;
      message.iov_count = 1;
      message.addr = side.peer();
      message.tag = 1;
      message.context = &sends[1];
      must(fi_tsendmsg(side.endpoint(), &message, FI_COMPLETION));
      EXPECT_EQ(side.next(side.sent()).op_context, &sends[1]);
      side.expect_nothing(side.sent());
    });
    pair.receiver([&](Side& side) {
      std::vector<std::byte> in(1000);
      Context quiet[2];
      Context told;
      must(fi_trecv(side.endpoint(), in.data(), 1000, nullptr, FI_ADDR_UNSPEC, 1, 0, &quiet[0]));
      must(fi_trecv(side.endpoint(), in.data(), 1000, nullptr, FI_ADDR_UNSPEC, 1, 0, &quiet[1]));
      iovec piece = {in.data(), 1000};
      fi_msg_tagged message{};
      message.msg_iov = &piece;
      message.iov_count = 1;
      message.addr = FI_ADDR_UNSPEC;
      message.tag = 1;
      message.context = &told;
      must(fi_trecvmsg(side.endpoint(), &message, FI_COMPLETION));
      EXPECT_EQ(side.next(side.received()).op_context, &told);
      side.expect_nothing(side.received());
    });
  });
}

TEST_P(CompletionTest, CountersCountMessages) {
  Settings settings;
  settings.counters = true;
  run_pair(GetParam(), settings, [](Pair& pair) {
    std::vector<std::byte> out(100000);
    Context context[3];
    pair.sender([&](Side& side) {
      must(fi_tinject(side.endpoint(), out.data(), 8, side.peer(), 1));
      must(fi_tsend(side.endpoint(), out.data(), 1000, nullptr, side.peer(), 1, &context[0]));
      must(fi_tsend(side.endpoint(), out.data(), out.size(), nullptr, side.peer(), 1, &context[1]));
    });
    pair.receiver([&](Side& side) {
      std::vector<std::byte> in(out.size());
      Context contexts[3];
      for (Context& each : contexts)
        must(fi_trecv(side.endpoint(), in.data(), in.size(), nullptr, FI_ADDR_UNSPEC, 1, 0, &each));
      must(fi_cntr_wait(side.receive_counter(), 3, 5000));
      EXPECT_EQ(fi_cntr_read(side.receive_counter()), 3);
      EXPECT_EQ(fi_cntr_readerr(side.receive_counter()), 0);
      EXPECT_EQ(fi_cntr_wait(side.receive_counter(), 4, 10), -FI_ETIMEDOUT);
      must(fi_cntr_add(side.receive_counter(), 1));
      must(fi_cntr_wait(side.receive_counter(), 4, -1));
      must(fi_cntr_set(side.receive_counter(), 0));
      must(fi_cntr_adderr(side.receive_counter(), 2));
      EXPECT_EQ(fi_cntr_read(side.receive_counter()), 0);
      EXPECT_EQ(fi_cntr_readerr(side.receive_counter()), 2);
      must(fi_cntr_seterr(side.receive_counter(), 0));
      EXPECT_EQ(fi_cntr_readerr(side.receive_counter()), 0);
    });
    pair.sender([&](Side& side) {
      must(fi_cntr_wait(side.send_counter(), 3, 5000));
      EXPECT_EQ(fi_cntr_read(side.send_counter()), 3);
    });
  });
}

TEST_P(CompletionTest, AWaitEndsWithTheMessageOrTheTime) {
  run_pair(GetParam(), {}, [](Pair& pair) {
    pair.receiver([&](Side& side) {
      fi_cq_tagged_entry entry{};
      const auto start = std::chrono::steady_clock::now();
      EXPECT_EQ(fi_cq_sread(side.received(), &entry, 1, nullptr, 30), -FI_EAGAIN);
      EXPECT_GE(std::chrono::steady_clock::now() - start, Milliseconds(30));
      must(fi_cq_signal(side.received()));
      EXPECT_EQ(fi_cq_sread(side.received(), &entry, 1, nullptr, -1), -FI_EAGAIN);
    });
    uint64_t in = 0;
    Context context;
    pair.receiver([&](Side& side) {
      must(fi_trecv(side.endpoint(), &in, 8, nullptr, FI_ADDR_UNSPEC, 1, 0, &context));
    });
    pair.sender([&](Side& side) {
      const uint64_t value = 5;
      must(fi_tinject(side.endpoint(), &value, 8, side.peer(), 1));
    });
    pair.receiver([&](Side& side) {
      fi_cq_tagged_entry entry{};
      fi_addr_t source = 0;
      EXPECT_EQ(fi_cq_sreadfrom(side.received(), &entry, 1, &source, nullptr, 5000), 1);
      EXPECT_EQ(entry.op_context, &context);
      EXPECT_EQ(source, side.peer());
    });
  });
}

TEST(CompletionRingTest, NothingIsLostWithoutReading) {
  run_pair(local, {}, [](Pair& pair) {
    constexpr size_t count = 5000;
    pair.sender([&](Side& side) {
      for (uint64_t i = 0; i < count; ++i)
        must(fi_tsend(side.endpoint(), &i, 8, nullptr, side.peer(), 1, nullptr));
      for (size_t i = 0; i < count; ++i) side.next(side.sent());
      side.expect_nothing(side.sent());
    });
  });
}

// An error keeps its place between the other entries.
TEST(CompletionRingTest, ErrorsAreInOrder) {
  run_pair(local, {}, [](Pair& pair) {
    Context contexts[3];
    uint64_t in[3];
    pair.receiver([&](Side& side) {
      for (int i = 0; i < 3; ++i)
        must(fi_trecv(side.endpoint(), &in[i], i == 1 ? 4 : 8, nullptr, FI_ADDR_UNSPEC, 1, 0,
                      &contexts[i]));
    });
    pair.sender([&](Side& side) {
      for (uint64_t i = 0; i < 3; ++i) must(fi_tinject(side.endpoint(), &i, 8, side.peer(), 1));
    });
    pair.receiver([&](Side& side) {
      fi_cq_tagged_entry entries[8];
      // Another thread may be polling: messages arrive a moment later.
      const auto read = [&] {
        ssize_t code = 0;
        await_progress(
            "a completion",
            [&] { return (code = fi_cq_read(side.received(), entries, 8)) != -FI_EAGAIN; },
            Place::current());
        return code;
      };
      EXPECT_EQ(read(), 1);
      EXPECT_EQ(entries[0].op_context, &contexts[0]);
      EXPECT_EQ(read(), -FI_EAVAIL);
      EXPECT_EQ(fi_cq_read(side.received(), entries, 8), -FI_EAVAIL);
      fi_cq_err_entry error{};
      EXPECT_EQ(fi_cq_readerr(side.received(), &error, 0), 1);
      EXPECT_EQ(error.op_context, &contexts[1]);
      EXPECT_EQ(fi_cq_readerr(side.received(), &error, 0), -FI_EAGAIN);
      EXPECT_EQ(side.next(side.received()).op_context, &contexts[2]);
    });
  });
}

// FI_SOURCE_ERR: the error has the name of the sender.
TEST(CompletionSourceTest, AnUnknownSenderIsNamed) {
  run_alone([](Rank&) {
    Settings settings;
    settings.vector = FI_AV_TABLE;
    Side receiver(settings);
    Side sender(settings);
    sender.connect(receiver.name());
    uint64_t in = 0;
    Context context;
    must(fi_recv(receiver.endpoint(), &in, 8, nullptr, FI_ADDR_UNSPEC, &context));
    const uint64_t value = 5;
    must(fi_inject(sender.endpoint(), &value, 8, sender.peer()));
    const fi_cq_err_entry error = receiver.next_error(receiver.received());
    EXPECT_EQ(error.err, FI_EADDRNOTAVAIL);
    EXPECT_EQ(error.len, 8);
    EXPECT_EQ(in, 5);
    const std::vector<std::byte> name = sender.name();
    ASSERT_EQ(error.err_data_size, name.size());
    EXPECT_EQ(std::memcmp(error.err_data, name.data(), name.size()), 0);
  });
}

// A peer that has ended gives an error, not silence.
TEST(CompletionErrorTest, ASendToNobodyFails) {
  run_pair(shm, {}, [](Pair& pair) {
    std::vector<std::byte> out(1000);
    Context context;
    pair.sender([&](Side& side) {
      fi_addr_t nobody = FI_ADDR_NOTAVAIL;
      char name[64];
      size_t size = sizeof name;
      const std::vector<std::byte> own = side.name();
      fi_av_straddr(side.addresses(), own.data(), name, &size);
      *std::strrchr(name, ':') = '\0';  // another endpoint of this process
      EXPECT_EQ(fi_av_insertsvc(side.addresses(), (std::string(name) + ":77").c_str(), nullptr,
                                &nobody, 0, nullptr),
                1);
      iovec piece = {out.data(), out.size()};
      fi_msg message{};
      message.msg_iov = &piece;
      message.iov_count = 1;
      message.addr = nobody;
      message.context = &context;
      must(fi_sendmsg(side.endpoint(), &message, FI_DELIVERY_COMPLETE | FI_COMPLETION));
      const fi_cq_err_entry error = side.next_error(side.sent());
      EXPECT_EQ(error.err, FI_EIO);
      EXPECT_EQ(error.op_context, &context);
      EXPECT_STREQ(fi_cq_strerror(side.sent(), error.prov_errno, nullptr, nullptr, 0),
                   "PTL_NI_DROPPED");
    });
  });
}

// man fi_endpoint: FI_SETOPSFLAG changes the flags of calls that have none of their own.
TEST_P(CompletionTest, TheFlagsOfAnEndpointMayChange) {
  const Settings settings = {.selective = FI_SELECTIVE_COMPLETION, .transmit_flags = FI_COMPLETION};
  run_pair(GetParam(), settings, [](Pair& pair) {
    const auto set = [](Side& side, uint64_t flags) {
      must(fi_control(&side.endpoint()->fid, FI_SETOPSFLAG, &flags));
    };
    uint64_t in[3] = {};
    Context receives[3];
    Context sends[3];
    pair.receiver([&](Side& side) {
      const uint64_t flags[] = {FI_RECV, FI_RECV | FI_COMPLETION, FI_RECV};
      for (size_t i = 0; i < 3; ++i) {
        set(side, flags[i]);
        must(fi_trecv(side.endpoint(), &in[i], 8, nullptr, FI_ADDR_UNSPEC, 1, 0, &receives[i]));
      }
    });
    pair.sender([&](Side& side) {
      const uint64_t flags[] = {FI_TRANSMIT, FI_TRANSMIT | FI_COMPLETION,
                                FI_TRANSMIT | FI_COMPLETION | FI_DELIVERY_COMPLETE};
      for (uint64_t i = 0; i < 3; ++i) {
        set(side, flags[i]);
        const uint64_t value = i + 1;
        must(fi_tsend(side.endpoint(), &value, 8, nullptr, side.peer(), 1, &sends[i]));
        if (i != 0) {
          EXPECT_EQ(side.next(side.sent()).op_context, &sends[i]);
        }
      }
      side.expect_nothing(side.sent());
    });
    pair.receiver([&](Side& side) {
      EXPECT_EQ(side.next(side.received()).op_context, &receives[1]);
      side.expect_nothing(side.received());
      for (uint64_t i = 0; i < 3; ++i) EXPECT_EQ(in[i], i + 1);
    });
  });
}

}  // namespace
}  // namespace lintel::test::ofi
