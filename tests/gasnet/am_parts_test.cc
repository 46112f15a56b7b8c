// Parts of the active messages alone: rings between neighbours, and credits that are returned.
// Prints nothing on success.
#include <cstdio>
#include <cstdlib>

#include "am/credits.h"
#include "am/near_ring.h"

namespace {

using lintel::gasnet::CreditsToReturn;
using lintel::gasnet::NearRing;
using lintel::gasnet::NearSlot;

void check(bool condition, const char* text) {
  if (condition) return;
  std::fprintf(stderr, "not so: %s\n", text);
  std::exit(1);
}

constexpr gex_Rank_t slots = 8;
NearRing<slots> ring;

bool push(gex_Rank_t number) {
  return ring.push([&](NearSlot& slot) { slot.source = number; });
}

bool pops(gex_Rank_t number) {
  gex_Rank_t found = number + 1;
  return ring.pop([&](const NearSlot& slot) { found = slot.source; }) && found == number;
}

void check_ring() {
  check(ring.is_empty() && !ring.pop([](const NearSlot&) {}), "zeroed memory is an empty ring");
  for (gex_Rank_t lap = 0; lap < 3; ++lap) {
    for (gex_Rank_t number = 0; number < slots; ++number)
      check(push(number), "a slot that was read is free again");
    check(!push(slots), "a full ring takes nothing");
    for (gex_Rank_t number = 0; number < slots; ++number)
      check(pops(number), "messages come in order");
    check(ring.is_empty() && !ring.pop([](const NearSlot&) {}), "each message comes once");
  }
  for (gex_Rank_t number = 0; number < 5 * slots; ++number)
    check(push(number) && pops(number), "a ring that is never full goes on");
}

void check_credits() {
  constexpr gex_Rank_t rank = 1;
  constexpr uint32_t at_once = 3;
  CreditsToReturn returns(2, at_once);
  gex_Rank_t found = 0;
  check(returns.is_empty() && !returns.next(&found), "nothing is to be returned at first");
  for (uint32_t count = 1; count <= 5; ++count)
    check(returns.add(rank) == (count >= at_once), "several are returned at once");
  check(returns.take(0, 9) == 0, "each rank has its own");
  check(returns.take(rank, 2) == 2, "no more are taken than fit");
  check(!returns.is_empty() && returns.next(&found) && found == rank, "the others are not lost");
  check(returns.take(rank, 9) == 3 && returns.take(rank, 9) == 0, "each is taken once");
  check(!returns.next(&found) && returns.is_empty(), "nothing is left");
  check(!returns.add(rank) && returns.next(&found) && found == rank, "the rank is listed again");
}

}  // namespace

int main() {
  check_ring();
  check_credits();
}
