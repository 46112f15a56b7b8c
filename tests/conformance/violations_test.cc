// Usage ids and permitted operations: the effects of a violation at both ends and on the status
// registers.
#include <gtest/gtest.h>

#include "operations.h"

namespace lintel::test {
namespace {

class ViolationsTest : public testing::TestWithParam<PairKind> {};
INSTANTIATE_TEST_SUITE_P(Paths, ViolationsTest, testing::ValuesIn(all_pairs()), pair_name);

ptl_uid_t own_uid(Pair& pair) {
  ptl_uid_t uid = 0;
  must(PtlGetUid(pair.ni(), &uid));
  return uid;
}

void expect_registers(Pair& pair, ptl_sr_value_t permission, ptl_sr_value_t operation,
                      ptl_sr_value_t dropped, Place place = Place::current()) {
  const testing::ScopedTrace trace(place.file_name(), static_cast<int>(place.line()), "registers");
  EXPECT_EQ(pair.interface().status(PTL_SR_PERMISSION_VIOLATIONS), permission);
  EXPECT_EQ(pair.interface().status(PTL_SR_OPERATION_VIOLATIONS), operation);
  EXPECT_EQ(pair.interface().status(PTL_SR_DROP_COUNT), dropped);
}

// spec 3.3.7, 3.11.1, 3.12.1, 3.13.3, 2.5
TEST_P(ViolationsTest, AStrangersUsageIdRefusesEveryOperation) {
  run_pair(GetParam(), [](Pair& pair) {
    TargetSide target(pair);
    InitiatorSide initiator(pair, {.options = PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_REPLY});
    pair.on_target([&] {
      fill(target.memory, 3);
      target.append(PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_USE_ONCE | PTL_ME_EVENT_CT_COMM,
                    {.counter = target.counter.handle(), .uid = own_uid(pair) + 1});
      // The search ends at the first matching entry, so this one must not be tried.
      target.append(PTL_ME_OP_PUT | PTL_ME_OP_GET);
    });
    pair.on_initiator([&] {
      fill(initiator.source.memory, 4);
      ptl_size_t acks = 0;
      ptl_size_t replies = 0;
      for (const Operation operation : all_operations) {
        SCOPED_TRACE(name_of(operation));
        perform(initiator, operation, {.length = 8, .user_ptr = tag(6)}, PTL_NI_PERM_VIOLATION);
        acks += acked(operation) ? 1 : 0;
        replies += replied(operation) ? 1 : 0;
        initiator.source.counter.expect(0, acks);
        initiator.result.counter.expect(0, replies);
      }
      expect_bytes(initiator.result.memory, std::byte{0});
    });
    pair.on_target([&] {
      expect_registers(pair, std::size(all_operations), 0, 0);
      target.events.expect_silence();  // not even an unlink event
      target.counter.expect(0);
      expect_pattern(target.memory, 3);
    });
  });
}

// spec 3.8, 3.8.1, 3.11.1, 3.12.1
TEST_P(ViolationsTest, OwnUsageIdAndWildcardAdmit) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target([&] {
      EntrySpec spec = target.entry(PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE);
      spec.uid = own_uid(pair);
      target.append(spec);
      spec.uid = PTL_UID_ANY;
      target.append(spec);
    });
    pair.on_initiator([&] {
      initiator.put_and_wait({.length = 8});
      initiator.put_and_wait({.length = 8});
    });
    pair.on_target([&] {
      EXPECT_EQ(target.events.expect(PTL_EVENT_PUT).uid, own_uid(pair));
      expect_registers(pair, 0, 0, 0);
    });
  });
}

// spec 3.3.7, 3.11.1, 3.12.1, 3.13.3, 4.2.2
TEST_P(ViolationsTest, OperationsThatTheEntryDoesNotAllowAreRefused) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    ptl_sr_value_t refused = 0;
    for (const unsigned allowed :
         {0u, PTL_ME_OP_PUT, PTL_ME_OP_GET, PTL_ME_OP_PUT | PTL_ME_OP_GET}) {
      ptl_handle_any_t entry = PTL_INVALID_HANDLE;
      pair.on_target([&] { entry = target.append(allowed); });
      for (const Operation operation : all_operations) {
        SCOPED_TRACE(name_of(operation) + " with options " + std::to_string(allowed));
        const bool admitted = (needed_options(operation) & ~allowed) == 0;
        pair.on_initiator([&] {
          perform(initiator, operation, {.length = 8}, admitted ? PTL_NI_OK : PTL_NI_OP_VIOLATION);
        });
        if (!admitted) ++refused;
        pair.on_target([&] {
          if (admitted) target.events.expect(target_event(operation));
          target.events.expect_empty();
          expect_registers(pair, 0, refused, 0);
        });
      }
      pair.on_target([&] { pair.interface().unlink_when_idle(entry); });
    }
  });
}

// spec 2.5, 3.11.1, 3.12.1
TEST_P(ViolationsTest, ARefusedMessageLeavesTheEntryForTheNext) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target([&] { target.append(PTL_ME_OP_PUT | PTL_ME_USE_ONCE); });
    pair.on_initiator([&] {
      initiator.get_and_wait({.length = 8}, PTL_NI_OP_VIOLATION);
      initiator.put_and_wait({.length = 8});
    });
    pair.on_target([&] {
      target.events.expect(PTL_EVENT_PUT);
      target.events.expect(PTL_EVENT_AUTO_UNLINK);
    });
  });
}

// spec 2.5, 3.3.7
TEST_P(ViolationsTest, OverflowEntriesCheckToo) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target([&] { target.append_overflow(PTL_ME_OP_GET); });
    pair.on_initiator([&] { initiator.put_and_wait({.length = 8}, PTL_NI_OP_VIOLATION); });
    pair.on_target([&] {
      expect_registers(pair, 0, 1, 0);
      must(pair.interface().search(default_pt_index, {}, PTL_SEARCH_ONLY, nullptr));
      target.events.expect(PTL_EVENT_SEARCH, PTL_NI_NO_MATCH);
    });
  });
}

// spec 3.13.3, 2.6
TEST_P(ViolationsTest, LargeMessagesAreRefusedWithoutTouchingMemory) {
  run_pair(GetParam(), [](Pair& pair) {
    const std::size_t bytes = 500000;
    TargetSide target(pair, {.bytes = bytes});
    InitiatorSide initiator(pair, {.bytes = bytes});
    pair.on_target([&] {
      fill(target.memory, 8);
      target.append(0);
    });
    pair.on_initiator([&] {
      initiator.put_and_wait({.length = bytes}, PTL_NI_OP_VIOLATION);
      initiator.get_and_wait({.length = bytes}, PTL_NI_OP_VIOLATION);
      expect_bytes(initiator.result.memory, std::byte{0});
    });
    pair.on_target([&] {
      expect_pattern(target.memory, 8);
      expect_registers(pair, 0, 2, 0);
    });
  });
}

// spec 3.3.7, 2.5, 2.8
TEST_P(ViolationsTest, DropsAreCountedApart) {
  run_sides(GetParam(), [](Pair& pair, TargetSide&, InitiatorSide& initiator) {
    pair.on_initiator([&] {
      for (const Operation operation : all_operations) start(initiator, operation, {.length = 8});
      initiator.fence();
    });
    pair.on_target([&] { expect_registers(pair, 0, 0, std::size(all_operations)); });
  });
}

// spec 4.2.2, 3.3.7
TEST_P(ViolationsTest, MessagesToAPortalThatWasNeverAllocatedAreDropped) {
  run_sides(GetParam(), [](Pair& pair, TargetSide&, InitiatorSide& initiator) {
    pair.on_initiator([&] {
      initiator.put({.length = 8, .pt_index = 77});
      // If there is an acknowledgment, it reports the failure.
      ptl_event_t event = initiator.source.events.next();
      if (event.type == PTL_EVENT_SEND) {
        EXPECT_EQ(event.ni_fail_type, PTL_NI_OK);
        initiator.fence();
        if (PtlEQGet(initiator.source.events.handle(), &event) != PTL_OK) return;
        EXPECT_EQ(event.type, PTL_EVENT_ACK);
        EXPECT_EQ(event.ni_fail_type, PTL_NI_DROPPED);
      } else {
        EXPECT_EQ(event.type, PTL_EVENT_ACK);
        EXPECT_EQ(event.ni_fail_type, PTL_NI_DROPPED);
        initiator.source.events.expect(PTL_EVENT_SEND);
      }
    });
    pair.on_target([&] { expect_registers(pair, 0, 0, 1); });
  });
}

// spec 3.6, 3.6.4, 3.3.7
TEST_P(ViolationsTest, EachLogicalInterfaceHasItsOwnRegisters) {
  run_sides(GetParam(), [](Pair& pair, TargetSide&, InitiatorSide& initiator) {
    InterfaceKind other_kind = pair.interface().kind();
    other_kind.matching = !other_kind.matching;
    Interface other(other_kind, {});
    other.exchange(pair.rank());
    pair.on_initiator([&] {
      initiator.put({.length = 8});
      initiator.fence();
    });
    pair.on_target([&] {
      expect_registers(pair, 0, 0, 1);
      EXPECT_EQ(other.status(PTL_SR_DROP_COUNT), 0);
    });
  });
}

class ManagedViolationTest : public testing::TestWithParam<PairKind> {};
INSTANTIATE_TEST_SUITE_P(Paths, ManagedViolationTest, testing::ValuesIn(matching_pairs()),
                         pair_name);

// spec 2.5, 3.12.1
TEST_P(ManagedViolationTest, ARefusedMessageDoesNotMoveTheOffset) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target([&] { target.append(PTL_ME_OP_PUT | PTL_ME_MANAGE_LOCAL); });
    pair.on_initiator([&] {
      EXPECT_EQ(initiator.put_and_wait({.length = 10}).ack.remote_offset, 0u);
      initiator.get_and_wait({.length = 10}, PTL_NI_OP_VIOLATION);
      EXPECT_EQ(initiator.put_and_wait({.length = 10}).ack.remote_offset, 10u);
    });
  });
}

}  // namespace
}  // namespace lintel::test
