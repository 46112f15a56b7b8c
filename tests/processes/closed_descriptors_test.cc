// Programs that have closed standard input, output and error, as daemons do.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

#include <gtest/gtest.h>

#include "support/interface.h"
#include "support/memory.h"
#include "support/objects.h"
#include "support/ranks.h"
#include "support/text.h"

namespace lintel::test {
namespace {

constexpr ptl_pt_index_t pt_index = 4;
constexpr int standard[] = {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO};

// Rank 0 puts payloads of all ways to rank 1, which compares them.
void exchange(Rank& rank) {
  constexpr std::size_t lengths[] = {8, 4000, 300'000};
  std::vector<std::byte> memory(lengths[2]);
  const Interface interface(rank, matching_physical);
  for (const int number : standard)
    EXPECT_LT(fcntl(number, F_GETFD), 0) << "the library took descriptor " << number;
  const EventQueue events(interface.handle());
  interface.allocate(pt_index, events.handle());
  interface.append(pt_index, {.start = memory.data(),
                              .length = memory.size(),
                              .options = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE});
  const Descriptor source(interface.handle(), memory, PTL_MD_EVENT_SEND_DISABLE, events.handle());
  uint32_t round = 0;
  for (const std::size_t length : lengths) {
    if (rank.index() == 0) fill(memory, ++round);
    rank.barrier();
    if (rank.index() == 0) {
      must(PtlPut(source.handle(), 0, length, PTL_ACK_REQ, interface.address(1), pt_index, 0, 0,
                  nullptr, 0));
      EXPECT_EQ(events.expect(PTL_EVENT_ACK).mlength, length);
    } else {
      EXPECT_EQ(events.expect(PTL_EVENT_PUT).mlength, length);
      expect_pattern(std::span(memory).subspan(0, length), ++round);
    }
    // A line of the log about each handle: the text must not go into a socket or a pipe.
    EXPECT_NE(PtlMDRelease(PTL_INVALID_HANDLE), PTL_OK);
  }
  rank.barrier();
}

// spec 3.5.1
TEST(ClosedDescriptorsTest, AreNotTakenByTheLibrary) {
  run_ranks(2, [](Rank& rank) {
    setenv("PTL_LOG_LEVEL", "trace", 1);
    for (const int number : standard) close(number);
    exchange(rank);
  });
}

// The statistics, too, go nowhere, or into a file that its owner can read under any umask.
// spec 3.5.1
TEST(ClosedDescriptorsTest, StatisticsGoIntoTheirFileOnly) {
  for (const bool named : {false, true}) {
    char path[] = "/tmp/lintel-test-XXXXXX";
    ASSERT_NE(mkdtemp(path), nullptr);
    const std::string file = std::string(path) + "/statistics";
    run_ranks(2, [&](Rank& rank) {
      setenv("PTL_STATS", named ? ("file:" + file).c_str() : "1", 1);
      if (rank.index() == 0) umask(0777);
      for (const int number : standard) close(number);
      {
        const Interface interface(rank, matching_physical);
        // A thread of the library has such a number for a moment when it opens a file.
        for (const int number : standard)
          rank.await_condition("the number to be free", [number] {
            const int taken = memfd_create("of the program", MFD_CLOEXEC);
            if (taken != number) close(taken);
            return taken == number;
          });
      }
      EXPECT_EQ(lseek(STDERR_FILENO, 0, SEEK_END), 0) << "it is not the program's standard error";
      rank.barrier();
    });
    struct stat status {};
    EXPECT_EQ(stat(file.c_str(), &status) == 0, named);
    if (named) {
      EXPECT_EQ(status.st_mode & S_IRWXU, static_cast<mode_t>(S_IRUSR | S_IWUSR));
    }
    unlink(file.c_str());
    rmdir(path);
  }
}

}  // namespace
}  // namespace lintel::test
