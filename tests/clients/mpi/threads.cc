// MPI_THREAD_MULTIPLE: several threads of each rank exchange messages at the same time. Each pair
// of threads has its own tag, in one communicator, and in one communicator for each thread.
//
// Usage: threads [<threads of each rank>]; prints a last line if MPI grants less than
// MPI_THREAD_MULTIPLE.
#include <atomic>
#include <mutex>
#include <thread>

#include "support.h"

using namespace mpi_test;

namespace {

std::mutex checking;  // for the counter of `require`

std::uint64_t seed(int sender, int thread, int round) {
  return static_cast<std::uint64_t>((sender * 64 + thread) * 100000 + round);
}

int length_of(int thread, int round) {
  static const int lengths[] = {0, 8, 500, 2048, 2049, 10000, 70000, 300000};
  return lengths[(thread + round) % 8];
}

// Rings in both directions: even threads send to the next rank, odd ones to the previous rank.
void exchange(int thread, int rounds, MPI_Comm comm) {
  const int step = thread % 2 == 0 ? 1 : ranks - 1;
  const int to = (rank + step) % ranks;
  const int from = (rank + ranks - step) % ranks;
  for (int round = 0; round < rounds; ++round) {
    const int length = length_of(thread, round);
    Buffer out(static_cast<std::size_t>(length));
    Buffer in(static_cast<std::size_t>(length));
    out.fill_with(seed(rank, thread, round));
    MPI_Request requests[2];
    MPI_Status statuses[2];
    if (round % 3 == 0) {  // the receive is posted before or after the send
      MPI_Irecv(in.data(), length, MPI_BYTE, from, thread, comm, &requests[0]);
      MPI_Isend(out.data(), length, MPI_BYTE, to, thread, comm, &requests[1]);
    } else {
      MPI_Isend(out.data(), length, MPI_BYTE, to, thread, comm, &requests[1]);
      MPI_Irecv(in.data(), length, MPI_BYTE, from, thread, comm, &requests[0]);
    }
    if (round % 2 == 0) {
      MPI_Waitall(2, requests, statuses);
    } else {
      MPI_Wait(&requests[0], &statuses[0]);
      MPI_Wait(&requests[1], &statuses[1]);
    }
    const std::lock_guard lock(checking);
    require_status(statuses[0], from, thread, static_cast<std::size_t>(length), "threads");
    in.verify_received(static_cast<std::size_t>(length), seed(from, thread, round), "threads");
  }
}

void run(int count, int rounds, const std::vector<MPI_Comm>& comms) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i)
    threads.emplace_back(
        [i, rounds, &comms] { exchange(i, rounds, comms[static_cast<std::size_t>(i)]); });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

int main(int argc, char** argv) {
  Job job(&argc, &argv, "threads", MPI_THREAD_MULTIPLE);
  if (job.provided() < MPI_THREAD_MULTIPLE) {
    if (rank == 0)
      std::printf("threads: MPI grants level %d, not MPI_THREAD_MULTIPLE\n", job.provided());
    return 0;
  }
  const int count = argc > 1 ? std::atoi(argv[1]) : 4;
  const int rounds = long_form ? 2000 : 100;
  std::vector<MPI_Comm> comms(static_cast<std::size_t>(count), MPI_COMM_WORLD);
  run(count, rounds, comms);
  barrier();
  for (MPI_Comm& comm : comms) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  run(count, rounds, comms);
  barrier();
  for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
  return 0;
}
