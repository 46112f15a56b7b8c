// Scalable endpoints, whose receive contexts are named (FI_NAMED_RX_CTX): man fi_endpoint, man
// fi_av.
#include <array>
#include <optional>

#include "ofi/pair.h"

namespace lintel::test::ofi {
namespace {

class ScalableTest : public testing::TestWithParam<PairKind> {};
INSTANTIATE_TEST_SUITE_P(Ofi, ScalableTest, testing::ValuesIn(all_pairs()), name_of);

constexpr size_t contexts = 4;
constexpr int context_bits = 3;
template <typename Object, typename Open>
Owned<Object> open(Open&& open, Place place = Place::current()) {
  Object* object = nullptr;
  must(open(&object), place);
  return Owned<Object>(object);
}

// A scalable endpoint in the domain of a side. Each context has a queue.
struct Scalable {
  explicit Scalable(const Side& side, fi_av_type type = FI_AV_MAP) {
    const Info hints = make_hints();
    hints->mode = side.info().mode;
    hints->ep_attr->tx_ctx_cnt = contexts;
    hints->ep_attr->rx_ctx_cnt = contexts;
    hints->caps = side.info().caps | FI_NAMED_RX_CTX;
    const Info info = get_info(hints.get());
    if (info == nullptr) Rank::current().fail("fi_getinfo returns nothing");
    fi_av_attr vector{};
    vector.type = type;
    vector.rx_ctx_bits = context_bits;
    addresses =
        open<fid_av>([&](auto** to) { return fi_av_open(side.domain(), &vector, to, nullptr); });
    endpoint = open<fid_ep>(
        [&](auto** to) { return fi_scalable_ep(side.domain(), info.get(), to, nullptr); });
    must(fi_scalable_ep_bind(endpoint.get(), &addresses->fid, 0));
    // The endpoint may be enabled before its contexts or after them.
    if (type == FI_AV_MAP) must(fi_enable(endpoint.get()));
    for (size_t i = 0; i < contexts; ++i) {
      const int position = static_cast<int>(i);
      sending[i] = open<fid_ep>(
          [&](auto** to) { return fi_tx_context(endpoint.get(), position, nullptr, to, nullptr); });
      receiving[i] = open<fid_ep>(
          [&](auto** to) { return fi_rx_context(endpoint.get(), position, nullptr, to, nullptr); });
      fi_cq_attr queue{};
      queue.format = FI_CQ_FORMAT_TAGGED;
      sent[i] =
          open<fid_cq>([&](auto** to) { return fi_cq_open(side.domain(), &queue, to, nullptr); });
      received[i] =
          open<fid_cq>([&](auto** to) { return fi_cq_open(side.domain(), &queue, to, nullptr); });
      must(fi_ep_bind(sending[i].get(), &sent[i]->fid, FI_TRANSMIT));
      must(fi_ep_bind(receiving[i].get(), &received[i]->fid, FI_RECV));
      must(fi_enable(sending[i].get()));
      must(fi_enable(receiving[i].get()));
    }
    must(fi_enable(endpoint.get()));
  }
  [[nodiscard]] std::array<std::byte, 16> name() const {
    std::array<std::byte, 16> name{};
    size_t size = name.size();
    must(fi_getname(&endpoint->fid, name.data(), &size));
    return name;
  }
  void connect(const std::array<std::byte, 16>& name) {
    if (fi_av_insert(addresses.get(), name.data(), 1, &peer, 0, nullptr) != 1)
      Rank::current().fail("fi_av_insert");
  }
  [[nodiscard]] fi_addr_t peer_context(size_t i) const {
    return fi_rx_addr(peer, static_cast<int>(i), context_bits);
  }

  Owned<fid_av> addresses;
  Owned<fid_ep> endpoint;
  std::array<Owned<fid_cq>, contexts> sent;
  std::array<Owned<fid_cq>, contexts> received;
  std::array<Owned<fid_ep>, contexts> sending;
  std::array<Owned<fid_ep>, contexts> receiving;
  fi_addr_t peer = FI_ADDR_NOTAVAIL;
};

// Both sides with one, which know each other.
void run_scalable(
    const PairKind& kind,
    const std::function<void(Pair&, std::optional<Scalable>&, std::optional<Scalable>&)>& body) {
  run_pair(kind, {}, [&](Pair& pair) {
    std::optional<Scalable> sender;
    std::optional<Scalable> receiver;
    pair.sender([&](Side& side) {
      sender.emplace(side, kind.vector);
      pair.rank().publish(1, sender->name());
    });
    pair.receiver([&](Side& side) {
      receiver.emplace(side, kind.vector);
      pair.rank().publish(2, receiver->name());
    });
    const auto name = [&](int rank, int slot) {
      return pair.rank().published<std::array<std::byte, 16>>(rank, slot);
    };
    pair.sender([&](Side&) { sender->connect(name(pair.rank().count() - 1, 2)); });
    pair.receiver([&](Side&) { receiver->connect(name(0, 1)); });
    body(pair, sender, receiver);
    pair.sender([&](Side&) { sender.reset(); });
    pair.receiver([&](Side&) { receiver.reset(); });
  });
}

// From each context to one, tagged and not; the receives are posted before or after.
void exchange(Pair& pair, std::optional<Scalable>& sender, std::optional<Scalable>& receiver,
              size_t to, size_t size, bool is_expected) {
  std::vector<std::vector<std::byte>> out;
  for (unsigned i = 0; i < contexts; ++i) out.push_back(bytes(size, i));
  std::array<std::vector<std::byte>, 2 * contexts> in;
  std::array<Context, 2 * contexts> receive_contexts;
  std::array<Context, 2 * contexts> send_contexts;
  const auto receive = [&](Side&) {
    fid_ep* const ep = receiver->receiving[to].get();
    for (size_t from = 0; from < contexts; ++from) {
      Context* const own = &receive_contexts[2 * from];
      in[2 * from].resize(size);
      in[2 * from + 1].resize(size);
      must(fi_trecv(ep, in[2 * from].data(), size, nullptr, receiver->peer, from, 0, own));
      must(fi_recv(ep, in[2 * from + 1].data(), size, nullptr, receiver->peer, own + 1));
    }
  };
  if (is_expected) pair.receiver(receive);
  pair.sender([&](Side&) {
    for (size_t from = 0; from < contexts; ++from) {
      fid_ep* const ep = sender->sending[from].get();
      const fi_addr_t target = sender->peer_context(to);
      Context* const own = &send_contexts[2 * from];
      must(fi_tsend(ep, out[from].data(), size, nullptr, target, from, own));
      must(fi_send(ep, out[from].data(), size, nullptr, target, own + 1));
    }
  });
  if (!is_expected) pair.receiver(receive);
  pair.receiver([&](Side& side) {
    for (size_t i = 0; i < 2 * contexts; ++i) {
      fi_addr_t source = FI_ADDR_NOTAVAIL;
      EXPECT_EQ(side.next(receiver->received[to].get(), &source).len, size);
      EXPECT_EQ(source, receiver->peer);
    }
    for (const Owned<fid_cq>& queue : receiver->received) side.expect_nothing(queue.get());
    for (size_t from = 0; from < contexts; ++from) EXPECT_EQ(in[2 * from], out[from]);
  });
  pair.sender([&](Side& side) {
    for (const Owned<fid_cq>& queue : sender->sent) {
      side.next(queue.get());
      side.next(queue.get());
    }
  });
}

TEST_P(ScalableTest, MessagesReachTheContextThatIsNamed) {
  run_scalable(GetParam(), [](Pair& pair, auto& sender, auto& receiver) {
    for (const size_t size : {size_t{8}, size_t{5000}, size_t{200'000}})
      for (const bool is_expected : {false, true})
        for (size_t to = 0; to < contexts; ++to)
          exchange(pair, sender, receiver, to, size, is_expected);
  });
}

TEST_P(ScalableTest, MemoryIsReachedThroughEachContext) {
  run_scalable(GetParam(), [](Pair& pair, auto& sender, auto&) {
    std::array<uint64_t, contexts> memory{};
    Owned<fid_mr> region;
    pair.receiver([&](Side& side) {
      region = open<fid_mr>([&](auto** to) {
        return fi_mr_reg(side.domain(), &memory, sizeof memory, all_access, 0, 3, 0, to, nullptr);
      });
    });
    pair.sender([&](Side& side) {
      for (uint64_t i = 0; i < contexts; ++i) {
        fid_ep* const ep = sender->sending[i].get();
        Context context;
        uint64_t out = 10 + i;
        uint64_t old = 0;
        const fi_addr_t to = i == 0 ? sender->peer : sender->peer_context(i);
        must(fi_write(ep, &out, 8, nullptr, to, 8 * i, 3, &context));
        side.next(sender->sent[i].get());
        must(fi_fetch_atomic(ep, &out, 1, nullptr, &old, nullptr, to, 8 * i, 3, FI_UINT64, FI_SUM,
                             &context));
        side.next(sender->sent[i].get());
        EXPECT_EQ(old, out);
      }
    });
    pair.receiver([&](Side&) {
      const std::array<uint64_t, contexts> expected = {20, 22, 24, 26};
      EXPECT_EQ(memory, expected);
      region.reset();
    });
  });
}

TEST(ScalableObjectTest, ContextsAndTheirEndpoint) {
  run_alone([](Rank&) {
    const Side side({});
    Scalable scalable(side, FI_AV_TABLE);
    fid_ep* const ep = scalable.endpoint.get();
    fid_ep* opened = nullptr;
    EXPECT_EQ(fi_tx_context(ep, 0, nullptr, &opened, nullptr), -FI_EBUSY);
    EXPECT_EQ(fi_rx_context(ep, contexts, nullptr, &opened, nullptr), -FI_EINVAL);
    EXPECT_EQ(fi_rx_context(ep, -1, nullptr, &opened, nullptr), -FI_EINVAL);
    EXPECT_EQ(fi_close(&ep->fid), -FI_EBUSY);
    // The name is that of the endpoint; its contexts have it, too.
    std::array<std::byte, 16> name{};
    size_t size = name.size();
    must(fi_getname(&scalable.receiving[2]->fid, name.data(), &size));
    EXPECT_EQ(name, scalable.name());
    // A context that was closed can be opened again.
    scalable.connect(name);
    scalable.receiving[1].reset();
    scalable.receiving[1] =
        open<fid_ep>([&](auto** to) { return fi_rx_context(ep, 1, nullptr, to, nullptr); });
    // It needs no queue if it is only the target of RMA.
    must(fi_enable(scalable.receiving[1].get()));
    scalable.receiving[1].reset();
    scalable.receiving[1] =
        open<fid_ep>([&](auto** to) { return fi_rx_context(ep, 1, nullptr, to, nullptr); });
    must(fi_ep_bind(scalable.receiving[1].get(), &scalable.received[1]->fid, FI_RECV));
    must(fi_enable(scalable.receiving[1].get()));
    uint64_t in = 0;
    const uint64_t value = 6;
    Context context;
    must(fi_trecv(scalable.receiving[1].get(), &in, 8, nullptr, FI_ADDR_UNSPEC, 1, 0, &context));
    must(fi_tinject(scalable.sending[3].get(), &value, 8, scalable.peer_context(1), 1));
    EXPECT_EQ(side.next(scalable.received[1].get()).op_context, &context);
    EXPECT_EQ(in, value);
    // Other endpoints stay beside it.
    const Side other({});
    EXPECT_NE(other.name(), side.name());
  });
}

}  // namespace
}  // namespace lintel::test::ofi
