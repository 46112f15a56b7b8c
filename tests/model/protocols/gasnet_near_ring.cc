// NearRing of GASNet: neighbours write messages, threads of the receiver take them. Slots are used
// again.
#include "am/near_ring.h"
#include "program.h"

namespace lintel::model {
namespace {

using gasnet::NearRing;
using gasnet::NearSlot;

template <uint64_t slots, uint32_t messages>
struct Ring {
  NearRing<slots> ring;
  uint32_t taken[messages + 1]{};

  void push(uint32_t number) {
    while (!ring.push([number](NearSlot& slot) { slot.source = number; })) {
    }
  }
  void pop() {
    uint32_t number = 0;
    while (!ring.pop([&number](NearSlot& slot) {
      number = slot.source;
      // As data of a handler, which may write to them.
      slot.source = 0;
    })) {
    }
    require(number != 0 && number <= messages, "the message is complete");
    ++taken[number];
  }
  void first() { push(1); }
  void second() { push(2); }
  void third() { push(3); }
  void first_and_second() {
    push(1);
    push(2);
  }
  void one() { pop(); }
  void all() {
    for (uint32_t i = 0; i < messages; ++i) pop();
  }
  void look_then_take() {
    while (ring.is_empty()) {
    }
    pop();
  }
  void each_once() {
    for (uint32_t number = 1; number <= messages; ++number)
      require(taken[number] == 1, "each message is taken once");
  }
};

}  // namespace

Protocol gasnet_near_ring() {
  using Two = Ring<1, 2>;
  using Three = Ring<2, 3>;
  return {
      "NearRing (GASNet)",
      {"am/near_ring.h"},
      {share<Two>("one slot, two writers", {&Two::first, &Two::second, &Two::all}, &Two::each_once),
       share<Two>("one slot, two readers",
                  {&Two::first_and_second, &Two::one, &Two::look_then_take}, &Two::each_once),
       share<Three>("two slots", {&Three::first_and_second, &Three::third, &Three::all},
                    &Three::each_once)}};
}

}  // namespace lintel::model
