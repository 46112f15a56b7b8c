#include "ofi/pair.h"

#include <array>

namespace lintel::test::ofi {
namespace {

constexpr int sender_slot = 14;
constexpr int receiver_slot = 15;
constexpr size_t name_bytes = 16;

}  // namespace

std::vector<PairKind> all_pairs() {
  std::vector<PairKind> kinds;
  for (const auto& [transport, processes] :
       {std::pair<const char*, int>{"local", 1}, {"shm", 2}, {"udp", 2}}) {
    kinds.push_back({transport, transport, processes});
    kinds.push_back({std::string(transport) + "_without_contexts", transport, processes, false,
                     FI_AV_TABLE, FI_THREAD_SAFE});
  }
  return kinds;
}

std::vector<PairKind> pairs_of_two() {
  std::vector<PairKind> kinds = all_pairs();
  std::erase_if(kinds, [](const PairKind& kind) { return kind.processes == 1; });
  return kinds;
}

std::string name_of(const testing::TestParamInfo<PairKind>& info) { return info.param.name; }

Pair::Pair(Rank& rank, const Settings& settings) : rank_(rank) {
  const int last = rank.count() - 1;
  if (rank.index() == 0) publish_name(sender_.emplace(settings), sender_slot);
  if (rank.index() == last) publish_name(receiver_.emplace(settings), receiver_slot);
  rank.barrier();
  if (sender_.has_value()) sender_->connect(name_from(last, receiver_slot));
  if (receiver_.has_value()) receiver_->connect(name_from(0, sender_slot));
  rank.barrier();
}

void Pair::kill_receiver() {
  if (rank_.index() == 0) {
    rank_.kill(rank_.count() - 1);
  } else {
    rank_.await_condition("its end", [] { return false; });
  }
}

void Pair::publish_name(const Side& side, int slot) {
  const std::vector<std::byte> name = side.name();
  std::array<std::byte, name_bytes> fixed{};
  EXPECT_EQ(name.size(), fixed.size());
  std::copy(name.begin(), name.end(), fixed.begin());
  rank_.publish(slot, fixed);
}

std::vector<std::byte> Pair::name_from(int rank, int slot) const {
  const auto name = rank_.published<std::array<std::byte, name_bytes>>(rank, slot);
  return {name.begin(), name.end()};
}

void run_pair(const PairKind& kind, Settings settings, const std::function<void(Pair&)>& body) {
  RunOptions options;
  options.environment = kind.environment;
  options.environment.emplace_back("PTL_TRANSPORT", kind.transport);
  settings.contexts = kind.contexts;
  settings.vector = kind.vector;
  settings.threading = kind.threading;
  use_provider();
  run_ranks(kind.processes, options, [&](Rank& rank) {
    Pair pair(rank, settings);
    body(pair);
    rank.barrier();
  });
}

void run_alone(const std::function<void(Rank&)>& body) {
  use_provider();
  run_ranks(1, body);
}

std::vector<std::byte> bytes(size_t size, unsigned seed) {
  std::vector<std::byte> data(size);
  uint64_t state = seed * 0x9e3779b97f4a7c15ULL + 1;
  for (std::byte& each : data) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    each = static_cast<std::byte>(state >> 56);
  }
  return data;
}

}  // namespace lintel::test::ofi
