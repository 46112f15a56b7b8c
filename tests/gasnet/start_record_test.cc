// Processes of one job must agree in what they tell first. Prints nothing on success.
#include "start/start_record.h"

#include <cstdio>
#include <cstdlib>

namespace {

using lintel::gasnet::difference;
using lintel::gasnet::StartRecord;

void check(bool condition, const char* text) {
  if (condition) return;
  std::fprintf(stderr, "not so: %s\n", text);
  std::exit(1);
}

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

int main() {
  const StartRecord first{.version = lintel::gasnet::kWireVersion,
                          .host_detection = 0,
                          .memory_bytes = 1,
                          .environment_bytes = 2,
                          .process_id = 3,
                          .descriptor = 4,
                          .neighbourhood_limit = 5,
                          .is_everything = 0,
                          .processors = 4,
                          .host_key = 6};
  StartRecord other = first;
  other.memory_bytes = other.environment_bytes = other.host_key = 7;
  other.process_id = other.descriptor = 8;
  other.neighbourhood_limit = 9;
  other.processors = 10;
  check(difference(first, other, 5).empty(), "memory, processes and rank 0's settings may differ");
  other = first;
  ++other.version;
  check(contains(difference(first, other, 5), "ranks 0 and 5") &&
            contains(difference(first, other, 5), "versions 1 and 2"),
        "both versions are named");
  other = first;
  other.is_everything = 1;
  check(contains(difference(first, other, 5), "GASNET_SEGMENT_EVERYTHING"),
        "segments are of one kind");
  other = first;
  other.host_detection = 1;
  check(contains(difference(first, other, 5), "GASNET_HOST_DETECT"), "hosts are found in one way");
  return 0;
}
