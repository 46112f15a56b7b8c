// While a process opens its interface, another one connects to it. It connects to that one at once
// as well. The two sides may have chosen different transports.
#include <fcntl.h>
#include <portals4_lintel.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "../src/util/node_identity.h"
#include "support/interface.h"
#include "support/objects.h"
#include "support/ranks.h"

namespace lintel::test {
namespace {

constexpr ptl_pt_index_t pt_index = 4;
constexpr uint64_t puts = 60;
constexpr std::size_t longest = 20'000;

// Eager, in several frames, and by remote access where the transport has it.
std::size_t length_of(uint64_t number) {
  static constexpr std::size_t lengths[] = {8, 8, 3000, 8, longest, 8};
  return lengths[number % std::size(lengths)];
}

// While this object exists, no process creates a segment of shared memory. UDP is open by then.
class HeldDirectory {
 public:
  HeldDirectory() : descriptor_(open_directory()) { EXPECT_EQ(flock(descriptor_, LOCK_EX), 0); }
  ~HeldDirectory() { close(descriptor_); }
  HeldDirectory(const HeldDirectory&) = delete;
  HeldDirectory& operator=(const HeldDirectory&) = delete;

 private:
  static int open_directory() {
    const std::string path = "/dev/shm/lintel." + std::to_string(geteuid());
    return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  }
  int descriptor_;
};

// Whether a UDP socket of this node has the port of this process.
bool has_socket(ptl_process_t process) {
  char port[8];
  std::snprintf(port, sizeof port, ":%04X", port_of_pid(process.phys.pid));
  std::ifstream sockets("/proc/net/udp");
  std::string number;
  std::string local;
  for (std::string line; std::getline(sockets, line);) {
    std::istringstream words(line);
    if (words >> number >> local && local.ends_with(port)) return true;
  }
  return false;
}

// What one of the two processes sends to the other, and gets from it.
class Exchange {
 public:
  explicit Exchange(const Interface& interface)
      : events_(interface.handle(), 1024),
        ends_(interface.handle(), 1024),
        idle_(interface.handle()),
        received_(longest),
        sent_(longest),
        descriptor_(interface.handle(), sent_, PTL_MD_EVENT_SEND_DISABLE, ends_.handle()) {
    interface.allocate(pt_index, events_.handle());
    interface.append(pt_index,
                     {.start = received_.data(),
                      .length = longest,
                      .options = PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE});
  }
  void send(ptl_process_t to, uint64_t first, uint64_t count) {
    for (uint64_t i = first; i < first + count; ++i)
      must(PtlPut(descriptor_.handle(), 0, length_of(i), PTL_ACK_REQ, to, pt_index, 0, 0, nullptr,
                  i));
  }
  void get(ptl_process_t from) {
    must(PtlGet(descriptor_.handle(), 0, longest, from, pt_index, 0, 0, nullptr));
  }
  void poll() {
    ptl_event_t event;
    EXPECT_EQ(PtlEQGet(idle_.handle(), &event), PTL_EQ_EMPTY);
  }
  // All operations of this side have succeeded: the puts, and one get.
  void expect_ends() {
    for (uint64_t i = 0; i < puts + 1; ++i) {
      const ptl_event_t event = ends_.next();
      EXPECT_EQ(event.ni_fail_type, PTL_NI_OK) << i;
    }
    ends_.expect_empty();
  }
  // Each put of the other side arrived once, and the short ones in order.
  void expect_arrivals() {
    uint64_t last_short = 0;
    std::vector<unsigned> seen(puts);
    for (uint64_t arrived = 0; arrived < puts + 1;) {
      const ptl_event_t event = events_.next();
      ++arrived;
      if (event.type == PTL_EVENT_GET) continue;
      ASSERT_LT(event.hdr_data, puts);
      EXPECT_EQ(seen[event.hdr_data]++, 0u) << event.hdr_data;
      if (length_of(event.hdr_data) == longest) continue;
      EXPECT_GE(event.hdr_data, last_short);
      last_short = event.hdr_data;
    }
    events_.expect_empty();
  }

 private:
  EventQueue events_;
  EventQueue ends_;
  EventQueue idle_;
  std::vector<std::byte> received_;
  std::vector<std::byte> sent_;
  Descriptor descriptor_;
};

class StaggeredStartTest : public testing::TestWithParam<int> {};
// How often the late process polls before it sends.
INSTANTIATE_TEST_SUITE_P(Polls, StaggeredStartTest, testing::Values(0, 1, 5, 20, 50, 100));

// spec 2.7, 3.13.3
TEST_P(StaggeredStartTest, NothingIsLostOrReordered) {
  // Without a progress thread nothing arrives before the late process has allocated its portal
  // table entry.
  const RunOptions options{
      .environment = {{"PTL_TRANSPORT", "shm,udp"}, {"PTL_PROGRESS", "caller"}}};
  run_ranks(2, options, [&](Rank& rank) {
    constexpr int held = 0;
    constexpr int done = 1;
    const bool is_late = rank.index() == 1;
    rank.initialise();
    if (is_late) rank.await(0, held);
    const Interface interface(matching_physical, {.pid = rank.reserved_pid(rank.index())});
    ptl_process_t peer{};
    must(PtlGetPhysId(interface.handle(), &peer));
    peer.phys.pid = rank.reserved_pid(1 - rank.index());
    Exchange exchange(interface);
    if (is_late) {
      for (int i = 0; i < GetParam(); ++i) exchange.poll();
      exchange.send(peer, 0, puts);
    } else {
      {
        const HeldDirectory directory;
        rank.raise(held);
        rank.await_condition("waiting for the socket of the late process",
                             [&] { return has_socket(peer); });
        exchange.send(peer, 0, puts / 2);
      }
      exchange.send(peer, puts / 2, puts - puts / 2);
    }
    exchange.get(peer);
    exchange.expect_ends();
    exchange.expect_arrivals();
    ptl_lintel_path_t path{};
    must(PtlLintelGetPath(interface.handle(), peer, &path));
    EXPECT_STREQ(path.transport, "shm") << path.reason;
    rank.raise(done);
    while (rank.flag(1 - rank.index(), done) == 0) {
      rank.at("waiting for the other process", Place::current());
      exchange.poll();
    }
  });
}

}  // namespace
}  // namespace lintel::test
