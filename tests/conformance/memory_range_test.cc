// Descriptors and entries over the whole address space, and accesses to unmapped memory.
#include <algorithm>

#include <gtest/gtest.h>

#include "operations.h"

namespace lintel::test {
namespace {

class WholeMemoryTest : public testing::TestWithParam<PairKind> {};
INSTANTIATE_TEST_SUITE_P(Paths, WholeMemoryTest, testing::ValuesIn(all_pairs()), pair_name);

ptl_size_t offset_of(const void* address) { return reinterpret_cast<ptl_size_t>(address); }

// spec 3.10, 3.11, 3.12
TEST_P(WholeMemoryTest, DescriptorAndEntryMayCoverEverything) {
  run_pair(GetParam(), [](Pair& pair) {
    TargetSide target(pair, {.bytes = 200000});
    InitiatorSide initiator(pair, {.bytes = 200000});
    pair.on_target([&] {
      ASSERT_NE(pair.limits().features & PTL_TARGET_BIND_INACCESSIBLE, 0u);
      target.append({.start = nullptr,
                     .length = PTL_SIZE_MAX,
                     .options = PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE});
      pair.rank().publish(1, offset_of(target.memory.data()));
    });
    pair.on_initiator([&] {
      const auto remote = pair.rank().published<ptl_size_t>(pair.target_rank(), 1);
      const Descriptor everything(
          pair.ni(), {nullptr, PTL_SIZE_MAX, 0, initiator.source.events.handle(), PTL_CT_NONE});
      for (const ptl_size_t length : {ptl_size_t{8}, ptl_size_t{1000}, ptl_size_t{200000}}) {
        fill(initiator.source.memory, 3);
        must(PtlPut(everything.handle(), offset_of(initiator.source.memory.data()), length,
                    PTL_ACK_REQ, pair.target_id(), default_pt_index, 0, remote, nullptr, 0));
        const auto [send, ack] = initiator.expect_send_and_ack();
        EXPECT_EQ(ack.mlength, length);
        EXPECT_EQ(ack.remote_offset, remote);
        must(PtlGet(everything.handle(), offset_of(initiator.result.memory.data()), length,
                    pair.target_id(), default_pt_index, 0, remote, nullptr));
        EXPECT_EQ(initiator.source.events.expect(PTL_EVENT_REPLY).mlength, length);
        expect_pattern(initiator.result.memory.first(length), 3);
      }
    });
    pair.on_target([&] {
      const ptl_event_t event = target.events.expect(PTL_EVENT_PUT);
      EXPECT_EQ(event.start, target.memory.data());
      expect_pattern(target.memory, 3);
    });
  });
}

class MissingMemoryTest : public testing::TestWithParam<PairKind> {};
INSTANTIATE_TEST_SUITE_P(Paths, MissingMemoryTest, testing::ValuesIn(all_pairs()), pair_name);

constexpr ptl_size_t segv_sizes[] = {1, 8, 64, 500, 4000, 20000, 300000};

// A put whose send or acknowledgment reports PTL_NI_SEGV. No acknowledgment follows a failed send.
void expect_failed_put(InitiatorSide& initiator) {
  const ptl_event_t first = initiator.source.events.next();
  if (first.type == PTL_EVENT_SEND && first.ni_fail_type == PTL_NI_SEGV) {
    initiator.fence();
    initiator.source.events.expect_silence();
    return;
  }
  const ptl_event_t second = initiator.source.events.next();
  const ptl_event_t& ack = first.type == PTL_EVENT_ACK ? first : second;
  EXPECT_EQ(ack.type, PTL_EVENT_ACK) << ack;
  EXPECT_EQ(ack.ni_fail_type, PTL_NI_SEGV) << ack;
}

// spec 3.10, 3.13.3
TEST_P(MissingMemoryTest, PutFromItFailsAtTheInitiator) {
  run_pair(GetParam(), [](Pair& pair) {
    TargetSide target(pair, {.bytes = 300000});
    InitiatorSide initiator(pair);
    pair.on_target([&] { target.append(target.entry(PTL_ME_OP_PUT | PTL_ME_EVENT_COMM_DISABLE)); });
    pair.on_initiator([&] {
      const GuardedPages pages(1);
      for (const ptl_size_t size : segv_sizes) {
        SCOPED_TRACE(size);
        // The second half of the message is inaccessible.
        const Descriptor missing(pair.ni(),
                                 {pages.end() - std::min<ptl_size_t>(size / 2, 4096), size, 0,
                                  initiator.source.events.handle(), PTL_CT_NONE});
        must(PtlPut(missing.handle(), 0, size, PTL_ACK_REQ, pair.target_id(), default_pt_index, 0,
                    0, nullptr, 0));
        expect_failed_put(initiator);
      }
      initiator.put_and_wait({.length = 100});
    });
  });
}

// spec 3.10, 3.14
TEST_P(MissingMemoryTest, PutFromItCountsAsAFailure) {
  run_pair(GetParam(), [](Pair& pair) {
    TargetSide target(pair);
    InitiatorSide initiator(pair);
    pair.on_target([&] { target.append(target.entry(PTL_ME_OP_PUT | PTL_ME_EVENT_COMM_DISABLE)); });
    pair.on_initiator([&] {
      const GuardedPages pages(1);
      const Descriptor missing(
          pair.ni(), {pages.end(), 8, PTL_MD_EVENT_CT_SEND | PTL_MD_EVENT_CT_ACK, PTL_EQ_NONE,
                      initiator.source.counter.handle()});
      must(PtlPut(missing.handle(), 0, 8, PTL_ACK_REQ, pair.target_id(), default_pt_index, 0, 0,
                  nullptr, 0));
      pair.rank().await_condition("waiting for a failure to be counted",
                                  [&] { return initiator.source.counter.value().failure >= 1; });
    });
  });
}

// spec 3.11, 3.12, 3.13.3
TEST_P(MissingMemoryTest, PutIntoItFailsAtBothEnds) {
  run_pair(GetParam(), [](Pair& pair) {
    TargetSide target(pair);
    InitiatorSide initiator(pair, {.bytes = 300000, .options = PTL_MD_EVENT_CT_ACK});
    const GuardedPages pages(1);
    ptl_size_t failures = 0;
    for (const ptl_size_t size : segv_sizes) {
      SCOPED_TRACE(size);
      pair.on_target([&] {
        target.append({.start = pages.end() - std::min<ptl_size_t>(size / 2, 4096),
                       .length = size,
                       .options = PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_EVENT_CT_COMM |
                                  PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_UNLINK_DISABLE,
                       .counter = target.counter.handle()},
                      PTL_PRIORITY_LIST, tag(55));
      });
      ++failures;
      pair.on_initiator([&] {
        initiator.put_and_wait({.length = size}, PTL_NI_SEGV);
        initiator.source.counter.expect(0, failures);
      });
      pair.on_target([&] {
        const ptl_event_t event = target.events.expect(PTL_EVENT_PUT, PTL_NI_SEGV);
        EXPECT_EQ(event.user_ptr, tag(55));
        EXPECT_EQ(event.rlength, size);
        target.counter.expect(0, failures);
      });
    }
  });
}

// spec 3.11, 3.12, 3.13.3
TEST_P(MissingMemoryTest, GetFromItFailsAtBothEnds) {
  run_pair(GetParam(), [](Pair& pair) {
    TargetSide target(pair);
    InitiatorSide initiator(pair, {.bytes = 300000});
    const GuardedPages pages(1);
    for (const ptl_size_t size : segv_sizes) {
      SCOPED_TRACE(size);
      pair.on_target([&] {
        target.append({.start = pages.end() - std::min<ptl_size_t>(size / 2, 4096),
                       .length = size,
                       .options = PTL_ME_OP_GET | PTL_ME_USE_ONCE | PTL_ME_EVENT_LINK_DISABLE |
                                  PTL_ME_EVENT_UNLINK_DISABLE});
      });
      pair.on_initiator([&] { initiator.get_and_wait({.length = size}, PTL_NI_SEGV); });
      pair.on_target([&] { target.events.expect(PTL_EVENT_GET, PTL_NI_SEGV); });
    }
  });
}

// spec 3.10, 3.13.3
TEST_P(MissingMemoryTest, GetIntoItFailsAtTheInitiator) {
  run_pair(GetParam(), [](Pair& pair) {
    TargetSide target(pair, {.bytes = 300000});
    InitiatorSide initiator(pair);
    pair.on_target([&] {
      target.append(
          target.entry(PTL_ME_OP_GET | PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_SUCCESS_DISABLE));
    });
    pair.on_initiator([&] {
      const GuardedPages pages(1);
      for (const ptl_size_t size : segv_sizes) {
        SCOPED_TRACE(size);
        const Descriptor missing(pair.ni(),
                                 {pages.end() - std::min<ptl_size_t>(size / 2, 4096), size, 0,
                                  initiator.result.events.handle(), PTL_CT_NONE});
        must(PtlGet(missing.handle(), 0, size, pair.target_id(), default_pt_index, 0, 0, nullptr));
        initiator.result.events.expect(PTL_EVENT_REPLY, PTL_NI_SEGV);
      }
      initiator.get_and_wait({.length = 100});
    });
  });
}

// spec 3.12, 3.15.4
TEST_P(MissingMemoryTest, AtomicsOnItFailAtBothEnds) {
  run_pair(GetParam(), [](Pair& pair) {
    TargetSide target(pair);
    InitiatorSide initiator(pair);
    const GuardedPages pages(1);
    pair.on_target([&] {
      target.append({.start = pages.end(),
                     .length = 64,
                     .options = PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE});
    });
    for (const Operation operation :
         {Operation::atomic, Operation::fetch_atomic, Operation::swap}) {
      SCOPED_TRACE(name_of(operation));
      pair.on_initiator([&] { perform(initiator, operation, {.length = 8}, PTL_NI_SEGV); });
      pair.on_target([&] { target.events.expect(target_event(operation), PTL_NI_SEGV); });
    }
  });
}

// spec 3.11, 3.12, 3.13.1, 3.13.4
TEST_P(MissingMemoryTest, UnexpectedMessagesKeepTheirFailure) {
  run_pair(GetParam(), [](Pair& pair) {
    TargetSide target(pair);
    InitiatorSide initiator(pair);
    const GuardedPages pages(1);
    pair.on_target([&] {
      target.append({.start = pages.end(),
                     .length = 64,
                     .options = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE},
                    PTL_OVERFLOW_LIST);
    });
    pair.on_initiator([&] { initiator.put_and_wait({.length = 64}, PTL_NI_SEGV); });
    pair.on_target([&] {
      target.events.expect(PTL_EVENT_PUT, PTL_NI_SEGV);
      target.append({.options = PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_EVENT_CT_OVERFLOW |
                                PTL_ME_EVENT_SUCCESS_DISABLE | PTL_ME_EVENT_UNLINK_DISABLE,
                     .counter = target.counter.handle()},
                    PTL_PRIORITY_LIST, tag(7));
      EXPECT_EQ(target.events.expect(PTL_EVENT_PUT_OVERFLOW, PTL_NI_SEGV).user_ptr, tag(7));
      target.counter.expect(0, 1);
    });
  });
}

// spec 3.12, C.2
TEST_P(MissingMemoryTest, MessagesOfZeroBytesDoNotAccessIt) {
  run_pair(GetParam(), [](Pair& pair) {
    TargetSide target(pair);
    InitiatorSide initiator(pair, {.options = PTL_MD_EVENT_CT_ACK});
    const GuardedPages pages(1);
    pair.on_target([&] {
      target.append({.start = pages.end(),
                     .length = 64,
                     .options = PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE |
                                PTL_ME_EVENT_CT_COMM,
                     .counter = target.counter.handle()});
    });
    pair.on_initiator([&] {
      initiator.put_and_wait({.length = 0});
      initiator.get_and_wait({.length = 0});
      const Descriptor missing(
          pair.ni(), {pages.end(), 8, PTL_MD_EVENT_CT_ACK, initiator.source.events.handle(),
                      initiator.source.counter.handle()});
      must(PtlPut(missing.handle(), 3, 0, PTL_ACK_REQ, pair.target_id(), default_pt_index, 0, 5,
                  nullptr, 0));
      initiator.expect_send_and_ack();
      initiator.source.counter.expect(2);
    });
    pair.on_target([&] {
      target.events.expect(PTL_EVENT_PUT);
      target.events.expect(PTL_EVENT_GET);
      target.events.expect(PTL_EVENT_PUT);
      target.counter.expect(3);
    });
  });
}

// spec 3.10
TEST_P(MissingMemoryTest, BindingItIsNotAnError) {
  run_pair(GetParam(), [](Pair& pair) {
    TargetSide target(pair);
    InitiatorSide initiator(pair);
    const GuardedPages pages(2);
    const std::size_t page = GuardedPages::page_bytes;
    pair.on_target([&] {
      target.append({.start = pages.accessible().data() - page,
                     .length = 4 * page,
                     .options = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE});
    });
    pair.on_initiator([&] {
      fill(pages.accessible(), 8);
      const Descriptor wide(pair.ni(), {pages.accessible().data() - page, 4 * page, 0,
                                        initiator.source.events.handle(), PTL_CT_NONE});
      must(PtlPut(wide.handle(), page, 2 * page, PTL_ACK_REQ, pair.target_id(), default_pt_index, 0,
                  page, nullptr, 0));
      initiator.expect_send_and_ack();
    });
    pair.on_target([&] { expect_pattern(pages.accessible(), 8); });
  });
}

}  // namespace
}  // namespace lintel::test
