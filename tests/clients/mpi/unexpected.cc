// Messages that arrive before their receives: thousands of them, received in other orders than that
// of arrival, with wildcards, and with all kinds of probe.
#include "support.h"

using namespace mpi_test;

namespace {

// Short messages, which the receiver buffers, and some that remain at the sender.
std::size_t length_of(int i) {
  return i % 97 == 50 ? 6000 + static_cast<std::size_t>(i) : static_cast<std::size_t>(i % 300);
}
std::uint64_t seed(int sender, int i) {
  return static_cast<std::uint64_t>(sender) * 1000003 + static_cast<std::uint64_t>(i);
}

// All ranks except 0 send `count` messages to rank 0. After a barrier, rank 0 calls `take`. Tags
// are message numbers.
template <typename Take>
void many_to_one(int count, Take take) {
  if (rank == 0) {
    barrier();
    take();
  } else {
    std::vector<Buffer> out;
    std::vector<MPI_Request> requests(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) {
      out.emplace_back(length_of(i));
      out.back().fill_with(seed(rank, i));
    }
    for (int i = 0; i < count; ++i) {
      const auto k = static_cast<std::size_t>(i);
      MPI_Isend(out[k].data(), static_cast<int>(length_of(i)), MPI_BYTE, 0, i, MPI_COMM_WORLD,
                &requests[k]);
    }
    barrier();
    MPI_Waitall(count, requests.data(), MPI_STATUSES_IGNORE);
  }
  barrier();
}

void take(int from, int i) {
  Buffer in(length_of(i) + 3);
  MPI_Status status;
  MPI_Recv(in.data(), static_cast<int>(in.length()), MPI_BYTE, from, i, MPI_COMM_WORLD, &status);
  require_status(status, from, i, length_of(i), "by tag");
  in.verify_received(length_of(i), seed(from, i), "by tag");
}

void backwards(int count) {
  many_to_one(count, [count] {
    for (int i = count - 1; i >= 0; --i)
      for (int from = ranks - 1; from > 0; --from) take(from, i);
  });
}

void scattered(int count) {
  many_to_one(count, [count] {
    for (int from = 1; from < ranks; ++from)
      for (int i = 0; i < count; ++i)
        take(from, static_cast<int>(static_cast<long>(i) * 7919 % count));
  });
}

// With wildcards: the messages of a sender are received in the order sent.
void any_source_any_tag(int count) {
  many_to_one(count, [count] {
    std::vector<int> next(static_cast<std::size_t>(ranks), 0);
    for (int i = 0; i < count * (ranks - 1); ++i) {
      Buffer in(6000 + static_cast<std::size_t>(count));
      MPI_Status status;
      MPI_Recv(in.data(), static_cast<int>(in.length()), MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG,
               MPI_COMM_WORLD, &status);
      const int from = status.MPI_SOURCE;
      require(from > 0 && from < ranks, "a message from rank %d", from);
      const int expected = next[static_cast<std::size_t>(from)]++;
      require_status(status, from, expected, length_of(expected), "by wildcards");
      in.verify_received(length_of(expected), seed(from, expected), "by wildcards");
    }
  });
}

// The next receive gets the message that a probe reported.
void probed(int count) {
  many_to_one(count, [count] {
    for (int i = 0; i < count * (ranks - 1); ++i) {
      MPI_Status probed_status;
      if (i % 2 == 0) {
        MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &probed_status);
      } else {
        int found = 0;
        while (found == 0)
          MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &found, &probed_status);
      }
      require_status(probed_status, probed_status.MPI_SOURCE, probed_status.MPI_TAG,
                     length_of(probed_status.MPI_TAG), "probe");
      take(probed_status.MPI_SOURCE, probed_status.MPI_TAG);
    }
    int found = 1;
    MPI_Status status;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &found, &status);
    require(found == 0, "a probe found a message that nobody sent");
  });
}

// A message found by a matched probe cannot be received otherwise: a later receive with wildcards
// gets the next one.
void matched_probes(int count) {
  many_to_one(count, [count] {
    for (int i = 0; i + 1 < count; i += 2) {
      for (int from = 1; from < ranks; ++from) {
        MPI_Message message = MPI_MESSAGE_NULL;
        MPI_Status status;
        if (i % 4 == 0) {
          MPI_Mprobe(from, i, MPI_COMM_WORLD, &message, &status);
        } else {
          int found = 0;
          while (found == 0) MPI_Improbe(from, i, MPI_COMM_WORLD, &found, &message, &status);
        }
        require_status(status, from, i, length_of(i), "mprobe");
        Buffer second(length_of(i + 1));
        MPI_Recv(second.data(), static_cast<int>(second.length()), MPI_BYTE, from, MPI_ANY_TAG,
                 MPI_COMM_WORLD, &status);
        require_status(status, from, i + 1, length_of(i + 1), "after mprobe");
        second.verify_received(second.length(), seed(from, i + 1), "after mprobe");
        Buffer first(length_of(i));
        if (i % 8 < 4) {
          MPI_Mrecv(first.data(), static_cast<int>(first.length()), MPI_BYTE, &message, &status);
        } else {
          MPI_Request request;
          MPI_Imrecv(first.data(), static_cast<int>(first.length()), MPI_BYTE, &message, &request);
          MPI_Wait(&request, &status);
        }
        require_status(status, from, i, length_of(i), "mrecv");
        first.verify_received(first.length(), seed(from, i), "mrecv");
      }
    }
  });
}

// Half of the receives are posted before the messages, half afterwards.
void mixed(int count) {
  std::vector<Buffer> early;
  std::vector<MPI_Request> requests;
  if (rank == 0) {
    for (int from = 1; from < ranks; ++from)
      for (int i = 0; i < count; i += 2) early.emplace_back(length_of(i));
    requests.resize(early.size());
    std::size_t k = 0;
    for (int from = 1; from < ranks; ++from)
      for (int i = 0; i < count; i += 2, ++k)
        MPI_Irecv(early[k].data(), static_cast<int>(early[k].length()), MPI_BYTE, from, i,
                  MPI_COMM_WORLD, &requests[k]);
  }
  barrier();
  many_to_one(count, [&] {
    for (int from = 1; from < ranks; ++from)
      for (int i = 1; i < count; i += 2) take(from, i);
    MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
    std::size_t k = 0;
    for (int from = 1; from < ranks; ++from)
      for (int i = 0; i < count; i += 2, ++k)
        early[k].verify_received(early[k].length(), seed(from, i), "received early");
  });
}

}  // namespace

int main(int argc, char** argv) {
  Job job(&argc, &argv, "unexpected");
  const int count = long_form ? 20000 : 2000;
  backwards(count);
  scattered(count);
  any_source_any_tag(count);
  probed(count / 4);
  matched_probes(count / 4);
  mixed(count);
  return 0;
}
