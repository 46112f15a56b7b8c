// perf_instructions_reliable: messages of 8 bytes through the reliability layer between two ends of
// one process, without sockets, for perf/instructions.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "../components/reliable/copying_pair.h"
#include "options.h"

namespace {

// The clock advances between two messages by the time of one over Ethernet, so that timers act as
// they do there and the counts do not depend on the machine.
constexpr uint64_t message_ns = 5'000;
uint64_t virtual_now_ns = 1'000'000'000;
uint64_t virtual_clock() noexcept { return virtual_now_ns; }

void reliable(uint64_t messages) {
  lintel::ReliableSettings settings;
  settings.clock = virtual_clock;
  lintel::components::CopyingPair pair(settings);
  for (uint64_t i = 0; i < messages; ++i) {
    virtual_now_ns += message_ns;
    if (pair.exchange()) continue;
    std::fprintf(stderr, "perf_instructions_reliable: a message was not sent\n");
    std::exit(EXIT_FAILURE);
  }
}

}  // namespace

int main(int argc, char** argv) {
  constexpr lintel::instructions::Row rows[] = {{"reliable", reliable}};
  return lintel::instructions::run(argc, argv, rows);
}
