// Collective operations of all kinds, roots, lengths and data types, compared with a serial oracle:
// each rank computes the contribution of every rank. Blocking and non-blocking, on the world, a
// duplicate, its reverse and its halves.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <numeric>

#include "support.h"

using namespace mpi_test;

namespace {

struct Group {
  MPI_Comm comm;
  int me;
  int size;
  const char* name;
};

// Small whole numbers: sums and products are exact in every type and in any order.
template <typename T>
T value(int contributor, std::size_t i) {
  return static_cast<T>((static_cast<std::size_t>(contributor) * 3 + i * 7 + i / 5) % 3 + 1);
}

template <typename T>
std::vector<T> contribution(int contributor, std::size_t count) {
  std::vector<T> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = value<T>(contributor, i);
  return values;
}

struct Operation {
  MPI_Op op;
  const char* name;
  bool integers_only;
};

const Operation operations[] = {{MPI_SUM, "sum", false},       {MPI_PROD, "product", false},
                                {MPI_MAX, "max", false},       {MPI_MIN, "min", false},
                                {MPI_BAND, "and", true},       {MPI_BOR, "or", true},
                                {MPI_BXOR, "xor", true},       {MPI_LAND, "logical and", true},
                                {MPI_LOR, "logical or", true}, {MPI_LXOR, "logical xor", true}};

template <typename T>
T combine(const Operation& operation, T a, T b) {
  if (operation.op == MPI_SUM) return static_cast<T>(a + b);
  if (operation.op == MPI_PROD) return static_cast<T>(a * b);
  if (operation.op == MPI_MAX) return std::max(a, b);
  if (operation.op == MPI_MIN) return std::min(a, b);
  if constexpr (std::is_integral_v<T>) {
    if (operation.op == MPI_BAND) return static_cast<T>(a & b);
    if (operation.op == MPI_BOR) return static_cast<T>(a | b);
    if (operation.op == MPI_BXOR) return static_cast<T>(a ^ b);
    if (operation.op == MPI_LAND) return static_cast<T>(a != 0 && b != 0);
    if (operation.op == MPI_LOR) return static_cast<T>(a != 0 || b != 0);
    if (operation.op == MPI_LXOR) return static_cast<T>((a != 0) != (b != 0));
  }
  return T{};
}

// The oracle: the result for the contributions of ranks [first, last).
template <typename T>
std::vector<T> reduced(const Operation& operation, std::size_t count, int first, int last) {
  std::vector<T> result = contribution<T>(first, count);
  for (int contributor = first + 1; contributor < last; ++contributor)
    for (std::size_t i = 0; i < count; ++i)
      result[i] = combine(operation, result[i], value<T>(contributor, i));
  return result;
}

template <typename T>
void require_equal(const Group& group, const std::vector<T>& found, const std::vector<T>& wanted,
                   const char* what, const char* detail) {
  std::size_t i = 0;
  while (i < wanted.size() && found[i] == wanted[i]) ++i;
  require(found.size() == wanted.size() && i == wanted.size(),
          "%s %s on %s: item %zu of %zu is wrong", what, detail, group.name, i, wanted.size());
}

void wait(MPI_Request& request) { MPI_Wait(&request, MPI_STATUS_IGNORE); }

template <typename T>
void reductions(const Group& group, MPI_Datatype type, std::size_t count,
                const Operation& operation) {
  if (operation.integers_only && !std::is_integral_v<T>) return;
  const auto mine = contribution<T>(group.me, count);
  const auto all = reduced<T>(operation, count, 0, group.size);
  const int n = static_cast<int>(count);
  MPI_Request request;

  std::vector<T> result(count);
  MPI_Allreduce(mine.data(), result.data(), n, type, operation.op, group.comm);
  require_equal(group, result, all, "allreduce", operation.name);
  result = mine;
  MPI_Allreduce(MPI_IN_PLACE, result.data(), n, type, operation.op, group.comm);
  require_equal(group, result, all, "allreduce in place", operation.name);
  result.assign(count, T{});
  MPI_Iallreduce(mine.data(), result.data(), n, type, operation.op, group.comm, &request);
  wait(request);
  require_equal(group, result, all, "iallreduce", operation.name);

  for (const int root : {0, group.size - 1}) {
    result.assign(count, T{});
    MPI_Reduce(mine.data(), result.data(), n, type, operation.op, root, group.comm);
    if (group.me == root) require_equal(group, result, all, "reduce", operation.name);
    result.assign(count, T{});
    MPI_Ireduce(mine.data(), result.data(), n, type, operation.op, root, group.comm, &request);
    wait(request);
    if (group.me == root) require_equal(group, result, all, "ireduce", operation.name);
  }

  result.assign(count, T{});
  MPI_Scan(mine.data(), result.data(), n, type, operation.op, group.comm);
  require_equal(group, result, reduced<T>(operation, count, 0, group.me + 1), "scan",
                operation.name);
  result.assign(count, T{});
  MPI_Exscan(mine.data(), result.data(), n, type, operation.op, group.comm);
  if (group.me > 0)
    require_equal(group, result, reduced<T>(operation, count, 0, group.me), "exscan",
                  operation.name);

  // Rank r gets r + 1 items, which follow those of the ranks before it.
  std::vector<int> counts(static_cast<std::size_t>(group.size));
  std::iota(counts.begin(), counts.end(), 1);
  const auto total = static_cast<std::size_t>(std::accumulate(counts.begin(), counts.end(), 0));
  const auto first =
      static_cast<std::size_t>(std::accumulate(counts.begin(), counts.begin() + group.me, 0));
  const auto share = static_cast<std::size_t>(group.me + 1);
  const auto whole = reduced<T>(operation, total, 0, group.size);
  result.assign(share, T{});
  MPI_Reduce_scatter(contribution<T>(group.me, total).data(), result.data(), counts.data(), type,
                     operation.op, group.comm);
  require_equal(
      group, result,
      {whole.begin() + static_cast<long>(first), whole.begin() + static_cast<long>(first + share)},
      "reduce_scatter", operation.name);
}

// Blocks of bytes: rank r sends the message number 1000 r + s to rank s.
std::uint64_t seed(int from, int to) { return static_cast<std::uint64_t>(from * 1000 + to); }

void broadcast(const Group& group, std::size_t length) {
  for (int root = 0; root < group.size; ++root) {
    for (const bool blocking : {true, false}) {
      Buffer buffer(length);
      if (group.me == root) buffer.fill_with(seed(root, 7));
      if (blocking) {
        MPI_Bcast(buffer.data(), static_cast<int>(length), MPI_BYTE, root, group.comm);
      } else {
        MPI_Request request;
        MPI_Ibcast(buffer.data(), static_cast<int>(length), MPI_BYTE, root, group.comm, &request);
        wait(request);
      }
      buffer.verify_received(length, seed(root, 7), blocking ? "bcast" : "ibcast");
    }
  }
}

void verify_blocks(const Group& group, Buffer& buffer, std::size_t length, bool to_me,
                   const char* what) {
  for (int from = 0; from < group.size; ++from)
    verify(buffer.data() + static_cast<std::size_t>(from) * length, length,
           seed(from, to_me ? group.me : 0), what);
  buffer.verify_untouched_after(buffer.length(), what);
}

void gather_and_scatter(const Group& group, std::size_t length) {
  const int n = static_cast<int>(length);
  const auto blocks = static_cast<std::size_t>(group.size);
  MPI_Request request;
  Buffer mine(length);
  mine.fill_with(seed(group.me, 0));
  for (const int root : {0, group.size - 1}) {
    for (const bool blocking : {true, false}) {
      Buffer all(group.me == root ? blocks * length : 0);
      if (blocking) {
        MPI_Gather(mine.data(), n, MPI_BYTE, all.data(), n, MPI_BYTE, root, group.comm);
      } else {
        MPI_Igather(mine.data(), n, MPI_BYTE, all.data(), n, MPI_BYTE, root, group.comm, &request);
        wait(request);
      }
      if (group.me == root)
        verify_blocks(group, all, length, false, blocking ? "gather" : "igather");

      Buffer part(length);
      if (group.me == root)
        for (int to = 0; to < group.size; ++to)
          fill(all.data() + static_cast<std::size_t>(to) * length, length, seed(root, to));
      if (blocking) {
        MPI_Scatter(all.data(), n, MPI_BYTE, part.data(), n, MPI_BYTE, root, group.comm);
      } else {
        MPI_Iscatter(all.data(), n, MPI_BYTE, part.data(), n, MPI_BYTE, root, group.comm, &request);
        wait(request);
      }
      part.verify_received(length, seed(root, group.me), blocking ? "scatter" : "iscatter");
    }
  }
}

void everybody_to_everybody(const Group& group, std::size_t length) {
  const int n = static_cast<int>(length);
  const auto blocks = static_cast<std::size_t>(group.size);
  Buffer mine(length);
  mine.fill_with(seed(group.me, 0));
  Buffer all(blocks * length);
  MPI_Allgather(mine.data(), n, MPI_BYTE, all.data(), n, MPI_BYTE, group.comm);
  verify_blocks(group, all, length, false, "allgather");

  Buffer out(blocks * length);
  for (int to = 0; to < group.size; ++to)
    fill(out.data() + static_cast<std::size_t>(to) * length, length, seed(group.me, to));
  all.clear();
  MPI_Alltoall(out.data(), n, MPI_BYTE, all.data(), n, MPI_BYTE, group.comm);
  verify_blocks(group, all, length, true, "alltoall");
  all.clear();
  MPI_Request request;
  MPI_Ialltoall(out.data(), n, MPI_BYTE, all.data(), n, MPI_BYTE, group.comm, &request);
  wait(request);
  verify_blocks(group, all, length, true, "ialltoall");
}

// Rank r has r * 13 + 1 bytes for every rank.
void uneven(const Group& group) {
  std::vector<int> counts;
  std::vector<int> places;
  int total = 0;
  for (int i = 0; i < group.size; ++i) {
    counts.push_back(i * 13 + 1);
    places.push_back(total);
    total += counts.back();
  }
  const int mine = counts[static_cast<std::size_t>(group.me)];
  Buffer out(static_cast<std::size_t>(mine));
  out.fill_with(seed(group.me, 0));
  const auto check = [&](Buffer& all, const char* what) {
    for (int from = 0; from < group.size; ++from) {
      const auto k = static_cast<std::size_t>(from);
      verify(all.data() + places[k], static_cast<std::size_t>(counts[k]), seed(from, 0), what);
    }
    all.verify_untouched_after(all.length(), what);
  };
  Buffer all(static_cast<std::size_t>(total));
  MPI_Allgatherv(out.data(), mine, MPI_BYTE, all.data(), counts.data(), places.data(), MPI_BYTE,
                 group.comm);
  check(all, "allgatherv");
  all.clear();
  MPI_Gatherv(out.data(), mine, MPI_BYTE, all.data(), counts.data(), places.data(), MPI_BYTE, 0,
              group.comm);
  if (group.me == 0) check(all, "gatherv");
  Buffer part(static_cast<std::size_t>(mine));
  MPI_Scatterv(all.data(), counts.data(), places.data(), MPI_BYTE, part.data(), mine, MPI_BYTE, 0,
               group.comm);
  part.verify_received(part.length(), seed(group.me, 0), "scatterv");
}

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// No rank leaves a barrier before all have entered it, measured with the common clock of the node.
void barriers(const Group& group) {
  for (int round = 0; round < 20; ++round) {
    if (group.me == round % group.size) usleep(2000);
    double came = now_s();
    if (round % 2 == 0) {
      MPI_Barrier(group.comm);
    } else {
      MPI_Request request;
      MPI_Ibarrier(group.comm, &request);
      wait(request);
    }
    const double left = now_s();
    double last_came = 0;
    MPI_Allreduce(&came, &last_came, 1, MPI_DOUBLE, MPI_MAX, group.comm);
    require(left >= last_came, "a barrier on %s was left %.0f us before the last had come",
            group.name, (last_came - left) * 1e6);
  }
}

// Several operations in progress at once, completed in reverse order.
void at_once(const Group& group) {
  constexpr std::size_t count = 8;
  std::vector<std::vector<int>> results(count, std::vector<int>(100));
  std::vector<std::vector<int>> mine(count);
  std::vector<MPI_Request> requests(count);
  for (std::size_t k = 0; k < count; ++k) {
    mine[k] = contribution<int>(group.me + static_cast<int>(k), 100);
    MPI_Iallreduce(mine[k].data(), results[k].data(), 100, MPI_INT, MPI_SUM, group.comm,
                   &requests[k]);
  }
  for (std::size_t k = count; k-- > 0;) {
    wait(requests[k]);
    const int first = static_cast<int>(k);
    require_equal(group, results[k], reduced<int>(operations[0], 100, first, first + group.size),
                  "iallreduce at once", "sum");
  }
}

void everything(const Group& group) {
  barriers(group);
  std::vector<std::size_t> counts{1, 2, 17, 100, 1000, 5000};
  std::vector<std::size_t> lengths{0, 1, 8, 100, 2048, 2049, 10000, 100000};
  if (long_form) {
    counts.insert(counts.end(), {3, 255, 256, 257, 4095, 4096, 4097, 65536, 300000});
    lengths.insert(lengths.end(), {2, 63, 64, 65, 1023, 4096, 8191, 8193, 65536, 1000000, 4000003});
  }
  for (const std::size_t count : counts) {
    for (const Operation& operation : operations) {
      reductions<int>(group, MPI_INT, count, operation);
      reductions<std::int64_t>(group, MPI_INT64_T, count, operation);
      reductions<double>(group, MPI_DOUBLE, count, operation);
      if (!long_form) continue;
      reductions<std::uint8_t>(group, MPI_UINT8_T, count, operation);
      reductions<std::int16_t>(group, MPI_INT16_T, count, operation);
      reductions<float>(group, MPI_FLOAT, count, operation);
      reductions<long double>(group, MPI_LONG_DOUBLE, count, operation);
    }
  }
  for (const std::size_t length : lengths) {
    broadcast(group, length);
    gather_and_scatter(group, length);
    everybody_to_everybody(group, length);
  }
  uneven(group);
  at_once(group);
}

void on_group(MPI_Comm comm, const char* name) {
  Group group{comm, 0, 0, name};
  MPI_Comm_rank(comm, &group.me);
  MPI_Comm_size(comm, &group.size);
  everything(group);
}

}  // namespace

int main(int argc, char** argv) {
  Job job(&argc, &argv, "collectives");
  on_group(MPI_COMM_WORLD, "the world");
  MPI_Comm other;
  MPI_Comm_dup(MPI_COMM_WORLD, &other);
  on_group(other, "a duplicate");
  MPI_Comm_free(&other);
  MPI_Comm_split(MPI_COMM_WORLD, 0, ranks - rank, &other);
  on_group(other, "the reverse");
  MPI_Comm_free(&other);
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &other);
  on_group(other, "a half");
  MPI_Comm_free(&other);
  return 0;
}
