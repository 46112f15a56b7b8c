// Memory regions, reads and writes: man fi_mr, man fi_rma.
#include "ofi/pair.h"

namespace lintel::test::ofi {
namespace {

class MemoryTest : public testing::TestWithParam<PairKind> {};
INSTANTIATE_TEST_SUITE_P(Ofi, MemoryTest, testing::ValuesIn(all_pairs()), name_of);

constexpr int every_mode = FI_MR_PROV_KEY | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_ENDPOINT;

// Tells the sender the key, and the address of the first byte.
void announce(Pair& pair, const Side& side, const Owned<fid_mr>& region, const void* start) {
  const bool is_virtual = (side.info().domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0;
  pair.tell(0, fi_mr_key(region.get()));
  pair.tell(1, is_virtual ? reinterpret_cast<uint64_t>(start) : 0);
}

TEST_P(MemoryTest, WritesAndReadsOfAllSizes) {
  for (const int mode : {0, FI_MR_PROV_KEY, every_mode}) {
    Settings settings;
    settings.mr_mode = mode;
    run_pair(GetParam(), settings, [](Pair& pair) {
      constexpr size_t size = 1 << 20;
      std::vector<std::byte> memory(size);
      Owned<fid_mr> region;
      pair.receiver([&](Side& side) {
        region = register_memory(side, memory.data(), size, 12);
        announce(pair, side, region, memory.data());
      });
      const std::vector<std::byte> out = bytes(size, 1);
      pair.sender([&](Side& side) {
        const uint64_t key = pair.told(0);
        const uint64_t start = pair.told(1);
        size_t offset = 0;
        for (const size_t length : {size_t{0}, size_t{8}, size_t{512}, size_t{5000}, size - 5520}) {
          Context context;
          must(fi_write(side.endpoint(), out.data() + offset, length, nullptr, side.peer(),
                        start + offset, key, &context));
          const fi_cq_tagged_entry entry = side.next(side.sent());
          EXPECT_EQ(entry.op_context, &context);
          EXPECT_EQ(entry.flags, FI_RMA | FI_WRITE);
          offset += length;
        }
        std::vector<std::byte> in(size);
        Context context;
        must(fi_read(side.endpoint(), in.data(), size, nullptr, side.peer(), start, key, &context));
        EXPECT_EQ(side.next(side.sent()).flags, FI_RMA | FI_READ);
        EXPECT_EQ(in, out);
      });
      pair.receiver([&](Side& side) {
        EXPECT_EQ(memory, bytes(size, 1));
        side.expect_nothing(side.received());
        region.reset();
      });
    });
  }
}

TEST_P(MemoryTest, PiecesOnBothSides) {
  run_pair(GetParam(), {}, [](Pair& pair) {
    std::vector<std::byte> memory(4096);
    Owned<fid_mr> region;
    pair.receiver([&](Side& side) { region = register_memory(side, memory.data(), 4096); });
    pair.sender([&](Side& side) {
      std::vector<std::byte> out = bytes(1000, 4);
      std::vector<std::byte> in(1000);
      Context context;
      fi_rma_iov remote[2] = {{100, 300, 0}, {2000, 700, 0}};
      iovec local[3] = {{out.data(), 500}, {out.data() + 500, 100}, {out.data() + 600, 400}};
      fi_msg_rma message{};
      message.msg_iov = local;
      message.iov_count = 3;
      message.addr = side.peer();
      message.rma_iov = remote;
      message.rma_iov_count = 2;
      message.context = &context;
      must(fi_writemsg(side.endpoint(), &message, FI_COMPLETION | FI_DELIVERY_COMPLETE));
      EXPECT_EQ(side.next(side.sent()).op_context, &context);
      for (size_t i = 0; i < 3; ++i)
        local[i].iov_base = in.data() + (static_cast<std::byte*>(local[i].iov_base) - out.data());
      must(fi_readmsg(side.endpoint(), &message, FI_COMPLETION));
      EXPECT_EQ(side.next(side.sent()).op_context, &context);
      EXPECT_EQ(in, out);
      side.expect_nothing(side.sent());
    });
    pair.receiver([&](Side&) {
      const std::vector<std::byte> out = bytes(1000, 4);
      EXPECT_TRUE(std::equal(out.begin(), out.begin() + 300, memory.begin() + 100));
      EXPECT_TRUE(std::equal(out.begin() + 300, out.end(), memory.begin() + 2000));
      region.reset();
    });
  });
}

TEST_P(MemoryTest, DataForACompletionOfTheTarget) {
  run_pair(GetParam(), {}, [](Pair& pair) {
    std::vector<std::byte> memory(4096);
    Owned<fid_mr> region;
    pair.receiver([&](Side& side) { region = register_memory(side, memory.data(), 4096); });
    pair.sender([&](Side& side) {
      const std::vector<std::byte> out = bytes(4096, 4);
      Context context;
      must(fi_writedata(side.endpoint(), out.data(), 4096, nullptr, 0xfeedbeef, side.peer(), 0, 0,
                        &context));
      EXPECT_EQ(side.next(side.sent()).op_context, &context);
      must(fi_inject_writedata(side.endpoint(), out.data(), 8, 6, side.peer(), 0, 0));
    });
    pair.receiver([&](Side& side) {
      for (const uint64_t data : {uint64_t{0xfeedbeef}, uint64_t{6}}) {
        const fi_cq_tagged_entry entry = side.next(side.received());
        EXPECT_EQ(entry.flags, FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
        EXPECT_EQ(entry.data, data);
      }
      EXPECT_EQ(memory, bytes(4096, 4));
      region.reset();
    });
  });
}

TEST_P(MemoryTest, CountersCountInjectedWritesToo) {
  Settings settings;
  settings.counters = true;
  settings.selective = FI_SELECTIVE_COMPLETION;
  run_pair(GetParam(), settings, [](Pair& pair) {
    std::vector<uint64_t> memory(100);
    Owned<fid_mr> region;
    pair.receiver([&](Side& side) { region = register_memory(side, memory.data(), 800); });
    pair.sender([&](Side& side) {
      for (uint64_t i = 0; i < 99; ++i)
        side.repeat([&] { return fi_inject_write(side.endpoint(), &i, 8, side.peer(), 8 * i, 0); });
      const uint64_t last = 99;
      must(fi_write(side.endpoint(), &last, 8, nullptr, side.peer(), 8 * last, 0, nullptr));
      must(fi_cntr_wait(side.write_counter(), 100, 5000));
      uint64_t in[100];
      must(fi_read(side.endpoint(), in, 800, nullptr, side.peer(), 0, 0, nullptr));
      must(fi_cntr_wait(side.read_counter(), 1, 5000));
      for (uint64_t i = 0; i < 100; ++i) EXPECT_EQ(in[i], i);
      EXPECT_EQ(fi_cntr_read(side.write_counter()), 100);
      EXPECT_EQ(fi_cntr_readerr(side.write_counter()), 0);
      side.expect_nothing(side.sent());
    });
    pair.receiver([&](Side&) { region.reset(); });
  });
}

TEST_P(MemoryTest, WhatIsNotAllowedFails) {
  for (const int mode : {0, every_mode}) {
    Settings settings;
    settings.mr_mode = mode;
    settings.counters = true;
    run_pair(GetParam(), settings, [](Pair& pair) {
      std::vector<std::byte> memory(4096);
      Owned<fid_mr> region;
      Owned<fid_mr> read_only;
      pair.receiver([&](Side& side) {
        region = register_memory(side, memory.data() + 1024, 1024, 1);
        read_only = register_memory(side, memory.data() + 2048, 1024, 2, FI_REMOTE_READ);
        announce(pair, side, region, memory.data() + 1024);
        pair.tell(2, fi_mr_key(read_only.get()));
        pair.tell(3, pair.told(1) != 0 ? reinterpret_cast<uint64_t>(memory.data() + 2048) : 0);
      });
      pair.sender([&](Side& side) {
        std::vector<std::byte> out(2048);
        Context context;
        const auto expect_error = [&](int error, ssize_t code) {
          must(code);
          const fi_cq_err_entry entry = side.next_error(side.sent());
          EXPECT_EQ(entry.err, error);
          EXPECT_EQ(entry.op_context, &context);
        };
        const uint64_t start = pair.told(1);
        const uint64_t key = pair.told(0);
        expect_error(FI_ENOKEY, fi_write(side.endpoint(), out.data(), 1025, nullptr, side.peer(),
                                         start, key, &context));
        expect_error(FI_ENOKEY, fi_write(side.endpoint(), out.data(), 8, nullptr, side.peer(),
                                         start - 8, key, &context));
        expect_error(FI_ENOKEY, fi_read(side.endpoint(), out.data(), 8, nullptr, side.peer(), start,
                                        key + 777, &context));
        expect_error(FI_EACCES, fi_write(side.endpoint(), out.data(), 8, nullptr, side.peer(),
                                         pair.told(3), pair.told(2), &context));
        EXPECT_EQ(fi_cntr_readerr(side.write_counter()), 3);
        EXPECT_EQ(fi_cntr_readerr(side.read_counter()), 1);
      });
      pair.receiver([&](Side&) {
        EXPECT_EQ(memory, std::vector<std::byte>(4096));
        region.reset();
        read_only.reset();
      });
    });
  }
}

TEST_P(MemoryTest, ARegionOfAllMemory) {
  run_pair(GetParam(), {}, [](Pair& pair) {
    std::vector<std::byte> memory(4096);
    Owned<fid_mr> region;
    pair.receiver([&](Side& side) {
      region = register_memory(side, nullptr, SIZE_MAX, 3);
      pair.tell(0, reinterpret_cast<uint64_t>(memory.data()));
    });
    pair.sender([&](Side& side) {
      const std::vector<std::byte> out = bytes(4096, 1);
      Context context;
      must(fi_write(side.endpoint(), out.data(), 4096, nullptr, side.peer(), pair.told(0), 3,
                    &context));
      side.next(side.sent());
    });
    pair.receiver([&](Side&) {
      EXPECT_EQ(memory, bytes(4096, 1));
      region.reset();
    });
  });
}

TEST(RegionTest, KeysOfTheProgramAreUnique) {
  run_alone([](Rank&) {
    const Side side({});
    std::vector<std::byte> memory(4096);
    Owned<fid_mr> first = register_memory(side, memory.data(), 4096, 5);
    EXPECT_EQ(fi_mr_key(first.get()), 5);
    fid_mr* second = nullptr;
    EXPECT_EQ(fi_mr_reg(side.domain(), memory.data(), 8, all_access, 0, 5, 0, &second, nullptr),
              -FI_ENOKEY);
    EXPECT_EQ(fi_mr_reg(side.domain(), memory.data(), 8, all_access, 8, 6, 0, &second, nullptr),
              -FI_EINVAL);
    first.reset();
    first = register_memory(side, memory.data(), 4096, 5);
    must(fi_mr_enable(first.get()));
    EXPECT_EQ(fi_close(&side.domain()->fid), -FI_EBUSY);
  });
}

// FI_MR_ENDPOINT: of a region that is bound, no other endpoint knows.
TEST(RegionTest, ARegionIsBoundToAnEndpoint) {
  run_alone([](Rank&) {
    Side bound({});
    Side sender({});
    sender.connect(bound.name());
    std::vector<std::byte> memory(64);
    Owned<fid_mr> region = register_memory(bound, memory.data(), 64, 5);
    must(fi_mr_bind(region.get(), &bound.endpoint()->fid, 0));
    must(fi_mr_enable(region.get()));
    const uint64_t value = 7;
    Context context;
    must(fi_write(sender.endpoint(), &value, 8, nullptr, sender.peer(), 0, 5, &context));
    EXPECT_EQ(sender.next(sender.sent()).op_context, &context);
    EXPECT_EQ(memory[0], std::byte{7});
  });
}

TEST(RegionTest, ARegionOfPieces) {
  run_alone([](Rank&) {
    Side side({});
    side.connect(side.name());
    std::vector<std::byte> memory(300);
    const iovec pieces[2] = {{memory.data() + 200, 100}, {memory.data(), 100}};
    fid_mr* region = nullptr;
    must(fi_mr_regv(side.domain(), pieces, 2, all_access, 0, 9, 0, &region, nullptr));
    const Owned<fid_mr> owned(region);
    const std::vector<std::byte> out = bytes(200, 8);
    Context context;
    must(fi_write(side.endpoint(), out.data(), 200, nullptr, side.peer(), 0, 9, &context));
    side.next(side.sent());
    EXPECT_TRUE(std::equal(out.begin(), out.begin() + 100, memory.begin() + 200));
    EXPECT_TRUE(std::equal(out.begin() + 100, out.end(), memory.begin()));
  });
}

// What a target learns of the accesses of its peers (FI_RMA_EVENT), and fences: man fi_cntr, man
// fi_mr, man fi_endpoint.

class RemoteEventTest : public testing::TestWithParam<PairKind> {};
INSTANTIATE_TEST_SUITE_P(Ofi, RemoteEventTest, testing::ValuesIn(all_pairs()), name_of);

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
    pair.receiver([&](Side& side) { region = register_memory(side, memory, sizeof memory, 3); });
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
      region = register_memory(side, memory, sizeof memory, 3, all_access, FI_RMA_EVENT);
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
        [&](Side& side) { region = register_memory(side, memory.data(), memory.size(), 3); });
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
