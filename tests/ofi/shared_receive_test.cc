// Shared receive contexts (fi_srx_context): man fi_endpoint, "SHARED CONTEXTS".
#include <array>
#include <optional>

#include "ofi/pair.h"

namespace lintel::test::ofi {
namespace {

class SharedReceiveTest : public testing::TestWithParam<PairKind> {};
INSTANTIATE_TEST_SUITE_P(Ofi, SharedReceiveTest, testing::ValuesIn(all_pairs()), name_of);

constexpr size_t sharers = 3;
constexpr size_t name_bytes = 16;
using Name = std::array<std::byte, name_bytes>;

Info shared_info(const Side& side) {
  const Info hints = make_hints();
  hints->mode = side.info().mode;
  hints->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
  Info info = get_info(hints.get());
  if (info == nullptr) Rank::current().fail("fi_getinfo returns nothing");
  return info;
}

// A receive context in the domain of a side, and endpoints that share it. Each has queues.
struct Shared {
  explicit Shared(const Side& side, uint64_t selective = 0) {
    const Info info = shared_info(side);
    EXPECT_EQ(info->ep_attr->rx_ctx_cnt, FI_SHARED_CONTEXT);
    context = open<fid_ep>(
        [&](auto** to) { return fi_srx_context(side.domain(), info->rx_attr, to, nullptr); });
    fi_cq_attr queue{};
    queue.format = FI_CQ_FORMAT_TAGGED;
    for (size_t i = 0; i < sharers; ++i) {
      received[i] =
          open<fid_cq>([&](auto** to) { return fi_cq_open(side.domain(), &queue, to, nullptr); });
      endpoints[i] = open<fid_ep>(
          [&](auto** to) { return fi_endpoint(side.domain(), info.get(), to, nullptr); });
      fid_ep* const endpoint = endpoints[i].get();
      must(fi_ep_bind(endpoint, &side.addresses()->fid, 0));
      must(fi_ep_bind(endpoint, &received[i]->fid, FI_RECV | selective));
      must(fi_ep_bind(endpoint, &side.sent()->fid, FI_TRANSMIT));
      must(fi_ep_bind(endpoint, &context->fid, 0));
      must(fi_enable(endpoint));
    }
  }
  [[nodiscard]] Name name(size_t i) const {
    Name name{};
    size_t size = name.size();
    must(fi_getname(&endpoints[i]->fid, name.data(), &size));
    EXPECT_EQ(size, name.size());
    return name;
  }

  Owned<fid_ep> context;
  std::array<Owned<fid_cq>, sharers> received;
  std::array<Owned<fid_ep>, sharers> endpoints;
};

fi_addr_t insert(const Side& side, const Name& name) {
  fi_addr_t address = FI_ADDR_NOTAVAIL;
  EXPECT_EQ(fi_av_insert(side.addresses(), name.data(), 1, &address, 0, nullptr), 1);
  return address;
}

using Addresses = std::array<fi_addr_t, sharers>;

// The receiver shares a context; the sender knows its endpoints.
void run_shared(const PairKind& kind, uint64_t selective,
                const std::function<void(Pair&, std::optional<Shared>&, const Addresses&)>& body) {
  run_pair(kind, {}, [&](Pair& pair) {
    std::optional<Shared> shared;
    Addresses addresses{};
    pair.receiver([&](Side& side) {
      shared.emplace(side, selective);
      for (size_t i = 0; i < sharers; ++i)
        pair.rank().publish(static_cast<int>(i), shared->name(i));
    });
    pair.sender([&](Side& side) {
      for (size_t i = 0; i < sharers; ++i)
        addresses[i] =
            insert(side, pair.rank().published<Name>(pair.rank().count() - 1, static_cast<int>(i)));
    });
    body(pair, shared, addresses);
    pair.receiver([&](Side&) { shared.reset(); });
  });
}

struct Receives {
  explicit Receives(size_t size) {
    for (auto& each : tagged) each.resize(size);
    for (auto& each : messages) each.resize(size);
  }
  // One buffer for each endpoint and kind; which endpoint takes which is open.
  void post(const Shared& shared) {
    for (size_t i = 0; i < sharers; ++i) {
      must(fi_trecv(shared.context.get(), tagged[i].data(), tagged[i].size(), nullptr,
                    FI_ADDR_UNSPEC, i, 0, &contexts[2 * i]));
      must(fi_recv(shared.context.get(), messages[i].data(), messages[i].size(), nullptr,
                   FI_ADDR_UNSPEC, &contexts[2 * i + 1]));
    }
  }

  std::array<std::vector<std::byte>, sharers> tagged;
  std::array<std::vector<std::byte>, sharers> messages;
  std::array<Context, 2 * sharers> contexts;
};

// A tagged message and another to each endpoint.
void exchange(const PairKind& kind, size_t size, bool is_expected) {
  run_shared(kind, 0, [&](Pair& pair, std::optional<Shared>& shared, const Addresses& addresses) {
    Receives receives(size);
    std::vector<std::vector<std::byte>> out;
    std::array<Context, 2 * sharers> sends;
    pair.receiver([&](Side&) {
      if (is_expected) receives.post(*shared);
    });
    pair.sender([&](Side& side) {
      for (unsigned i = 0; i < sharers; ++i) out.push_back(bytes(size, i));
      for (size_t i = 0; i < sharers; ++i) {
        must(fi_tsenddata(side.endpoint(), out[i].data(), size, nullptr, 40 + i, addresses[i], i,
                          &sends[2 * i]));
        must(fi_senddata(side.endpoint(), out[i].data(), size, nullptr, 50 + i, addresses[i],
                         &sends[2 * i + 1]));
      }
    });
    pair.receiver([&](Side& side) {
      if (!is_expected) receives.post(*shared);
      for (size_t i = 0; i < sharers; ++i) {
        for (int count = 0; count < 2; ++count) {
          fi_addr_t source = 0;
          const fi_cq_tagged_entry entry = side.next(shared->received[i].get(), &source);
          EXPECT_EQ(source, side.peer());
          EXPECT_EQ(entry.len, size);
          const bool is_tagged = (entry.flags & FI_TAGGED) != 0;
          EXPECT_EQ(entry.data, (is_tagged ? 40 : 50) + i);
          EXPECT_EQ(entry.op_context, &receives.contexts[2 * i + (is_tagged ? 0 : 1)]);
          EXPECT_EQ(is_tagged ? receives.tagged[i] : receives.messages[i],
                    bytes(size, static_cast<unsigned>(i)));
        }
        side.expect_nothing(shared->received[i].get());
      }
    });
    pair.sender([&](Side& side) {
      for (size_t i = 0; i < 2 * sharers; ++i) side.next(side.sent());
    });
  });
}

TEST_P(SharedReceiveTest, ExpectedMessagesAreReportedAtTheEndpointTheyAreFor) {
  for (const size_t size : {size_t{8}, size_t{5000}, size_t{100'000}})
    exchange(GetParam(), size, true);
}

TEST_P(SharedReceiveTest, UnexpectedMessagesAreReportedAtTheEndpointTheyAreFor) {
  for (const size_t size : {size_t{8}, size_t{5000}, size_t{100'000}})
    exchange(GetParam(), size, false);
}

TEST_P(SharedReceiveTest, EachEndpointDecidesWhichCompletionsItWants) {
  run_shared(GetParam(), FI_SELECTIVE_COMPLETION,
             [&](Pair& pair, std::optional<Shared>& shared, const Addresses& addresses) {
               uint64_t in[2] = {};
               Context contexts[2];
               pair.receiver([&](Side&) {
                 iovec piece = {&in[0], 8};
                 fi_msg_tagged message = {.msg_iov = &piece,
                                          .desc = nullptr,
                                          .iov_count = 1,
                                          .addr = FI_ADDR_UNSPEC,
                                          .tag = 1,
                                          .ignore = 0,
                                          .context = &contexts[0],
                                          .data = 0};
                 must(fi_trecvmsg(shared->context.get(), &message, 0));
                 piece.iov_base = &in[1];
                 message.context = &contexts[1];
                 must(fi_trecvmsg(shared->context.get(), &message, FI_COMPLETION));
               });
               pair.sender([&](Side& side) {
                 for (const uint64_t value : {7, 8})
                   must(fi_tinject(side.endpoint(), &value, 8, addresses[1], 1));
               });
               pair.receiver([&](Side& side) {
                 EXPECT_EQ(side.next(shared->received[1].get()).op_context, &contexts[1]);
                 EXPECT_EQ(in[0], 7);
                 EXPECT_EQ(in[1], 8);
                 side.expect_nothing(shared->received[1].get());
               });
             });
}

TEST_P(SharedReceiveTest, AReceiveInPiecesIsFilledAndALongMessageIsCut) {
  run_shared(
      GetParam(), 0, [&](Pair& pair, std::optional<Shared>& shared, const Addresses& addresses) {
        std::array<std::byte, 16> in{};
        std::vector<std::byte> small(100);
        Context contexts[2];
        Context sent;
        const std::vector<std::byte> out = bytes(100'000, 3);
        pair.receiver([&](Side&) {
          const iovec pieces[] = {{&in[0], 5}, {&in[5], 11}};
          must(fi_trecvv(shared->context.get(), pieces, nullptr, 2, FI_ADDR_UNSPEC, 1, 0,
                         &contexts[0]));
        });
        pair.sender([&](Side& side) {
          must(fi_tinject(side.endpoint(), out.data(), 16, addresses[2], 1));
          must(fi_tsend(side.endpoint(), out.data(), out.size(), nullptr, addresses[0], 2, &sent));
        });
        pair.receiver([&](Side& side) {
          EXPECT_EQ(side.next(shared->received[2].get()).op_context, &contexts[0]);
          EXPECT_TRUE(std::equal(in.begin(), in.end(), out.begin()));
          must(fi_trecv(shared->context.get(), small.data(), small.size(), nullptr, FI_ADDR_UNSPEC,
                        2, 0, &contexts[1]));
          const fi_cq_err_entry error = side.next_error(shared->received[0].get());
          EXPECT_EQ(error.err, FI_ETRUNC);
          EXPECT_EQ(error.op_context, &contexts[1]);
          EXPECT_EQ(error.len, small.size());
          EXPECT_EQ(error.olen, out.size() - small.size());
        });
        pair.sender([&](Side& side) { side.next(side.sent()); });
      });
}

TEST_P(SharedReceiveTest, ABufferTakesMessagesOfAllEndpoints) {
  run_shared(
      GetParam(), 0, [&](Pair& pair, std::optional<Shared>& shared, const Addresses& addresses) {
        std::vector<std::byte> buffer(400'000);
        Context context;
        Context sent;
        const std::vector<std::byte> out = bytes(100'000, 4);
        const auto send_all = [&](Side& side) {
          for (size_t i = 0; i < sharers; ++i)
            must(fi_inject(side.endpoint(), &out[i], 8, addresses[i]));
        };
        pair.sender([&](Side& side) {
          send_all(side);
          must(fi_send(side.endpoint(), out.data(), out.size(), nullptr, addresses[1], &sent));
        });
        pair.receiver([&](Side&) {
          const iovec piece = {buffer.data(), buffer.size()};
          const fi_msg message = {&piece, nullptr, 1, FI_ADDR_UNSPEC, &context, 0};
          must(fi_recvmsg(shared->context.get(), &message, FI_MULTI_RECV | FI_COMPLETION));
        });
        pair.sender([&](Side& side) { send_all(side); });
        pair.receiver([&](Side& side) {
          for (size_t i = 0; i < sharers; ++i) {
            for (int count = i == 1 ? 3 : 2; count != 0; --count) {
              const fi_cq_tagged_entry entry = side.next(shared->received[i].get());
              EXPECT_EQ(entry.op_context, &context);
              const size_t offset = entry.len == 8 ? i : 0;
              EXPECT_EQ(memcmp(entry.buf, &out[offset], entry.len), 0);
            }
            side.expect_nothing(shared->received[i].get());
          }
        });
        pair.sender([&](Side& side) { side.next(side.sent()); });
      });
}

TEST_P(SharedReceiveTest, MessagesAreLookedForAndClaimedAtTheContext) {
  run_shared(
      GetParam(), 0, [&](Pair& pair, std::optional<Shared>& shared, const Addresses& addresses) {
        const std::vector<std::byte> out = bytes(100'000, 5);
        Context sent;
        pair.sender([&](Side& side) {
          must(fi_tinject(side.endpoint(), out.data(), 8, addresses[1], 1));
          must(fi_tsend(side.endpoint(), out.data(), out.size(), nullptr, addresses[2], 2, &sent));
        });
        pair.receiver([&](Side& side) {
          std::vector<std::byte> in(out.size());
          const iovec piece = {in.data(), in.size()};
          for (const uint64_t tag : {1, 2}) {
            fid_cq* const queue = shared->received[tag].get();
            Context context;
            const fi_msg_tagged message = {.msg_iov = &piece,
                                           .desc = nullptr,
                                           .iov_count = 1,
                                           .addr = FI_ADDR_UNSPEC,
                                           .tag = tag,
                                           .ignore = 0,
                                           .context = &context,
                                           .data = 0};
            await_progress(
                "the message",
                [&] {
                  must(fi_trecvmsg(shared->context.get(), &message,
                                   FI_PEEK | FI_CLAIM | FI_COMPLETION));
                  fi_cq_tagged_entry entry{};
                  for (;;) {
                    if (fi_cq_read(queue, &entry, 1) == 1) return true;
                    // A miss is reported at the first endpoint.
                    fi_cq_err_entry error{};
                    if (fi_cq_read(shared->received[0].get(), &entry, 1) == -FI_EAVAIL) {
                      must(fi_cq_readerr(shared->received[0].get(), &error, 0) - 1);
                      EXPECT_EQ(error.err, FI_ENOMSG);
                      return false;
                    }
                  }
                },
                Place::current());
            must(fi_trecvmsg(shared->context.get(), &message, FI_CLAIM | FI_COMPLETION));
            const fi_cq_tagged_entry entry = side.next(queue);
            EXPECT_EQ(entry.len, tag == 1 ? 8 : out.size());
            EXPECT_EQ(memcmp(in.data(), out.data(), entry.len), 0);
          }
        });
        pair.sender([&](Side& side) { side.next(side.sent()); });
      });
}

TEST_P(SharedReceiveTest, EndpointsThatShareAreDifferentSenders) {
  run_shared(GetParam(), 0,
             [&](Pair& pair, std::optional<Shared>& shared, const Addresses& addresses) {
               std::array<uint64_t, sharers> in{};
               std::array<Context, sharers> contexts;
               pair.sender([&](Side& side) {
                 for (size_t i = 0; i < sharers; ++i)  // directed, in the other order
                   must(fi_recv(side.endpoint(), &in[i], 8, nullptr, addresses[sharers - 1 - i],
                                &contexts[i]));
               });
               pair.receiver([&](Side& side) {
                 for (uint64_t i = 0; i < sharers; ++i)
                   must(fi_inject(shared->endpoints[i].get(), &i, 8, side.peer()));
               });
               pair.sender([&](Side& side) {
                 for (size_t i = 0; i < sharers; ++i) {
                   fi_addr_t source = 0;
                   const fi_cq_tagged_entry entry = side.next(side.received(), &source);
                   EXPECT_EQ(entry.op_context, &contexts[sharers - 1 - i]);
                   EXPECT_EQ(source, addresses[i]);
                 }
                 for (size_t i = 0; i < sharers; ++i) EXPECT_EQ(in[i], sharers - 1 - i);
               });
             });
}

TEST_P(SharedReceiveTest, ADirectedReceiveAtTheContext) {
  run_shared(
      GetParam(), 0, [&](Pair& pair, std::optional<Shared>& shared, const Addresses& addresses) {
        uint64_t in[2] = {};
        Context contexts[2];
        pair.receiver([&](Side& side) {
          must(fi_recv(shared->context.get(), &in[0], 8, nullptr, side.peer(), &contexts[0]));
          must(
              fi_trecv(shared->context.get(), &in[1], 8, nullptr, side.peer(), 3, 0, &contexts[1]));
        });
        pair.sender([&](Side& side) {
          const uint64_t value = 6;
          must(fi_inject(side.endpoint(), &value, 8, addresses[0]));
          must(fi_tinject(side.endpoint(), &value, 8, addresses[2], 3));
        });
        pair.receiver([&](Side& side) {
          EXPECT_EQ(side.next(shared->received[0].get()).op_context, &contexts[0]);
          EXPECT_EQ(side.next(shared->received[2].get()).op_context, &contexts[1]);
          EXPECT_EQ(in[0] + in[1], 12);
        });
      });
}

TEST_P(SharedReceiveTest, MemoryIsWrittenThroughEachEndpoint) {
  run_shared(GetParam(), 0,
             [&](Pair& pair, std::optional<Shared>& shared, const Addresses& addresses) {
               std::array<uint64_t, sharers> target{};
               Owned<fid_mr> region;
               pair.receiver([&](Side& side) {
                 region = open<fid_mr>([&](auto** to) {
                   return fi_mr_reg(side.domain(), target.data(), sizeof target, FI_REMOTE_WRITE, 0,
                                    9, 0, to, nullptr);
                 });
               });
               pair.sender([&](Side& side) {
                 for (uint64_t i = 0; i < sharers; ++i) {
                   Context context;
                   const uint64_t value = i + 1;
                   must(fi_writedata(side.endpoint(), &value, 8, nullptr, i, addresses[i], 8 * i, 9,
                                     &context));
                   side.next(side.sent());
                 }
               });
               pair.receiver([&](Side& side) {
                 for (uint64_t i = 0; i < sharers; ++i) {
                   EXPECT_EQ(side.next(shared->received[i].get()).data, i);
                   EXPECT_EQ(target[i], i + 1);
                 }
                 region.reset();
               });
             });
}

TEST_P(SharedReceiveTest, OthersReceiveWhenAnEndpointIsClosed) {
  run_shared(GetParam(), 0,
             [&](Pair& pair, std::optional<Shared>& shared, const Addresses& addresses) {
               uint64_t in[2] = {};
               Context contexts[2];
               const auto post = [&](int i) {
                 must(fi_trecv(shared->context.get(), &in[i], 8, nullptr, FI_ADDR_UNSPEC, 1, 0,
                               &contexts[i]));
               };
               pair.receiver([&](Side&) {
                 post(0);
                 shared->endpoints[1].reset();
                 post(1);
               });
               pair.sender([&](Side& side) {
                 for (const size_t i : {2, 1}) {
                   const uint64_t value = i;
                   must(fi_tinject(side.endpoint(), &value, 8, addresses[i], 1));
                 }
               });
               pair.receiver([&](Side& side) {
                 EXPECT_EQ(side.next(shared->received[2].get()).op_context, &contexts[0]);
                 EXPECT_EQ(in[0], 2);
                 // The buffer comes back through another one.
                 EXPECT_EQ(side.next(shared->received[0].get()).op_context, &contexts[1]);
                 EXPECT_EQ(in[1], 1);
               });
             });
}

TEST(SharedReceiveSetUpTest, AReceiveIsCancelledAtTheContext) {
  run_alone([](Rank&) {
    const Side side(Settings{});
    Shared shared(side);
    uint64_t in = 0;
    Context context;
    must(fi_trecv(shared.context.get(), &in, 8, nullptr, FI_ADDR_UNSPEC, 1, 0, &context));
    must(fi_cancel(&shared.context->fid, &context));
    const fi_cq_err_entry error = side.next_error(shared.received[0].get());
    EXPECT_EQ(error.err, FI_ECANCELED);
    EXPECT_EQ(error.op_context, &context);
  });
}

TEST(SharedReceiveSetUpTest, WhatDoesNotFitIsRefused) {
  run_alone([](Rank&) {
    const Side side(Settings{});
    Shared shared(side);
    uint64_t value = 0;
    EXPECT_EQ(fi_close(&shared.context->fid), -FI_EBUSY);
    EXPECT_EQ(fi_ep_bind(shared.context.get(), &side.sent()->fid, FI_RECV), -FI_EINVAL);
    EXPECT_EQ(fi_recv(shared.endpoints[0].get(), &value, 8, nullptr, FI_ADDR_UNSPEC, nullptr),
              -FI_ENOSYS);
    EXPECT_EQ(
        fi_trecv(shared.endpoints[0].get(), &value, 8, nullptr, FI_ADDR_UNSPEC, 1, 0, nullptr),
        -FI_ENOSYS);
    EXPECT_EQ(fi_inject(shared.context.get(), &value, 8, 0), -FI_ENOSYS);
    EXPECT_EQ(fi_tinject(shared.context.get(), &value, 8, 0, 1), -FI_ENOSYS);
    EXPECT_EQ(fi_inject_write(shared.context.get(), &value, 8, 0, 0, 0), -FI_ENOSYS);
    // An endpoint of another kind, one without the context, and one with another address vector.
    EXPECT_EQ(fi_ep_bind(side.endpoint(), &shared.context->fid, 0), -FI_EOPBADSTATE);
    const Info info = shared_info(side);
    fi_av_attr vector{};
    const auto other =
        open<fid_av>([&](auto** to) { return fi_av_open(side.domain(), &vector, to, nullptr); });
    const auto endpoint = open<fid_ep>(
        [&](auto** to) { return fi_endpoint(side.domain(), info.get(), to, nullptr); });
    must(fi_ep_bind(endpoint.get(), &other->fid, 0));
    must(fi_ep_bind(endpoint.get(), &side.sent()->fid, FI_TRANSMIT | FI_RECV));
    EXPECT_EQ(fi_enable(endpoint.get()), -FI_EOPBADSTATE);
    must(fi_ep_bind(endpoint.get(), &shared.context->fid, 0));
    EXPECT_EQ(fi_ep_bind(endpoint.get(), &shared.context->fid, 0), -FI_EBUSY);
    EXPECT_EQ(fi_enable(endpoint.get()), -FI_EINVAL);
    fid_ep* scalable = nullptr;
    EXPECT_EQ(fi_scalable_ep(side.domain(), info.get(), &scalable, nullptr), -FI_ENOSYS);
  });
}

TEST(SharedReceiveSetUpTest, DirectedReceivesNeedAnAddressVector) {
  run_alone([](Rank&) {
    const Side side(Settings{});
    const Info info = shared_info(side);
    const auto context = open<fid_ep>(
        [&](auto** to) { return fi_srx_context(side.domain(), info->rx_attr, to, nullptr); });
    uint64_t in = 0;
    Context receive;
    EXPECT_EQ(fi_recv(context.get(), &in, 8, nullptr, 0, &receive), -FI_ENOAV);
    must(fi_ep_bind(context.get(), &side.addresses()->fid, 0));
    must(fi_recv(context.get(), &in, 8, nullptr, FI_ADDR_UNSPEC, &receive));
  });
}

}  // namespace
}  // namespace lintel::test::ofi
