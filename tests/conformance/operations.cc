// The five data movement operations with a common interface.
#include "operations.h"

namespace lintel::test {

std::string name_of(Operation operation) {
  static constexpr const char* names[] = {"put", "get", "atomic", "fetch_atomic", "swap"};
  return names[static_cast<int>(operation)];
}

ptl_event_kind_t target_event(Operation operation) {
  switch (operation) {
    case Operation::put:
      return PTL_EVENT_PUT;
    case Operation::get:
      return PTL_EVENT_GET;
    case Operation::atomic:
      return PTL_EVENT_ATOMIC;
    default:
      return PTL_EVENT_FETCH_ATOMIC;
  }
}

ptl_event_kind_t overflow_event(Operation operation) {
  switch (operation) {
    case Operation::put:
      return PTL_EVENT_PUT_OVERFLOW;
    case Operation::get:
      return PTL_EVENT_GET_OVERFLOW;
    case Operation::atomic:
      return PTL_EVENT_ATOMIC_OVERFLOW;
    default:
      return PTL_EVENT_FETCH_ATOMIC_OVERFLOW;
  }
}

unsigned needed_options(Operation operation) {
  switch (operation) {
    case Operation::put:
    case Operation::atomic:
      return PTL_ME_OP_PUT;
    case Operation::get:
      return PTL_ME_OP_GET;
    default:
      return PTL_ME_OP_PUT | PTL_ME_OP_GET;
  }
}

bool sends(Operation operation) { return operation != Operation::get; }
bool acked(Operation operation) {
  return operation == Operation::put || operation == Operation::atomic;
}
bool replied(Operation operation) { return !acked(operation); }
bool atomic(Operation operation) {
  return operation != Operation::put && operation != Operation::get;
}

void start(const InitiatorSide& initiator, Operation operation, const Request& request,
           Place place) {
  switch (operation) {
    case Operation::put:
      return initiator.put(request, place);
    case Operation::get:
      return initiator.get(request, place);
    case Operation::atomic:
      return initiator.atomic(request, PTL_SUM, PTL_INT64_T, place);
    case Operation::fetch_atomic:
      return initiator.fetch_atomic(request, PTL_SUM, PTL_INT64_T, place);
    case Operation::swap:
      return initiator.swap(request, nullptr, PTL_SWAP, PTL_INT64_T, place);
  }
}

ptl_event_t finish(const InitiatorSide& initiator, Operation operation, const Request& request,
                   ptl_ni_fail_t result, Place place) {
  if (acked(operation)) {
    if (request.ack == PTL_ACK_REQ) return initiator.expect_send_and_ack(result, place).ack;
    return initiator.source.events.expect(PTL_EVENT_SEND, PTL_NI_OK, place);
  }
  if (sends(operation)) initiator.source.events.expect(PTL_EVENT_SEND, PTL_NI_OK, place);
  return initiator.result.events.expect(PTL_EVENT_REPLY, result, place);
}

ptl_event_t perform(const InitiatorSide& initiator, Operation operation, const Request& request,
                    ptl_ni_fail_t result, Place place) {
  start(initiator, operation, request, place);
  return finish(initiator, operation, request, result, place);
}

void expect_target_event(Pair& pair, const ptl_event_t& event, const TargetEvent& expected,
                         Place place) {
  const testing::ScopedTrace trace(place.file_name(), static_cast<int>(place.line()),
                                   describe(event));
  EXPECT_EQ(event_name(event.type), event_name(expected.type));
  EXPECT_EQ(fail_name(event.ni_fail_type), "PTL_NI_OK");
  EXPECT_EQ(event.start, expected.start);
  EXPECT_EQ(event.rlength, expected.rlength);
  EXPECT_EQ(event.mlength, expected.mlength);
  EXPECT_EQ(event.remote_offset, expected.remote_offset);
  EXPECT_EQ(event.match_bits, pair.matching() ? expected.match_bits : 0);
  EXPECT_EQ(event.user_ptr, expected.user_ptr);
  EXPECT_EQ(event.ptl_list, expected.list);
  EXPECT_EQ(event.pt_index, expected.pt_index);
  if (expected.type != PTL_EVENT_GET && expected.type != PTL_EVENT_GET_OVERFLOW) {
    EXPECT_EQ(event.hdr_data, expected.hdr_data);
  }
  EXPECT_TRUE(pair.interface().same_process(event.initiator, pair.initiator_id()));
  ptl_uid_t uid = PTL_UID_ANY;
  must(PtlGetUid(pair.ni(), &uid), place);
  EXPECT_EQ(event.uid, uid) << "the usage id of the initiator, which this user shares";
}

}  // namespace lintel::test
