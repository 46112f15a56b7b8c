// Every function with every kind of wrong handle.
#include <array>
#include <functional>

#include <gtest/gtest.h>

#include "support/interface.h"
#include "support/objects.h"
#include "support/ranks.h"
#include "support/text.h"

namespace lintel::test {
namespace {

enum class HandleType { interface, descriptor, entry, queue, counter };

// A function and the type of one handle argument; its other arguments are valid.
struct Call {
  const char* name;
  HandleType type;
  std::function<int(ptl_handle_any_t)> call;
};

// One object of each type on one interface, and the other arguments of the calls.
struct Objects {
  explicit Objects(const Interface& owner)
      : interface(&owner),
        queue(owner.handle()),
        counter(owner.handle()),
        descriptor(owner.handle(), memory) {
    must(PtlPTAlloc(owner.handle(), 0, queue.handle(), PTL_PT_ANY, &portal));
    entry = owner.append(portal, {.options = PTL_ME_EVENT_LINK_DISABLE});
  }

  [[nodiscard]] ptl_handle_any_t of(HandleType type) const {
    switch (type) {
      case HandleType::interface:
        return interface->handle();
      case HandleType::descriptor:
        return descriptor.handle();
      case HandleType::entry:
        return entry;
      case HandleType::queue:
        return queue.handle();
      case HandleType::counter:
        return counter.handle();
    }
    return PTL_INVALID_HANDLE;
  }

  const Interface* interface;
  std::array<std::byte, 64> memory{};
  EventQueue queue;
  Counter counter;
  Descriptor descriptor;
  ptl_pt_index_t portal = 0;
  ptl_handle_any_t entry = PTL_INVALID_HANDLE;
};

constexpr HandleType all_types[] = {HandleType::interface, HandleType::descriptor,
                                    HandleType::entry, HandleType::queue, HandleType::counter};

// Outputs that are not checked.
struct Outputs {
  ptl_handle_any_t handle = PTL_INVALID_HANDLE;
  ptl_sr_value_t status = 0;
  ptl_process_t id{};
  ptl_size_t size = 0;
  ptl_pt_index_t index = 0;
  ptl_uid_t uid = 0;
  unsigned which = 0;
  ptl_event_t event{};
  ptl_ct_event_t count{};
};

std::vector<Call> interface_calls(const Objects& o, Outputs& out) {
  const HandleType type = HandleType::interface;
  static const ptl_me_t me = [] {
    ptl_me_t entry{};
    entry.ct_handle = PTL_CT_NONE;
    entry.uid = PTL_UID_ANY;
    return entry;
  }();
  static const ptl_le_t le{nullptr, 0, PTL_CT_NONE, PTL_UID_ANY, 0};
  static const ptl_md_t md{nullptr, 0, 0, PTL_EQ_NONE, PTL_CT_NONE};
  using H = ptl_handle_any_t;
  return {
      {"PtlNIFini", type, [](H h) { return PtlNIFini(h); }},
      {"PtlNIStatus", type, [&](H h) { return PtlNIStatus(h, PTL_SR_DROP_COUNT, &out.status); }},
      {"PtlSetMap", type, [&](H h) { return PtlSetMap(h, 1, &out.id); }},
      {"PtlGetMap", type, [&](H h) { return PtlGetMap(h, 1, &out.id, &out.size); }},
      {"PtlPTAlloc", type,
       [&](H h) { return PtlPTAlloc(h, 0, PTL_EQ_NONE, PTL_PT_ANY, &out.index); }},
      {"PtlPTFree", type, [&](H h) { return PtlPTFree(h, o.portal); }},
      {"PtlPTDisable", type, [&](H h) { return PtlPTDisable(h, o.portal); }},
      {"PtlPTEnable", type, [&](H h) { return PtlPTEnable(h, o.portal); }},
      {"PtlGetUid", type, [&](H h) { return PtlGetUid(h, &out.uid); }},
      {"PtlGetId", type, [&](H h) { return PtlGetId(h, &out.id); }},
      {"PtlGetPhysId", type, [&](H h) { return PtlGetPhysId(h, &out.id); }},
      {"PtlMDBind", type, [&](H h) { return PtlMDBind(h, &md, &out.handle); }},
      {"PtlLEAppend", type,
       [&](H h) { return PtlLEAppend(h, o.portal, &le, PTL_PRIORITY_LIST, nullptr, &out.handle); }},
      {"PtlLESearch", type,
       [&](H h) { return PtlLESearch(h, o.portal, &le, PTL_SEARCH_ONLY, nullptr); }},
      {"PtlMEAppend", type,
       [&](H h) { return PtlMEAppend(h, o.portal, &me, PTL_PRIORITY_LIST, nullptr, &out.handle); }},
      {"PtlMESearch", type,
       [&](H h) { return PtlMESearch(h, o.portal, &me, PTL_SEARCH_ONLY, nullptr); }},
      {"PtlEQAlloc", type, [&](H h) { return PtlEQAlloc(h, 4, &out.handle); }},
      {"PtlCTAlloc", type, [&](H h) { return PtlCTAlloc(h, &out.handle); }},
      {"PtlStartBundle", type, [](H h) { return PtlStartBundle(h); }},
      {"PtlEndBundle", type, [](H h) { return PtlEndBundle(h); }},
  };
}

std::vector<Call> object_calls(Outputs& out) {
  static const ptl_size_t test = 0;
  using H = ptl_handle_any_t;
  return {
      {"PtlMDRelease", HandleType::descriptor, [](H h) { return PtlMDRelease(h); }},
      {"PtlEQFree", HandleType::queue, [](H h) { return PtlEQFree(h); }},
      {"PtlEQGet", HandleType::queue, [&](H h) { return PtlEQGet(h, &out.event); }},
      {"PtlEQWait", HandleType::queue, [&](H h) { return PtlEQWait(h, &out.event); }},
      {"PtlEQPoll", HandleType::queue,
       [&](H h) { return PtlEQPoll(&h, 1, 0, &out.event, &out.which); }},
      {"PtlCTFree", HandleType::counter, [](H h) { return PtlCTFree(h); }},
      {"PtlCTCancelTriggered", HandleType::counter, [](H h) { return PtlCTCancelTriggered(h); }},
      {"PtlCTGet", HandleType::counter, [&](H h) { return PtlCTGet(h, &out.count); }},
      {"PtlCTWait", HandleType::counter, [&](H h) { return PtlCTWait(h, 0, &out.count); }},
      {"PtlCTPoll", HandleType::counter,
       [&](H h) { return PtlCTPoll(&h, &test, 1, 0, &out.count, &out.which); }},
      {"PtlCTSet", HandleType::counter,
       [](H h) {
         return PtlCTSet(h, {1, 0});
       }},
      {"PtlCTInc", HandleType::counter,
       [](H h) {
         return PtlCTInc(h, {1, 0});
       }},
  };
}

std::vector<Call> movement_calls(const Objects& o) {
  const ptl_process_t id = o.interface->address(0);
  const ptl_handle_md_t md = o.descriptor.handle();
  const ptl_handle_ct_t ct = o.counter.handle();
  const ptl_pt_index_t pt = o.portal;
  const auto D = HandleType::descriptor;
  const auto C = HandleType::counter;
  using H = ptl_handle_any_t;
  const auto fetch = [=](H get, H put) {
    return PtlFetchAtomic(get, 0, put, 8, 8, id, pt, 0, 0, nullptr, 0, PTL_SUM, PTL_INT64_T);
  };
  const auto swap = [=](H get, H put) {
    return PtlSwap(get, 0, put, 8, 8, id, pt, 0, 0, nullptr, 0, nullptr, PTL_SWAP, PTL_INT64_T);
  };
  const auto trig_put = [=](H h, H c) {
    return PtlTriggeredPut(h, 0, 8, PTL_NO_ACK_REQ, id, pt, 0, 0, nullptr, 0, c, 9);
  };
  const auto trig_get = [=](H h, H c) {
    return PtlTriggeredGet(h, 0, 8, id, pt, 0, 0, nullptr, c, 9);
  };
  const auto trig_atomic = [=](H h, H c) {
    return PtlTriggeredAtomic(h, 0, 8, PTL_NO_ACK_REQ, id, pt, 0, 0, nullptr, 0, PTL_SUM,
                              PTL_INT64_T, c, 9);
  };
  const auto trig_fetch = [=](H get, H put, H c) {
    return PtlTriggeredFetchAtomic(get, 0, put, 8, 8, id, pt, 0, 0, nullptr, 0, PTL_SUM,
                                   PTL_INT64_T, c, 9);
  };
  const auto trig_swap = [=](H get, H put, H c) {
    return PtlTriggeredSwap(get, 0, put, 8, 8, id, pt, 0, 0, nullptr, 0, nullptr, PTL_SWAP,
                            PTL_INT64_T, c, 9);
  };
  return {
      {"PtlPut", D, [=](H h) { return PtlPut(h, 0, 8, PTL_NO_ACK_REQ, id, pt, 0, 0, nullptr, 0); }},
      {"PtlGet", D, [=](H h) { return PtlGet(h, 0, 8, id, pt, 0, 0, nullptr); }},
      {"PtlAtomic", D,
       [=](H h) {
         return PtlAtomic(h, 0, 8, PTL_NO_ACK_REQ, id, pt, 0, 0, nullptr, 0, PTL_SUM, PTL_INT64_T);
       }},
      {"PtlFetchAtomic(get)", D, [=](H h) { return fetch(h, md); }},
      {"PtlFetchAtomic(put)", D, [=](H h) { return fetch(md, h); }},
      {"PtlSwap(get)", D, [=](H h) { return swap(h, md); }},
      {"PtlSwap(put)", D, [=](H h) { return swap(md, h); }},
      {"PtlTriggeredPut(md)", D, [=](H h) { return trig_put(h, ct); }},
      {"PtlTriggeredPut(ct)", C, [=](H h) { return trig_put(md, h); }},
      {"PtlTriggeredGet(md)", D, [=](H h) { return trig_get(h, ct); }},
      {"PtlTriggeredGet(ct)", C, [=](H h) { return trig_get(md, h); }},
      {"PtlTriggeredAtomic(md)", D, [=](H h) { return trig_atomic(h, ct); }},
      {"PtlTriggeredAtomic(ct)", C, [=](H h) { return trig_atomic(md, h); }},
      {"PtlTriggeredFetchAtomic(get)", D, [=](H h) { return trig_fetch(h, md, ct); }},
      {"PtlTriggeredFetchAtomic(put)", D, [=](H h) { return trig_fetch(md, h, ct); }},
      {"PtlTriggeredFetchAtomic(ct)", C, [=](H h) { return trig_fetch(md, md, h); }},
      {"PtlTriggeredSwap(get)", D, [=](H h) { return trig_swap(h, md, ct); }},
      {"PtlTriggeredSwap(put)", D, [=](H h) { return trig_swap(md, h, ct); }},
      {"PtlTriggeredSwap(ct)", C, [=](H h) { return trig_swap(md, md, h); }},
      {"PtlTriggeredCTInc(ct)", C,
       [=](H h) {
         return PtlTriggeredCTInc(h, {1, 0}, ct, 9);
       }},
      {"PtlTriggeredCTInc(trigger)", C,
       [=](H h) {
         return PtlTriggeredCTInc(ct, {1, 0}, h, 9);
       }},
      {"PtlTriggeredCTSet(ct)", C,
       [=](H h) {
         return PtlTriggeredCTSet(h, {1, 0}, ct, 9);
       }},
      {"PtlTriggeredCTSet(trigger)", C,
       [=](H h) {
         return PtlTriggeredCTSet(ct, {1, 0}, h, 9);
       }},
  };
}

std::vector<Call> all_calls(const Objects& objects, Outputs& out) {
  std::vector<Call> calls = interface_calls(objects, out);
  for (std::vector<Call>& more : std::array{object_calls(out), movement_calls(objects)})
    calls.insert(calls.end(), more.begin(), more.end());
  return calls;
}

class BadHandlesTest : public testing::TestWithParam<InterfaceKind> {};
INSTANTIATE_TEST_SUITE_P(Kinds, BadHandlesTest, testing::ValuesIn(all_interface_kinds),
                         [](const auto& info) { return info.param.name(); });

// spec 3.3.2, 3.4, 3.19
TEST_P(BadHandlesTest, HandlesOfAnotherTypeAreRefused) {
  run_ranks(1, [&](Rank& rank) {
    const Interface interface(rank, GetParam());
    const Objects objects(interface);
    Outputs out;
    for (const Call& call : all_calls(objects, out)) {
      for (const HandleType type : all_types) {
        if (type == call.type) continue;
        EXPECT_EQ(return_code_name(call.call(objects.of(type))), "PTL_ARG_INVALID")
            << call.name << " with a handle of type " << static_cast<int>(type);
      }
    }
    const auto unlink = [&](ptl_handle_any_t handle) { return interface.unlink(handle); };
    for (const HandleType type : all_types) {
      if (type == HandleType::entry) continue;
      EXPECT_EQ(PTL_ARG_INVALID, unlink(objects.of(type))) << static_cast<int>(type);
    }
  });
}

// spec 3.3.2, 3.4
TEST_P(BadHandlesTest, ConstantsAndNoiseAreRefused) {
  run_ranks(1, [&](Rank& rank) {
    const Interface interface(rank, GetParam());
    const Objects objects(interface);
    Outputs out;
    std::vector<Call> calls = all_calls(objects, out);
    calls.push_back({"PtlNIHandle", HandleType::interface,
                     [&](ptl_handle_any_t handle) { return PtlNIHandle(handle, &out.handle); }});
    calls.push_back({"unlink", HandleType::entry,
                     [&](ptl_handle_any_t handle) { return interface.unlink(handle); }});
    for (const Call& call : calls) {
      std::vector<ptl_handle_any_t> noise{PTL_INVALID_HANDLE, PTL_EQ_NONE, PTL_CT_NONE, 0xdeadbeef,
                                          0x123456789abcdef0};
      const ptl_handle_any_t right = objects.of(call.type);
      for (unsigned bit = 0; bit < 64; ++bit) {
        const ptl_handle_any_t flipped = right ^ (ptl_handle_any_t{1} << bit);
        bool alive = false;
        for (const HandleType type : all_types) alive |= flipped == objects.of(type);
        if (!alive) noise.push_back(flipped);
      }
      for (const ptl_handle_any_t handle : noise) {
        const int code = call.call(handle);
        // The handle may be that of a former entry, used again (3.11.3): then the entry is in use.
        const bool refused =
            code == PTL_ARG_INVALID || (call.type == HandleType::entry && code == PTL_IN_USE);
        EXPECT_TRUE(refused) << call.name << " said " << return_code_name(code) << " to 0x"
                             << std::hex << handle;
      }
    }
  });
}

// A variable that was never initialised is often 0.
// spec 3.3.2, 3.4
TEST_P(BadHandlesTest, ZeroNamesNothingWhereNoObjectHasBeenMade) {
  run_ranks(1, [&](Rank& rank) {
    const Interface interface(rank, GetParam());
    ptl_event_t event;
    ptl_ct_event_t count;
    EXPECT_EQ(PTL_ARG_INVALID, PtlEQGet(0, &event));
    EXPECT_EQ(PTL_ARG_INVALID, PtlEQWait(0, &event));
    EXPECT_EQ(PTL_ARG_INVALID, PtlEQFree(0));
    EXPECT_EQ(PTL_ARG_INVALID, PtlCTGet(0, &count));
    EXPECT_EQ(PTL_ARG_INVALID, PtlCTFree(0));
    EXPECT_EQ(PTL_ARG_INVALID, PtlMDRelease(0));
    EXPECT_EQ(PTL_ARG_INVALID, interface.unlink(0));
  });
}

// spec 3.4, 3.6.3, 3.10.4, 3.13.6, 3.14.3
TEST_P(BadHandlesTest, ReleasedObjectsAreRefused) {
  run_ranks(1, [&](Rank& rank) {
    const Interface interface(rank, GetParam());
    const Objects objects(interface);
    Objects released(interface);
    must(PtlMDRelease(released.descriptor.handle()));
    must(interface.unlink(released.entry));
    must(PtlPTFree(interface.handle(), released.portal));
    must(PtlEQFree(released.queue.handle()));
    must(PtlCTFree(released.counter.handle()));
    Outputs out;
    for (const Call& call : all_calls(objects, out)) {
      if (call.type == HandleType::interface) continue;
      EXPECT_EQ(return_code_name(call.call(released.of(call.type))), "PTL_ARG_INVALID")
          << call.name;
    }
    EXPECT_NE(PTL_OK, interface.unlink(released.entry));
  });
}

// spec 3.4, 3.6.3
TEST_P(BadHandlesTest, EverythingOfAClosedInterfaceIsRefused) {
  run_ranks(1, [&](Rank& rank) {
    InterfaceKind other_kind = GetParam();
    other_kind.matching = !other_kind.matching;
    Interface other(rank, other_kind);
    const Objects alive(other);
    Interface interface(rank, GetParam());
    const Objects gone(interface);
    const ptl_handle_ni_t handle = interface.handle();
    interface.close();
    Outputs out;
    for (const Call& call : all_calls(alive, out)) {
      const ptl_handle_any_t stale =
          call.type == HandleType::interface ? handle : gone.of(call.type);
      EXPECT_EQ(return_code_name(call.call(stale)), "PTL_ARG_INVALID") << call.name;
    }
    // The same when another interface has been opened in its place.
    Interface successor(rank, GetParam());
    for (const Call& call : all_calls(alive, out)) {
      const ptl_handle_any_t stale =
          call.type == HandleType::interface ? handle : gone.of(call.type);
      EXPECT_EQ(return_code_name(call.call(stale)), "PTL_ARG_INVALID") << call.name;
    }
    ptl_handle_ni_t owner = PTL_INVALID_HANDLE;
    EXPECT_EQ(PTL_ARG_INVALID, PtlNIHandle(gone.entry, &owner));
    EXPECT_EQ(PTL_ARG_INVALID, PtlNIHandle(handle, &owner));
  });
}

}  // namespace
}  // namespace lintel::test
