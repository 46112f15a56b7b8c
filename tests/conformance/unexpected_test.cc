// Messages that arrive before the entry that matches them: the overflow and unexpected lists.
#include <algorithm>
#include <cstring>

#include <gtest/gtest.h>

#include "operations.h"

namespace lintel::test {
namespace {

constexpr unsigned put_and_get = PTL_ME_OP_PUT | PTL_ME_OP_GET;

class UnexpectedTest : public testing::TestWithParam<PairKind> {};
INSTANTIATE_TEST_SUITE_P(Paths, UnexpectedTest, testing::ValuesIn(all_pairs()), pair_name);

// spec 2.5, 3.11.2, 3.12.2, 3.13.1, 3.13.4
TEST_P(UnexpectedTest, EveryOperationLeavesAHeaderWithAllItsFields) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target([&] {
      target.append(target.entry(put_and_get, {.match_bits = 0x3}), PTL_OVERFLOW_LIST, tag(100));
    });
    for (const Operation operation : all_operations) {
      SCOPED_TRACE(name_of(operation));
      pair.on_initiator([&] {
        EXPECT_EQ(perform(initiator, operation,
                          {.length = 8, .remote_offset = 40, .match_bits = 0x3, .hdr_data = 17})
                      .ptl_list,
                  PTL_OVERFLOW_LIST);
      });
      pair.on_target([&] {
        TargetEvent expected{.type = target_event(operation),
                             .start = target.memory.data() + 40,
                             .rlength = 8,
                             .mlength = 8,
                             .remote_offset = 40,
                             .match_bits = 0x3,
                             .hdr_data = 17,
                             .user_ptr = tag(100),
                             .list = PTL_OVERFLOW_LIST};
        const ptl_event_t arrival = target.events.expect(expected.type);
        expect_target_event(pair, arrival, expected);

        EntrySpec late{.options = PTL_ME_USE_ONCE};  // permits nothing: it is not checked again
        late.match_bits = 0x3;
        target.append(late, PTL_PRIORITY_LIST, tag(200));
        expected.type = overflow_event(operation);
        expected.user_ptr = tag(200);
        const ptl_event_t match = target.events.expect(expected.type);
        expect_target_event(pair, match, expected);
        if (atomic(operation)) {
          const ptl_op_t wanted = operation == Operation::swap ? PTL_SWAP : PTL_SUM;
          EXPECT_EQ(arrival.atomic_operation, wanted);
          EXPECT_EQ(arrival.atomic_type, PTL_INT64_T);
          EXPECT_EQ(match.atomic_operation, wanted);
          EXPECT_EQ(match.atomic_type, PTL_INT64_T);
        }
        EXPECT_EQ(target.events.expect(PTL_EVENT_AUTO_UNLINK).user_ptr, tag(200));
        target.events.expect_silence();  // neither LINK nor AUTO_FREE
      });
    }
  });
}

// spec 3.11.2, 3.12.2
TEST_P(UnexpectedTest, AUseOnceEntryThatMatchedIsNotLinked) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target([&] { target.append(target.entry(PTL_ME_OP_PUT), PTL_OVERFLOW_LIST, tag(1)); });
    pair.on_initiator([&] { initiator.put_and_wait({.length = 8}); });
    pair.on_target([&] {
      target.events.expect(PTL_EVENT_PUT);
      EntrySpec spec = target.entry(0);
      spec.options = PTL_ME_OP_PUT | PTL_ME_USE_ONCE;
      target.append(spec, PTL_PRIORITY_LIST, tag(2));
      target.events.expect(PTL_EVENT_PUT_OVERFLOW);
      target.events.expect(PTL_EVENT_AUTO_UNLINK);
    });
    pair.on_initiator([&] { initiator.put_and_wait({.length = 8}); });
    pair.on_target([&] { EXPECT_EQ(target.events.expect(PTL_EVENT_PUT).user_ptr, tag(1)); });
  });
}

// spec 3.11.2, 3.12.2, 2.7.4
TEST_P(UnexpectedTest, APersistentEntryTakesAllHeadersInOrderAndIsLinked) {
  run_pair(GetParam(), [](Pair& pair) {
    constexpr uint64_t count = 50;
    TargetSide target(pair);
    InitiatorSide initiator(pair, {.options = PTL_MD_EVENT_SUCCESS_DISABLE});
    pair.on_target([&] { target.append_overflow(PTL_ME_OP_PUT | PTL_ME_EVENT_COMM_DISABLE); });
    pair.on_initiator([&] {
      for (uint64_t i = 0; i < count; ++i)
        initiator.put({.length = 8, .ack = PTL_NO_ACK_REQ, .hdr_data = i});
      initiator.fence();
    });
    pair.on_target([&] {
      EntrySpec spec = target.entry(0);
      spec.options = PTL_ME_OP_PUT;
      target.append(spec, PTL_PRIORITY_LIST, tag(3));
      bool linked = false;
      for (uint64_t headers = 0; headers < count || !linked;) {
        const ptl_event_t event = target.events.next();
        EXPECT_EQ(event.user_ptr, tag(3));
        if (event.type == PTL_EVENT_LINK) {
          EXPECT_FALSE(linked);
          linked = true;
          continue;
        }
        EXPECT_EQ(event.type, PTL_EVENT_PUT_OVERFLOW);
        EXPECT_EQ(event.hdr_data, headers++);
      }
    });
    pair.on_initiator([&] { initiator.put({.length = 8, .hdr_data = 99}); });
    pair.on_target([&] {
      const ptl_event_t event = target.events.expect(PTL_EVENT_PUT);
      EXPECT_EQ(event.user_ptr, tag(3));
      EXPECT_EQ(event.hdr_data, 99u);
      target.events.expect_empty();
    });
  });
}

// spec 2.7.4, 3.11.2, 3.12.2
TEST_P(UnexpectedTest, UseOnceEntriesTakeHeadersInOrderOfArrival) {
  run_pair(GetParam(), [](Pair& pair) {
    constexpr uint64_t count = 300;
    TargetSide target(pair, {.events = 2 * count});
    InitiatorSide initiator(pair, {.options = PTL_MD_EVENT_SUCCESS_DISABLE});
    pair.on_target([&] { target.append_overflow(PTL_ME_OP_PUT | PTL_ME_EVENT_COMM_DISABLE); });
    pair.on_initiator([&] {
      for (uint64_t i = 0; i < count; ++i)
        initiator.put({.length = i % 3000, .ack = PTL_NO_ACK_REQ, .hdr_data = i});
      initiator.fence();
    });
    pair.on_target([&] {
      for (uint64_t i = 0; i < count; ++i) {
        target.append(target.entry(PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE),
                      PTL_PRIORITY_LIST, tag(i));
        const ptl_event_t event = target.events.expect(PTL_EVENT_PUT_OVERFLOW);
        EXPECT_EQ(event.hdr_data, i);
        EXPECT_EQ(event.user_ptr, tag(i));
        EXPECT_EQ(event.rlength, i % 3000);
      }
    });
  });
}

// spec 2.5, 3.13.1
TEST_P(UnexpectedTest, EventPointsAtTheDataInTheOverflowBuffer) {
  run_pair(GetParam(), [](Pair& pair) {
    TargetSide target(pair, {.bytes = 100000});
    InitiatorSide initiator(pair, {.bytes = 100000});
    pair.on_target([&] { target.append_overflow(PTL_ME_OP_PUT); });
    pair.on_initiator([&] {
      fill(initiator.source.memory, 7);
      initiator.put({.length = 60000, .remote_offset = 1000});
      initiator.expect_send_and_ack();
    });
    pair.on_target([&] {
      target.events.expect(PTL_EVENT_PUT);
      std::vector<std::byte> elsewhere(10);
      target.append({.start = elsewhere.data(),
                     .length = elsewhere.size(),
                     .options = PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE});
      const ptl_event_t event = target.events.expect(PTL_EVENT_PUT_OVERFLOW);
      EXPECT_EQ(event.start, target.memory.data() + 1000);
      EXPECT_EQ(event.mlength, 60000u) << "the posted length is not checked against the message";
      expect_pattern({static_cast<std::byte*>(event.start), 60000}, 7);
      expect_bytes(elsewhere, std::byte{0});
    });
  });
}

// spec 2.5, 3.13.4
TEST_P(UnexpectedTest, TruncationHappenedInTheOverflowEntry) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target([&] { target.append_overflow(PTL_ME_OP_PUT, {.length = 50}); });
    pair.on_initiator([&] { initiator.put_and_wait({.length = 80, .remote_offset = 10}); });
    pair.on_target([&] {
      target.events.expect(PTL_EVENT_PUT);
      target.append(PTL_ME_OP_PUT);
      const ptl_event_t event = target.events.expect(PTL_EVENT_PUT_OVERFLOW);
      EXPECT_EQ(event.rlength, 80u);
      EXPECT_EQ(event.mlength, 40u);
    });
  });
}

// spec 3.11.2, 3.12.2
TEST_P(UnexpectedTest, AppendingToTheOverflowListSearchesNothing) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target([&] { target.append_overflow(PTL_ME_OP_PUT); });
    pair.on_initiator([&] { initiator.put_and_wait({.length = 8}); });
    pair.on_target([&] {
      target.events.expect(PTL_EVENT_PUT);
      EntrySpec spec = target.entry(0);
      spec.options = PTL_ME_OP_PUT | PTL_ME_USE_ONCE;
      target.append(spec, PTL_OVERFLOW_LIST);
      target.events.expect(PTL_EVENT_LINK);
      target.events.expect_silence();
    });
  });
}

// spec 3.11.1, 3.12.1
TEST_P(UnexpectedTest, HeaderDisableLeavesNoHeader) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    ptl_handle_any_t entry = PTL_INVALID_HANDLE;
    pair.on_target([&] {
      entry = target.append(target.entry(PTL_ME_OP_PUT | PTL_ME_UNEXPECTED_HDR_DISABLE),
                            PTL_OVERFLOW_LIST, tag(1));
    });
    pair.on_initiator([&] { initiator.put_and_wait({.length = 8}); });
    pair.on_target([&] {
      EXPECT_EQ(target.events.expect(PTL_EVENT_PUT).ptl_list, PTL_OVERFLOW_LIST);
      target.append(target.entry(PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE),
                    PTL_PRIORITY_LIST, tag(2));
      target.events.expect_silence();
      pair.interface().unlink_when_idle(entry);
    });
    pair.on_initiator([&] { initiator.put_and_wait({.length = 8}); });
    pair.on_target([&] { EXPECT_EQ(target.events.expect(PTL_EVENT_PUT).user_ptr, tag(2)); });
  });
}

// spec 3.15.3
TEST_P(UnexpectedTest, AGetIsAnsweredFromTheOverflowBuffer) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target([&] {
      fill(target.memory, 5);
      target.append_overflow(PTL_ME_OP_GET);
    });
    pair.on_initiator([&] {
      EXPECT_EQ(initiator.get_and_wait({.length = 100, .remote_offset = 7}).mlength, 100u);
      expect_pattern(initiator.result.memory.first(100), 5, 7);
    });
    pair.on_target([&] {
      target.events.expect(PTL_EVENT_GET);
      target.append(PTL_ME_OP_GET);
      EXPECT_EQ(target.events.expect(PTL_EVENT_GET_OVERFLOW).start, target.memory.data() + 7);
    });
  });
}

class UnexpectedMatchingTest : public testing::TestWithParam<PairKind> {};
INSTANTIATE_TEST_SUITE_P(Paths, UnexpectedMatchingTest, testing::ValuesIn(matching_pairs()),
                         pair_name);

struct Header {
  ptl_match_bits_t match_bits;
  bool present = true;
};

// An entry that a header uses up takes no place in the list. A refused append leaves the header.
// spec 3.12.2
TEST_P(UnexpectedMatchingTest, AFullListTakesAnEntryThatAHeaderEnds) {
  ptl_ni_limits_t desired{};
  desired.max_list_size = 16;
  PairOptions options;
  options.desired = &desired;
  run_pair(GetParam(), options, [](Pair& pair) {
    TargetSide target(pair);
    InitiatorSide initiator(pair);
    pair.on_target([&] {
      ASSERT_LE(pair.limits().max_list_size, 1000) << "a desired limit of 16 has been ignored";
      target.append_overflow(PTL_ME_OP_PUT | PTL_ME_EVENT_COMM_DISABLE,
                             {.ignore_bits = ~ptl_match_bits_t{0}});
      EntrySpec other = target.entry(PTL_ME_OP_PUT);
      other.match_bits = 1;
      for (int i = 0; i < pair.limits().max_list_size; ++i) target.append(other);
    });
    pair.on_initiator([&] { initiator.put_and_wait({.length = 8, .match_bits = 2}); });
    pair.on_target([&] {
      EntrySpec spec = target.entry(PTL_ME_OP_PUT);
      spec.match_bits = 2;
      ptl_handle_any_t handle = PTL_INVALID_HANDLE;
      const auto append = [&] {
        return pair.interface().try_append(default_pt_index, spec, PTL_PRIORITY_LIST, nullptr,
                                           &handle);
      };
      EXPECT_EQ(PTL_LIST_TOO_LONG, append());
      target.events.expect_empty();
      spec.options |= PTL_ME_USE_ONCE;
      EXPECT_EQ(PTL_OK, append());
      target.events.expect(PTL_EVENT_PUT_OVERFLOW);
      target.events.expect(PTL_EVENT_AUTO_UNLINK);
      EXPECT_EQ(PTL_LIST_TOO_LONG, append());
    });
  });
}

// The message was delivered before: its length was compared only with that of the overflow entry.
// spec 2.5, 3.12.1
TEST_P(UnexpectedMatchingTest, NoTruncateIsNotComparedWithHeaders) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target([&] { target.append_overflow(PTL_ME_OP_PUT | PTL_ME_EVENT_COMM_DISABLE); });
    for (const unsigned options : {unsigned{PTL_ME_USE_ONCE}, 0u}) {
      pair.on_initiator([&] { initiator.put_and_wait({.length = 80}); });
      pair.on_target([&] {
        EntrySpec spec = target.entry(PTL_ME_OP_PUT | PTL_ME_NO_TRUNCATE | options);
        spec.options |= PTL_ME_EVENT_UNLINK_DISABLE;
        spec.length = 8;
        target.append(spec);
        EXPECT_EQ(target.events.expect(PTL_EVENT_PUT_OVERFLOW).mlength, 80u);
      });
    }
  });
}

// spec 2.5, 2.7.4, 3.12.2
TEST_P(UnexpectedMatchingTest, AppendsTakeWhatAListSearchedInOrderWouldGive) {
  run_pair(GetParam(), [](Pair& pair) {
    TargetSide target(pair, {.events = 4096});
    InitiatorSide initiator(pair, {.options = PTL_MD_EVENT_SUCCESS_DISABLE});
    std::mt19937 random(5);  // the same sequence in both processes
    const auto draw_bits = [&] {
      return (static_cast<ptl_match_bits_t>(random() % 4) << 40u) | (random() % 4);
    };
    std::vector<Header> headers;
    pair.on_target([&] {
      target.append_overflow(PTL_ME_OP_PUT | PTL_ME_EVENT_COMM_DISABLE,
                             {.ignore_bits = ~ptl_match_bits_t{0}});
    });
    for (int wave = 0; wave < 6; ++wave) {
      const std::size_t before = headers.size();
      for (int i = 0; i < 200; ++i) headers.push_back({draw_bits()});
      pair.on_initiator([&] {
        for (std::size_t i = before; i < headers.size(); ++i) {
          initiator.put({.length = 4,
                         .match_bits = headers[i].match_bits,
                         .ack = PTL_NO_ACK_REQ,
                         .hdr_data = i});
        }
        initiator.fence();
      });
      std::vector<EntrySpec> appends;
      for (int i = 0; i < 80; ++i) {
        constexpr ptl_match_bits_t masks[] = {0, 0, 1, 3, ptl_match_bits_t{3} << 40u};
        EntrySpec spec{.options =
                           PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_UNLINK_DISABLE};
        if (random() % 8 != 0) spec.options |= PTL_ME_USE_ONCE;
        spec.match_bits = draw_bits();
        spec.ignore_bits = masks[random() % std::size(masks)];
        appends.push_back(spec);
      }
      pair.on_target([&] {
        for (const EntrySpec& spec : appends) {
          const ptl_handle_any_t entry = target.append(spec);
          const bool use_once = (spec.options & PTL_ME_USE_ONCE) != 0;
          bool any = false;
          for (std::size_t i = 0; i < headers.size() && !(use_once && any); ++i) {
            if (!headers[i].present ||
                ((headers[i].match_bits ^ spec.match_bits) & ~spec.ignore_bits) != 0)
              continue;
            any = true;
            headers[i].present = false;
            EXPECT_EQ(target.events.expect(PTL_EVENT_PUT_OVERFLOW).hdr_data, i);
          }
          target.events.expect_empty();
          if (!use_once || !any) pair.interface().unlink_when_idle(entry);
        }
      });
    }
  });
}

// spec 3.12.1, 3.12.2, 3.9
TEST_P(UnexpectedMatchingTest, MatchIdSelectsAmongHeaders) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target([&] { target.append_overflow(PTL_ME_OP_PUT | PTL_ME_EVENT_COMM_DISABLE); });
    pair.on_initiator([&] { initiator.put_and_wait({.length = 8}); });
    pair.on_target([&] {
      ptl_process_t other = pair.initiator_id();
      if (pair.logical()) {
        other.rank += 1;
      } else {
        other.phys.pid += 1;
      }
      EntrySpec spec = target.entry(PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE);
      spec.match_id = &other;
      target.append(spec);
      target.events.expect_silence();
      const ptl_process_t right = pair.initiator_id();
      spec.match_id = &right;
      target.append(spec);
      target.events.expect(PTL_EVENT_PUT_OVERFLOW);
    });
  });
}

}  // namespace
}  // namespace lintel::test
