// perf_probe: the measurements of perf/compare that need no other library to compare with, on the
// public interface only. Each prints a JSON object.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "probes.h"

namespace {

struct Measurement {
  const char* name;
  void (*run)(const probe::Options&);
};

constexpr Measurement measurements[] = {
    {"idle", probe::measure_idle},
    {"computing-get", probe::measure_computing_get},
    {"crowd", probe::measure_crowd},
    {"chain", probe::measure_chain},
};

[[noreturn]] void usage(const std::string& complaint) {
  std::fprintf(stderr,
               "perf_probe: %s\n"
               "usage: perf_probe idle|computing-get|crowd|chain [--cpus A,B] [--duration-ms N] "
               "[--processes N]\n",
               complaint.c_str());
  std::exit(2);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) usage("say what to measure");
  probe::Options options;
  for (int i = 2; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    const char* value = argv[i + 1];
    const bool understood =
        (name == "--cpus" &&
         std::sscanf(value, "%d,%d", &options.cpus[0], &options.cpus[1]) == 2) ||
        (name == "--duration-ms" && std::sscanf(value, "%d", &options.duration_ms) == 1) ||
        (name == "--processes" && std::sscanf(value, "%d", &options.processes) == 1);
    if (!understood) usage("cannot use '" + name + " " + value + "'");
  }
  if (argc % 2 != 0) usage("an option lacks its value");
  for (const Measurement& measurement : measurements) {
    if (std::strcmp(argv[1], measurement.name) == 0) {
      measurement.run(options);
      return 0;
    }
  }
  usage(std::string("does not know '") + argv[1] + "'");
}
