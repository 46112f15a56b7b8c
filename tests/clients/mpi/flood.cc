// Many ranks flood a rank that makes no calls for a while, with more messages than its queues and
// buffers hold. No message may be lost, and the messages of each sender stay in order.
//
// If a message is missing, the receiver prints that and waits. A sender with a message that was
// refused twice detects this and ends the job (refusal_witness.c).
//
// Usage: flood expected|unexpected <messages of each sender> <bytes of a message> <ms that it
// computes>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <thread>

#include "support.h"

using namespace mpi_test;

namespace {

std::uint64_t seed(int sender, int i) {
  return static_cast<std::uint64_t>(sender) * 1000003 + static_cast<std::uint64_t>(i);
}

void send_all(int count, std::size_t length) {
  const int at_once = 256;
  std::vector<Buffer> out(static_cast<std::size_t>(at_once), Buffer(length));
  std::vector<MPI_Request> requests(static_cast<std::size_t>(at_once), MPI_REQUEST_NULL);
  for (int i = 0; i < count; ++i) {
    const auto k = static_cast<std::size_t>(i % at_once);
    MPI_Wait(&requests[k], MPI_STATUS_IGNORE);
    out[k].fill_with(seed(rank, i));
    MPI_Isend(out[k].data(), static_cast<int>(length), MPI_BYTE, 0, 1, MPI_COMM_WORLD,
              &requests[k]);
  }
  MPI_Waitall(at_once, requests.data(), MPI_STATUSES_IGNORE);
}

// Checks that `in` contains message `i` of `sender`.
void verify_in_order(Buffer& in, std::size_t length, int sender, int i, int count,
                     const char* what) {
  const auto holds = [&](int message) {
    std::size_t at = 0;
    while (at < length && in.data()[at] == expected_byte(seed(sender, message), at)) ++at;
    return at == length;
  };
  if (!holds(i)) {
    for (int later = i + 1; later < count; ++later) {
      if (!holds(later)) continue;
      std::fprintf(stderr, "%s: message %d of rank %d came in the place of message %d\n", what,
                   later, sender, i);
      for (;;) pause();
    }
  }
  in.verify_received(length, seed(sender, i), what);
}

// The last call of the receiver before it computes. The senders begin when they have the message.
void start_senders() {
  for (int sender = 1; sender < ranks; ++sender)
    MPI_Send(nullptr, 0, MPI_BYTE, sender, 2, MPI_COMM_WORLD);
}
void await_start() { MPI_Recv(nullptr, 0, MPI_BYTE, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE); }

// Makes no call, so the application makes no progress.
void compute(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

// The receives are posted before the flood: their completions overrun the event queue.
void receive_expected(int count, std::size_t length, int computing_ms) {
  const auto senders = static_cast<std::size_t>(ranks - 1);
  std::vector<Buffer> in(senders * static_cast<std::size_t>(count), Buffer(length));
  std::vector<MPI_Request> requests(in.size());
  for (std::size_t k = 0; k < in.size(); ++k)
    MPI_Irecv(in[k].data(), static_cast<int>(length), MPI_BYTE, static_cast<int>(k % senders) + 1,
              1, MPI_COMM_WORLD, &requests[k]);
  start_senders();
  compute(computing_ms);
  MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
  for (std::size_t k = 0; k < in.size(); ++k)
    verify_in_order(in[k], length, static_cast<int>(k % senders) + 1, static_cast<int>(k / senders),
                    count, "expected");
}

// The receives are posted after the flood: it overruns the buffers for unexpected messages.
void receive_unexpected(int count, std::size_t length, int computing_ms) {
  start_senders();
  compute(computing_ms);
  std::vector<int> next(static_cast<std::size_t>(ranks), 0);
  Buffer in(length);
  for (int i = 0; i < count * (ranks - 1); ++i) {
    MPI_Status status;
    in.clear();
    MPI_Recv(in.data(), static_cast<int>(length), MPI_BYTE, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD,
             &status);
    require_status(status, status.MPI_SOURCE, 1, length, "unexpected");
    verify_in_order(in, length, status.MPI_SOURCE,
                    next[static_cast<std::size_t>(status.MPI_SOURCE)]++, count, "unexpected");
  }
}

}  // namespace

int main(int argc, char** argv) {
  Job job(&argc, &argv, "flood");
  require(argc == 5 && ranks > 1,
          "usage: flood expected|unexpected <messages> <bytes> <ms>, on two ranks or more");
  const int count = std::atoi(argv[2]);
  const auto length = static_cast<std::size_t>(std::atol(argv[3]));
  const int computing_ms = std::atoi(argv[4]);
  if (rank != 0) {
    await_start();
    send_all(count, length);
  } else if (std::strcmp(argv[1], "expected") == 0) {
    receive_expected(count, length, computing_ms);
  } else {
    receive_unexpected(count, length, computing_ms);
  }
  barrier();
  return 0;
}
