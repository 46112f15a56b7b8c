/* coll_scale.cc: simulates the schedules of collectives for many places, without processes. Prints
 * how much one place sends and stores. With an argument, up to a million places.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "coll/node_stage.h"
#include "coll/schedule.h"

using namespace lintel::gasnet;

namespace {

using Make = Schedule (*)(uint32_t place, uint32_t places, uint32_t root);

struct Cost {
  unsigned int steps = 0; /* messages one after the other */
  unsigned int most = 0;  /* messages that one place sends */
  uint64_t all = 0;
};

[[noreturn]] void fail(const char* name, uint32_t places, uint32_t place) {
  std::fprintf(stderr, "%s of %u places: place %u has a wrong value\n", name, places, place);
  std::exit(1);
}

/** A value is the sum of place number plus one over its contributions. If contributions may be
 * included twice, it is their number. */
struct Play {
  std::vector<uint64_t> values;
  Cost cost;
};

Play play(const char* name, uint32_t places, uint32_t root, Make make, bool counts_spans) {
  Play result;
  std::vector<uint64_t>& values = result.values;
  for (uint32_t place = 0; place < places; ++place) values.push_back(counts_spans ? 1 : place + 1);
  std::vector<unsigned int> sent(places);
  for (unsigned int number = 0; number < kMaximumSteps; ++number) {
    const std::vector<uint64_t> before = values;
    bool is_used = false;
    for (uint32_t place = 0; place < places; ++place) {
      const Schedule schedule = make(place, places, root);
      if (number >= schedule.steps) continue;
      const Step& step = schedule.step[number];
      if (step.to != kNoPlace) {
        // The receiver expects the value at the same level.
        const Schedule other = make(step.to, places, root);
        if (number >= other.steps || other.step[number].from != place) fail(name, places, place);
        ++sent[place];
        is_used = true;
      }
      if (step.from == kNoPlace) continue;
      values[place] = step.replaces ? before[step.from] : before[place] + before[step.from];
    }
    if (!is_used) break;
    result.cost.steps = number + 1;
  }
  for (const unsigned int messages : sent) {
    result.cost.most = std::max(result.cost.most, messages);
    result.cost.all += messages;
  }
  return result;
}

void check_all(uint32_t places, uint32_t root, Cost* barrier, Cost* sum) {
  const uint64_t total = uint64_t{places} * (places + 1) / 2;
  const Play d = play(
      "dissemination", places, root,
      [](uint32_t p, uint32_t n, uint32_t) { return dissemination(p, n); }, true);
  const Play e = play(
      "exchange", places, root,
      [](uint32_t p, uint32_t n, uint32_t) { return exchange_of_pairs(p, n, n); }, false);
  // As many processors as the number of the root.
  const Play few = play(
      "exchange of few", places, root,
      [](uint32_t p, uint32_t n, uint32_t most) { return exchange_of_pairs(p, n, most + 1); },
      false);
  const Play up = play("to_root", places, root, to_root, false);
  const Play down = play("from_root", places, root, from_root, false);
  for (uint32_t place = 0; place < places; ++place) {
    if (d.values[place] < places) fail("dissemination", places, place);
    if (e.values[place] != total) fail("exchange", places, place);
    if (few.values[place] != total || few.cost.steps > most_steps(places))
      fail("exchange of few", places, place);
    if (down.values[place] != root + 1) fail("from_root", places, place);
  }
  if (up.values[root] != total) fail("to_root", places, root);
  *barrier = d.cost;
  *sum = e.cost;
}

/** The memory of a place for a team, in bytes of this library and objects of Portals. */
void print_row(uint32_t places) {
  Cost barrier;
  Cost sum;
  check_all(places, places / 3, &barrier, &sum);
  const unsigned int levels = most_steps(places) + 1;
  const unsigned int entries = 2 * kSlots * levels;
  const unsigned int counters = entries + kSlots;
  // Sizes in the Portals library of this project: an entry takes 208 bytes, a counter 128.
  const double kib =
      (kSlots * levels * double{kSmallBytes} + entries * 208.0 + counters * 128.0) / 1024;
  std::printf("%9u %8u %8u %8u %8u %9.2f %9u %9.0f\n", places, barrier.steps, barrier.most,
              sum.steps, sum.most, static_cast<double>(sum.all) / places, entries, kib);
}

}  // namespace

int main(int argc, char**) {
  Cost unused;
  for (uint32_t places = 1; places <= 70; ++places)
    for (uint32_t root = 0; root < places; ++root) check_all(places, root, &unused, &unused);
  std::printf("%9s %17s %27s %9s %9s\n", "places", "barrier", "sum over all", "entries", "KiB");
  std::printf("%9s %8s %8s %8s %8s %9s\n", "", "steps", "messages", "steps", "messages", "mean");
  print_row(10'000);
  if (argc > 1)
    for (const uint32_t places : {65'536u, 100'000u, 1'000'000u}) print_row(places);
  return 0;
}
