// Requests that a target drops: a line at both ends with PTL_LOG_LEVEL=debug, and counts by reason.
#include "core/operations/refused_requests.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "errors_of_child.h"

namespace lintel {
namespace {

constexpr ptl_match_bits_t match_bits = 0x5a;

// A process that sends to itself, by the messages that travel between processes as well.
struct Program {
  Program() {
    EXPECT_EQ(PtlInit(), PTL_OK);
    EXPECT_EQ(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, nullptr,
                        &limits, &interface),
              PTL_OK);
    EXPECT_EQ(PtlCTAlloc(interface, &counter), PTL_OK);
    const ptl_md_t memory{buffer, sizeof buffer, PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_REPLY,
                          PTL_EQ_NONE, counter};
    EXPECT_EQ(PtlMDBind(interface, &memory, &descriptor), PTL_OK);
    EXPECT_EQ(PtlPTAlloc(interface, 0, PTL_EQ_NONE, 3, &portal), PTL_OK);
    EXPECT_EQ(PtlGetPhysId(interface, &self), PTL_OK);
    EXPECT_EQ(PtlGetUid(interface, &uid), PTL_OK);
  }
  // Return when the operation has failed; `succeeds`: has succeeded.
  void put(ptl_pt_index_t index, ptl_ack_req_t ack = PTL_ACK_REQ, bool succeeds = false) {
    EXPECT_EQ(PtlPut(descriptor, 0, 8, ack, self, index, match_bits, 0, nullptr, 0), PTL_OK);
    await(succeeds);
  }
  void get(ptl_pt_index_t index) {
    EXPECT_EQ(PtlGet(descriptor, 0, 8, self, index, match_bits, 0, nullptr), PTL_OK);
    await(false);
  }
  void await(bool succeeds) {
    ptl_ct_event_t counted{};
    EXPECT_EQ(PtlCTWait(counter, 1, &counted), PTL_OK);
    EXPECT_EQ(counted.success, succeeds ? 1u : 0u);
    EXPECT_EQ(PtlCTSet(counter, {0, 0}), PTL_OK);
  }
  void append(unsigned options, ptl_uid_t user) {
    ptl_me_t entry{};
    entry.ct_handle = PTL_CT_NONE;
    entry.uid = user;
    entry.options = options | PTL_ME_EVENT_LINK_DISABLE;
    entry.match_id.phys = {PTL_NID_ANY, PTL_PID_ANY};
    entry.match_bits = match_bits;
    EXPECT_EQ(PtlMEAppend(interface, portal, &entry, PTL_PRIORITY_LIST, nullptr, &last), PTL_OK);
  }
  [[nodiscard]] ptl_sr_value_t dropped(ptl_lintel_drop_t reason) const {
    ptl_sr_value_t value = -1;
    EXPECT_EQ(PtlNIStatus(interface, PTL_SR_LINTEL_DROPPED + reason, &value), PTL_OK);
    return value;
  }

  char buffer[64] = {};
  ptl_ni_limits_t limits{};
  ptl_handle_ni_t interface = PTL_INVALID_HANDLE;
  ptl_handle_ct_t counter = PTL_CT_NONE;
  ptl_handle_md_t descriptor = PTL_INVALID_HANDLE;
  ptl_handle_me_t last = PTL_INVALID_HANDLE;
  ptl_pt_index_t portal = 0;
  ptl_process_t self{};
  ptl_uid_t uid = 0;
};

size_t times(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

void run_all_reasons() {
  Program program;
  program.put(9);
  program.put(3);
  program.put(3);
  program.append(PTL_ME_OP_GET, PTL_UID_ANY);
  program.put(3);
  EXPECT_EQ(PtlMEUnlink(program.last), PTL_OK);
  program.append(PTL_ME_OP_PUT, program.uid + 1);
  program.put(3, PTL_OC_ACK_REQ, true);  // the target has dealt with it: spec 3.15.1
  EXPECT_EQ(PtlPTDisable(program.interface, program.portal), PTL_OK);
  program.get(3);
  EXPECT_EQ(program.dropped(PTL_LINTEL_DROP_NO_PORTAL), 1);
  EXPECT_EQ(program.dropped(PTL_LINTEL_DROP_NO_MATCH), 2);
  EXPECT_EQ(program.dropped(PTL_LINTEL_DROP_OPERATION), 1);
  EXPECT_EQ(program.dropped(PTL_LINTEL_DROP_USER), 1);
  EXPECT_EQ(program.dropped(PTL_LINTEL_DROP_DISABLED), 1);
  EXPECT_EQ(program.dropped(PTL_LINTEL_DROP_NO_INTERFACE), 0);
  PtlFini();
}

// spec 2.5, 3.11.1, 3.12.1, 3.7.3
TEST(RefusedRequestsTest, BothEndsTellEachReasonOnce) {
  const std::string text = errors_of("debug", run_all_reasons);
  struct Told {
    const char* kind;
    const char* rest;
  };
  const Told all[] = {
      {"put", "the portal table entry is not allocated (spec 3.7.1): pt_index 9, match bits 0x5a"},
      {"put",
       "no entry of the priority or overflow list accepts it (spec 2.5, 3.12): pt_index 3, match "
       "bits 0x5a"},
      {"put",
       "the entry that matched lacks PTL_ME_OP_PUT or PTL_ME_OP_GET (spec 3.11.1, 3.12.1): "
       "pt_index 3, match bits 0x5a"},
      {"put",
       "the entry that matched is for another uid (spec 3.11.1, 3.12.1): pt_index 3, match bits "
       "0x5a"},
      {"get", "the portal table entry is disabled (spec 2.8, 3.7.3): pt_index 3, match bits 0x5a"},
  };
  for (const auto& [kind, rest] : all) {
    const std::string at_initiator = std::string("dropped a ") + kind + " of this process: " + rest;
    EXPECT_EQ(times(text, at_initiator), 1u) << at_initiator << "\n" << text;
    EXPECT_EQ(times(text, std::string(": ") + rest), 2u) << rest << "\n" << text;
  }
  EXPECT_EQ(times(text, "debug: dropped a put of 8 bytes from nid "), 4u) << text;
  EXPECT_EQ(times(text, "debug: dropped a get of 8 bytes from nid "), 1u) << text;
  EXPECT_EQ(times(text, ", match bits 0x5a, offset 0\n"), 5u) << "each, by the target\n" << text;
}

// spec 3.15.2: nobody asked for an acknowledgment, and none is reported.
TEST(RefusedRequestsTest, BothEndsTellOfAPutWithoutAcknowledgment) {
  const std::string text = errors_of("debug", [] {
    Program program;
    EXPECT_EQ(PtlPut(program.descriptor, 0, 8, PTL_NO_ACK_REQ, program.self, 9, match_bits, 0,
                     nullptr, 0),
              PTL_OK);
    program.get(3);  // its answer comes later
    ptl_ct_event_t counted{};
    EXPECT_EQ(PtlCTGet(program.counter, &counted), PTL_OK);
    EXPECT_EQ(counted.success + counted.failure, 0u);
    PtlFini();
  });
  EXPECT_EQ(times(text, "dropped a put of this process: the portal table entry is not allocated"),
            1u)
      << text;
  EXPECT_EQ(times(text, "debug: dropped a put of 8 bytes from nid "), 1u) << text;
}

TEST(RefusedRequestsTest, OtherLevelsSayNothing) {
  EXPECT_EQ(times(errors_of("info", run_all_reasons), "dropped a"), 0u);
}

TEST(RefusedRequestsTest, StatisticsCountByReason) {
  const std::string text = errors_of("warn", [] {
    setenv("PTL_STATS", "1", 1);
    run_all_reasons();
  });
  EXPECT_EQ(times(text,
                  " dropped: no portal table entry 1, disabled 1, no match 2, user 1, "
                  "operation 1\n"),
            1u)
      << text;
}

// The words of an answer come from outside.
TEST(RefusedRequestsTest, AnAnswerWithNonsenseIsNotTold) {
  const std::string text = errors_of("debug", [] {
    set_log_level(LogLevel::debug);
    RefusedRequests requests;
    MessageHeader answer{};
    for (const uint64_t word : {UINT64_MAX, uint64_t{PTL_LINTEL_DROP_REASONS} << 8}) {
      answer.hdr_data = word;
      requests.note_answer({1, 2}, answer);
    }
    answer.hdr_data = refusal_word(PTL_LINTEL_DROP_USER, static_cast<MessageKind>(0xee));
    requests.note_answer({1, 2}, answer);
  });
  EXPECT_EQ(times(text, "\n"), 1u) << text;
  EXPECT_EQ(times(text, "nid 0.0.0.1 pid 2 dropped a message of this process: "), 1u) << text;
}

}  // namespace
}  // namespace lintel
