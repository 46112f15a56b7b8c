// Sending and checking a stream of puts.
#include "support/random_stream.h"

#include <random>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "support/memory.h"
#include "support/objects.h"

namespace lintel::test {

namespace {

constexpr std::size_t places = 16;  // messages under way at once
constexpr int checked_flag = 0;     // raised by rank 1

// Draws the same lengths in both ranks.
class Lengths {
 public:
  explicit Lengths(std::size_t largest) : largest_(largest) {}
  std::size_t next() {
    const uint32_t roll = dice_();
    return roll % 4 == 0 ? dice_() % largest_ : roll % 4 == 1 ? dice_() % 10'000 : dice_() % 200;
  }

 private:
  std::size_t largest_;
  std::mt19937 dice_{7};
};

void send(const RandomStream& stream, Rank& rank, const Interface& interface,
          std::span<std::byte> memory, const EventQueue& events) {
  const Descriptor descriptor(interface.handle(), memory, PTL_MD_EVENT_SEND_DISABLE,
                              events.handle());
  Lengths lengths(stream.largest);
  uint64_t acknowledged = 0;
  for (uint64_t i = 0; i < stream.messages; ++i) {
    const std::size_t length = lengths.next();
    // The place is free when the receiver has checked the message that used it before.
    while (acknowledged + places <= i) {
      events.expect(PTL_EVENT_ACK);
      ++acknowledged;
    }
    rank.await(1, checked_flag, i < places ? 0 : i - places + 1);
    stream.before(i);
    const std::size_t place = i % places * stream.largest;
    fill(memory.subspan(place, length), static_cast<uint32_t>(i));
    must(PtlPut(descriptor.handle(), place, length, PTL_ACK_REQ, interface.address(1),
                stream.pt_index, i, place, nullptr, length));
  }
  for (; acknowledged < stream.messages; ++acknowledged) events.expect(PTL_EVENT_ACK);
}

void check(const RandomStream& stream, Rank& rank, std::span<const std::byte> memory,
           const EventQueue& events) {
  // Long messages may complete after short ones that were sent later.
  Lengths lengths(stream.largest);
  std::vector<std::size_t> expected;
  for (uint64_t i = 0; i < stream.messages; ++i) expected.push_back(lengths.next());
  std::vector<bool> seen(stream.messages);
  uint64_t checked = 0;
  for (uint64_t i = 0; i < stream.messages; ++i) {
    const ptl_event_t event = events.expect(PTL_EVENT_PUT);
    const uint64_t number = event.match_bits;
    ASSERT_LT(number, stream.messages);
    ASSERT_FALSE(seen[number]) << number << " arrived twice";
    seen[number] = true;
    ASSERT_EQ(event.mlength, expected[number]);
    ASSERT_EQ(event.hdr_data, expected[number]);
    expect_pattern(memory.subspan(number % places * stream.largest, expected[number]),
                   static_cast<uint32_t>(number));
    while (checked < stream.messages && seen[checked]) ++checked;
    rank.raise(checked_flag, checked);
    stream.arrived();
  }
}

}  // namespace

void exchange(const RandomStream& stream, Rank& rank, const Interface& interface) {
  const EventQueue events(interface.handle(), 4096);
  std::vector<std::byte> memory(stream.largest * places);
  ptl_handle_any_t entry = PTL_INVALID_HANDLE;
  if (rank.index() == 1) {
    interface.allocate(stream.pt_index, events.handle());
    entry = interface.append(stream.pt_index, {.start = memory.data(),
                                               .length = memory.size(),
                                               .options = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE,
                                               .ignore_bits = ~ptl_match_bits_t{0}});
  }
  rank.barrier();
  if (rank.index() == 0) {
    send(stream, rank, interface, memory, events);
  } else {
    check(stream, rank, memory, events);
    interface.unlink_when_idle(entry);
  }
  rank.barrier();
}

}  // namespace lintel::test
