// Common to the MPI programs of this directory: messages with known bytes, and checks that end the
// job. Set-up path. Uses only the C interface of MPI.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace mpi_test {

using Byte = unsigned char;

// In MPI_COMM_WORLD; valid while a Job exists.
inline int rank = 0;
inline int ranks = 0;
inline bool long_form = false;  // LINTEL_TEST_LONG is set
inline std::uint64_t checks = 0;

// Ends the whole job if `condition` is false. `what` describes the error.
template <typename... Values>
void require(bool condition, const char* what, Values... values) {
  ++checks;
  if (condition) return;
  char text[400];
  std::snprintf(text, sizeof text, what, values...);
  std::fprintf(stderr, "rank %d of %d: FAILED: %s\n", rank, ranks, text);
  std::fflush(stderr);
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::abort();
}

// The byte at `offset` of the message `seed`. It nearly always differs for another seed or offset.
inline Byte expected_byte(std::uint64_t seed, std::size_t offset) {
  std::uint64_t mixed = (seed + 1) * 0x9E3779B97F4A7C15ULL ^ (offset + 1) * 0xC2B2AE3D27D4EB4FULL;
  mixed ^= mixed >> 29;
  return static_cast<Byte>(mixed * 0xBF58476D1CE4E5B9ULL >> 56);
}

inline void fill(Byte* data, std::size_t length, std::uint64_t seed, std::size_t first = 0) {
  for (std::size_t i = 0; i < length; ++i) data[i] = expected_byte(seed, first + i);
}

inline void verify(const Byte* data, std::size_t length, std::uint64_t seed, const char* what,
                   std::size_t first = 0) {
  std::size_t i = 0;
  while (i < length && data[i] == expected_byte(seed, first + i)) ++i;
  require(i == length, "%s: byte %zu of %zu of message %llu is wrong", what, i, length,
          static_cast<unsigned long long>(seed));
}

// A buffer between two guards that must not be written.
class Buffer {
 public:
  explicit Buffer(std::size_t length) : bytes_(length + 2 * guard, guard_byte), length_(length) {}
  Byte* data() { return bytes_.data() + guard; }
  std::size_t length() const { return length_; }

  void fill_with(std::uint64_t seed) { fill(data(), length_, seed); }
  void clear() { bytes_.assign(bytes_.size(), guard_byte); }

  // Checks that the first `received` bytes are those of the message `seed`, and the rest is
  // unchanged.
  void verify_received(std::size_t received, std::uint64_t seed, const char* what) {
    verify(data(), received, seed, what);
    verify_untouched_after(received, what);
  }

  // Checks that nothing was written except, perhaps, the first `written` bytes.
  void verify_untouched_after(std::size_t written, const char* what) {
    std::size_t i = 0;
    while (i < guard && bytes_[i] == guard_byte) ++i;
    require(i == guard, "%s: a byte before the buffer was written", what);
    i = guard + written;
    while (i < bytes_.size() && bytes_[i] == guard_byte) ++i;
    require(i == bytes_.size(), "%s: byte %zu, past the %zu expected, was written", what, i - guard,
            written);
  }

 private:
  static constexpr std::size_t guard = 64;
  static constexpr Byte guard_byte = 0xA5;
  std::vector<Byte> bytes_;
  std::size_t length_;
};

inline void require_status(const MPI_Status& status, int source, int tag, std::size_t bytes,
                           const char* what) {
  int count = -1;
  MPI_Get_count(&status, MPI_BYTE, &count);
  require(status.MPI_SOURCE == source && status.MPI_TAG == tag && count == static_cast<int>(bytes),
          "%s: status has source %d tag %d count %d instead of %d, %d, %zu", what,
          status.MPI_SOURCE, status.MPI_TAG, count, source, tag, bytes);
}

inline void barrier() { MPI_Barrier(MPI_COMM_WORLD); }

// MPI from initialisation to finalisation. Errors are returned to the caller and are not fatal.
class Job {
 public:
  Job(int* argc, char*** argv, const char* name, int threads = MPI_THREAD_SINGLE) : name_(name) {
    MPI_Init_thread(argc, argv, threads, &provided_);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    const char* wish = std::getenv("LINTEL_TEST_LONG");
    long_form = wish != nullptr && *wish != '\0';
  }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  ~Job() {
    std::uint64_t total = 0;
    MPI_Reduce(&checks, &total, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Finalize();
    if (rank == 0)
      std::printf("%s: %llu checks on %d ranks\n", name_.c_str(),
                  static_cast<unsigned long long>(total), ranks);
  }

  int provided() const { return provided_; }

 private:
  std::string name_;
  int provided_ = 0;
};

}  // namespace mpi_test
