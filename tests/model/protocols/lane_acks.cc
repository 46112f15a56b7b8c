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
    for (uint32_t i = 0; i < lane_ack_places; ++i)
      require(writer.push(&i, 1) == 1, "there is a place");
  }
  void send() {
    constexpr uint32_t cookies[more] = {lane_ack_places, lane_ack_places + 1, lane_ack_places + 2};
    for (uint32_t sent = 0; sent < more;) sent += writer.push(cookies + sent, more - sent);
  }
  void receive() {
    for (uint32_t taken = 0; taken < lane_ack_places + more;) {
      uint32_t cookies[lane_ack_places];
      bool malformed = false;
      const unsigned count = reader.take(cookies, malformed);
      require(!malformed, "no acknowledgement is malformed");
      for (unsigned i = 0; i < count; ++i)
        require(cookies[i] == taken++, "the cookie is the next one");
    }
  }
};

}  // namespace

Protocol lane_acks() {
  return {"LaneAckWriter, LaneAckReader",
          {"lane/lane_acks.h"},
          {share<Acks>("places used again", {&Acks::send, &Acks::receive})}};
}

}  // namespace lintel::model
