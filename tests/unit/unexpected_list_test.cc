// The unexpected list compared with a list that is searched header by header (spec 2.5, 3.12.2,
// 3.12.4), and the bounds of its cost and memory.
#include "core/matching/unexpected_list.h"

#include <algorithm>
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

constexpr uint32_t pool_capacity = 1 << 20;

MatchCriteria from_anyone(uint64_t match_bits) { return {.match_bits = match_bits}; }

std::vector<Mix> mixes() {
  const uint64_t all_bits = ~uint64_t{0};
  return {
      {"one_shape", {{0, source_mask_exact}}, range(64), range(4)},
      {"everything", {{all_bits, source_mask_any}}, range(8), range(4)},
      {"like_mpi",
       {{0, source_mask_exact},
        {0, source_mask_any},
        {0xffffffff, source_mask_exact},
        {0xffffffff, source_mask_any}},
       range(24, 0x40000001),
       range(4)},
      {"more_shapes_than_indexes",
       {{0, source_mask_exact},
        {0, source_mask_any},
        {1, source_mask_exact},
        {1, source_mask_any},
        {6, source_mask_exact},
        {6, source_mask_any},
        {all_bits, source_mask_exact},
        {all_bits, source_mask_any},
        {all_bits, 1}},
       range(16),
       range(4)},
      {"node_and_process",
       {{0, source_mask_nid}, {0, source_mask_pid}, {all_bits, source_mask_nid}},
       range(16),
       {0x100000001, 0x100000002, 0x200000001, 0x200000002}},
      {"one_key", {{0, source_mask_exact}, {1, source_mask_exact}}, {6}, {9}},
      {"same_bucket", {{0, source_mask_exact}}, {}, {1}, 24},
      {"same_hash", {{0, source_mask_exact}}, {degenerate_bits()}, range(24)},
  };
}

class UnexpectedListModel : public ::testing::TestWithParam<Mix> {
 protected:
  void SetUp() override {
    if (mix_.colliding != 0) mix_.match_bits = colliding_bits(mix_.colliding);
  }
  [[nodiscard]] uint64_t pick(const std::vector<uint64_t>& values) {
    return values[random_() % values.size()];
  }
  // Two shapes at a time are searched for often and the others rarely, so that indexes are
  // reassigned.
  [[nodiscard]] MatchCriteria random_criteria(size_t phase) {
    const auto& shapes = mix_.shapes;
    const size_t favourite = phase + random_() % 2;
    const size_t chosen = random_() % 50 == 0 ? random_() : favourite;
    const auto& [ignore_bits, source_mask] = shapes[chosen % shapes.size()];
    return {.match_bits = pick(mix_.match_bits),
            .ignore_bits = ignore_bits,
            .source = pick(mix_.sources) & source_mask,
            .source_mask = source_mask};
  }
  void add_random() {
    UnexpectedHeader& header = *pool_.allocate(of_peer_);
    header.match_bits = pick(mix_.match_bits);
    header.source = pick(mix_.sources);
    list_.add(header);
    model_.push_back(&header);
  }
  void remove(UnexpectedHeader& header) {
    list_.remove(header);
    model_.erase(std::find(model_.begin(), model_.end(), &header));
    pool_.release(header);
  }
  [[nodiscard]] std::vector<UnexpectedHeader*> matching(const MatchCriteria& criteria) const {
    std::vector<UnexpectedHeader*> found;
    for (UnexpectedHeader* header : model_) {
      const bool bits_match = (header->match_bits & ~criteria.ignore_bits) ==
                              (criteria.match_bits & ~criteria.ignore_bits);
      if (bits_match && (header->source & criteria.source_mask) == criteria.source)
        found.push_back(header);
    }
    return found;
  }
  void claim_one(const MatchCriteria& criteria) {
    const std::vector<UnexpectedHeader*> expected = matching(criteria);
    UnexpectedHeader* const found = list_.find_first(criteria);
    ASSERT_EQ(found, expected.empty() ? nullptr : expected.front());
    if (found != nullptr && random_() % 2 == 0) remove(*found);
  }
  void visit_all(const MatchCriteria& criteria) {
    UnexpectedHeader* found = list_.find_first(criteria);
    for (UnexpectedHeader* expected : matching(criteria)) {
      ASSERT_EQ(found, expected);
      found = list_.find_next(criteria, *found);
    }
    ASSERT_EQ(found, nullptr);
  }
  void visit_and_remove(const MatchCriteria& criteria, uint64_t one_in) {
    UnexpectedList::Matches matches(list_, criteria);
    for (UnexpectedHeader* expected : matching(criteria)) {
      UnexpectedHeader* const found = matches.next();
      ASSERT_EQ(found, expected);
      if (random_() % one_in == 0) remove(*found);
    }
    ASSERT_EQ(matches.next(), nullptr);
  }
  void expect_same_order() {
    ASSERT_EQ(list_.size(), model_.size());
    const UnexpectedHeader* listed = list_.head();
    for (const UnexpectedHeader* header : model_) {
      ASSERT_EQ(listed, header);
      listed = list_.next(*listed);
    }
    ASSERT_EQ(listed, nullptr);
  }
  void run(size_t bound, size_t steps) {
    size_t longest = 0;
    size_t times_empty = 0;
    for (size_t step = 0; step < steps; ++step) {
      const bool growing = step / (bound * 10) % 2 == 0;
      const size_t phase = step / 3000;
      const uint64_t dice = random_() % 100;
      if (list_.size() < bound && dice < (growing ? 50 : 5))
        add_random();
      else if (dice < 70)
        claim_one(random_criteria(phase));
      else if (dice < 74)
        visit_all(random_criteria(phase));
      else if (dice < (growing ? 75 : 78))
        visit_and_remove(random_criteria(phase), 1 + random_() % 4);
      else if (!growing && !model_.empty())
        remove(*model_[random_() % model_.size()]);
      if (HasFatalFailure()) return;
      if (step % 500 == 0) expect_same_order();
      longest = std::max(longest, list_.size());
      if (list_.empty()) ++times_empty;
    }
    EXPECT_GT(longest, bound / 3);
    EXPECT_GT(times_empty, 0u);
  }

  Mix mix_ = GetParam();
  std::mt19937_64 random_{20240301};
  std::atomic<uint32_t> of_peer_{0};
  UnexpectedPool pool_;
  UnexpectedList list_;
  std::vector<UnexpectedHeader*> model_;
};

TEST_P(UnexpectedListModel, RandomOperationsAgree) {
  ASSERT_TRUE(pool_.open(500));
  list_.open(pool_);
  // Short lists follow long ones: when a list becomes empty, its buckets are reduced.
  for (const size_t bound : {6u, 14u, 60u, 500u, 60u, 14u}) run(bound, 40000);
}

TEST_P(UnexpectedListModel, RefusedMemoryOnlyCostsTime) {
  ASSERT_TRUE(pool_.open(60));
  list_.open(pool_);
  CountedMemory memory;
  // At first no memory, then the indexes themselves and one table, then all.
  memory.grant_only(0);
  run(60, 10000);
  memory.grant_only(2);
  run(60, 10000);
  memory.grant_all();
  run(60, 10000);
}

INSTANTIATE_TEST_SUITE_P(Mixes, UnexpectedListModel, ::testing::ValuesIn(mixes()),
                         [](const auto& info) { return std::string(info.param.name); });

// The n-th header has match bits n and comes from source 1.
class Arrived {
 public:
  explicit Arrived(size_t count) {
    EXPECT_TRUE(pool_.open(pool_capacity));
    list.open(pool_);
    for (size_t i = 0; i < count; ++i) headers.push_back(&add(i));
  }
  UnexpectedHeader& add(uint64_t match_bits) {
    UnexpectedHeader& header = *pool_.allocate(of_peer_);
    header.match_bits = match_bits;
    header.source = 1;
    list.add(header);
    return header;
  }
  void remove(UnexpectedHeader& header) {
    list.remove(header);
    pool_.release(header);
  }

 private:
  std::atomic<uint32_t> of_peer_{0};
  UnexpectedPool pool_;

 public:
  std::vector<UnexpectedHeader*> headers;
  UnexpectedList list;
};

// Also after it is gone: its messages were delivered.
TEST(UnexpectedPool, APeerThatTakesAllThatItMayLeavesSomeForOthers) {
  constexpr uint32_t most = 64;
  std::atomic<uint32_t> greedy{0};
  std::atomic<uint32_t> other{0};
  {
    UnexpectedPool pool;
    ASSERT_TRUE(pool.open(most));
    UnexpectedHeader* last = nullptr;
    for (uint32_t i = 0; i < most; ++i) {
      last = pool.allocate(greedy);
      ASSERT_NE(last, nullptr) << i;
    }
    EXPECT_EQ(pool.allocate(greedy), nullptr);
    for (uint32_t i = 0; i < most / 16; ++i) EXPECT_NE(pool.allocate(other), nullptr) << i;
    EXPECT_EQ(pool.allocate(other), nullptr);
    pool.release(*last);
    EXPECT_EQ(greedy, most - 1);
    EXPECT_NE(pool.allocate(greedy), nullptr);
  }
  // The interface is closed, and has given all headers back.
  EXPECT_EQ(greedy, 0u);
  EXPECT_EQ(other, 0u);
}

TEST(UnexpectedPool, KeepsWhatTheOverflowEventTells) {
  std::atomic<uint32_t> of_peer{0};
  UnexpectedPool pool;
  ASSERT_TRUE(pool.open(2));
  UnexpectedHeader& header = *pool.allocate(of_peer);
  const auto check = [&](MessageKind kind, const UnexpectedDetails& expected, bool detailed) {
    header.kind = kind;
    pool.set_details(header, expected);
    const UnexpectedDetails kept = pool.details_of(header);
    EXPECT_EQ(kept.mlength, expected.mlength);
    EXPECT_EQ(kept.rlength, expected.rlength);
    EXPECT_EQ(kept.remote_offset, expected.remote_offset);
    EXPECT_EQ(kept.fail, expected.fail);
    EXPECT_EQ(kept.operation, expected.operation);
    EXPECT_EQ(kept.datatype, expected.datatype);
    EXPECT_EQ(header.detailed, detailed);
  };
  constexpr uint64_t huge = uint64_t{1} << 47;
  check(MessageKind::put, {}, false);
  check(MessageKind::put, {.mlength = 65535, .rlength = 65535}, false);
  check(MessageKind::put, {.mlength = 65536, .rlength = 65536}, true);
  check(MessageKind::put, {.mlength = huge, .rlength = huge}, true);
  check(MessageKind::put, {.mlength = 0, .rlength = 65536}, true);
  check(MessageKind::put, {.mlength = 7, .rlength = 8}, true);
  check(MessageKind::put, {.mlength = 8, .rlength = 8, .remote_offset = huge}, true);
  check(MessageKind::put, {.mlength = 8, .rlength = 8, .fail = PTL_NI_SEGV}, true);
  check(MessageKind::get, {.mlength = 8, .rlength = 8}, true);
  check(MessageKind::atomic,
        {.mlength = 8, .rlength = 8, .operation = PTL_SUM, .datatype = PTL_DOUBLE}, true);
  check(MessageKind::put, {.mlength = 8, .rlength = 8}, false);
  pool.set_outcome(header, PTL_NI_UNDELIVERABLE, 0);
  EXPECT_EQ(pool.details_of(header).mlength, 0u);
  EXPECT_EQ(pool.details_of(header).rlength, 8u);
  EXPECT_EQ(pool.details_of(header).fail, PTL_NI_UNDELIVERABLE);
}

TEST(UnexpectedList, ArrivalsRequestNoMemory) {
  CountedMemory memory;
  {
    Arrived arrived(200000);
    const size_t requests_of_pool = memory.requests();
    for (const MatchCriteria& criteria :
         {exact(3), from_anyone(3), MatchCriteria{.match_bits = 3, .ignore_bits = 0xff0000000}}) {
      EXPECT_EQ(arrived.list.find_first(criteria), arrived.headers[3]);
    }
    const size_t requests = memory.requests();
    EXPECT_GT(requests, requests_of_pool);
    std::vector<UnexpectedHeader*> more;
    for (size_t i = 0; i < 500000; ++i) more.push_back(&arrived.add(i * 3));
    EXPECT_EQ(arrived.list.find_first(exact(600003)), more[200001]);
    EXPECT_EQ(arrived.list.find_next(exact(3), *arrived.headers[3]), more[1]);
    for (UnexpectedHeader* header : arrived.headers) arrived.remove(*header);
    for (UnexpectedHeader* header : more) arrived.remove(*header);
    EXPECT_TRUE(arrived.list.empty());
    UnexpectedHeader& first = arrived.add(77);
    for (size_t i = 1; i < more.size(); ++i) arrived.add(77);
    EXPECT_EQ(arrived.list.find_first(exact(77)), &first);
    EXPECT_EQ(memory.requests(), requests);
  }
  EXPECT_EQ(memory.outstanding_bytes(), 0u);
}

TEST(UnexpectedList, ShortListsAndFullWildcardsNeedNoIndex) {
  Arrived few(8), many(1000);
  CountedMemory memory;
  EXPECT_EQ(few.list.find_first(exact(7)), few.headers[7]);
  EXPECT_EQ(few.list.find_first(exact(8)), nullptr);
  const MatchCriteria everything{.ignore_bits = ~uint64_t{0}};
  UnexpectedList::Matches matches(many.list, everything);
  for (UnexpectedHeader* header : many.headers) {
    ASSERT_EQ(matches.next(), header);
    many.list.remove(*header);
  }
  EXPECT_EQ(matches.next(), nullptr);
  EXPECT_EQ(memory.requests(), 0u);
}

// Claims a header from the middle of the list and adds another one.
double claim_ns(Arrived& arrived) {
  constexpr int count = 2000;
  uint64_t bits = arrived.headers.size() / 2;
  keep(arrived.list.find_first(exact(bits)));  // builds the index
  return median_ns(21, count, [&] {
    for (int i = 0; i < count; ++i) {
      bits = (bits + 7919) % arrived.headers.size();
      arrived.remove(*arrived.list.find_first(exact(bits)));
      arrived.add(bits);
    }
  });
}

TEST(UnexpectedListCost, ClaimDoesNotGrowWithTheList) {
  Arrived ten(10), ten_thousand(10000), million(1000000);
  const double shallow_ns = claim_ns(ten);
  // A million headers do not fit in a cache. A linear search would take ten thousand times as long.
  EXPECT_LT(claim_ns(ten_thousand), 8 * shallow_ns);
  EXPECT_LT(claim_ns(million), 60 * shallow_ns);
}

TEST(UnexpectedListCost, EqualHeadersSlowDownNoOtherKeyOfTheirBucket) {
  const std::vector<uint64_t> keys = colliding_bits(8);
  const auto cost_ns = [&](size_t equal) {
    Arrived arrived(0);
    std::vector<UnexpectedHeader*> headers;
    for (size_t i = 0; i < equal + keys.size(); ++i)
      headers.push_back(&arrived.add(i < equal ? keys[0] : keys[i - equal]));
    UnexpectedHeader& last = *headers.back();
    UnexpectedHeader& middle = *headers[equal / 2];
    return median_ns(21, 2000, [&] {
      for (int i = 0; i < 1000; ++i) {
        EXPECT_EQ(arrived.list.find_first(exact(keys.back())), &last);
        for (UnexpectedHeader* header : {&last, &middle}) {
          arrived.list.remove(*header);
          arrived.list.add(*header);
        }
      }
    });
  };
  EXPECT_LT(cost_ns(10000), 5 * cost_ns(10));
}

TEST(UnexpectedListCost, AFifthShapeGetsTheIndexOfOneNoLongerUsed) {
  Arrived arrived(20000);
  const auto search = [&](uint64_t ignore_bits) {
    MatchCriteria criteria = exact(arrived.headers.size() - 1);
    criteria.ignore_bits = ignore_bits << 32;
    EXPECT_EQ(arrived.list.find_first(criteria), arrived.headers.back());
  };
  for (uint64_t shape = 1; shape <= 4; ++shape) search(shape);
  const double scan_ns = median_ns(9, 1, [&] { search(5); });
  for (int i = 0; i < 200; ++i) search(5);
  EXPECT_LT(median_ns(9, 1, [&] { search(5); }), scan_ns / 5);
}

}  // namespace
}  // namespace lintel
