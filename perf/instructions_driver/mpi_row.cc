// perf_instructions_mpi: messages of 8 bytes from an MPI rank to itself, received first, for
// perf/instructions, which compiles it with mpicxx.
#include <mpi.h>

#include <cstdint>

#include "options.h"

namespace {
constexpr int payload_bytes = 8;
constexpr int tag = 1;
}  // namespace

// The only part that is counted: what the start of MPI costs differs from run to run.
extern "C" [[gnu::noinline]] void perf_instructions_to_itself(uint64_t messages) {
  char sent[payload_bytes] = {};
  char received[payload_bytes];
  for (uint64_t i = 0; i < messages; ++i) {
    MPI_Request request;
    MPI_Irecv(received, payload_bytes, MPI_CHAR, 0, tag, MPI_COMM_SELF, &request);
    MPI_Send(sent, payload_bytes, MPI_CHAR, 0, tag, MPI_COMM_SELF);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
}

int main(int argc, char** argv) {
  constexpr lintel::instructions::Row rows[] = {{"mpi", perf_instructions_to_itself}};
  MPI_Init(nullptr, nullptr);
  const int result = lintel::instructions::run(argc, argv, rows);
  MPI_Finalize();
  return result;
}
