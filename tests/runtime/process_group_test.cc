// Process groups of interfaces: PtlSetRank, PtlSetNIDMap, PtlSetPIDMap and their companions.
#include <portals4_runtime.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/interface.h"
#include "support/ranks.h"

namespace lintel::test {
namespace {

constexpr unsigned group_size = 3;
constexpr unsigned own_rank = 1;

struct Maps {
  std::vector<ptl_nid_t> nids;
  std::vector<ptl_pid_t> pids;
};

// Maps of a group in which this process has rank 1.
Maps maps_with(ptl_process_t own) {
  return {{own.phys.nid, own.phys.nid, own.phys.nid}, {501, own.phys.pid, 503}};
}

ptl_process_t own_id(ptl_handle_ni_t ni) {
  ptl_process_t id{};
  must(PtlGetPhysId(ni, &id));
  return id;
}

// The nid that an interface is going to have.
ptl_nid_t own_nid() {
  const Interface interface(nonmatching_physical, {});
  return own_id(interface.handle()).phys.nid;
}

void expect_group(ptl_handle_ni_t ni, const Maps& maps) {
  ptl_rid_t rank = 99;
  unsigned size = 99;
  must(PtlGetRank(ni, &rank, &size));
  EXPECT_EQ(rank, own_rank);
  EXPECT_EQ(size, group_size);
  for (unsigned i = 0; i < group_size; ++i) {
    ptl_process_id_t id{};
    must(PtlGetRankId(ni, i, &id));
    EXPECT_EQ(id.phys.nid, maps.nids[i]) << i;
    EXPECT_EQ(id.phys.pid, maps.pids[i]) << i;
  }
  ptl_process_id_t id{};
  EXPECT_EQ(PtlGetRankId(ni, group_size, &id), PTL_NO_INIT);
}

void set_group(ptl_handle_ni_t ni, const Maps& maps) {
  must(PtlSetRank(ni, own_rank, group_size));
  must(PtlSetNIDMap(ni, maps.nids.data(), group_size));
  must(PtlSetPIDMap(ni, maps.pids.data(), group_size));
}

class ProcessGroupTest : public testing::TestWithParam<InterfaceKind> {};
INSTANTIATE_TEST_SUITE_P(Kinds, ProcessGroupTest, testing::ValuesIn(all_interface_kinds),
                         [](const auto& info) { return info.param.name(); });

TEST_P(ProcessGroupTest, IsSetAfterTheInterface) {
  run_ranks(1, [&](Rank& rank) {
    rank.initialise();
    const Interface interface(GetParam(), {});
    const Maps maps = maps_with(own_id(interface.handle()));
    set_group(interface.handle(), maps);
    expect_group(interface.handle(), maps);
    ptl_size_t size = 0;
    // A logically addressed interface has this map.
    EXPECT_EQ(PtlGetMap(interface.handle(), 0, nullptr, &size),
              GetParam().logical ? PTL_OK : PTL_ARG_INVALID);
    if (GetParam().logical) {
      EXPECT_EQ(size, group_size);
      ptl_process_t id{};
      must(PtlGetId(interface.handle(), &id));
      EXPECT_EQ(id.rank, own_rank);
    }
  });
}

TEST_P(ProcessGroupTest, IsSetBeforeTheInterfaceAndGivesThePid) {
  run_ranks(1, [&](Rank& rank) {
    rank.initialise();
    const Maps maps{{own_nid(), own_nid(), own_nid()}, {501, rank.reserved_pid(0), 503}};
    set_group(PTL_INVALID_HANDLE, maps);
    const Interface interface(GetParam(), {});
    EXPECT_EQ(own_id(interface.handle()).phys.pid, rank.reserved_pid(0));
    expect_group(interface.handle(), maps);
    // The settings applied to the next interface only.
    const InterfaceKind other{!GetParam().matching, GetParam().logical};
    const Interface second(other, {});
    ptl_rid_t own = 0;
    unsigned size = 0;
    EXPECT_EQ(PtlGetRank(second.handle(), &own, &size), PTL_NO_INIT);
  });
}

TEST_P(ProcessGroupTest, WrongIdentifiersAreRefusedByPtlNIInit) {
  run_ranks(1, [&](Rank& rank) {
    rank.initialise();
    const ptl_nid_t nid = own_nid();
    const ptl_pid_t pid = rank.reserved_pid(0);
    must(PtlSetRank(PTL_INVALID_HANDLE, own_rank, group_size));
    const ptl_nid_t wrong_nids[] = {nid, nid + 1, nid};
    const ptl_pid_t pids[] = {501, pid, 503};
    must(PtlSetNIDMap(PTL_INVALID_HANDLE, wrong_nids, group_size));
    must(PtlSetPIDMap(PTL_INVALID_HANDLE, pids, group_size));
    ptl_handle_ni_t ni = PTL_INVALID_HANDLE;
    const auto open = [&](ptl_pid_t wanted) {
      return PtlNIInit(PTL_IFACE_DEFAULT, GetParam().options(), wanted, nullptr, nullptr, &ni);
    };
    EXPECT_EQ(open(rank.reserved_pid(1)), PTL_PID_INVALID);
    EXPECT_EQ(open(pid), PTL_FAIL) << "the nid differs";
    EXPECT_EQ(open(PTL_PID_ANY), PTL_FAIL) << "what was set stays for the next that succeeds";
  });
}

TEST_P(ProcessGroupTest, WrongIdentifiersAreRefusedAfterwards) {
  run_ranks(1, [&](Rank& rank) {
    rank.initialise();
    const Interface interface(GetParam(), {});
    const ptl_handle_ni_t ni = interface.handle();
    const Maps maps = maps_with(own_id(ni));
    must(PtlSetRank(ni, own_rank, group_size));
    std::vector<ptl_nid_t> nids = maps.nids;
    nids[own_rank] += 1;
    EXPECT_EQ(PtlSetNIDMap(ni, nids.data(), group_size), PTL_FAIL);
    std::vector<ptl_pid_t> pids = maps.pids;
    pids[own_rank] += 1;
    EXPECT_EQ(PtlSetPIDMap(ni, pids.data(), group_size), PTL_PID_INVALID);
    // The caller is responsible for the other entries.
    nids = maps.nids;
    nids[0] += 1;
    must(PtlSetNIDMap(ni, nids.data(), group_size));
    must(PtlSetPIDMap(ni, maps.pids.data(), group_size));
  });
}

TEST_P(ProcessGroupTest, EachIsSetOnce) {
  run_ranks(1, [&](Rank& rank) {
    rank.initialise();
    const Interface interface(GetParam(), {});
    const ptl_handle_ni_t ni = interface.handle();
    const Maps maps = maps_with(own_id(ni));
    set_group(ni, maps);
    EXPECT_EQ(PtlSetRank(ni, own_rank, group_size), PTL_FAIL);
    EXPECT_EQ(PtlSetNIDMap(ni, maps.nids.data(), group_size), PTL_FAIL);
    EXPECT_EQ(PtlSetPIDMap(ni, maps.pids.data(), group_size), PTL_PID_INVALID);
    expect_group(ni, maps);
  });
}

TEST(ProcessGroup, CodesOfBadCalls) {
  run_ranks(1, [](Rank& rank) {
    ptl_nid_t nid = 1;
    ptl_pid_t pid = 1;
    ptl_rid_t number = 0;
    unsigned size = 0;
    ptl_process_id_t id{};
    ptl_jid_t job = 0;
    EXPECT_EQ(PtlSetJID(1), PTL_NO_INIT);
    EXPECT_EQ(PtlGetJID(&job), PTL_NO_INIT);
    EXPECT_EQ(PtlSetRank(PTL_INVALID_HANDLE, 0, 1), PTL_NO_INIT);
    EXPECT_EQ(PtlSetNIDMap(PTL_INVALID_HANDLE, &nid, 1), PTL_NO_INIT);
    EXPECT_EQ(PtlSetPIDMap(PTL_INVALID_HANDLE, &pid, 1), PTL_NO_INIT);
    rank.initialise();
    EXPECT_EQ(PtlSetNIDMap(PTL_INVALID_HANDLE, &nid, 1), PTL_NO_INIT) << "PtlSetRank comes first";
    EXPECT_EQ(PtlSetPIDMap(PTL_INVALID_HANDLE, &pid, 1), PTL_NO_INIT);
    const Interface interface(matching_logical, {});
    const ptl_handle_ni_t ni = interface.handle();
    EXPECT_EQ(PtlGetRank(ni, &number, &size), PTL_NO_INIT);
    EXPECT_EQ(PtlGetRankId(ni, 0, &id), PTL_NO_INIT);
    EXPECT_EQ(PtlSetNIDMap(ni, &nid, 1), PTL_NO_INIT);
    for (const ptl_handle_ni_t wrong : {ni + 1, PTL_EQ_NONE, ptl_handle_ni_t{0}}) {
      EXPECT_EQ(PtlSetRank(wrong, 0, 1), PTL_NI_INVALID);
      EXPECT_EQ(PtlSetNIDMap(wrong, &nid, 1), PTL_NI_INVALID);
      EXPECT_EQ(PtlSetPIDMap(wrong, &pid, 1), PTL_NI_INVALID);
      EXPECT_EQ(PtlGetRank(wrong, &number, &size), PTL_NI_INVALID);
      EXPECT_EQ(PtlGetRankId(wrong, 0, &id), PTL_NI_INVALID);
    }
    EXPECT_EQ(PtlGetRank(PTL_INVALID_HANDLE, &number, &size), PTL_NI_INVALID);
    EXPECT_EQ(PtlSetRank(ni, 3, 3), PTL_ARG_INVALID) << "ranks are below the size";
    must(PtlSetRank(ni, 0, 2));
    EXPECT_EQ(PtlSetNIDMap(ni, nullptr, 2), PTL_ARG_INVALID);
    EXPECT_EQ(PtlSetNIDMap(ni, &nid, 1), PTL_FAIL) << "the map has the size of the group";
    EXPECT_EQ(PtlSetPIDMap(ni, &pid, 1), PTL_PID_INVALID);
    EXPECT_EQ(PtlGetRankId(ni, 0, &id), PTL_NO_INIT) << "there are no maps yet";
  });
}

TEST(ProcessGroup, EachInterfaceHasItsOwn) {
  run_ranks(1, [](Rank& rank) {
    rank.initialise();
    const Interface first(matching_logical, {});
    const Interface second(nonmatching_logical, {});
    const ptl_process_t own = own_id(first.handle());
    set_group(first.handle(), maps_with(own));
    must(PtlSetRank(second.handle(), 0, 1));
    must(PtlSetNIDMap(second.handle(), &own.phys.nid, 1));
    must(PtlSetPIDMap(second.handle(), &own.phys.pid, 1));
    expect_group(first.handle(), maps_with(own));
    ptl_rid_t number = 9;
    unsigned size = 9;
    must(PtlGetRank(second.handle(), &number, &size));
    EXPECT_EQ(number, 0u);
    EXPECT_EQ(size, 1u);
  });
}

TEST(ProcessGroup, GoesWithTheInterface) {
  run_ranks(1, [](Rank& rank) {
    rank.initialise();
    // Handles are reused after some time.
    for (int i = 0; i < 300; ++i) {
      const Interface interface(matching_physical, {});
      ptl_rid_t number = 0;
      unsigned size = 0;
      EXPECT_EQ(PtlGetRank(interface.handle(), &number, &size), PTL_NO_INIT);
      must(PtlSetRank(interface.handle(), 0, 1));
    }
  });
}

// spec 3.5: a forked child inherits nothing.
TEST(ProcessGroup, IsNotInherited) {
  run_ranks(1, [](Rank& rank) {
    rank.initialise();
    must(PtlSetRank(PTL_INVALID_HANDLE, 0, 1));
    EXPECT_EQ(run_child([] {
                if (PtlInit() != PTL_OK || PtlSetRank(PTL_INVALID_HANDLE, 0, 1) != PTL_OK) _exit(3);
                PtlFini();
              }),
              0);
  });
}

class EnvironmentGroup : public testing::Test {
 protected:
  // Runs `body` with the environment of rank 1 of three and the additional `changes`.
  static void run(const std::vector<std::pair<std::string, std::string>>& changes,
                  const std::function<void(const Maps&)>& body) {
    run_ranks(1, [&](Rank& rank) {
      rank.initialise();
      const ptl_nid_t nid = own_nid();
      const Maps maps{{nid, nid, nid}, {501, rank.reserved_pid(0), 503}};
      const std::string text = std::to_string(nid);
      setenv("PTL_MY_RID", "1", 1);
      setenv("PTL_NIDMAP", (text + ":" + text + ":" + text).c_str(), 1);
      setenv("PTL_PIDMAP", ("501:" + std::to_string(maps.pids[1]) + ":503").c_str(), 1);
      for (const auto& [name, value] : changes)
        value == "-" ? unsetenv(name.c_str()) : setenv(name.c_str(), value.c_str(), 1);
      body(maps);
    });
  }
  static int set(ptl_handle_ni_t ni) { return PtlSetRank(ni, static_cast<ptl_rid_t>(-1), -1u); }
};

TEST_F(EnvironmentGroup, BeforeTheInterface) {
  run({}, [](const Maps& maps) {
    must(set(PTL_INVALID_HANDLE));
    const Interface interface(matching_logical, {});
    expect_group(interface.handle(), maps);
    ptl_jid_t job = 0;
    must(PtlGetJID(&job));
    EXPECT_EQ(job, maps.pids[1]) << "the pid, since PTL_MY_JID is not set";
  });
}

TEST_F(EnvironmentGroup, AfterTheInterface) {
  run({{"PTL_MY_JID", "77"}}, [](const Maps& maps) {
    const Interface interface(nonmatching_logical, {.pid = maps.pids[1]});
    must(set(interface.handle()));
    expect_group(interface.handle(), maps);
    ptl_jid_t job = 0;
    must(PtlGetJID(&job));
    EXPECT_EQ(job, 77u);
    must(PtlSetJID(78));
    must(PtlGetJID(&job));
    EXPECT_EQ(job, 78u);
    EXPECT_EQ(set(interface.handle()), PTL_FAIL) << "it is set already";
  });
}

TEST_F(EnvironmentGroup, OtherIdentifiersAreRefused) {
  run({}, [](const Maps& maps) {
    const Interface interface(matching_logical, {.pid = maps.pids[1] + 1});
    EXPECT_EQ(set(interface.handle()), PTL_PID_INVALID);
  });
  run({{"PTL_NIDMAP", "1:2:3"}}, [](const Maps& maps) {
    const Interface interface(matching_logical, {.pid = maps.pids[1]});
    EXPECT_EQ(set(interface.handle()), PTL_FAIL);
  });
}

TEST_F(EnvironmentGroup, WithoutARankThereIsNoGroup) {
  run({{"PTL_MY_RID", "-"}}, [](const Maps&) {
    const Interface interface(matching_logical, {});
    must(set(interface.handle()));
    ptl_rid_t rank = 0;
    unsigned size = 9;
    must(PtlGetRank(interface.handle(), &rank, &size));
    EXPECT_EQ(rank, static_cast<ptl_rid_t>(-1));
    EXPECT_EQ(size, 0u);
    ptl_process_id_t id{};
    EXPECT_EQ(PtlGetRankId(interface.handle(), 0, &id), PTL_NO_INIT);
  });
}

TEST_F(EnvironmentGroup, NonsenseIsRefused) {
  for (const auto& change :
       std::vector<std::pair<std::string, std::string>>{{"PTL_MY_RID", "3"},
                                                        {"PTL_MY_RID", "one"},
                                                        {"PTL_NIDMAP", "1:2"},
                                                        {"PTL_PIDMAP", "1::3"},
                                                        {"PTL_MY_JID", "4294967296"}})
    run({change}, [](const Maps&) { EXPECT_EQ(set(PTL_INVALID_HANDLE), PTL_FAIL); });
}

}  // namespace
}  // namespace lintel::test
