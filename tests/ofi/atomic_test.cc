// Atomics: man fi_atomic. What is computed is tested with a few types; which there are, with all.
#include <cmath>
#include <complex>

#include "ofi/pair.h"

namespace lintel::test::ofi {
namespace {

class AtomicTest : public testing::TestWithParam<PairKind> {};
INSTANTIATE_TEST_SUITE_P(Ofi, AtomicTest, testing::ValuesIn(all_pairs()), name_of);

// A region with the key 1 over `memory` at the receiver.
template <typename Body>
void with_region(const PairKind& kind, size_t size, Body&& body) {
  run_pair(kind, {}, [&](Pair& pair) {
    std::vector<std::byte> memory(size);
    Owned<fid_mr> region;
    pair.receiver([&](Side& side) { region = register_memory(side, memory.data(), size, 1); });
    body(pair, memory);
    pair.receiver([&](Side&) { region.reset(); });
  });
}

TEST_P(AtomicTest, UpdatesFetchesAndComparisons) {
  with_region(GetParam(), 64, [](Pair& pair, std::vector<std::byte>& memory) {
    pair.sender([&](Side& side) {
      Context context;
      const auto finish = [&](ssize_t code, uint64_t flags) {
        must(code);
        const fi_cq_tagged_entry entry = side.next(side.sent());
        EXPECT_EQ(entry.op_context, &context);
        EXPECT_EQ(entry.flags, FI_ATOMIC | flags);
      };
      fid_ep* const ep = side.endpoint();
      const int64_t five[2] = {5, 6};
      const int64_t seven[2] = {7, 8};
      int64_t old[2] = {-1, -1};
      finish(
          fi_atomic(ep, five, 2, nullptr, side.peer(), 0, 1, FI_INT64, FI_ATOMIC_WRITE, &context),
          FI_WRITE);
      finish(fi_atomic(ep, seven, 2, nullptr, side.peer(), 0, 1, FI_INT64, FI_SUM, &context),
             FI_WRITE);
      finish(fi_fetch_atomic(ep, nullptr, 2, nullptr, old, nullptr, side.peer(), 0, 1, FI_INT64,
                             FI_ATOMIC_READ, &context),
             FI_READ);
      EXPECT_EQ(old[0], 12);
      EXPECT_EQ(old[1], 14);
      finish(fi_fetch_atomic(ep, five, 2, nullptr, old, nullptr, side.peer(), 0, 1, FI_INT64,
                             FI_ATOMIC_WRITE, &context),
             FI_READ);
      EXPECT_EQ(old[0], 12);
      finish(fi_fetch_atomic(ep, seven, 2, nullptr, old, nullptr, side.peer(), 0, 1, FI_INT64,
                             FI_MAX, &context),
             FI_READ);
      EXPECT_EQ(old[0], 5);
      const int64_t comparand[2] = {7, 9};
      finish(fi_compare_atomic(ep, five, 2, nullptr, comparand, nullptr, old, nullptr, side.peer(),
                               0, 1, FI_INT64, FI_CSWAP, &context),
             FI_READ);
      EXPECT_EQ(old[0], 7);
      EXPECT_EQ(old[1], 8);
      finish(fi_compare_atomic(ep, five, 1, nullptr, comparand, nullptr, old, nullptr, side.peer(),
                               8, 1, FI_INT64, FI_CSWAP_LE, &context),
             FI_READ);  // 7 <= 8
      const uint64_t bits = 0xff00;
      const uint64_t mask = 0x0f00;
      finish(fi_compare_atomic(ep, &bits, 1, nullptr, &mask, nullptr, old, nullptr, side.peer(), 16,
                               1, FI_UINT64, FI_MSWAP, &context),
             FI_READ);
      side.expect_nothing(side.sent());
    });
    pair.receiver([&](Side&) {
      int64_t values[3];
      std::memcpy(values, memory.data(), sizeof values);
      EXPECT_EQ(values[0], 5);
      EXPECT_EQ(values[1], 5);
      EXPECT_EQ(values[2], 0x0f00);
    });
  });
}

TEST_P(AtomicTest, InjectedOnesAddUp) {
  with_region(GetParam(), 64, [](Pair& pair, std::vector<std::byte>& memory) {
    pair.sender([&](Side& side) {
      for (uint32_t i = 1; i <= 100; ++i)
        side.repeat([&] {
          return fi_inject_atomic(side.endpoint(), &i, 1, side.peer(), 4, 1, FI_UINT32, FI_SUM);
        });
      uint32_t old = 0;
      Context context;
      must(fi_fetch_atomic(side.endpoint(), nullptr, 1, nullptr, &old, nullptr, side.peer(), 4, 1,
                           FI_UINT32, FI_ATOMIC_READ, &context));
      side.next(side.sent());
      EXPECT_EQ(old, 5050);
    });
    pair.receiver([&](Side&) {
      uint32_t value = 0;
      std::memcpy(&value, memory.data() + 4, 4);
      EXPECT_EQ(value, 5050);
    });
  });
}

// A read changes nothing, not even the sign of a zero.
TEST_P(AtomicTest, ReadsOfFloatingPoint) {
  with_region(GetParam(), 64, [](Pair& pair, std::vector<std::byte>&) {
    pair.sender([&](Side& side) {
      const double out[3] = {-0.0, 1.5, -INFINITY};
      double in[3] = {};
      Context context;
      must(fi_atomic(side.endpoint(), out, 3, nullptr, side.peer(), 0, 1, FI_DOUBLE,
                     FI_ATOMIC_WRITE, &context));
      side.next(side.sent());
      for (int i = 0; i < 2; ++i) {
        must(fi_fetch_atomic(side.endpoint(), nullptr, 3, nullptr, in, nullptr, side.peer(), 0, 1,
                             FI_DOUBLE, FI_ATOMIC_READ, &context));
        side.next(side.sent());
        EXPECT_EQ(std::memcmp(in, out, sizeof out), 0);
      }
    });
  });
}

TEST_P(AtomicTest, PiecesOnBothSides) {
  with_region(GetParam(), 4096, [](Pair& pair, std::vector<std::byte>&) {
    pair.sender([&](Side& side) {
      std::vector<int32_t> out(100);
      std::vector<int32_t> in(100, -1);
      for (int i = 0; i < 100; ++i) out[static_cast<size_t>(i)] = i;
      const fi_ioc local[2] = {{out.data(), 30}, {out.data() + 30, 70}};
      fi_ioc results[2] = {{in.data(), 80}, {in.data() + 80, 20}};
      const fi_rma_ioc remote[2] = {{400, 50, 1}, {2000, 50, 1}};
      Context context;
      fi_msg_atomic message{};
      message.msg_iov = local;
      message.iov_count = 2;
      message.addr = side.peer();
      message.rma_iov = remote;
      message.rma_iov_count = 2;
      message.datatype = FI_INT32;
      message.op = FI_SUM;
      message.context = &context;
      must(fi_atomicmsg(side.endpoint(), &message, FI_COMPLETION));
      side.next(side.sent());
      must(fi_fetch_atomicmsg(side.endpoint(), &message, results, nullptr, 2, FI_COMPLETION));
      side.next(side.sent());
      EXPECT_EQ(in, out);
      side.expect_nothing(side.sent());
    });
  });
}

// What valid() says is what happens, for all types and operations.
TEST(AtomicValidTest, AnswersAreTrue) {
  run_alone([](Rank&) {
    Side side({});
    side.connect(side.name());
    alignas(32) std::byte memory[4096] = {};
    alignas(32) std::byte operand[4096] = {};
    alignas(32) std::byte result[4096] = {};
    const Owned<fid_mr> region = register_memory(side, memory, sizeof memory, 1);
    int valid = 0;
    for (int t = 0; t <= FI_UINT128; ++t) {
      for (int o = 0; o <= FI_ATOMIC_OP_LAST; ++o) {
        const auto type = static_cast<fi_datatype>(t);
        const auto op = static_cast<fi_op>(o);
        fid_ep* const ep = side.endpoint();
        size_t counts[3] = {};
        const int codes[3] = {fi_atomicvalid(ep, type, op, &counts[0]),
                              fi_fetch_atomicvalid(ep, type, op, &counts[1]),
                              fi_compare_atomicvalid(ep, type, op, &counts[2])};
        for (int call = 0; call < 3; ++call) {
          const size_t n = codes[call] == 0 ? counts[call] : 1;
          Context context;
          const ssize_t code =
              call == 0 ? fi_atomic(ep, operand, n, nullptr, side.peer(), 0, 1, type, op, &context)
              : call == 1 ? fi_fetch_atomic(ep, operand, n, nullptr, result, nullptr, side.peer(),
                                            0, 1, type, op, &context)
                          : fi_compare_atomic(ep, operand, n, nullptr, operand, nullptr, result,
                                              nullptr, side.peer(), 0, 1, type, op, &context);
          ASSERT_EQ(code, codes[call]) << t << " " << o << " " << call;
          fi_atomic_attr attr{};
          const uint64_t flags = call == 0 ? 0 : call == 1 ? FI_FETCH_ATOMIC : FI_COMPARE_ATOMIC;
          EXPECT_EQ(fi_query_atomic(side.domain(), type, op, &attr, flags), codes[call]);
          if (code != 0) continue;
          ++valid;
          EXPECT_EQ(attr.count, n);
          EXPECT_EQ(side.next(side.sent()).op_context, &context);
        }
      }
    }
    // 8 integer types with 11 + 12 + 7 calls, 3 real ones with 5 + 6 + 6, 3 complex ones with
    // 3 + 4 + 2.
    EXPECT_EQ(valid, 8 * 30 + 3 * 17 + 3 * 9);
  });
}

}  // namespace
}  // namespace lintel::test::ofi
