// Acknowledgements without cells. All places are taken at the start, so places are used again.
#include "lane/lane_acks.h"

#include "program.h"

namespace lintel::model {
namespace {

struct Acks {
  static constexpr uint32_t more = 3;
  LaneControl control;
  LaneAckWriter writer;
  LaneAckReader reader;

  Acks() {
    writer.attach(&control);
    reader.attach(&control);
    forbid_load_buffering(control.acks.cookies, sizeof control.acks.cookies);
    for (uint32_t i = 0; i < lane_ack_places; ++i) require(writer.push(i), "there is a place");
  }
  void send() {
    for (uint32_t i = 0; i < more; ++i)
      while (!writer.push(lane_ack_places + i)) {
      }
  }
  void receive() {
    for (uint32_t taken = 0; taken < lane_ack_places + more;) {
      InboundMessage inbound[7];
      bool malformed = false;
      const unsigned count = reader.peek(inbound, 7, malformed);
      require(!malformed, "no acknowledgement is malformed");
      for (unsigned i = 0; i < count; ++i)
        require(inbound[i].header.cookie == taken + i, "the cookie is the next one");
      require(reader.release() == count, "all are given back");
      taken += count;
    }
  }
};

}  // namespace

Protocol lane_acks() {
  return {"LaneAckWriter, LaneAckReader",
          {"lane/lane_acks.h"},
          {share<Acks>("places used again", {&Acks::send, &Acks::receive})},
          {}};
}

}  // namespace lintel::model
