// Memory regions, reads and writes: man fi_mr, man fi_rma.
#include "ofi/pair.h"

namespace lintel::test::ofi {
namespace {

class MemoryTest : public testing::TestWithParam<PairKind> {};
INSTANTIATE_TEST_SUITE_P(Ofi, MemoryTest, testing::ValuesIn(all_pairs()), name_of);

constexpr uint64_t all_access = FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
constexpr int every_mode = FI_MR_PROV_KEY | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_ENDPOINT;

Owned<fid_mr> register_memory(const Side& side, void* start, size_t size,
                              uint64_t access = all_access, uint64_t key = 0) {
  fid_mr* region = nullptr;
  must(fi_mr_reg(side.domain(), start, size, access, 0, key, 0, &region, nullptr));
  return Owned<fid_mr>(region);
}

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
        region = register_memory(side, memory.data(), size, all_access, 12);
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
        region = register_memory(side, memory.data() + 1024, 1024, all_access, 1);
        read_only = register_memory(side, memory.data() + 2048, 1024, FI_REMOTE_READ, 2);
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
      region = register_memory(side, nullptr, SIZE_MAX, all_access, 3);
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
    Owned<fid_mr> first = register_memory(side, memory.data(), 4096, all_access, 5);
    EXPECT_EQ(fi_mr_key(first.get()), 5);
    fid_mr* second = nullptr;
    EXPECT_EQ(fi_mr_reg(side.domain(), memory.data(), 8, all_access, 0, 5, 0, &second, nullptr),
              -FI_ENOKEY);
    EXPECT_EQ(fi_mr_reg(side.domain(), memory.data(), 8, all_access, 8, 6, 0, &second, nullptr),
              -FI_EINVAL);
    first.reset();
    first = register_memory(side, memory.data(), 4096, all_access, 5);
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
    Owned<fid_mr> region = register_memory(bound, memory.data(), 64, all_access, 5);
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

}  // namespace
}  // namespace lintel::test::ofi
