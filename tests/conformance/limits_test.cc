// The limits of an interface: default values and desired values. PtlNIInit returns limits, and a
// program can allocate exactly that many objects.
#include <climits>

#include <gtest/gtest.h>

#include "operations.h"

namespace lintel::test {
namespace {

class LimitsTest : public testing::TestWithParam<InterfaceKind> {};
INSTANTIATE_TEST_SUITE_P(Kinds, LimitsTest, testing::ValuesIn(all_interface_kinds),
                         [](const auto& info) { return info.param.name(); });

// What every interface provides for any desired limits (spec 3.6.1).
void expect_minimums(const ptl_ni_limits_t& limits) {
  EXPECT_GE(limits.max_pt_index, 249);
  EXPECT_GE(limits.max_waw_ordered_size, 64u);
  EXPECT_GE(limits.max_war_ordered_size, 8u);
  EXPECT_GE(limits.max_entries, 1);
  EXPECT_GE(limits.max_unexpected_headers, 1);
  EXPECT_GE(limits.max_mds, 1);
  EXPECT_GE(limits.max_eqs, 1);
  EXPECT_GE(limits.max_cts, 1);
  EXPECT_GE(limits.max_iovecs, 1);
  EXPECT_GE(limits.max_list_size, 1);
  EXPECT_GE(limits.max_triggered_ops, 1);
  EXPECT_GE(limits.max_msg_size, 1u);
  EXPECT_GE(limits.max_atomic_size, 8u);
  EXPECT_GE(limits.max_fetch_atomic_size, 8u);
}

void expect_ample(const ptl_ni_limits_t& limits) {
  expect_minimums(limits);
  EXPECT_GE(limits.max_entries, 1'000'000);
  EXPECT_GE(limits.max_list_size, 1'000'000);
  EXPECT_GE(limits.max_unexpected_headers, 1'000'000);
  EXPECT_GE(limits.max_triggered_ops, 100'000);
  EXPECT_GE(limits.max_mds, 1'000);
  EXPECT_GE(limits.max_cts, 1'000);
  EXPECT_GE(limits.max_eqs, 100);
  EXPECT_GE(limits.max_iovecs, 100);
  EXPECT_GE(limits.max_msg_size, ptl_size_t{2} << 30u);
  EXPECT_GE(limits.max_atomic_size, 512u);
  EXPECT_GE(limits.max_fetch_atomic_size, 512u);
  EXPECT_GE(limits.max_waw_ordered_size, 64u);
  EXPECT_GE(limits.max_war_ordered_size, 64u);
  EXPECT_GE(limits.max_volatile_size, 64u);
}

// spec 3.6.1, 3.6.2
TEST_P(LimitsTest, DefaultsAreAmple) {
  run_ranks(1, [&](Rank& rank) {
    const Interface interface(rank, GetParam());
    expect_ample(interface.limits());
    const unsigned known =
        PTL_TARGET_BIND_INACCESSIBLE | PTL_TOTAL_DATA_ORDERING | PTL_COHERENT_ATOMICS;
    EXPECT_EQ(interface.limits().features & ~known, 0u);
  });
}

// spec 3.6.2
TEST_P(LimitsTest, ActualMayBeLeftOut) {
  run_ranks(1, [&](Rank& rank) {
    rank.initialise();
    ptl_handle_ni_t handle = PTL_INVALID_HANDLE;
    must(
        PtlNIInit(PTL_IFACE_DEFAULT, GetParam().options(), PTL_PID_ANY, nullptr, nullptr, &handle));
    must(PtlNIFini(handle));
  });
}

// spec 3.6.2, 2.7.5
TEST_P(LimitsTest, WishesThatAreZeroOrTinyGiveTheMinimums) {
  run_ranks(1, [&](Rank& rank) {
    rank.initialise();
    ptl_ni_limits_t desired{};
    expect_minimums(Interface(GetParam(), {.desired = &desired}).limits());
    desired = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0};
    expect_minimums(Interface(GetParam(), {.desired = &desired}).limits());
    desired = {};
    desired.max_list_size = 100;
    expect_minimums(Interface(GetParam(), {.desired = &desired}).limits());
  });
}

// spec 3.6.2
TEST_P(LimitsTest, AbsurdWishesAreCutToSomethingTrue) {
  run_ranks(1, [&](Rank& rank) {
    rank.initialise();
    ptl_ni_limits_t desired{};
    desired.max_entries = desired.max_unexpected_headers = desired.max_mds = INT_MAX;
    desired.max_eqs = desired.max_cts = desired.max_pt_index = desired.max_iovecs = INT_MAX;
    desired.max_list_size = desired.max_triggered_ops = INT_MAX;
    for (const ptl_size_t size : {static_cast<ptl_size_t>(LONG_MAX), PTL_SIZE_MAX}) {
      desired.max_msg_size = desired.max_atomic_size = desired.max_fetch_atomic_size = size;
      desired.max_waw_ordered_size = desired.max_war_ordered_size = size;
      desired.max_volatile_size = size;
      desired.features = UINT_MAX;
      const Interface interface(GetParam(), {.desired = &desired});
      expect_ample(interface.limits());
      if (GetParam().logical) continue;
      // The interface works.
      const Counter counter(interface.handle());
      counter.add(1);
      counter.expect(1);
      const EventQueue events(interface.handle());
      const ptl_pt_index_t index = interface.allocate(PTL_PT_ANY, events.handle());
      interface.append(index, {});
      events.expect(PTL_EVENT_LINK);
    }
  });
}

// spec 3.6.2
TEST_P(LimitsTest, NegativeWishesDoNoHarm) {
  run_ranks(1, [&](Rank& rank) {
    rank.initialise();
    ptl_ni_limits_t desired{};
    desired.max_entries = desired.max_unexpected_headers = desired.max_mds = -1;
    desired.max_eqs = desired.max_cts = desired.max_pt_index = desired.max_iovecs = INT_MIN;
    desired.max_list_size = desired.max_triggered_ops = -5;
    ptl_ni_limits_t actual{};
    ptl_handle_ni_t handle = PTL_INVALID_HANDLE;
    const int code =
        PtlNIInit(PTL_IFACE_DEFAULT, GetParam().options(), PTL_PID_ANY, &desired, &actual, &handle);
    if (code == PTL_OK) {
      expect_minimums(actual);
    } else {
      EXPECT_EQ(code, PTL_ARG_INVALID);
    }
  });
}

// spec 3.6, 3.6.1
TEST_P(LimitsTest, AreIndependentBetweenLogicalInterfaces) {
  run_ranks(1, [&](Rank& rank) {
    rank.initialise();
    ptl_ni_limits_t desired{};
    desired.max_cts = 20;
    Interface small(GetParam(), {.desired = &desired});
    small.exchange(rank);
    InterfaceKind kind = GetParam();
    kind.matching = !kind.matching;
    Interface other(kind, {});
    other.exchange(rank);
    for (int i = 0; i < small.limits().max_cts; ++i) Counter{small.handle()};
    ptl_handle_ct_t counter = PTL_INVALID_HANDLE;
    EXPECT_EQ(PTL_NO_SPACE, PtlCTAlloc(small.handle(), &counter));
    must(PtlCTAlloc(other.handle(), &counter));
  });
}

// Allocates with `allocate` up to the limit and checks that one more is refused with `refusal`.
// After one has been freed with `release`, one more can be allocated.
void expect_enforced(int limit, int wished, int refusal,
                     const std::function<int(ptl_handle_any_t*)>& allocate,
                     const std::function<int(ptl_handle_any_t)>& release) {
  ASSERT_GE(limit, 1);
  ASSERT_LE(limit, 1'100'000) << "a desired limit of " << wished << " has been ignored";
  std::vector<ptl_handle_any_t> handles(static_cast<std::size_t>(limit));
  for (ptl_handle_any_t& handle : handles) must(allocate(&handle));
  for (int repetition = 0; repetition < 3; ++repetition) {
    ptl_handle_any_t extra = PTL_INVALID_HANDLE;
    EXPECT_EQ(return_code_name(allocate(&extra)), return_code_name(refusal));
    must(release(handles[handles.size() / 2]));
    must(allocate(&handles[handles.size() / 2]));
  }
  for (const ptl_handle_any_t handle : handles) must(release(handle));
  for (ptl_handle_any_t& handle : handles) must(allocate(&handle));
}

constexpr int wished = 30;

// spec 3.6.1, 3.6.2, 3.10.3, 3.13.5, 3.14.2
TEST_P(LimitsTest, DescriptorsQueuesAndCountersAreLimited) {
  run_ranks(1, [&](Rank& rank) {
    ptl_ni_limits_t desired{};
    desired.max_mds = desired.max_eqs = desired.max_cts = wished;
    const Interface interface(rank, GetParam(), {.desired = &desired});
    const ptl_handle_ni_t ni = interface.handle();
    const ptl_md_t md{nullptr, 0, 0, PTL_EQ_NONE, PTL_CT_NONE};
    expect_enforced(
        interface.limits().max_mds, wished, PTL_NO_SPACE,
        [&](ptl_handle_any_t* handle) { return PtlMDBind(ni, &md, handle); }, PtlMDRelease);
    expect_enforced(
        interface.limits().max_eqs, wished, PTL_NO_SPACE,
        [&](ptl_handle_any_t* handle) { return PtlEQAlloc(ni, 4, handle); }, PtlEQFree);
    expect_enforced(
        interface.limits().max_cts, wished, PTL_NO_SPACE,
        [&](ptl_handle_any_t* handle) { return PtlCTAlloc(ni, handle); }, PtlCTFree);
  });
}

// spec 3.6.1, 3.11.2, 3.12.2
TEST_P(LimitsTest, ListsAreLimitedInLength) {
  run_ranks(1, [&](Rank& rank) {
    ptl_ni_limits_t desired{};
    desired.max_list_size = wished;
    const Interface interface(rank, GetParam(), {.desired = &desired});
    const ptl_pt_index_t index = interface.allocate(PTL_PT_ANY);
    expect_enforced(
        interface.limits().max_list_size, wished, PTL_LIST_TOO_LONG,
        [&](ptl_handle_any_t* handle) {
          return interface.try_append(index, {}, PTL_PRIORITY_LIST, nullptr, handle);
        },
        [&](ptl_handle_any_t handle) { return interface.unlink(handle); });
    // Another portal table entry has a list of its own.
    const ptl_pt_index_t other = interface.allocate(PTL_PT_ANY);
    interface.append(other, {});
  });
}

// spec 3.6.1, 3.11.2, 3.12.2
TEST_P(LimitsTest, EntriesAreLimitedInAll) {
  run_ranks(1, [&](Rank& rank) {
    ptl_ni_limits_t desired{};
    desired.max_entries = wished;
    const Interface interface(rank, GetParam(), {.desired = &desired});
    ptl_pt_index_t index = 0;
    for (int i = 0; i < 4; ++i)
      must(PtlPTAlloc(interface.handle(), 0, PTL_EQ_NONE, static_cast<ptl_pt_index_t>(i), &index));
    unsigned turn = 0;
    expect_enforced(
        interface.limits().max_entries, wished, PTL_NO_SPACE,
        [&](ptl_handle_any_t* handle) {
          ++turn;
          return interface.try_append(
              turn % 4, {}, turn % 3 == 0 ? PTL_OVERFLOW_LIST : PTL_PRIORITY_LIST, nullptr, handle);
        },
        [&](ptl_handle_any_t handle) { return interface.unlink(handle); });
  });
}

// spec 3.6.1, 3.11.2, 3.12.2
TEST_P(LimitsTest, EntriesUsedUpAtOnePortalTableEntryServeAnother) {
  run_ranks(1, [&](Rank& rank) {
    ptl_ni_limits_t desired{};
    desired.max_entries = wished;
    const Interface interface(rank, GetParam(), {.desired = &desired});
    const EventQueue events(interface.handle());
    const Descriptor nothing(interface.handle(), std::span<std::byte>{});
    const int most = interface.limits().max_entries;
    const ptl_pt_index_t indexes[] = {interface.allocate(PTL_PT_ANY, events.handle()),
                                      interface.allocate(PTL_PT_ANY, events.handle())};
    const EntrySpec spec{.options = PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_EVENT_LINK_DISABLE |
                                    PTL_ME_EVENT_UNLINK_DISABLE};
    ptl_handle_any_t handle = PTL_INVALID_HANDLE;
    for (int round = 0; round < 3; ++round) {
      for (const ptl_pt_index_t index : indexes) {
        for (int i = 0; i < most; ++i) interface.append(index, spec);
        EXPECT_EQ(PTL_NO_SPACE, interface.try_append(indexes[round % 2], spec, PTL_PRIORITY_LIST,
                                                     nullptr, &handle));
        for (int i = 0; i < most; ++i) {
          must(PtlPut(nothing.handle(), 0, 0, PTL_NO_ACK_REQ, interface.address(0), index, 0, 0,
                      nullptr, 0));
          events.expect(PTL_EVENT_PUT);
        }
      }
    }
  });
}

// spec 3.6.1, 3.10.3, 3.11.2, 3.12.2
TEST_P(LimitsTest, ScatterListsAreLimitedInLength) {
  run_ranks(1, [&](Rank& rank) {
    ptl_ni_limits_t desired{};
    desired.max_iovecs = wished;
    const Interface interface(rank, GetParam(), {.desired = &desired});
    const auto longest = static_cast<std::size_t>(interface.limits().max_iovecs);
    ASSERT_LE(longest, 1'100'000u) << "a desired limit of 30 has been ignored";
    std::vector<ptl_iovec_t> pieces(longest + 1);
    ptl_md_t md{pieces.data(), longest, PTL_IOVEC, PTL_EQ_NONE, PTL_CT_NONE};
    ptl_handle_any_t handle = PTL_INVALID_HANDLE;
    must(PtlMDBind(interface.handle(), &md, &handle));
    md.length = longest + 1;
    EXPECT_EQ(PTL_ARG_INVALID, PtlMDBind(interface.handle(), &md, &handle));
    const ptl_pt_index_t index = interface.allocate(PTL_PT_ANY);
    EntrySpec spec{.start = pieces.data(), .length = longest, .options = PTL_IOVEC};
    interface.append(index, spec);
    spec.length = longest + 1;
    EXPECT_EQ(PTL_ARG_INVALID,
              interface.try_append(index, spec, PTL_PRIORITY_LIST, nullptr, &handle));
  });
}

// spec 3.6.1, 3.11, 3.12
TEST_P(LimitsTest, AMillionEntriesAndHeadersAreThere) {
  run_ranks(1, {.environment = {}, .deadline = 2 * test_deadline}, [&](Rank& rank) {
#ifdef __SANITIZE_THREAD__
    constexpr uintptr_t million = 1'000'000 / 10;  // takes a minute even so
#else
    constexpr uintptr_t million = 1'000'000;
#endif
    const Interface interface(rank, GetParam());
    const EventQueue events(interface.handle());
    const Counter acks(interface.handle());
    const ptl_pt_index_t index = interface.allocate(PTL_PT_ANY, events.handle());
    const Descriptor nothing(interface.handle(), std::span<std::byte>{}, PTL_MD_EVENT_CT_ACK,
                             PTL_EQ_NONE, acks.handle());
    const auto put = [&](uintptr_t number) {
      must(PtlPut(nothing.handle(), 0, 0, PTL_CT_ACK_REQ, interface.address(0), index, number, 0,
                  nullptr, number));
    };
    // A million headers. The entry matches the last one; without matching it takes the first.
    interface.append(
        index,
        {.options = PTL_ME_OP_PUT | PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_LINK_DISABLE,
         .ignore_bits = ~ptl_match_bits_t{0}},
        PTL_OVERFLOW_LIST);
    const uintptr_t headers = million - 1;
    for (uintptr_t i = 0; i < headers; ++i) put(i);
    acks.expect(headers);
    EntrySpec spec{.options = PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_EVENT_LINK_DISABLE |
                              PTL_ME_EVENT_UNLINK_DISABLE};
    spec.match_bits = headers - 1;
    interface.append(index, spec);
    EXPECT_EQ(events.expect(PTL_EVENT_PUT_OVERFLOW).hdr_data,
              GetParam().matching ? headers - 1 : 0);
    must(interface.search(index,
                          {.options = PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_OVER_DISABLE,
                           .ignore_bits = ~ptl_match_bits_t{0}},
                          PTL_SEARCH_DELETE, nullptr));
    // Nearly a million entries. The last one matches the message; without matching the first takes
    // it.
    for (uintptr_t i = 0; i < headers; ++i) {
      spec.match_bits = i;
      interface.append(index, spec, PTL_PRIORITY_LIST, tag(i));
    }
    put(headers - 1);
    EXPECT_EQ(events.expect(PTL_EVENT_PUT).user_ptr, tag(GetParam().matching ? headers - 1 : 0));
  });
}

// spec 3.6.1, 3.15.2, 3.15.3
TEST_P(LimitsTest, MessagesAreLimitedInLength) {
  run_ranks(1, [&](Rank& rank) {
    ptl_ni_limits_t desired{};
    desired.max_msg_size = 1 << 20;
    const Interface interface(rank, GetParam(), {.desired = &desired});
    const ptl_size_t longest = interface.limits().max_msg_size;
    ASSERT_LT(longest, PTL_SIZE_MAX);
    const Descriptor everything(interface.handle(),
                                {nullptr, PTL_SIZE_MAX, 0, PTL_EQ_NONE, PTL_CT_NONE});
    EXPECT_EQ(PTL_ARG_INVALID, PtlPut(everything.handle(), 0, longest + 1, PTL_NO_ACK_REQ,
                                      interface.address(0), 0, 0, 0, nullptr, 0));
    EXPECT_EQ(PTL_ARG_INVALID,
              PtlGet(everything.handle(), 0, longest + 1, interface.address(0), 0, 0, 0, nullptr));
  });
}

}  // namespace
}  // namespace lintel::test
