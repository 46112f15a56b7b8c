// What a target learns of the accesses of its peers (FI_RMA_EVENT), and fences: man fi_cntr, man
// fi_mr, man fi_endpoint.
#include "ofi/pair.h"

namespace lintel::test::ofi {
namespace {

class RemoteEventTest : public testing::TestWithParam<PairKind> {};
INSTANTIATE_TEST_SUITE_P(Ofi, RemoteEventTest, testing::ValuesIn(all_pairs()), name_of);

constexpr uint64_t all_access = FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;

Owned<fid_mr> register_memory(const Side& side, void* start, size_t size, uint64_t flags = 0) {
  fid_mr* region = nullptr;
  must(fi_mr_reg(side.domain(), start, size, all_access, 0, 3, flags, &region, nullptr));
  return Owned<fid_mr>(region);
}

// Writes of several kinds, and one read.
void access_memory(Side& side) {
  uint64_t value = 4;
  uint64_t result = 0;
  Context context;
  must(fi_write(side.endpoint(), &value, 8, nullptr, side.peer(), 0, 3, &context));
  must(fi_writedata(side.endpoint(), &value, 8, nullptr, 1, side.peer(), 8, 3, nullptr));
  must(fi_inject_write(side.endpoint(), &value, 8, side.peer(), 16, 3));
  must(fi_atomic(side.endpoint(), &value, 1, nullptr, side.peer(), 0, 3, FI_UINT64, FI_SUM,
                 nullptr));
  for (int i = 0; i < 3; ++i) side.next(side.sent());
  must(fi_read(side.endpoint(), &result, 8, nullptr, side.peer(), 0, 3, nullptr));
  side.next(side.sent());
  EXPECT_EQ(result, 8);
}

TEST_P(RemoteEventTest, CountersOfTheEndpointCountReadsAndWrites) {
  Settings settings;
  settings.remote_counters = true;
  run_pair(GetParam(), settings, [](Pair& pair) {
    uint64_t memory[3] = {};
    Owned<fid_mr> region;
    pair.receiver([&](Side& side) { region = register_memory(side, memory, sizeof memory); });
    pair.sender([](Side& side) { access_memory(side); });
    pair.receiver([&](Side& side) {
      must(fi_cntr_wait(side.remote_write_counter(), 4, 5000));
      must(fi_cntr_wait(side.remote_read_counter(), 1, 5000));
      EXPECT_EQ(fi_cntr_read(side.remote_write_counter()), 4);
      EXPECT_EQ(fi_cntr_read(side.remote_read_counter()), 1);
      EXPECT_EQ(fi_cntr_readerr(side.remote_write_counter()), 0);
      must(fi_cntr_set(side.remote_write_counter(), 10));
      must(fi_cntr_add(side.remote_write_counter(), 2));
      EXPECT_EQ(fi_cntr_read(side.remote_write_counter()), 12);
      EXPECT_EQ(fi_cntr_wait(side.remote_read_counter(), 2, 20), -FI_ETIMEDOUT);
      region.reset();
    });
  });
}

TEST_P(RemoteEventTest, ACounterOfARegionCountsWrites) {
  run_pair(GetParam(), {}, [](Pair& pair) {
    uint64_t memory[3] = {};
    Owned<fid_mr> region;
    Owned<fid_cntr> counter;
    pair.receiver([&](Side& side) {
      fid_cntr* opened = nullptr;
      must(fi_cntr_open(side.domain(), nullptr, &opened, nullptr));
      counter.reset(opened);
      region = register_memory(side, memory, sizeof memory, FI_RMA_EVENT);
      EXPECT_EQ(fi_mr_bind(region.get(), &opened->fid, FI_REMOTE_READ), -FI_EBADFLAGS);
      must(fi_mr_bind(region.get(), &opened->fid, FI_REMOTE_WRITE));
      must(fi_mr_enable(region.get()));
      EXPECT_EQ(fi_close(&opened->fid), -FI_EBUSY);
    });
    pair.sender([](Side& side) { access_memory(side); });
    pair.receiver([&](Side&) {
      must(fi_cntr_wait(counter.get(), 4, 5000));
      EXPECT_EQ(fi_cntr_read(counter.get()), 4);
      region.reset();
      EXPECT_EQ(fi_cntr_read(counter.get()), 4);
      counter.reset();
    });
  });
}

TEST_P(RemoteEventTest, AFencedOperationComesAfterThoseBeforeIt) {
  Settings settings;
  settings.counters = true;
  run_pair(GetParam(), settings, [](Pair& pair) {
    std::vector<std::byte> memory(1 << 20);
    Owned<fid_mr> region;
    pair.receiver(
        [&](Side& side) { region = register_memory(side, memory.data(), memory.size()); });
    pair.sender([&](Side& side) {
      std::vector<std::byte> out = bytes(memory.size(), 3);
      std::vector<std::byte> in(8);
      Context writing;
      must(fi_write(side.endpoint(), out.data(), out.size(), nullptr, side.peer(), 0, 3, &writing));
      Context reading;
      iovec piece = {in.data(), in.size()};
      const fi_rma_iov remote = {out.size() - 8, 8, 3};
      fi_msg_rma message{};
      message.msg_iov = &piece;
      message.iov_count = 1;
      message.addr = side.peer();
      message.rma_iov = &remote;
      message.rma_iov_count = 1;
      message.context = &reading;
      side.repeat([&] { return fi_readmsg(side.endpoint(), &message, FI_FENCE | FI_COMPLETION); });
      EXPECT_EQ(fi_cntr_read(side.write_counter()), 1);
      EXPECT_EQ(side.next(side.sent()).op_context, &writing);
      EXPECT_EQ(side.next(side.sent()).op_context, &reading);
      EXPECT_TRUE(std::equal(in.begin(), in.end(), out.end() - 8));
    });
    pair.receiver([&](Side&) { region.reset(); });
  });
}

}  // namespace
}  // namespace lintel::test::ofi
