// When an entry reports what, while data are still arriving: of messages that match the entry, or
// of headers that it has matched.
#include <portals4.h>

#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "bare_target_support.h"
#include "core/operations/peer.h"
#include "support/text.h"
#include "unit/entry_for_all.h"

namespace lintel {
namespace {

using test::must;
using test::wait_until;

constexpr ptl_pt_index_t pt_index = 3;
constexpr uint64_t length = 100;

void* tag(uintptr_t number) { return reinterpret_cast<void*>(number); }

// Here the bare transport is the sender; it sends data only when a test requests it.
class ArrivingMessagesTest : public test::BareTargetTest {
 protected:
  void SetUp() override {
    BareTargetTest::SetUp();
    ptl_process_t id{};
    must(PtlGetPhysId(ni_, &id));
    link_ = test::connect_or_fail(*target_, {id.phys.nid, id.phys.pid});
  }

  void open_portal(unsigned options, ptl_size_t slots) {
    must(PtlEQAlloc(ni_, slots, &events_));
    ptl_pt_index_t index = 0;
    must(PtlPTAlloc(ni_, options, events_, pt_index, &index));
  }
  ptl_handle_me_t append(ptl_list_t list, unsigned options, uintptr_t number,
                         ptl_size_t min_free = 0, ptl_handle_ct_t counter = PTL_CT_NONE) {
    ptl_me_t entry = test::entry_for_all(
        memory_, sizeof memory_, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE | options, counter);
    entry.min_free = min_free;
    ptl_handle_me_t handle = PTL_INVALID_HANDLE;
    must(PtlMEAppend(ni_, pt_index, &entry, list, tag(number), &handle));
    return handle;
  }

  // Returns what the search has counted by its end.
  ptl_ct_event_t search(ptl_search_op_t mode, unsigned options, uintptr_t number) {
    ptl_handle_ct_t counter{};
    must(PtlCTAlloc(ni_, &counter));
    const ptl_me_t entry = test::entry_for_all(nullptr, 0, options, counter);
    must(PtlMESearch(ni_, pt_index, &entry, mode, tag(number)));
    ptl_ct_event_t value{};
    must(PtlCTGet(counter, &value));
    must(PtlCTFree(counter));
    return value;
  }

  void send(const MessageHeader& header, uint64_t payload_bytes) {
    const Piece piece{memory_to_send_, payload_bytes};
    ASSERT_TRUE(wait_until([&] {
      const SendStatus status = target_->send(*link_, header, &piece, payload_bytes != 0 ? 1 : 0);
      if (status == SendStatus::sent) return true;
      target_->poll(sink_, 64);
      return false;
    }));
  }
  static MessageHeader put_header() {
    MessageHeader header{};
    header.kind = MessageKind::put;
    header.flags = slot_matching;
    header.pt_index = pt_index;
    header.set_length(length);
    return header;
  }
  void put() { send(put_header(), length); }
  // When this returns, the message has been matched and its data requested. Pass the result to
  // finish_put().
  uint64_t begin_put() {
    MessageHeader header = put_header();
    header.flags |= flag_remote_memory;
    send(header, 0);
    const uint64_t requests = requests_ + 1;
    EXPECT_TRUE(wait_until([&] {
      target_->poll(sink_, 64);
      return take_data_requests() == requests;
    }));
    return newest_transfer_;
  }
  void finish_put(uint64_t transfer) {
    MessageHeader header{};
    header.kind = MessageKind::data;
    header.flags = flag_last;
    header.cookie = static_cast<uint32_t>(transfer);
    header.set_length(length);
    send(header, length);
  }

  // The next events as text: their type and the number of their entry.
  std::vector<std::string> next_events(size_t count) {
    std::vector<std::string> names;
    while (names.size() < count) {
      ptl_event_t event{};
      unsigned which = 0;
      if (PtlEQPoll(&events_, 1, static_cast<ptl_time_t>(test::wait_deadline.count()), &event,
                    &which) != PTL_OK) {
        ADD_FAILURE() << "after " << names.size() << " events";
        break;
      }
      names.push_back(test::event_name(event.type) + " " +
                      std::to_string(reinterpret_cast<uintptr_t>(event.user_ptr)));
    }
    return names;
  }
  void expect_no_event() {
    // After this poll, everything sent before has been processed.
    physical().poller().exclusively([&] { physical().poller().poll_once(); });
    ptl_event_t event{};
    EXPECT_EQ(PtlEQGet(events_, &event), PTL_EQ_EMPTY) << test::event_name(event.type);
  }
  void expect_unlinked_in_time(ptl_handle_me_t entry) {
    int code = PTL_IN_USE;
    EXPECT_TRUE(wait_until([&] { return (code = PtlMEUnlink(entry)) != PTL_IN_USE; }));
    EXPECT_EQ(code, PTL_OK);
  }

  Link* link_ = nullptr;
  ptl_handle_eq_t events_{};
  std::byte memory_[3 * length]{};
  std::byte memory_to_send_[length]{};

 private:
  uint64_t take_data_requests() {
    for (const auto& [link, messages] : sink_.by_link)
      for (; looked_at_ < messages.size(); ++looked_at_) {
        if (messages[looked_at_].header.kind != MessageKind::data_request) continue;
        ++requests_;
        newest_transfer_ = messages[looked_at_].header.match_bits;
      }
    return requests_;
  }
  size_t looked_at_ = 0;
  uint64_t requests_ = 0;
  uint64_t newest_transfer_ = 0;
};

using Names = std::vector<std::string>;

// Each entry is used up by its second message while the data of its first are arriving. Each
// message has reserved a slot for the event of the unlink; only one slot is needed.
TEST_F(ArrivingMessagesTest, AnEntryUsedUpMeanwhileGivesBackWhatItReserved) {
  open_portal(PTL_PT_FLOWCTRL, 64);
  constexpr unsigned options = PTL_ME_MANAGE_LOCAL;
  for (uintptr_t round = 1; round <= 600 && !HasFailure(); ++round) {
    append(PTL_PRIORITY_LIST, options, round, length + 50);
    const uint64_t first = begin_put();
    const std::string number = " " + std::to_string(round);
    if (round % 2 == 0) {
      put();
      EXPECT_EQ(next_events(1), (Names{"PTL_EVENT_PUT" + number}));
    } else {
      const uint64_t second = begin_put();
      finish_put(second);
      EXPECT_EQ(next_events(1), (Names{"PTL_EVENT_PUT" + number}));
    }
    finish_put(first);
    EXPECT_EQ(next_events(2), (Names{"PTL_EVENT_PUT" + number, "PTL_EVENT_AUTO_UNLINK" + number}));
  }
}

TEST_F(ArrivingMessagesTest, AnEntryThatMatchedAnArrivingHeaderUnlinksAfterItsOverflowEvent) {
  open_portal(0, 64);
  const ptl_handle_me_t buffer = append(PTL_OVERFLOW_LIST, 0, 1);
  const uint64_t transfer = begin_put();
  const ptl_handle_me_t entry = append(PTL_PRIORITY_LIST, PTL_ME_USE_ONCE, 2);
  expect_no_event();
  EXPECT_EQ(PtlMEUnlink(entry), PTL_IN_USE);
  EXPECT_EQ(PtlMEUnlink(buffer), PTL_IN_USE);
  finish_put(transfer);
  EXPECT_EQ(next_events(3),
            (Names{"PTL_EVENT_PUT 1", "PTL_EVENT_PUT_OVERFLOW 2", "PTL_EVENT_AUTO_UNLINK 2"}));
  expect_unlinked_in_time(buffer);
  expect_no_event();
}

TEST_F(ArrivingMessagesTest, ABufferIsFreeAfterAllThatItsMessageCauses) {
  open_portal(PTL_PT_FLOWCTRL, 64);
  for (int round = 0; round < 100 && !HasFailure(); ++round) {
    append(PTL_OVERFLOW_LIST, PTL_ME_USE_ONCE, 1);
    const uint64_t transfer = begin_put();
    append(PTL_PRIORITY_LIST, PTL_ME_USE_ONCE, 2);
    finish_put(transfer);
    EXPECT_EQ(next_events(5),
              (Names{"PTL_EVENT_PUT 1", "PTL_EVENT_PUT_OVERFLOW 2", "PTL_EVENT_AUTO_UNLINK 2",
                     "PTL_EVENT_AUTO_UNLINK 1", "PTL_EVENT_AUTO_FREE 1"}));
  }
}

TEST_F(ArrivingMessagesTest, APersistentEntryThatMatchedAnArrivingHeaderIsInUse) {
  open_portal(0, 64);
  const ptl_handle_me_t buffer = append(PTL_OVERFLOW_LIST, 0, 1);
  const uint64_t transfer = begin_put();
  const ptl_handle_me_t entry = append(PTL_PRIORITY_LIST, 0, 2);
  EXPECT_EQ(PtlMEUnlink(entry), PTL_IN_USE);
  finish_put(transfer);
  EXPECT_EQ(next_events(2), (Names{"PTL_EVENT_PUT 1", "PTL_EVENT_PUT_OVERFLOW 2"}));
  expect_unlinked_in_time(entry);
  expect_unlinked_in_time(buffer);
  expect_no_event();
}

// A search ends within its call: before the first matching header whose data are still arriving.
TEST_F(ArrivingMessagesTest, ASearchFindsNothingBehindAnArrivingHeader) {
  open_portal(0, 64);
  append(PTL_OVERFLOW_LIST, PTL_ME_EVENT_COMM_DISABLE, 1);
  put();
  const uint64_t transfer = begin_put();
  put();
  constexpr ptl_ct_event_t found_and_end{1, 1};
  constexpr ptl_ct_event_t all_and_end{2, 1};
  constexpr ptl_ct_event_t found{1, 0};
  constexpr ptl_ct_event_t nothing{0, 1};
  const auto expect_counts = [&](ptl_ct_event_t actual, ptl_ct_event_t expected) {
    EXPECT_EQ(actual.success, expected.success);
    EXPECT_EQ(actual.failure, expected.failure);
  };
  physical().poller().exclusively(
      [&] { physical().poller().poll_once(); });  // receives everything that was sent
  expect_counts(search(PTL_SEARCH_ONLY, 0, 3), found_and_end);
  EXPECT_EQ(next_events(2), (Names{"PTL_EVENT_SEARCH 3", "PTL_EVENT_SEARCH 3"}));
  expect_counts(search(PTL_SEARCH_DELETE, 0, 4), found_and_end);
  EXPECT_EQ(next_events(2), (Names{"PTL_EVENT_PUT_OVERFLOW 4", "PTL_EVENT_SEARCH 4"}));
  expect_counts(search(PTL_SEARCH_DELETE, PTL_ME_USE_ONCE, 5), nothing);
  expect_counts(search(PTL_SEARCH_ONLY, PTL_ME_USE_ONCE, 6), nothing);
  EXPECT_EQ(next_events(2), (Names{"PTL_EVENT_SEARCH 5", "PTL_EVENT_SEARCH 6"}));
  finish_put(transfer);
  physical().poller().exclusively([&] { physical().poller().poll_once(); });
  expect_counts(search(PTL_SEARCH_ONLY, PTL_ME_USE_ONCE, 7), found);
  EXPECT_EQ(next_events(1), (Names{"PTL_EVENT_SEARCH 7"}));
  expect_counts(search(PTL_SEARCH_DELETE, 0, 8), all_and_end);
  EXPECT_EQ(next_events(3),
            (Names{"PTL_EVENT_PUT_OVERFLOW 8", "PTL_EVENT_PUT_OVERFLOW 8", "PTL_EVENT_SEARCH 8"}));
  expect_no_event();
}

// An append claims every matching header at once. Each is reported when its data have arrived, like
// a message that matches an entry of the priority list.
TEST_F(ArrivingMessagesTest, AnAppendTakesArrivingHeadersAndTellsWhenTheyHaveArrived) {
  open_portal(0, 64);
  append(PTL_OVERFLOW_LIST, PTL_ME_EVENT_COMM_DISABLE, 1);
  ptl_handle_ct_t counter{};
  must(PtlCTAlloc(ni_, &counter));
  const auto count = [&] {
    ptl_ct_event_t value{};
    must(PtlCTGet(counter, &value));
    return value.success;
  };
  const uint64_t first = begin_put();
  const uint64_t second = begin_put();
  append(PTL_PRIORITY_LIST, PTL_ME_USE_ONCE | PTL_ME_EVENT_CT_OVERFLOW, 2, 0, counter);
  append(PTL_PRIORITY_LIST, PTL_ME_EVENT_CT_OVERFLOW | PTL_ME_EVENT_CT_BYTES, 3, 0, counter);
  EXPECT_EQ(count(), 0u);
  expect_no_event();
  finish_put(second);
  EXPECT_EQ(next_events(1), (Names{"PTL_EVENT_PUT_OVERFLOW 3"}));
  EXPECT_TRUE(wait_until([&] { return count() == length; }));
  finish_put(first);
  EXPECT_EQ(next_events(2), (Names{"PTL_EVENT_PUT_OVERFLOW 2", "PTL_EVENT_AUTO_UNLINK 2"}));
  EXPECT_TRUE(wait_until([&] { return count() == length + 1; }));
  put();
  EXPECT_EQ(next_events(1), (Names{"PTL_EVENT_PUT 3"}));
}

// A disabled entry matches no further message, but data of messages that it has matched still
// arrive.
// spec 2.8
TEST_F(ArrivingMessagesTest, AMessageMatchedBeforeThePortalWasDisabledStillReports) {
  open_portal(PTL_PT_FLOWCTRL, 64);
  append(PTL_PRIORITY_LIST, PTL_ME_USE_ONCE, 1);
  const uint64_t transfer = begin_put();
  put();
  EXPECT_EQ(next_events(1), (Names{"PTL_EVENT_PT_DISABLED 0"}));
  const ptl_handle_me_t unused = append(PTL_PRIORITY_LIST, 0, 2);
  put();
  expect_no_event();
  finish_put(transfer);
  EXPECT_EQ(next_events(2), (Names{"PTL_EVENT_PUT 1", "PTL_EVENT_AUTO_UNLINK 1"}));
  expect_unlinked_in_time(unused);
  expect_no_event();
}

TEST_F(ArrivingMessagesTest, AMessageThatFindsNoTransferIsAnsweredAndLeavesTheEntryAsItWas) {
  open_portal(0, 64);
  append(PTL_PRIORITY_LIST, PTL_ME_MANAGE_LOCAL, 1);
  const Peer& sender = peer();
  physical().poller().exclusively([&] {
    while (physical().target().transfers().table().allocate(sender) != nullptr) {
    }
  });
  MessageHeader header = put_header();
  header.flags |= flag_remote_memory;
  header.cookie = 77;
  header.modes = static_cast<uint8_t>(MessageHeader::modes_of(PTL_INT8_T, PTL_ACK_REQ));
  send(header, 0);
  put();
  ptl_event_t event{};
  unsigned which = 0;
  must(
      PtlEQPoll(&events_, 1, static_cast<ptl_time_t>(test::wait_deadline.count()), &event, &which));
  EXPECT_EQ(event.start, memory_);
  const std::vector<test::RecordingSink::Received>& answers = received(1);
  EXPECT_EQ(answers[0].header.kind, MessageKind::ack);
  EXPECT_EQ(answers[0].header.cookie, 77u);
  EXPECT_EQ(answers[0].header.fail(), PTL_NI_DROPPED);
  ptl_sr_value_t dropped = 0;
  must(PtlNIStatus(ni_, PTL_SR_DROP_COUNT, &dropped));
  EXPECT_EQ(dropped, 1);
}

// Only its own messages are dropped: the entry stays enabled for the others (spec 2.8).
TEST_F(ArrivingMessagesTest, APeerThatTakesItsShareOfTransfersDoesNotDisableThePortal) {
  open_portal(PTL_PT_FLOWCTRL, 64);
  append(PTL_PRIORITY_LIST, PTL_ME_MANAGE_LOCAL, 1);
  Peer& sender = peer();
  physical().poller().exclusively(
      [&] { sender.long_messages.transfers += most_transfers_of_peer; });
  MessageHeader header = put_header();
  header.flags |= flag_remote_memory;
  header.cookie = 77;
  header.modes = static_cast<uint8_t>(MessageHeader::modes_of(PTL_INT8_T, PTL_ACK_REQ));
  send(header, 0);
  EXPECT_EQ(received(1)[0].header.fail(), PTL_NI_DROPPED);
  put();
  EXPECT_EQ(next_events(1), (Names{"PTL_EVENT_PUT 1"}));
  physical().poller().exclusively(
      [&] { sender.long_messages.transfers -= most_transfers_of_peer; });
}

}  // namespace
}  // namespace lintel
