// Uses each capability that fi_getinfo(3) grants, and requests the others, which are refused.
#include <map>

#include <rdma/fi_trigger.h>

#include "ofi/pair.h"

namespace lintel::test::ofi {
namespace {

constexpr uint64_t key = 2;

// A side that is its own peer.
struct Loop {
  explicit Loop(uint64_t caps) : side({.caps = caps}) {
    if ((side.info().caps & caps) != caps) Rank::current().fail("a capability was not granted");
    side.connect(side.name());
  }

  Owned<fid_mr> register_value(uint64_t access) {
    fid_mr* region = nullptr;
    must(fi_mr_reg(side.domain(), &value, 8, access, 0, key, 0, &region, nullptr));
    return Owned<fid_mr>(region);
  }
  Owned<fid_cntr> open_counter() {
    fid_cntr* counter = nullptr;
    must(fi_cntr_open(side.domain(), nullptr, &counter, nullptr));
    return Owned<fid_cntr>(counter);
  }
  // A tagged message from itself. Returns its reported source.
  fi_addr_t exchange(fi_addr_t from = FI_ADDR_UNSPEC) {
    uint64_t in = 0;
    must(fi_trecv(side.endpoint(), &in, 8, nullptr, from, 1, 0, &context));
    must(fi_tinject(side.endpoint(), &out, 8, side.peer(), 1));
    fi_addr_t source = 0;
    EXPECT_EQ(side.next(side.received(), &source).op_context, &context);
    EXPECT_EQ(in, out);
    return source;
  }
  void write() {
    must(fi_write(side.endpoint(), &out, 8, nullptr, side.peer(), 0, key, &context));
    EXPECT_EQ(side.next(side.sent()).op_context, &context);
    EXPECT_EQ(value, out);
  }

  Side side;
  uint64_t value = 5;
  uint64_t out = 77;
  Context context;
};

// One side accesses a region of another with the capabilities that each of them needs.
void access(uint64_t kind, uint64_t own, uint64_t remote) {
  Loop initiator(kind | own);
  Loop target(kind | remote);
  const Owned<fid_mr> region = target.register_value(remote);
  initiator.side.connect(target.side.name());
  const Side& side = initiator.side;
  uint64_t* const out = &initiator.out;
  if (own == FI_WRITE) {
    must(fi_write(side.endpoint(), out, 8, nullptr, side.peer(), 0, key, &initiator.context));
  } else {
    must(fi_read(side.endpoint(), out, 8, nullptr, side.peer(), 0, key, &initiator.context));
  }
  side.next(side.sent());
  EXPECT_EQ(target.value, own == FI_WRITE ? 77 : 5);
  EXPECT_EQ(*out, own == FI_WRITE ? 77 : 5);
}

void send_one_way() {
  Loop sender(FI_TAGGED | FI_SEND);
  Loop receiver(FI_TAGGED | FI_RECV);
  sender.side.connect(receiver.side.name());
  must(fi_trecv(receiver.side.endpoint(), &receiver.value, 8, nullptr, FI_ADDR_UNSPEC, 1, 0,
                &receiver.context));
  must(fi_tinject(sender.side.endpoint(), &sender.out, 8, sender.side.peer(), 1));
  receiver.side.next(receiver.side.received());
  EXPECT_EQ(receiver.value, 77);
}

void send_message() {
  Loop loop(FI_MSG);
  must(fi_recv(loop.side.endpoint(), &loop.value, 8, nullptr, FI_ADDR_UNSPEC, &loop.context));
  must(fi_inject(loop.side.endpoint(), &loop.out, 8, loop.side.peer()));
  loop.side.next(loop.side.received());
  EXPECT_EQ(loop.value, 77);
}

void receive_several() {
  Loop loop(FI_MSG | FI_MULTI_RECV);
  uint64_t in[64] = {};
  const iovec piece = {in, sizeof in};
  fi_msg message{};
  message.msg_iov = &piece;
  message.iov_count = 1;
  message.addr = FI_ADDR_UNSPEC;
  message.context = &loop.context;
  must(fi_recvmsg(loop.side.endpoint(), &message, FI_MULTI_RECV | FI_COMPLETION));
  for (size_t i = 0; i < 2; ++i) {
    must(fi_inject(loop.side.endpoint(), &loop.out, 8, loop.side.peer()));
    EXPECT_EQ(loop.side.next(loop.side.received()).buf, &in[i]);
  }
  EXPECT_EQ(in[1], 77);
}

void write_to_itself() {
  Loop loop(FI_RMA);
  const Owned<fid_mr> region = loop.register_value(FI_REMOTE_WRITE);
  loop.write();
}

void add_atomically() {
  Loop loop(FI_ATOMIC);
  const Owned<fid_mr> region = loop.register_value(FI_REMOTE_WRITE);
  must(fi_atomic(loop.side.endpoint(), &loop.out, 1, nullptr, loop.side.peer(), 0, key, FI_UINT64,
                 FI_SUM, &loop.context));
  loop.side.next(loop.side.sent());
  EXPECT_EQ(loop.value, 82);
}

void count_remote_writes() {
  Loop loop(FI_RMA | FI_RMA_EVENT);
  const Owned<fid_cntr> counter = loop.open_counter();
  const Owned<fid_mr> region = loop.register_value(FI_REMOTE_WRITE);
  must(fi_mr_bind(region.get(), &counter->fid, FI_REMOTE_WRITE));
  loop.write();
  EXPECT_EQ(fi_cntr_read(counter.get()), 1);
}

void trigger_a_message() {
  Loop loop(FI_TAGGED | FI_TRIGGER);
  const Owned<fid_cntr> counter = loop.open_counter();
  const iovec piece = {&loop.out, 8};
  fi_triggered_context2 context{};
  context.trigger.threshold = {counter.get(), 1};
  fi_msg_tagged message{};
  message.msg_iov = &piece;
  message.iov_count = 1;
  message.addr = loop.side.peer();
  message.context = &context;
  must(fi_tsendmsg(loop.side.endpoint(), &message, FI_TRIGGER | FI_COMPLETION));
  must(
      fi_trecv(loop.side.endpoint(), &loop.value, 8, nullptr, FI_ADDR_UNSPEC, 0, 0, &loop.context));
  loop.side.expect_nothing(loop.side.received());
  must(fi_cntr_add(counter.get(), 1));
  loop.side.next(loop.side.received());
  loop.side.next(loop.side.sent());
  EXPECT_EQ(loop.value, 77);
}

void write_fenced() {
  Loop loop(FI_RMA | FI_FENCE);
  const Owned<fid_mr> region = loop.register_value(FI_REMOTE_WRITE);
  const iovec piece = {&loop.out, 8};
  const fi_rma_iov remote = {0, 8, key};
  fi_msg_rma message{};
  message.msg_iov = &piece;
  message.iov_count = 1;
  message.addr = loop.side.peer();
  message.rma_iov = &remote;
  message.rma_iov_count = 1;
  message.context = &loop.context;
  loop.side.repeat(
      [&] { return fi_writemsg(loop.side.endpoint(), &message, FI_FENCE | FI_COMPLETION); });
  loop.side.next(loop.side.sent());
  EXPECT_EQ(loop.value, 77);
}

// A message of an endpoint that is not in the address vector.
void receive_from_a_stranger() {
  Side receiver({.vector = FI_AV_TABLE, .caps = FI_TAGGED | FI_SOURCE | FI_SOURCE_ERR});
  Loop stranger(FI_TAGGED);
  stranger.side.connect(receiver.name());
  uint64_t in = 0;
  Context context;
  must(fi_trecv(receiver.endpoint(), &in, 8, nullptr, FI_ADDR_UNSPEC, 1, 0, &context));
  must(fi_tinject(stranger.side.endpoint(), &in, 8, stranger.side.peer(), 1));
  EXPECT_EQ(receiver.next_error(receiver.received()).err, FI_EADDRNOTAVAIL);
}

void receive_from_one() {
  Loop loop(FI_TAGGED | FI_DIRECTED_RECV);
  loop.exchange(loop.side.peer());
}

void report_the_source() {
  Loop loop(FI_TAGGED | FI_SOURCE);
  EXPECT_EQ(loop.exchange(), loop.side.peer());
}

void insert_an_identifier() {
  Loop loop(FI_TAGGED | FI_SOURCE | FI_AV_USER_ID);
  const std::vector<std::byte> name = loop.side.name();
  fi_addr_t identifier = 1234;
  EXPECT_EQ(
      fi_av_insert(loop.side.addresses(), name.data(), 1, &identifier, FI_AV_USER_ID, nullptr), 1);
  EXPECT_EQ(loop.exchange(), 1234);
}

void send_to_itself() { Loop(FI_TAGGED | FI_LOCAL_COMM).exchange(); }

// A test for each capability that is granted. All tests with two processes test FI_REMOTE_COMM, and
// scalable_test.cc tests FI_NAMED_RX_CTX, device_memory_test.cc FI_HMEM.
const std::map<uint64_t, std::function<void()>>& capability_tests() {
  static const std::map<uint64_t, std::function<void()>> tests = {
      {FI_MSG, send_message},
      {FI_TAGGED, send_one_way},
      {FI_RMA, write_to_itself},
      {FI_ATOMIC, add_atomically},
      {FI_SEND, send_one_way},
      {FI_RECV, send_one_way},
      {FI_READ, [] { access(FI_RMA, FI_READ, FI_REMOTE_READ); }},
      {FI_REMOTE_READ, [] { access(FI_RMA, FI_READ, FI_REMOTE_READ); }},
      {FI_WRITE, [] { access(FI_RMA, FI_WRITE, FI_REMOTE_WRITE); }},
      {FI_REMOTE_WRITE, [] { access(FI_RMA, FI_WRITE, FI_REMOTE_WRITE); }},
      {FI_MULTI_RECV, receive_several},
      {FI_TRIGGER, trigger_a_message},
      {FI_FENCE, write_fenced},
      {FI_SOURCE, report_the_source},
      {FI_SOURCE_ERR, receive_from_a_stranger},
      {FI_DIRECTED_RECV, receive_from_one},
      {FI_RMA_EVENT, count_remote_writes},
      {FI_LOCAL_COMM, send_to_itself},
      {FI_REMOTE_COMM, [] {}},
      {FI_NAMED_RX_CTX, [] {}},
      {FI_HMEM, [] {}},
      {FI_AV_USER_ID, insert_an_identifier},
  };
  return tests;
}

TEST(CapabilityTest, WhatIsGrantedWorksAndTheRestIsRefused) {
  run_alone([](Rank&) {
    constexpr uint64_t transfers = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC;
    for (unsigned bit = 0; bit < 64; ++bit) {
      const uint64_t capability = uint64_t{1} << bit;
      const auto test = capability_tests().find(capability);
      const Info hints = make_hints();
      hints->caps = transfers | capability;
      const Info info = get_info(hints.get());
      ASSERT_EQ(info != nullptr, test != capability_tests().end()) << "bit " << bit;
      if (info == nullptr) continue;
      EXPECT_EQ(info->caps & hints->caps, hints->caps);
      test->second();
    }
  });
}

TEST(CapabilityTest, WithoutHintsAllOfThemAreOffered) {
  run_alone([](Rank&) {
    uint64_t all = 0;
    for (const auto& [capability, test] : capability_tests()) all |= capability;
    const Info info = get_info(nullptr);
    ASSERT_NE(info, nullptr);
    EXPECT_EQ(info->caps, all);
    EXPECT_EQ(info->tx_attr->caps & ~all, 0);
    EXPECT_EQ(info->rx_attr->caps & ~all, 0);
  });
}

}  // namespace
}  // namespace lintel::test::ofi
