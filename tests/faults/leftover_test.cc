// Files of processes in /dev/shm: they are short, and do not remain.
#include <filesystem>

#include <gtest/gtest.h>

#include "support/interface.h"
#include "support/objects.h"
#include "support/ranks.h"
#include "support/text.h"

namespace lintel::test {
namespace {

namespace fs = std::filesystem;

// Segments of this Portals pid: files <nid>.<pid>.<number> in the user's private directory.
std::vector<fs::path> segments_of(ptl_pid_t pid) {
  std::vector<fs::path> found;
  const std::string part = "." + std::to_string(pid) + ".";
  std::error_code none;
  const fs::path directory = "/dev/shm/lintel." + std::to_string(geteuid());
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, none)) {
    if (entry.path().filename().string().find(part) == 8) found.push_back(entry.path());
  }
  return found;
}

// spec 3.6.3, 3.5.2
TEST(LeftoverTest, AnOrderlyEndLeavesNothing) {
  run_ranks(1, [](Rank& rank) {
    const ptl_pid_t pid = rank.reserved_pid(4);
    rank.initialise();
    {
      const Interface interface(matching_physical, {.pid = pid});
      EXPECT_FALSE(segments_of(pid).empty()) << "this test looks for the wrong names";
    }
    rank.finalise();
    EXPECT_TRUE(segments_of(pid).empty());
  });
}

// spec 3.6.2
TEST(LeftoverTest, AProcessKeepsAtMostSixteenMebibytesThere) {
  run_ranks(6, [](Rank& rank) {
    const ptl_pid_t pid = rank.reserved_pid(9 + rank.index());
    const Interface interface(rank, matching_physical, {.pid = pid});
    const EventQueue events(interface.handle());
    ptl_pt_index_t index = 0;
    must(PtlPTAlloc(interface.handle(), 0, events.handle(), 2, &index));
    interface.append(2, {.options = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE});
    rank.barrier();
    const Descriptor nothing(interface.handle(), std::span<std::byte>{});
    for (int to = 0; to < rank.count(); ++to) {
      must(PtlPut(nothing.handle(), 0, 0, PTL_NO_ACK_REQ, interface.address(to), 2, 0, 0, nullptr,
                  0));
    }
    for (int from = 0; from < rank.count(); ++from) events.expect(PTL_EVENT_PUT);
    std::uintmax_t bytes = 0;
    for (const fs::path& segment : segments_of(pid)) bytes += fs::file_size(segment);
    EXPECT_GT(bytes, 0u);
    EXPECT_LE(bytes, 16u << 20u) << "whatever the number of peers";
    rank.barrier();
  });
}

}  // namespace
}  // namespace lintel::test
