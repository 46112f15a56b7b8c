// One-sided communication: put, get, accumulate and fetching operations with fences, general active
// targets, locks and flushes, in windows of all kinds. Every byte is compared.
#include <algorithm>
#include <initializer_list>
#include <memory>

#include "support.h"

using namespace mpi_test;

namespace {

constexpr std::size_t window_bytes = 1 << 20;

// A window; all ranks free it together.
class Window {
 public:
  enum class Kind { created, allocated, dynamic };

  Window(Kind kind, std::size_t bytes, int unit, MPI_Comm comm = MPI_COMM_WORLD) : unit_(unit) {
    const auto length = static_cast<MPI_Aint>(bytes);
    if (kind == Kind::allocated) {
      MPI_Win_allocate(length, unit, MPI_INFO_NULL, comm, &base_, &window_);
    } else {
      own_ = std::make_unique<Byte[]>(bytes + 1);
      base_ = own_.get();
      if (kind == Kind::created) {
        MPI_Win_create(base_, length, unit, MPI_INFO_NULL, comm, &window_);
      } else {
        MPI_Win_create_dynamic(MPI_INFO_NULL, comm, &window_);
        MPI_Win_attach(window_, base_, length);
        MPI_Aint address = 0;
        MPI_Get_address(base_, &address);
        addresses_.resize(static_cast<std::size_t>(ranks));
        MPI_Allgather(&address, 1, MPI_AINT, addresses_.data(), 1, MPI_AINT, comm);
      }
    }
    MPI_Win_set_errhandler(window_, MPI_ERRORS_RETURN);
    std::fill(base_, base_ + bytes, Byte{0});
    MPI_Barrier(comm);
  }
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;
  ~Window() {
    if (!addresses_.empty()) MPI_Win_detach(window_, base_);
    MPI_Win_free(&window_);
  }

  MPI_Win handle() const { return window_; }
  Byte* data() { return base_; }
  // The displacement of byte `offset` of the memory of `target`.
  MPI_Aint at(int target, std::size_t offset) const {
    if (!addresses_.empty())
      return addresses_[static_cast<std::size_t>(target)] + static_cast<MPI_Aint>(offset);
    return static_cast<MPI_Aint>(offset) / unit_;
  }

 private:
  Byte* base_ = nullptr;
  int unit_;
  std::unique_ptr<Byte[]> own_;
  std::vector<MPI_Aint> addresses_;
  MPI_Win window_ = MPI_WIN_NULL;
};

void check(int code, const char* what) {
  require(code == MPI_SUCCESS, "%s returned error %d", what, code);
}

std::uint64_t seed(int writer, int target, std::size_t length) {
  return static_cast<std::uint64_t>(writer) * 7919 + static_cast<std::uint64_t>(target) * 104729 +
         length;
}

// --- epochs: how operations are completed at both ends

enum class Epoch { fence, active_target, lock, lock_all };

void begin(Epoch epoch, Window& window, int target, int source) {
  switch (epoch) {
    case Epoch::fence:
      check(MPI_Win_fence(0, window.handle()), "fence");
      break;
    case Epoch::active_target: {
      MPI_Group world, origin, destination;
      MPI_Comm_group(MPI_COMM_WORLD, &world);
      MPI_Group_incl(world, 1, &source, &origin);
      MPI_Group_incl(world, 1, &target, &destination);
      check(MPI_Win_post(origin, 0, window.handle()), "post");
      check(MPI_Win_start(destination, 0, window.handle()), "start");
      for (MPI_Group* group : {&world, &origin, &destination}) MPI_Group_free(group);
      break;
    }
    case Epoch::lock:
      check(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, window.handle()), "lock");
      break;
    case Epoch::lock_all:
      check(MPI_Win_lock_all(0, window.handle()), "lock_all");
      break;
  }
}

void end(Epoch epoch, Window& window, int target) {
  switch (epoch) {
    case Epoch::fence:
      check(MPI_Win_fence(0, window.handle()), "fence");
      break;
    case Epoch::active_target:
      check(MPI_Win_complete(window.handle()), "complete");
      check(MPI_Win_wait(window.handle()), "wait");
      break;
    case Epoch::lock:
      check(MPI_Win_unlock(target, window.handle()), "unlock");
      break;
    case Epoch::lock_all:
      check(MPI_Win_flush(target, window.handle()), "flush");
      check(MPI_Win_unlock_all(window.handle()), "unlock_all");
      break;
  }
  barrier();
}

void put_and_get(Window::Kind kind, Epoch epoch) {
  Window window(kind, window_bytes, 1);
  const int target = (rank + 1) % ranks;
  const int source = (rank + ranks - 1) % ranks;
  for (const std::size_t length : {1UL, 8UL, 100UL, 4096UL, 8193UL, 65536UL, 300001UL}) {
    const std::size_t offset = length % 5;
    const int n = static_cast<int>(length);
    Buffer out(length);
    Buffer in(length);
    out.fill_with(seed(rank, target, length));
    begin(epoch, window, target, source);
    check(MPI_Put(out.data(), n, MPI_BYTE, target, window.at(target, offset), n, MPI_BYTE,
                  window.handle()),
          "put");
    end(epoch, window, target);
    verify(window.data() + offset, length, seed(source, rank, length), "put");
    require(window.data()[offset + length] == 0, "put: a byte past the message was written");
    barrier();
    begin(epoch, window, target, source);
    check(MPI_Get(in.data(), n, MPI_BYTE, target, window.at(target, offset), n, MPI_BYTE,
                  window.handle()),
          "get");
    end(epoch, window, target);
    in.verify_received(length, seed(rank, target, length), "get");
    std::fill(window.data(), window.data() + window_bytes, Byte{0});
    barrier();
  }
}

// Blocks of a column: strided at the origin, at the target, or at both.
void strided() {
  Window window(Window::Kind::created, window_bytes, 1);
  const int target = (rank + 1) % ranks;
  const int source = (rank + ranks - 1) % ranks;
  const int rows = 50;
  const int width = 24;
  const int stride = 40;
  const auto bytes = static_cast<std::size_t>(rows * width);
  MPI_Datatype column;
  MPI_Type_vector(rows, width, stride, MPI_BYTE, &column);
  MPI_Type_commit(&column);
  Buffer out(bytes);
  Buffer in(bytes);
  out.fill_with(seed(rank, target, bytes));
  check(MPI_Win_fence(0, window.handle()), "fence");
  check(MPI_Put(out.data(), rows * width, MPI_BYTE, target, 0, 1, column, window.handle()),
        "strided put");
  check(MPI_Win_fence(0, window.handle()), "fence");
  for (int row = 0; row < rows; ++row)
    verify(window.data() + row * stride, width, seed(source, rank, bytes), "strided put",
           static_cast<std::size_t>(row * width));
  check(MPI_Win_fence(0, window.handle()), "fence");
  check(MPI_Get(in.data(), rows * width, MPI_BYTE, target, 0, 1, column, window.handle()),
        "strided get");
  check(MPI_Win_fence(0, window.handle()), "fence");
  in.verify_received(bytes, seed(rank, target, bytes), "strided get");
  MPI_Type_free(&column);
}

// --- atomics: all ranks use the same items of rank 0

template <typename T>
void accumulate(MPI_Datatype type, MPI_Op op, T (*combine)(T, T), T start, std::size_t count) {
  Window window(Window::Kind::allocated, count * sizeof(T), sizeof(T));
  auto* items = reinterpret_cast<T*>(window.data());
  if (rank == 0) std::fill(items, items + count, start);
  std::vector<T> mine(count);
  const auto value = [](int of, std::size_t i) {
    return static_cast<T>((static_cast<std::size_t>(of) + i) % 3 + 1);
  };
  for (std::size_t i = 0; i < count; ++i) mine[i] = value(rank, i);
  const int n = static_cast<int>(count);
  const int rounds = 3;
  check(MPI_Win_fence(0, window.handle()), "fence");
  for (int round = 0; round < rounds; ++round)
    check(MPI_Accumulate(mine.data(), n, type, 0, 0, n, type, op, window.handle()), "accumulate");
  check(MPI_Win_fence(0, window.handle()), "fence");
  if (rank == 0) {
    for (std::size_t i = 0; i < count; ++i) {
      T wanted = start;
      for (int round = 0; round < rounds; ++round)
        for (int of = 0; of < ranks; ++of) wanted = combine(wanted, value(of, i));
      require(items[i] == wanted, "accumulate: item %zu of %zu is %g instead of %g", i, count,
              static_cast<double>(items[i]), static_cast<double>(wanted));
    }
  }
  barrier();
}

template <typename T>
void accumulates(MPI_Datatype type) {
  for (const std::size_t count : {1UL, 10UL, 300UL, 5000UL}) {
    accumulate<T>(
        type, MPI_SUM, [](T a, T b) { return static_cast<T>(a + b); }, T{1}, count);
    accumulate<T>(
        type, MPI_MAX, [](T a, T b) { return std::max(a, b); }, T{2}, count);
    accumulate<T>(
        type, MPI_MIN, [](T a, T b) { return std::min(a, b); }, T{2}, count);
    if constexpr (std::is_integral_v<T>) {
      accumulate<T>(
          type, MPI_BXOR, [](T a, T b) { return static_cast<T>(a ^ b); }, T{5}, count);
      accumulate<T>(
          type, MPI_BOR, [](T a, T b) { return static_cast<T>(a | b); }, T{4}, count);
      accumulate<T>(
          type, MPI_BAND, [](T a, T b) { return static_cast<T>(a & b); }, T{7}, count);
    }
  }
}

// Every rank draws numbers from a counter. Each number is drawn once, and the numbers of a rank
// increase.
void tickets(bool get_accumulate) {
  Window window(Window::Kind::allocated, sizeof(std::int64_t), sizeof(std::int64_t));
  const int draws = 200;
  std::vector<std::int64_t> drawn;
  const std::int64_t one = 1;
  check(MPI_Win_lock_all(0, window.handle()), "lock_all");
  for (int i = 0; i < draws; ++i) {
    std::int64_t number = -1;
    if (get_accumulate)
      check(MPI_Get_accumulate(&one, 1, MPI_INT64_T, &number, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T,
                               MPI_SUM, window.handle()),
            "get_accumulate");
    else
      check(MPI_Fetch_and_op(&one, &number, MPI_INT64_T, 0, 0, MPI_SUM, window.handle()),
            "fetch_and_op");
    check(MPI_Win_flush(0, window.handle()), "flush");
    require(drawn.empty() || number > drawn.back(), "ticket %lld came after a higher one",
            static_cast<long long>(number));
    drawn.push_back(number);
  }
  check(MPI_Win_unlock_all(window.handle()), "unlock_all");
  std::vector<std::int64_t> all(static_cast<std::size_t>(draws * ranks));
  MPI_Allgather(drawn.data(), draws, MPI_INT64_T, all.data(), draws, MPI_INT64_T, MPI_COMM_WORLD);
  std::sort(all.begin(), all.end());
  for (std::size_t i = 0; i < all.size(); ++i)
    require(all[i] == static_cast<std::int64_t>(i), "ticket %zu was not drawn exactly once", i);
}

// A lock made with compare_and_swap protects a plain counter.
void compare_and_swap() {
  Window window(Window::Kind::allocated, 2 * sizeof(std::int32_t), sizeof(std::int32_t));
  const int rounds = 50;
  const std::int32_t free_mark = 0;
  const std::int32_t mine = rank + 1;
  check(MPI_Win_lock_all(0, window.handle()), "lock_all");
  for (int i = 0; i < rounds; ++i) {
    std::int32_t found = -1;
    while (found != free_mark) {
      check(MPI_Compare_and_swap(&mine, &free_mark, &found, MPI_INT32_T, 0, 0, window.handle()),
            "compare_and_swap");
      check(MPI_Win_flush(0, window.handle()), "flush");
    }
    std::int32_t count = -1;
    check(MPI_Get(&count, 1, MPI_INT32_T, 0, 1, 1, MPI_INT32_T, window.handle()), "get");
    check(MPI_Win_flush(0, window.handle()), "flush");
    ++count;
    check(MPI_Put(&count, 1, MPI_INT32_T, 0, 1, 1, MPI_INT32_T, window.handle()), "put");
    check(MPI_Win_flush(0, window.handle()), "flush");
    check(MPI_Compare_and_swap(&free_mark, &mine, &found, MPI_INT32_T, 0, 0, window.handle()),
          "compare_and_swap");
    check(MPI_Win_flush(0, window.handle()), "flush");
    require(found == mine, "the lock was held by %d", found);
  }
  check(MPI_Win_unlock_all(window.handle()), "unlock_all");
  barrier();
  if (rank == 0) {
    std::int32_t count = -1;
    check(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window.handle()), "lock");
    std::copy_n(window.data() + sizeof count, sizeof count, reinterpret_cast<Byte*>(&count));
    check(MPI_Win_unlock(0, window.handle()), "unlock");
    require(count == rounds * ranks, "the counter is %d instead of %d", count, rounds * ranks);
  }
  barrier();
}

// Exclusive MPI locks protect a plain counter.
void exclusive_locks() {
  Window window(Window::Kind::allocated, sizeof(std::int64_t), sizeof(std::int64_t));
  const int rounds = 40;
  for (int i = 0; i < rounds; ++i) {
    std::int64_t value = -1;
    check(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window.handle()), "lock");
    check(MPI_Get(&value, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, window.handle()), "get");
    check(MPI_Win_flush(0, window.handle()), "flush");
    ++value;
    check(MPI_Put(&value, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, window.handle()), "put");
    check(MPI_Win_unlock(0, window.handle()), "unlock");
  }
  barrier();
  if (rank == 0) {
    std::int64_t value = 0;
    check(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window.handle()), "lock");
    std::copy_n(window.data(), sizeof value, reinterpret_cast<Byte*>(&value));
    check(MPI_Win_unlock(0, window.handle()), "unlock");
    require(value == rounds * ranks, "under locks: %lld instead of %d",
            static_cast<long long>(value), rounds * ranks);
  }
  barrier();
}

// Operations with requests, completed separately.
void requests() {
  Window window(Window::Kind::created, window_bytes, 1);
  const int target = (rank + 1) % ranks;
  const int source = (rank + ranks - 1) % ranks;
  check(MPI_Win_lock_all(0, window.handle()), "lock_all");
  for (const std::size_t length : {8UL, 5000UL, 200000UL}) {
    const int n = static_cast<int>(length);
    Buffer out(length);
    Buffer in(length);
    out.fill_with(seed(rank, target, length));
    MPI_Request request;
    check(MPI_Rput(out.data(), n, MPI_BYTE, target, 0, n, MPI_BYTE, window.handle(), &request),
          "rput");
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check(MPI_Win_flush(target, window.handle()), "flush");
    barrier();
    verify(window.data(), length, seed(source, rank, length), "rput");
    check(MPI_Rget(in.data(), n, MPI_BYTE, target, 0, n, MPI_BYTE, window.handle(), &request),
          "rget");
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    in.verify_received(length, seed(rank, target, length), "rget");
    barrier();
  }
  check(MPI_Win_unlock_all(window.handle()), "unlock_all");
}

// Parts to leave out, by name, because a client does not support them.
bool left_out(int argc, char** argv, const std::string& part) {
  return std::find(argv + 1, argv + argc, part) != argv + argc;
}

}  // namespace

int main(int argc, char** argv) {
  Job job(&argc, &argv, "onesided");
  const auto wanted = [&](const char* part) { return !left_out(argc, argv, part); };
  for (const Epoch epoch : {Epoch::fence, Epoch::active_target, Epoch::lock, Epoch::lock_all}) {
    if (epoch == Epoch::active_target && !wanted("active_target")) continue;
    put_and_get(Window::Kind::created, epoch);
    put_and_get(Window::Kind::allocated, epoch);
    if (wanted("dynamic")) put_and_get(Window::Kind::dynamic, epoch);
  }
  if (wanted("strided")) strided();
  if (wanted("accumulate")) {
    accumulates<std::int32_t>(MPI_INT32_T);
    accumulates<std::int64_t>(MPI_INT64_T);
    accumulates<double>(MPI_DOUBLE);
    accumulates<float>(MPI_FLOAT);
  }
  tickets(false);
  tickets(true);
  compare_and_swap();
  exclusive_locks();
  if (wanted("requests")) requests();
  return 0;
}
