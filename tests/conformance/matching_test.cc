// Which entry of a list a message matches: random lists and messages compared with a plain list
// searched in order, and the rule for non-matching interfaces.
#include <algorithm>

#include <gtest/gtest.h>

#include "operations.h"

namespace lintel::test {
namespace {

// The restriction of an entry to certain initiators.
enum class Source { any, exact, any_pid, any_nid, other_process };

struct ModelEntry {
  ptl_match_bits_t match_bits;
  ptl_match_bits_t ignore_bits;
  Source source;
  ptl_size_t length;
  bool use_once;
  bool no_truncate;
  ptl_handle_any_t handle = PTL_INVALID_HANDLE;
  bool posted = true;
};

struct ModelMessage {
  ptl_match_bits_t match_bits;
  ptl_size_t length;
  ptl_size_t offset;
};

bool matches(const ModelEntry& entry, const ModelMessage& message) {
  if (!entry.posted || entry.source == Source::other_process) return false;
  if (((message.match_bits ^ entry.match_bits) & ~entry.ignore_bits) != 0) return false;
  const bool fits = message.length == 0 || message.offset + message.length <= entry.length;
  return !entry.no_truncate || fits;
}

// Only few different values, so that most messages have several candidates. High and low bits both
// matter.
ptl_match_bits_t draw_bits(std::mt19937& random) {
  return (static_cast<ptl_match_bits_t>(random() % 4) << 62u) | (random() % 4);
}

ModelEntry draw_entry(std::mt19937& random) {
  constexpr ptl_match_bits_t masks[] = {
      0, 0, 0, 1, 3, ptl_match_bits_t{3} << 62u, ~ptl_match_bits_t{0}};
  constexpr Source sources[] = {Source::any,     Source::any,     Source::exact,
                                Source::any_pid, Source::any_nid, Source::other_process};
  ModelEntry entry{};
  entry.match_bits = draw_bits(random);
  entry.ignore_bits = masks[random() % std::size(masks)];
  entry.source = sources[random() % std::size(sources)];
  entry.length = random() % 64;
  entry.use_once = random() % 4 != 0;
  entry.no_truncate = random() % 3 == 0;
  return entry;
}

ptl_process_t match_id(Pair& pair, Source source) {
  ptl_process_t id = pair.initiator_id();
  if (pair.logical()) {
    if (source == Source::any) id.rank = PTL_RANK_ANY;
    if (source == Source::other_process) id.rank += 7;
    return id;  // wildcards for nid and pid do not apply here: the exact rank
  }
  if (source == Source::any || source == Source::any_nid) id.phys.nid = PTL_NID_ANY;
  if (source == Source::any || source == Source::any_pid) id.phys.pid = PTL_PID_ANY;
  if (source == Source::other_process) id.phys.pid += 1000;
  return id;
}

ptl_handle_any_t post(Pair& pair, TargetSide& target, const ModelEntry& entry, uintptr_t number) {
  const ptl_process_t id = match_id(pair, entry.source);
  return target.append(
      {.start = target.memory.data(),
       .length = entry.length,
       .options = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_UNLINK_DISABLE |
                  (entry.use_once ? PTL_ME_USE_ONCE : 0u) |
                  (entry.no_truncate ? PTL_ME_NO_TRUNCATE : 0u),
       .match_bits = entry.match_bits,
       .ignore_bits = entry.ignore_bits,
       .match_id = &id},
      PTL_PRIORITY_LIST, tag(number));
}

std::vector<ModelMessage> draw_messages(std::mt19937& random, std::size_t count) {
  std::vector<ModelMessage> messages;
  for (std::size_t i = 0; i < count; ++i)
    messages.push_back({draw_bits(random), random() % 64, random() % 32});
  return messages;
}

class MatchingTest : public testing::TestWithParam<PairKind> {};
INSTANTIATE_TEST_SUITE_P(Paths, MatchingTest, testing::ValuesIn(matching_pairs()), pair_name);

// spec 2.5.2, 3.12, 3.12.1, 4.2.2
TEST_P(MatchingTest, TakesTheFirstEntryThatMatchesInPostingOrder) {
  run_pair(GetParam(), [](Pair& pair) {
    constexpr std::size_t messages_per_wave = 150;
    TargetSide target(pair, {.events = messages_per_wave});
    InitiatorSide initiator(pair, {.options = PTL_MD_EVENT_SUCCESS_DISABLE});
    std::mt19937 message_random(11);
    std::mt19937 entry_random(12);
    std::vector<ModelEntry> entries;
    for (int wave = 0; wave < 8; ++wave) {
      SCOPED_TRACE(wave);
      const std::vector<ModelMessage> messages = draw_messages(message_random, messages_per_wave);
      pair.on_target([&] {
        for (ModelEntry& entry : entries) {
          if (!entry.posted || entry_random() % 3 != 0) continue;
          pair.interface().unlink_when_idle(entry.handle);
          entry.posted = false;
        }
        for (int i = 0; i < 120; ++i) {
          entries.push_back(draw_entry(entry_random));
          entries.back().handle = post(pair, target, entries.back(), entries.size() - 1);
        }
      });
      pair.on_initiator([&] {
        for (std::size_t i = 0; i < messages.size(); ++i) {
          initiator.put({.length = messages[i].length,
                         .remote_offset = messages[i].offset,
                         .match_bits = messages[i].match_bits,
                         .ack = PTL_NO_ACK_REQ,
                         .hdr_data = i});
        }
        initiator.fence();
      });
      pair.on_target([&] {
        for (std::size_t i = 0; i < messages.size(); ++i) {
          SCOPED_TRACE(i);
          const auto taker = std::ranges::find_if(
              entries, [&](const ModelEntry& entry) { return matches(entry, messages[i]); });
          if (taker == entries.end()) continue;
          const ptl_event_t event = target.events.expect(PTL_EVENT_PUT);
          EXPECT_EQ(event.hdr_data, i);
          EXPECT_EQ(tag_of(event.user_ptr), static_cast<uintptr_t>(taker - entries.begin()));
          EXPECT_EQ(event.match_bits, messages[i].match_bits);
          if (taker->use_once) taker->posted = false;
        }
        target.events.expect_empty();
      });
    }
  });
}

// spec 2.5.2, 3.12.1, C.2
TEST_P(MatchingTest, MessagesOfZeroBytesPassEveryTruncationCheck) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target([&] {
      target.append(target.entry(PTL_ME_OP_PUT | PTL_ME_NO_TRUNCATE, {.length = 10}),
                    PTL_PRIORITY_LIST, tag(1));
      target.append(target.entry(PTL_ME_OP_PUT), PTL_PRIORITY_LIST, tag(2));
    });
    pair.on_initiator([&] {
      initiator.put_and_wait({.length = 0, .remote_offset = 4000});
      initiator.put_and_wait({.length = 10});
      initiator.put_and_wait({.length = 11});
      initiator.put_and_wait({.length = 1, .remote_offset = 10});
    });
    pair.on_target([&] {
      EXPECT_EQ(target.events.expect(PTL_EVENT_PUT).user_ptr, tag(1));
      EXPECT_EQ(target.events.expect(PTL_EVENT_PUT).user_ptr, tag(1));
      EXPECT_EQ(target.events.expect(PTL_EVENT_PUT).user_ptr, tag(2));
      EXPECT_EQ(target.events.expect(PTL_EVENT_PUT).user_ptr, tag(2));
    });
  });
}

// spec 3.7.1
TEST_P(MatchingTest, PromisesToThePortalDoNotChangeTheOutcome) {
  run_pair(GetParam(), [](Pair& pair) {
    TargetSide target(pair, {.pt_options = PTL_PT_ONLY_USE_ONCE | PTL_PT_ONLY_TRUNCATE});
    InitiatorSide initiator(pair);
    pair.on_target([&] {
      for (uintptr_t i = 0; i < 20; ++i) {
        target.append(target.entry(PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE,
                                   {.length = 16, .match_bits = i % 4}),
                      PTL_PRIORITY_LIST, tag(i));
      }
    });
    pair.on_initiator([&] {
      for (ptl_match_bits_t bits = 0; bits < 4; ++bits)
        EXPECT_EQ(initiator.put_and_wait({.length = 40, .match_bits = bits}).ack.mlength, 16u);
      EXPECT_EQ(initiator.put_and_wait({.length = 4, .match_bits = 2}).ack.mlength, 4u);
    });
    pair.on_target([&] {
      for (uintptr_t i = 0; i < 4; ++i)
        EXPECT_EQ(target.events.expect(PTL_EVENT_PUT).user_ptr, tag(i));
      EXPECT_EQ(target.events.expect(PTL_EVENT_PUT).user_ptr, tag(6));
    });
  });
}

class ListTest : public testing::TestWithParam<PairKind> {};
INSTANTIATE_TEST_SUITE_P(Paths, ListTest, testing::ValuesIn(all_pairs()), pair_name);

// spec 2.5, 2.5.1, 3.11.2
TEST_P(ListTest, PriorityListIsSearchedBeforeTheOverflowList) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target([&] {
      target.append(target.entry(PTL_ME_OP_PUT), PTL_OVERFLOW_LIST, tag(1));
      target.append(target.entry(PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE),
                    PTL_PRIORITY_LIST, tag(2));
    });
    pair.on_initiator([&] {
      EXPECT_EQ(initiator.put_and_wait({.length = 8}).ack.ptl_list, PTL_PRIORITY_LIST);
      EXPECT_EQ(initiator.put_and_wait({.length = 8}).ack.ptl_list, PTL_OVERFLOW_LIST);
    });
    pair.on_target([&] {
      const ptl_event_t first = target.events.expect(PTL_EVENT_PUT);
      EXPECT_EQ(first.user_ptr, tag(2));
      EXPECT_EQ(first.ptl_list, PTL_PRIORITY_LIST);
      const ptl_event_t second = target.events.expect(PTL_EVENT_PUT);
      EXPECT_EQ(second.user_ptr, tag(1));
      EXPECT_EQ(second.ptl_list, PTL_OVERFLOW_LIST);
    });
  });
}

// spec 3.11.1, 3.12.1, 2.5
TEST_P(ListTest, UseOnceEntriesAreConsumedInPostingOrder) {
  run_pair(GetParam(), [](Pair& pair) {
    constexpr uintptr_t count = 500;
    TargetSide target(pair, {.events = count});
    InitiatorSide initiator(pair, {.options = PTL_MD_EVENT_SUCCESS_DISABLE});
    pair.on_target([&] {
      for (uintptr_t i = 0; i < count; ++i) {
        target.append(target.entry(PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE),
                      PTL_PRIORITY_LIST, tag(i));
      }
    });
    pair.on_initiator([&] {
      for (uintptr_t i = 0; i < count + 3; ++i)
        initiator.put({.length = 8, .ack = PTL_NO_ACK_REQ, .hdr_data = i});
      initiator.fence();
    });
    pair.on_target([&] {
      for (uintptr_t i = 0; i < count; ++i) {
        const ptl_event_t event = target.events.expect(PTL_EVENT_PUT);
        EXPECT_EQ(event.hdr_data, i);
        EXPECT_EQ(event.user_ptr, tag(i));
      }
      target.events.expect_empty();
      EXPECT_EQ(pair.interface().status(PTL_SR_DROP_COUNT), 3);
    });
  });
}

class NonmatchingListTest : public testing::TestWithParam<PairKind> {};
INSTANTIATE_TEST_SUITE_P(Paths, NonmatchingListTest, testing::ValuesIn(nonmatching_pairs()),
                         pair_name);

// spec 2.5.1, 3.13.4
TEST_P(NonmatchingListTest, FirstEntryAlwaysMatches) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target([&] {
      target.append(target.entry(PTL_LE_OP_PUT, {.length = 1}), PTL_PRIORITY_LIST, tag(1));
      target.append(target.entry(PTL_LE_OP_PUT), PTL_PRIORITY_LIST, tag(2));
    });
    pair.on_initiator([&] {
      const SendAndAck events = initiator.put_and_wait({.length = 100, .match_bits = 0x55});
      EXPECT_EQ(events.ack.mlength, 1u);
    });
    pair.on_target([&] {
      const ptl_event_t event = target.events.expect(PTL_EVENT_PUT);
      EXPECT_EQ(event.user_ptr, tag(1));
      EXPECT_EQ(event.match_bits, 0u);
    });
  });
}

}  // namespace
}  // namespace lintel::test
