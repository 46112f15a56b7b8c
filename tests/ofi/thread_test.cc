// Several threads (FI_THREAD_SAFE), and progress without calls (FI_PROGRESS_AUTO): man fi_domain.
#include <thread>

#include "ofi/pair.h"

namespace lintel::test::ofi {
namespace {

// Each thread sends to itself through one endpoint; completions come to whichever thread reads.
TEST(ThreadTest, ThreadsShareAnEndpoint) {
  for (const bool contexts : {true, false}) {
    run_alone([contexts](Rank&) {
      Side side({.contexts = contexts, .threading = FI_THREAD_SAFE});
      side.connect(side.name());
      constexpr size_t threads = 3;
      constexpr size_t rounds = 300;
      std::atomic<size_t> received{0};
      // Completions of sends are read when the threads have ended.
      std::vector<std::vector<Context>> contexts_of(2 * threads, std::vector<Context>(rounds));
      std::vector<std::vector<std::byte>> out_of(threads);
      const auto run = [&](size_t thread) {
        std::vector<std::byte>& out = out_of[thread];
        out = bytes(2000, static_cast<unsigned>(thread));
        std::vector<std::vector<std::byte>> in(rounds, std::vector<std::byte>(2000));
        std::vector<Context>& receives = contexts_of[2 * thread];
        std::vector<Context>& sends = contexts_of[2 * thread + 1];
        for (size_t i = 0; i < rounds; ++i) {
          if (fi_trecv(side.endpoint(), in[i].data(), 2000, nullptr, side.peer(), thread, 0,
                       &receives[i]) != 0 ||
              fi_tsend(side.endpoint(), out.data(), 1 + i * 6, nullptr, side.peer(), thread,
                       &sends[i]) != 0)
            return;
          fi_cq_tagged_entry entries[4];
          const ssize_t count = fi_cq_read(side.received(), entries, 4);
          if (count > 0) received += static_cast<size_t>(count);
        }
        while (received < threads * rounds) {
          fi_cq_tagged_entry entry{};
          if (fi_cq_sread(side.received(), &entry, 1, nullptr, 1) == 1) ++received;
        }
        for (size_t i = 0; i < rounds; ++i)
          EXPECT_TRUE(
              std::equal(out.begin(), out.begin() + 1 + static_cast<long>(i) * 6, in[i].begin()));
      };
      std::vector<std::thread> running;
      for (size_t thread = 0; thread < threads; ++thread) running.emplace_back(run, thread);
      for (std::thread& each : running) each.join();
      for (size_t i = 0; i < threads * rounds; ++i) side.next(side.sent());
      side.expect_nothing(side.sent());
      side.expect_nothing(side.received());
    });
  }
}

// A long message that was there before its receive: the receiver need not call again.
TEST(ProgressTest, TheReceiverNeedNotCallAgain) {
  for (const char* const transport : {"shm", "udp"}) {
    Settings settings;
    settings.progress = FI_PROGRESS_AUTO;
    run_pair({transport, transport, 2}, settings, [](Pair& pair) {
      const std::vector<std::byte> out = bytes(300000, 1);
      std::vector<std::byte> in(out.size());
      Context sending;
      Context receiving;
      pair.sender([&](Side& side) {
        must(fi_tsend(side.endpoint(), out.data(), out.size(), nullptr, side.peer(), 1, &sending));
        const char last = 'x';
        must(fi_inject(side.endpoint(), &last, 1, side.peer()));
      });
      pair.receiver([&](Side& side) {
        char last = 0;
        Context context;
        must(fi_recv(side.endpoint(), &last, 1, nullptr, FI_ADDR_UNSPEC, &context));
        side.next(side.received());  // so the long one is there
        must(fi_trecv(side.endpoint(), in.data(), in.size(), nullptr, FI_ADDR_UNSPEC, 1, 0,
                      &receiving));
      });
      pair.sender([&](Side& side) { EXPECT_EQ(side.next(side.sent()).op_context, &sending); });
      pair.receiver([&](Side& side) {
        EXPECT_EQ(side.next(side.received()).op_context, &receiving);
        EXPECT_EQ(in, out);
      });
    });
  }
}

}  // namespace
}  // namespace lintel::test::ofi
