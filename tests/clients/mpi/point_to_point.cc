// Point-to-point messages of all sizes and modes between neighbours of a ring, and to the rank
// itself. Every byte and every status is checked, and that nothing else is written.
//
// Usage: point_to_point [<bytes of the longest message to truncate>]
#include <limits>

#include "support.h"

using namespace mpi_test;

namespace {

// Lengths around the limits of the clients: 2 KiB (short messages of the MTL), 32 and 64 KiB
// (fragments of the BTL), and of the library.
const std::vector<int>& sizes() {
  static const std::vector<int> short_list{
      0,    1,    2,    7,     8,     63,    64,    511,   1024,   2047,    2048,    2049,   4096,
      8191, 8192, 8193, 32767, 32768, 40000, 65536, 65537, 262144, 1048576, 1048579, 3000001};
  static const std::vector<int> long_list = [] {
    std::vector<int> list = short_list;
    for (int power = 2; power < 1 << 24; power *= 2)
      for (int size : {power - 1, power, power + 1, power + power / 2}) list.push_back(size);
    return list;
  }();
  return long_form ? long_list : short_list;
}

enum class Mode { standard, synchronous, buffered, ready };

void send(Mode mode, Buffer& buffer, int to, int tag) {
  const int length = static_cast<int>(buffer.length());
  MPI_Request request;
  switch (mode) {
    case Mode::standard:
      MPI_Isend(buffer.data(), length, MPI_BYTE, to, tag, MPI_COMM_WORLD, &request);
      break;
    case Mode::synchronous:
      MPI_Issend(buffer.data(), length, MPI_BYTE, to, tag, MPI_COMM_WORLD, &request);
      break;
    case Mode::buffered:
      MPI_Ibsend(buffer.data(), length, MPI_BYTE, to, tag, MPI_COMM_WORLD, &request);
      break;
    case Mode::ready:
      MPI_Irsend(buffer.data(), length, MPI_BYTE, to, tag, MPI_COMM_WORLD, &request);
      break;
  }
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

// All messages first, then all receives, or in the opposite order. Ready sends need the latter.
void exchange(Mode mode, bool receive_first, int to, int from) {
  const int tag = 100 + static_cast<int>(mode) * 2 + (receive_first ? 1 : 0);
  for (const int size : sizes()) {
    Buffer out(static_cast<std::size_t>(size));
    Buffer in(static_cast<std::size_t>(size) + 5);
    const auto seed = [&](int sender) {
      return static_cast<std::uint64_t>(sender * 1000 + tag + size);
    };
    out.fill_with(seed(rank));
    MPI_Request request;
    MPI_Status status;
    const auto receive = [&] {
      MPI_Irecv(in.data(), static_cast<int>(in.length()), MPI_BYTE, from, tag, MPI_COMM_WORLD,
                &request);
    };
    if (receive_first) {
      receive();
      barrier();
      send(mode, out, to, tag);
    } else {
      MPI_Request sent;
      const auto start = mode == Mode::synchronous ? MPI_Issend : MPI_Isend;
      if (mode == Mode::buffered)
        MPI_Ibsend(out.data(), size, MPI_BYTE, to, tag, MPI_COMM_WORLD, &sent);
      else
        start(out.data(), size, MPI_BYTE, to, tag, MPI_COMM_WORLD, &sent);
      barrier();  // now the message is unexpected there
      receive();
      MPI_Wait(&sent, MPI_STATUS_IGNORE);
    }
    MPI_Wait(&request, &status);
    require_status(status, from, tag, static_cast<std::size_t>(size), "exchange");
    in.verify_received(static_cast<std::size_t>(size), seed(from), "exchange");
    out.verify_received(out.length(), seed(rank), "what was sent");
  }
}

void all_modes(int to, int from) {
  std::vector<Byte> attached(8 << 20);
  if (long_form) attached.resize(40 << 20);
  MPI_Buffer_attach(attached.data(), static_cast<int>(attached.size()));
  for (const Mode mode : {Mode::standard, Mode::synchronous, Mode::buffered}) {
    exchange(mode, true, to, from);
    exchange(mode, false, to, from);
  }
  exchange(Mode::ready, true, to, from);
  void* address = nullptr;
  int length = 0;
  MPI_Buffer_detach(&address, &length);
}

// Blocking calls, which the clients implement differently.
void blocking(int peer, bool first) {
  for (const int size : sizes()) {
    const auto length = static_cast<std::size_t>(size);
    Buffer buffer(length);
    MPI_Status status;
    const auto put = [&](int tag) {
      buffer.clear();
      buffer.fill_with(static_cast<std::uint64_t>(rank * 77 + size));
      if (tag == 1)
        MPI_Send(buffer.data(), size, MPI_BYTE, peer, tag, MPI_COMM_WORLD);
      else
        MPI_Ssend(buffer.data(), size, MPI_BYTE, peer, tag, MPI_COMM_WORLD);
    };
    const auto get = [&](int tag) {
      buffer.clear();
      MPI_Recv(buffer.data(), size, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &status);
      require_status(status, peer, tag, length, "blocking");
      buffer.verify_received(length, static_cast<std::uint64_t>(peer * 77 + size), "blocking");
    };
    for (const int tag : {1, 2}) {
      if (first) put(tag);
      get(tag);
      if (!first) put(tag);
    }
  }
}

// A receive that is too short fails with MPI_ERR_TRUNCATE and writes no byte too many. The next
// message arrives intact. With a truncated message by rendezvous, the PML ob1 of Open MPI 4.1
// itself writes past the buffer, over any BTL. For ob1, `limit` is therefore its eager limit.
void truncation(int to, int from, bool receive_first, int limit) {
  for (const auto& [sent, room] : {std::pair{8, 4},
                                   {1000, 999},
                                   {2048, 0},
                                   {2049, 2048},
                                   {5000, 100},
                                   {100000, 3000},
                                   {1 << 20, 100000},
                                   {40000, 20000}}) {
    if (sent > limit) continue;
    Buffer out(static_cast<std::size_t>(sent));
    Buffer in(static_cast<std::size_t>(room));
    out.fill_with(static_cast<std::uint64_t>(rank));
    MPI_Request receive;
    MPI_Request send;
    MPI_Status status;
    const auto post = [&] {
      MPI_Irecv(in.data(), room, MPI_BYTE, from, 5, MPI_COMM_WORLD, &receive);
    };
    if (receive_first) post();
    barrier();
    MPI_Isend(out.data(), sent, MPI_BYTE, to, 5, MPI_COMM_WORLD, &send);
    if (!receive_first) {
      barrier();
      post();
    }
    const int code = MPI_Wait(&receive, &status);
    int kind = MPI_SUCCESS;
    MPI_Error_class(code, &kind);
    require(kind == MPI_ERR_TRUNCATE, "%d bytes into room for %d: error class %d, not truncation",
            sent, room, kind);
    MPI_Wait(&send, MPI_STATUS_IGNORE);
    // MPI does not define how much of the message was written; nothing may be written outside the
    // buffer.
    in.verify_untouched_after(in.length(), "truncated");
    in.clear();
    MPI_Sendrecv(out.data(), room, MPI_BYTE, to, 6, in.data(), room, MPI_BYTE, from, 6,
                 MPI_COMM_WORLD, &status);
    require_status(status, from, 6, static_cast<std::size_t>(room), "after truncation");
    in.verify_received(static_cast<std::size_t>(room), static_cast<std::uint64_t>(from),
                       "after truncation");
  }
}

// Three quarters of each row of a matrix, which needs several pieces.
void strided(int to, int from) {
  for (const int rows : {1, 3, 100, 5000}) {
    const int stride = 64;
    const int width = 48;
    const auto span = static_cast<std::size_t>(rows * stride);
    std::vector<Byte> out(span);
    std::vector<Byte> in(span, 0x5A);
    fill(out.data(), span, static_cast<std::uint64_t>(rank));
    MPI_Datatype type;
    MPI_Type_vector(rows, width, stride, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    MPI_Status status;
    MPI_Sendrecv(out.data(), 1, type, to, 7, in.data(), 1, type, from, 7, MPI_COMM_WORLD, &status);
    require_status(status, from, 7, static_cast<std::size_t>(rows * width), "strided");
    for (int row = 0; row < rows; ++row) {
      const auto first = static_cast<std::size_t>(row * stride);
      verify(in.data() + first, width, static_cast<std::uint64_t>(from), "strided", first);
      for (std::size_t i = first + width; i < first + stride && i < span; ++i)
        require(in[i] == 0x5A, "strided: byte %zu between the rows was written", i);
    }
    MPI_Type_free(&type);
  }
}

void persistent(int to, int from) {
  for (const int size : {0, 100, 5000, 300000}) {
    Buffer out(static_cast<std::size_t>(size));
    Buffer in(static_cast<std::size_t>(size));
    MPI_Request requests[2];
    MPI_Send_init(out.data(), size, MPI_BYTE, to, 8, MPI_COMM_WORLD, &requests[0]);
    MPI_Recv_init(in.data(), size, MPI_BYTE, from, 8, MPI_COMM_WORLD, &requests[1]);
    for (int round = 0; round < 10; ++round) {
      out.fill_with(static_cast<std::uint64_t>(rank * 100 + round));
      in.clear();
      MPI_Startall(2, requests);
      MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
      in.verify_received(in.length(), static_cast<std::uint64_t>(from * 100 + round), "persistent");
    }
    for (MPI_Request& request : requests) MPI_Request_free(&request);
  }
}

// Messages between two ranks match in the order sent, for any lengths.
void order(int to, int from) {
  const int count = long_form ? 2000 : 300;
  const auto length = [](int i) {
    return static_cast<std::size_t>(i % 7 == 3 ? 9000 + i : i % 5 == 1 ? 2500 : i);
  };
  std::vector<Buffer> out;
  std::vector<Buffer> in;
  std::vector<MPI_Request> requests(static_cast<std::size_t>(2 * count));
  for (int i = 0; i < count; ++i) {
    out.emplace_back(length(i));
    in.emplace_back(length(i));
    out.back().fill_with(static_cast<std::uint64_t>(rank + i));
  }
  for (int i = 0; i < count; ++i) {
    const auto k = static_cast<std::size_t>(i);
    MPI_Isend(out[k].data(), static_cast<int>(length(i)), MPI_BYTE, to, 9, MPI_COMM_WORLD,
              &requests[2 * k]);
    MPI_Irecv(in[k].data(), static_cast<int>(length(i)), MPI_BYTE, from, 9, MPI_COMM_WORLD,
              &requests[2 * k + 1]);
  }
  std::vector<MPI_Status> statuses(requests.size());
  MPI_Waitall(2 * count, requests.data(), statuses.data());
  for (int i = 0; i < count; ++i) {
    const auto k = static_cast<std::size_t>(i);
    require_status(statuses[2 * k + 1], from, 9, length(i), "order");
    in[k].verify_received(length(i), static_cast<std::uint64_t>(from + i), "order");
  }
}

// A receive that no message matches can be cancelled.
void cancelled_receive(int from) {
  int value = 0;
  int cancelled = 0;
  MPI_Request request;
  MPI_Status status;
  MPI_Irecv(&value, 1, MPI_INT, from, 31000, MPI_COMM_WORLD, &request);
  MPI_Cancel(&request);
  MPI_Wait(&request, &status);
  MPI_Test_cancelled(&status, &cancelled);
  require(cancelled != 0, "a receive without a message was not cancelled");
}

}  // namespace

int main(int argc, char** argv) {
  Job job(&argc, &argv, "point_to_point");
  const int to = (rank + 1) % ranks;
  const int from = (rank + ranks - 1) % ranks;
  all_modes(to, from);
  if (rank == 0 && ranks > 1) blocking(1, true);
  if (rank == 1) blocking(0, false);
  barrier();
  const int truncated_up_to = argc > 1 ? std::atoi(argv[1]) : std::numeric_limits<int>::max();
  for (const bool receive_first : {true, false})
    truncation(to, from, receive_first, truncated_up_to);
  strided(to, from);
  persistent(to, from);
  order(to, from);
  cancelled_receive(from);
  exchange(Mode::standard, true, rank, rank);
  exchange(Mode::standard, false, rank, rank);
  return 0;
}
