// The measurements of perf_probe. Each prints one JSON object on standard output.
#pragma once

namespace probe {

struct Options {
  int cpus[2] = {0, 1};
  int duration_ms = 0;  // 0: what suits the measurement
  int processes = 8;    // of the crowd
};

// Processor time and resident memory of two processes that opened an interface, exchanged one
// message and then make no calls.
void measure_idle(const Options& options);

// Time until a 4 MiB get from a process is complete that computes and makes no calls at all.
void measure_computing_get(const Options& options);

// Half round trip of 8-byte puts between pairs of processes that share two cores.
void measure_crowd(const Options& options);

// Cost of one triggered increment in chains of several lengths.
void measure_chain(const Options& options);

}  // namespace probe
