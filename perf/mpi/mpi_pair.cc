// perf_mpi_pair: latency, message rate and bandwidth between two MPI ranks, medians of the parts of
// a run, as JSON on standard output of rank 0. Uses the C interface of MPI only; compiled by
// perf/compare with mpicxx.
//
//   latency    half of a round trip of one message each way
//   self       one message from each rank to itself, received first: no other core takes part
//   bandwidth  windows of 64 messages from one reused buffer into one reused buffer, each window
//              answered by a short message; the rate is the same measurement divided by the size
#include <mpi.h>
#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

constexpr int window = 64;
constexpr int tag = 1;

struct Options {
  int cpus[2] = {0, 1};
  int duration_ms = 150;  // of each single measurement
  bool bandwidth = false;
  bool self = false;
  std::vector<int> sizes{8};
};

void pin_to(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<unsigned>(cpu), &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0) {
    std::perror("perf_mpi_pair: cannot pin to the requested core (--cpus)");
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
}

void latency_iterations(int rank, char* buffer, int size, long iterations) {
  for (long i = 0; i < iterations; ++i) {
    if (rank == 0) {
      MPI_Send(buffer, size, MPI_CHAR, 1, tag, MPI_COMM_WORLD);
      MPI_Recv(buffer, size, MPI_CHAR, 1, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
      MPI_Recv(buffer, size, MPI_CHAR, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(buffer, size, MPI_CHAR, 0, tag, MPI_COMM_WORLD);
    }
  }
}

void self_iterations(int, char* buffer, int size, long iterations) {
  std::vector<char> received(static_cast<std::size_t>(size) + 1);
  for (long i = 0; i < iterations; ++i) {
    MPI_Request request;
    MPI_Irecv(received.data(), size, MPI_CHAR, 0, tag, MPI_COMM_SELF, &request);
    MPI_Send(buffer, size, MPI_CHAR, 0, tag, MPI_COMM_SELF);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
}

void bandwidth_iterations(int rank, char* buffer, int size, long iterations) {
  MPI_Request requests[window];
  char answer = 0;
  for (long i = 0; i < iterations; ++i) {
    for (auto& request : requests) {
      if (rank == 0)
        MPI_Isend(buffer, size, MPI_CHAR, 1, tag, MPI_COMM_WORLD, &request);
      else
        MPI_Irecv(buffer, size, MPI_CHAR, 0, tag, MPI_COMM_WORLD, &request);
    }
    MPI_Waitall(window, requests, MPI_STATUSES_IGNORE);
    if (rank == 0)
      MPI_Recv(&answer, 1, MPI_CHAR, 1, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else
      MPI_Send(&answer, 1, MPI_CHAR, 0, tag, MPI_COMM_WORLD);
  }
}

// Seconds for one iteration: first a few to learn how many fit into the wanted time, then those, in
// parts. Returns the median of the parts: some of them last longer because the system had other
// work for a core.
double seconds_per_iteration(int rank, char* buffer, int size, const Options& options) {
  constexpr long parts = 101;
  const auto run = options.bandwidth ? bandwidth_iterations
                   : options.self    ? self_iterations
                                     : latency_iterations;
  const auto timed = [&](long iterations) {
    const double start = MPI_Wtime();
    run(rank, buffer, size, iterations);
    return (MPI_Wtime() - start) / static_cast<double>(iterations);
  };
  long iterations = options.bandwidth ? 8 : 500;
  timed(iterations);
  MPI_Barrier(MPI_COMM_WORLD);
  iterations = static_cast<long>(options.duration_ms * 1e-3 / parts / timed(iterations)) + 1;
  MPI_Bcast(&iterations, 1, MPI_LONG, 0, MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
  std::vector<double> seconds(parts);
  for (double& part : seconds) part = timed(iterations);
  std::nth_element(seconds.begin(), seconds.begin() + parts / 2, seconds.end());
  return seconds[parts / 2];
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    const char* value = i + 1 < argc ? argv[i + 1] : "";
    if (name == "--bandwidth") {
      options.bandwidth = true;
    } else if (name == "--self") {
      options.self = true;
    } else if (name == "--cpus" &&
               std::sscanf(value, "%d,%d", &options.cpus[0], &options.cpus[1]) == 2) {
      ++i;
    } else if (name == "--duration-ms" && std::sscanf(value, "%d", &options.duration_ms) == 1) {
      ++i;
    } else if (name == "--sizes") {
      options.sizes.clear();
      std::string list = value;
      for (char* item = std::strtok(list.data(), ","); item != nullptr;
           item = std::strtok(nullptr, ","))
        options.sizes.push_back(std::atoi(item));
      ++i;
    } else {
      std::fprintf(
          stderr,
          "usage: mpirun -n 2 perf_mpi_pair [--bandwidth | --self] [--sizes A,B,...] [--cpus A,B] "
          "[--duration-ms N]\n");
      std::exit(2);
    }
  }
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  MPI_Init(&argc, &argv);
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks != 2) {
    if (rank == 0) std::fprintf(stderr, "perf_mpi_pair: needs two ranks, has %d\n", ranks);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  pin_to(options.cpus[rank]);

  if (rank == 0) std::printf("[");
  const char* separator = "\n";
  for (const int size : options.sizes) {
    std::vector<char> buffer(static_cast<std::size_t>(size) + 1, 1);
    const double seconds = seconds_per_iteration(rank, buffer.data(), size, options);
    if (rank != 0) continue;
    std::printf("%s  {\"bytes\": %d, ", separator, size);
    if (options.bandwidth) {
      const double rate = window / seconds;
      std::printf("\"messages_per_s\": %.0f, \"gib_per_s\": %.4f}", rate,
                  rate * size / (1024.0 * 1024.0 * 1024.0));
    } else {
      const int messages = options.self ? 1 : 2;  // one behind the other in each iteration
      std::printf("\"latency_ns\": %.1f}", seconds / messages * 1e9);
    }
    separator = ",\n";
  }
  if (rank == 0) std::printf("\n]\n");
  MPI_Finalize();
  return 0;
}
