// The match list compared with a list that is searched entry by entry (spec 2.5, 3.12), and the
// bounds of its cost and memory.
#include "core/matching/match_list.h"

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "match_test_memory.h"
#include "match_test_mix.h"
#include "match_test_timing.h"

namespace lintel {
namespace {

using testing::colliding_bits;
using testing::CountedMemory;
using testing::degenerate_bits;
using testing::exact;
using testing::keep;
using testing::median_ns;
using testing::Mix;
using testing::range;

struct Entry : MatchNode {
  uint64_t length = 0;  // of its buffer, for predicates such as PTL_ME_NO_TRUNCATE
  bool posted = false;
};

constexpr auto accept_all = [](const MatchNode&) { return true; };

// The obvious implementation.
class NaiveList {
 public:
  void append(Entry& entry) { entries_.push_back(&entry); }
  void remove(Entry& entry) { entries_.erase(std::find(entries_.begin(), entries_.end(), &entry)); }
  [[nodiscard]] Entry* find(uint64_t match_bits, uint64_t source, uint64_t length) const {
    for (Entry* entry : entries_) {
      const MatchCriteria& c = entry->criteria;
      const bool bits_match = ((match_bits ^ c.match_bits) & ~c.ignore_bits) == 0;
      const bool source_matches = (source & c.source_mask) == c.source;
      if (bits_match && source_matches && entry->length >= length) return entry;
    }
    return nullptr;
  }
  [[nodiscard]] const std::vector<Entry*>& entries() const { return entries_; }

 private:
  std::vector<Entry*> entries_;
};

void expect_same_order(const MatchList& list, const NaiveList& model) {
  ASSERT_EQ(list.size(), model.entries().size());
  const MatchNode* node = list.head();
  for (const Entry* entry : model.entries()) {
    ASSERT_EQ(node, entry);
    node = MatchList::next(*node);
  }
  ASSERT_EQ(node, nullptr);
}

std::vector<Mix> mixes() {
  const uint64_t any_tag = 0xffffffff;
  std::vector<std::pair<uint64_t, uint64_t>> many_shapes;
  for (uint64_t i = 0; i < 40; ++i)
    many_shapes.emplace_back(i, i % 3 == 0 ? source_mask_any : source_mask_exact);
  return {
      {"one_shape", {{0, source_mask_exact}}, range(64), range(4)},
      {"like_mpi",
       {{0, source_mask_exact},
        {0, source_mask_any},
        {any_tag, source_mask_exact},
        {any_tag, source_mask_any}},
       range(24, 0x40000001),
       range(4)},
      {"node_and_process",
       {{0, source_mask_nid}, {0, source_mask_pid}, {~uint64_t{0}, source_mask_any}, {7, ~0ull}},
       range(16),
       {0x100000001, 0x100000002, 0x200000001, 0x200000002}},
      {"many_shapes", many_shapes, range(16), range(3)},
      {"one_key", {{0, source_mask_exact}, {1, source_mask_exact}}, {6}, {9}},
      {"same_slot", {{0, source_mask_exact}}, {}, {1}, 24},
      {"same_hash", {{0, source_mask_exact}}, {degenerate_bits()}, range(24)},
  };
}

class MatchListModel : public ::testing::TestWithParam<Mix> {
 protected:
  void SetUp() override {
    if (mix_.colliding != 0) mix_.match_bits = colliding_bits(mix_.colliding);
  }
  [[nodiscard]] uint64_t pick(const std::vector<uint64_t>& values) {
    return values[random_() % values.size()];
  }
  void post_random() {
    auto free =
        std::find_if(pool_.begin(), pool_.end(), [](const auto& entry) { return !entry->posted; });
    if (free == pool_.end()) free = pool_.insert(free, std::make_unique<Entry>());
    Entry& entry = **free;
    const auto& shapes = mix_.shapes;
    const auto& [ignore_bits, source_mask] = shapes[random_() % shapes.size()];
    entry.criteria = {.match_bits = pick(mix_.match_bits),
                      .ignore_bits = ignore_bits,
                      .source = pick(mix_.sources) & source_mask,
                      .source_mask = source_mask};
    entry.length = random_() % 4 == 0 ? random_() % 100 : 1000;
    list_.append(entry);
    entry.posted = true;
    model_.append(entry);
  }
  void remove(Entry& entry) {
    list_.remove(entry);
    model_.remove(entry);
    entry.posted = false;
  }
  // A message arrives. Half of the matching messages use up their entry.
  void deliver_random() {
    const uint64_t bits = pick(mix_.match_bits) ^ (random_() % 8 == 0 ? random_() % 4 : 0);
    const uint64_t source = pick(mix_.sources);
    const uint64_t length = random_() % 2 == 0 ? 0 : random_() % 200;
    uint64_t calls_in_order = 0;
    MatchNode* const found = list_.find(bits, source, [&](const MatchNode& node) {
      EXPECT_TRUE(calls_in_order == 0 || node.sequence >= calls_in_order);
      calls_in_order = node.sequence + 1;
      return static_cast<const Entry&>(node).length >= length;
    });
    ASSERT_EQ(found, model_.find(bits, source, length));
    if (found != nullptr && random_() % 2 == 0) remove(static_cast<Entry&>(*found));
  }
  void remove_random() {
    if (!model_.entries().empty()) remove(*model_.entries()[random_() % list_.size()]);
  }

  Mix mix_ = GetParam();
  std::mt19937_64 random_{20240229};
  MatchList list_;
  NaiveList model_;
  std::vector<std::unique_ptr<Entry>> pool_;
};

TEST_P(MatchListModel, RandomOperationsAgree) {
  // The length varies between 0 and `bound`, so that the index is built and dissolved many times.
  for (const size_t bound : {3u, 6u, 40u, 400u}) {
    size_t longest = 0;
    size_t times_empty = 0;
    for (size_t step = 0; step < 50000; ++step) {
      const bool growing = step / (bound * 10) % 2 == 0;
      const uint64_t dice = random_() % 8;
      if (list_.size() < bound && dice < (growing ? 4 : 1))
        post_random();
      else if (dice < (growing ? 7 : 5))
        deliver_random();
      else
        remove_random();
      if (HasFatalFailure()) return;
      if (step % 500 == 0) expect_same_order(list_, model_);
      longest = std::max(longest, list_.size());
      if (list_.empty()) ++times_empty;
    }
    EXPECT_EQ(longest, bound);
    EXPECT_GT(times_empty, 0u);
  }
}

TEST_P(MatchListModel, WithoutMemoryTheSameIsFound) {
  CountedMemory memory;
  for (int step = 0; step < 20000; ++step) {
    memory.grant_only(random_() % 8 == 0 ? 1 : 0);
    if (random_() % 3 != 0 && list_.size() < 200)
      post_random();
    else if (random_() % 64 == 0)
      while (list_.size() > random_() % 4) remove(*model_.entries().front());
    else
      deliver_random();
    if (HasFatalFailure()) return;
    if (step % 100 == 0) expect_same_order(list_, model_);
  }
  while (list_.size() > 0) remove(*model_.entries().back());
}

INSTANTIATE_TEST_SUITE_P(Mixes, MatchListModel, ::testing::ValuesIn(mixes()),
                         [](const auto& info) { return std::string(info.param.name); });

// The n-th entry has match bits n.
class Posted {
 public:
  explicit Posted(size_t count) : entries(count) {
    for (size_t i = 0; i < count; ++i) {
      entries[i].criteria = exact(i);
      list.append(entries[i]);
    }
  }
  std::vector<Entry> entries;
  MatchList list;
};

TEST(MatchList, RejectedEntriesAreOfferedInPostingOrderAcrossShapes) {
  std::vector<Entry> entries(9000);
  MatchList list;
  for (size_t i = 0; i < entries.size(); ++i) {
    entries[i].criteria = exact(42);
    if (i % 3 == 1) entries[i].criteria.ignore_bits = 0xff;
    if (i % 3 == 2) entries[i].criteria = {.match_bits = 42};
    list.append(entries[i]);
  }
  size_t offered = 0;
  MatchNode* const found = list.find(42, 1, [&](const MatchNode& node) {
    EXPECT_EQ(&node, &entries[offered]);
    return ++offered == entries.size();
  });
  EXPECT_EQ(found, &entries.back());
  EXPECT_EQ(offered, entries.size());
  EXPECT_EQ(list.find(42, 1, [](const MatchNode&) { return false; }), nullptr);
}

TEST(MatchList, NonMatchingListsNeedNoIndex) {
  CountedMemory memory;
  std::vector<Entry> entries(10000);
  MatchList list;
  list.set_matching(false);
  for (Entry& entry : entries) {
    entry.criteria = {.ignore_bits = ~uint64_t{0}};
    list.append(entry);
  }
  for (Entry& entry : entries) {
    ASSERT_EQ(list.head(), &entry);
    ASSERT_EQ(list.find(7, 7, accept_all), &entry);
    list.remove(entry);
  }
  EXPECT_TRUE(list.empty());
  EXPECT_EQ(memory.requests(), 0u);
}

TEST(MatchList, ManyShapesAtOnce) {
  constexpr size_t count = 20000;
  std::vector<Entry> entries(count);
  MatchList list;
  for (size_t i = 0; i < count; ++i) {
    entries[i].criteria = {.match_bits = uint64_t{1} << 63, .ignore_bits = i};
    list.append(entries[i]);
  }
  // Entry i matches if all bits of low_bits are set in i. When the match is removed, the next one
  // is found.
  const uint64_t low_bits = 0x4210;
  size_t expected = 0;
  for (int i = 0; i < 20; ++i) {
    while ((expected & low_bits) != low_bits) ++expected;
    ASSERT_EQ(list.find(uint64_t{1} << 63 | low_bits, 5, accept_all), &entries[expected]);
    list.remove(entries[expected++]);
  }
}

TEST(MatchList, ShapesThatPassLeaveNothingBehind) {
  CountedMemory memory;
  {
    std::vector<Entry> entries(20);
    MatchList list;
    size_t requests_after_first_shapes = 0;
    for (uint64_t shape = 0; shape < 5000; ++shape) {
      for (size_t i = 0; i < entries.size(); ++i) {
        entries[i].criteria = {.match_bits = i << 32, .ignore_bits = shape};
        list.append(entries[i]);
      }
      EXPECT_EQ(list.find(entries.size() << 32, 1, accept_all), nullptr);
      for (Entry& entry : entries) list.remove(entry);
      if (shape == 10) requests_after_first_shapes = memory.requests();
    }
    EXPECT_GT(requests_after_first_shapes, 0u);
    EXPECT_EQ(memory.requests(), requests_after_first_shapes);
  }
  EXPECT_EQ(memory.outstanding_bytes(), 0u);
}

TEST(MatchIndex, EmptyGroupsAreForgotten) {
  MatchIndex* const index = MatchIndex::create();
  ASSERT_NE(index, nullptr);
  std::vector<Entry> entries(300);
  for (size_t i = 0; i < entries.size(); ++i) {
    entries[i].criteria = {.match_bits = 0, .ignore_bits = i / 3};
    entries[i].sequence = i;
    ASSERT_TRUE(index->insert(entries[i]));
  }
  EXPECT_EQ(index->group_count(), 100u);
  for (size_t i = 0; i < entries.size(); i += 2) index->remove(entries[i]);
  EXPECT_EQ(index->group_count(), 100u);
  for (size_t i = 1; i < entries.size(); i += 2) {
    EXPECT_EQ(index->earliest(0, 0), &entries[i]);
    index->remove(entries[i]);
  }
  EXPECT_EQ(index->group_count(), 0u);
  EXPECT_EQ(index->earliest(0, 0), nullptr);
  MatchIndex::destroy(index);
}

TEST(MatchList, WithoutMoreMemoryTheRestIsComparedOneByOne) {
  CountedMemory memory;
  Posted posted(1000);
  const auto expect_all_found = [&] {
    for (size_t i = 0; i < posted.entries.size(); ++i)
      ASSERT_EQ(posted.list.find(i, 1, accept_all), &posted.entries[i]);
    EXPECT_EQ(posted.list.find(posted.entries.size(), 1, accept_all), nullptr);
  };
  for (const size_t granted : {0u, 1u, 2u, 3u, 4u}) {
    memory.grant_only(granted - memory.requests());
    expect_all_found();
    EXPECT_EQ(memory.requests(), granted);
  }
  memory.grant_all();
  expect_all_found();
  EXPECT_GT(memory.requests(), 4u);
}

TEST(MatchList, EntriesConsumedInOrderAreNotIndexed) {
  CountedMemory memory;
  Posted posted(1000);
  for (int round = 0; round < 3; ++round) {
    for (size_t i = 0; i < posted.entries.size(); ++i) {
      Entry& entry = posted.entries[i];
      ASSERT_EQ(posted.list.find(i, 1, accept_all), &entry);
      posted.list.remove(entry);
      posted.list.append(entry);
    }
  }
  EXPECT_EQ(memory.requests(), 0u);
}

TEST(MatchList, SteadyStateRequestsNoMemory) {
  CountedMemory memory;
  std::mt19937_64 random(7);
  std::vector<Entry> entries(5000);
  MatchList list;
  const auto cycle = [&] {
    for (size_t i = 0; i < entries.size(); ++i) {
      entries[i].criteria = exact(random());
      if (i % 4 == 0) entries[i].criteria.ignore_bits = 0xff;
      if (i % 4 == 1) entries[i].criteria.source = entries[i].criteria.source_mask = 0;
      list.append(entries[i]);
    }
    for (size_t i = entries.size(); i-- > 0;) {
      MatchNode* const found = list.find(entries[i].criteria.match_bits, 1, accept_all);
      ASSERT_NE(found, nullptr);
      keep(found);
      list.remove(entries[i]);
    }
  };
  for (int i = 0; i < 3; ++i) cycle();
  const size_t requests = memory.requests();
  EXPECT_GT(requests, 0u);
  for (int i = 0; i < 50; ++i) cycle();
  EXPECT_EQ(memory.requests(), requests);
}

double find_ns(Posted& posted) {
  constexpr int count = 2000;
  return median_ns(21, count, [&] {
    for (int i = 0; i < count; ++i) {
      const uint64_t bits = static_cast<uint64_t>(i) * 7919 % posted.entries.size();
      keep(posted.list.find(bits, 1, accept_all));
    }
  });
}

TEST(MatchListCost, FindDoesNotGrowWithTheList) {
  Posted ten(10), ten_thousand(10000), million(1000000);
  const double shallow_ns = find_ns(ten);
  // A million entries do not fit in a cache. A linear search would take ten thousand times as long.
  EXPECT_LT(find_ns(ten_thousand), 8 * shallow_ns);
  EXPECT_LT(find_ns(million), 60 * shallow_ns);
}

TEST(MatchListCost, OneEntryBehindManyOthersIsFoundAsFast) {
  const auto find_last_ns = [](size_t others) {
    Posted posted(others + 1);
    return median_ns(21, 2000, [&] {
      for (int i = 0; i < 2000; ++i) keep(posted.list.find(others, 1, accept_all));
    });
  };
  EXPECT_LT(find_last_ns(10000), 4 * find_last_ns(10));
}

TEST(MatchListCost, EqualEntriesSlowDownNoOtherKeyOfTheirBucket) {
  const std::vector<uint64_t> keys = colliding_bits(8);
  const auto cost_ns = [&](size_t equal) {
    std::vector<Entry> entries(equal + keys.size());
    MatchList list;
    for (size_t i = 0; i < entries.size(); ++i) {
      entries[i].criteria = exact(i < equal ? keys[0] : keys[i - equal]);
      list.append(entries[i]);
    }
    Entry& last = entries.back();
    Entry& middle = entries[equal / 2];
    return median_ns(21, 2000, [&] {
      for (int i = 0; i < 1000; ++i) {
        EXPECT_EQ(list.find(keys.back(), 1, accept_all), &last);
        for (Entry* entry : {&last, &middle}) {
          list.remove(*entry);
          list.append(*entry);
        }
      }
    });
  };
  EXPECT_LT(cost_ns(10000), 5 * cost_ns(10));
}

TEST(MatchListCost, AppendAndRemoveDoNotGrowWithTheList) {
  const auto cycle_ns = [](size_t others) {
    Posted posted(others);
    Entry entry;
    uint64_t bits = others;
    return median_ns(21, 2000, [&] {
      for (int i = 0; i < 2000; ++i) {
        entry.criteria = exact(others + (++bits & 1023));
        posted.list.append(entry);
        posted.list.remove(entry);
      }
    });
  };
  const double shallow_ns = cycle_ns(10);
  EXPECT_LT(cycle_ns(10000), 5 * shallow_ns);
  EXPECT_LT(cycle_ns(1000000), 25 * shallow_ns);
}

}  // namespace
}  // namespace lintel
