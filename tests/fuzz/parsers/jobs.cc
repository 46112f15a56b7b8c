// Data about a job from other processes and launchers: values of PMIx, stored values of a job
// started by hand, announcements of shared memory, and the environment of a job started by hand.
#include <memory>
#include <string>

#include "fuzz/parsers/input.h"
#include "hand_environment.h"
#include "job_values.h"
#include "shared_fetch.h"

namespace lintel::fuzz {
namespace {

void read_environment(Input& input) {
  constexpr const char* variables[] = {"PTL_MY_RID", "PTL_MY_JID", "PTL_WAIT_S", "PTL_NIDMAP",
                                       "PTL_PIDMAP"};
  for (const char* variable : variables) {
    std::string text;
    for (const std::byte byte : input.bytes(input.byte() % 64))
      if (byte != std::byte{0}) text += static_cast<char>(byte);
    if (input.flag())
      setenv(variable, text.c_str(), 1);
    else
      unsetenv(variable);
  }
  HandEnvironment environment;
  if (!read_hand_environment(environment).empty()) return;
  const size_t processes = std::max(environment.nids.size(), environment.pids.size());
  if (environment.rank) FUZZ_CHECK(*environment.rank < processes);
}

void find_stored(Input& input) {
  StoredValues writer(256);
  if (input.flag()) {
    const std::vector<std::byte> value = input.bytes(input.byte());
    static_cast<void>(writer.add("key", value));
  }
  std::vector<std::byte> all(writer.values().begin(), writer.values().end());
  input.damage(all.data(), all.size(), 8);
  const std::vector<std::byte> more = input.bytes(input.left());
  all.insert(all.end(), more.begin(), more.end());
  const FoundValue found = find_value(all, "key");
  if (found.status != FoundValue::Status::found) return;
  FUZZ_CHECK(found.value.data() >= all.data());
  FUZZ_CHECK(found.value.data() + found.value.size() <= all.data() + all.size());
}

void read_identifiers_of(Input& input) {
  const std::vector<std::byte> bytes = input.bytes(input.left());
  Identifiers found;
  if (read_identifiers(bytes, found)) FUZZ_CHECK(bytes.size() == sizeof found);
}

void attach(Input& input) {
  constexpr uint32_t ranks = 40;
  const std::unique_ptr<SharedFetch> leader = SharedFetch::create(1, ranks);
  FUZZ_CHECK(leader != nullptr);
  std::vector<std::byte> announcement = leader->announcement();
  input.damage(announcement.data(), announcement.size(), 2);
  if (input.below(4) == 0) announcement.resize(input.byte());
  const uint32_t wanted = input.below(8) == 0 ? input.take<uint32_t>() % 100'000 : ranks;
  const std::unique_ptr<SharedFetch> other =
      SharedFetch::attach(announcement, 1 + input.below(2), wanted);
  if (other == nullptr) return;
  FUZZ_CHECK(wanted == ranks);
  // A process fetches parts outside the announced range alone. No other process runs, so one part
  // is fetched.
  const uint32_t part = input.flag() ? input.take<uint32_t>() : 0;
  const std::string why = other->run(part, 1, [&](uint32_t rank, ptl_process_t& id) {
    FUZZ_CHECK(rank < ranks);
    id.phys.pid = rank;
    return std::string();
  });
  FUZZ_CHECK(why.empty() && other->map()[ranks - 1].phys.pid == ranks - 1);
}

void read_place(Input& input) {
  const auto number = [&] { return input.flag() ? input.byte() % 16u : input.take<uint32_t>(); };
  JobPlace place;
  place.rank = number();
  place.size = number();
  place.local_rank = number();
  place.local_size = number();
  place.node_count = number();
  place.local_leader = number();
  if (!settle_place(place).empty()) return;
  FUZZ_CHECK(place.rank < place.size && place.local_rank < place.local_size &&
             place.local_size <= place.size && place.node_count >= 1 &&
             place.node_count <= place.size && place.local_leader <= place.rank);
}

}  // namespace
}  // namespace lintel::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lintel::fuzz;
  Input input(data, size);
  constexpr void (*readers[])(Input&) = {read_environment, find_stored, read_identifiers_of, attach,
                                         read_place};
  readers[input.below(std::size(readers))](input);
  return 0;
}
