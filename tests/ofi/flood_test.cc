// A flood of unexpected messages to a receiver that does not call: senders wait, nothing is lost
// (FI_RM_ENABLED, man fi_domain).
#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <fstream>
#include <utility>

#include "ofi/pair.h"

namespace lintel::test::ofi {
namespace {

constexpr int senders = 8;
constexpr int receiver = senders;
constexpr int name_slot = 10;
constexpr int stopped = 0;           // flag
constexpr uint64_t messages = 4000;  // of each sender
constexpr size_t long_bytes = 4096;
constexpr size_t short_bytes = 256;
// With a limit of 1 MiB: blocks of the store, and what is under way when senders are stopped. All
// messages are 70 MB.
constexpr size_t most_memory = 40 << 20;

using Name = std::array<std::byte, 16>;

struct Message {
  uint64_t sender;
  uint64_t number;
};

size_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  size_t pages = 0;
  file >> pages >> pages;
  return pages * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

// Every other message is short, which is complete when it was copied.
void send_all(Rank& rank, const Side& side) {
  const auto sender = static_cast<uint64_t>(rank.index());
  std::vector<std::vector<std::byte>> payloads(messages);
  std::vector<Context> contexts(messages);
  uint64_t completions = 0;
  bool was_stopped = false;
  for (uint64_t i = 0; i < messages; ++i) {
    const bool is_short = i % 2 == 0;
    payloads[i].resize(is_short ? short_bytes : long_bytes);
    new (payloads[i].data()) Message{sender, i};
    side.repeat([&] {
      const ssize_t code = is_short ? fi_tinject(side.endpoint(), payloads[i].data(), short_bytes,
                                                 side.peer(), sender)
                                    : fi_tsend(side.endpoint(), payloads[i].data(), long_bytes,
                                               nullptr, side.peer(), sender, &contexts[i]);
      if (code == -FI_EAGAIN && !std::exchange(was_stopped, true)) rank.raise(stopped);
      fi_cq_tagged_entry entry;
      while (fi_cq_read(side.sent(), &entry, 1) == 1) ++completions;
      return code;
    });
    if (is_short) payloads[i].clear();
  }
  EXPECT_TRUE(was_stopped) << "nothing has stopped the sender";
  for (; completions < messages / 2; ++completions) side.next(side.sent());
}

void receive_all(Rank& rank, const Side& side) {
  const size_t before = resident_bytes();
  // "Computes": no call of libfabric.
  for (int sender = 0; sender < senders; ++sender) rank.await(sender, stopped);
  if (slowdown == 1) {  // no sanitizer keeps memory
    EXPECT_LT(resident_bytes() - before, most_memory);
  }
  std::vector<uint64_t> next(senders, 0);
  std::vector<std::byte> buffer(long_bytes);
  Context context;
  for (uint64_t i = 0; i < senders * messages; ++i) {
    side.repeat([&] {
      return fi_trecv(side.endpoint(), buffer.data(), buffer.size(), nullptr, FI_ADDR_UNSPEC, 0,
                      ~uint64_t{0}, &context);
    });
    const fi_cq_tagged_entry entry = side.next(side.received());
    Message message;
    std::memcpy(&message, buffer.data(), sizeof message);
    ASSERT_EQ(message.sender, entry.tag);
    ASSERT_EQ(message.number, next[message.sender]++);
    ASSERT_EQ(entry.len, message.number % 2 == 0 ? short_bytes : long_bytes);
  }
  side.expect_nothing(side.received());
}

TEST(FloodTest, SendersWaitForASlowReceiverAndNothingIsLost) {
  if (dlopen(LINTEL_OFI_PROVIDER_DIRECTORY "/liblintel-fi.so", RTLD_NOW | RTLD_NOLOAD) != nullptr)
    GTEST_SKIP() << "ofi.flood runs it alone: here the provider has read its variables";
  for (const char* const transport : {"shm", "udp"}) {
    SCOPED_TRACE(transport);
    RunOptions options;
    options.deadline = 3 * test_deadline;
    options.environment = {{"PTL_TRANSPORT", transport},
                           {"FI_LINTEL_UNEXPECTED_RESERVE", "1048576"},
                           {"FI_LINTEL_EVENTS", "1024"}};
    run_ranks(senders + 1, options, [](Rank& rank) {
      use_provider();  // here, as it reads the variables when it is loaded
      Side side({});
      if (rank.index() == receiver) {
        Name name{};
        std::ranges::copy(side.name(), name.begin());
        rank.publish(name_slot, name);
      }
      rank.barrier();
      const auto name = rank.published<Name>(receiver, name_slot);
      side.connect({name.begin(), name.end()});
      rank.barrier();
      if (rank.index() == receiver)
        receive_all(rank, side);
      else
        send_all(rank, side);
      rank.barrier();
    });
  }
}

}  // namespace
}  // namespace lintel::test::ofi
