// One process of a test, as the body of the test uses it. Set-up path.
//
// A failed assertion in a rank ends that rank at once. The parent reports its text, and the other
// ranks stop when they notice the failure. So helpers need not return errors.
#pragma once

#include <portals4.h>

#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>

#include "support/deadlines.h"
#include "support/shared_area.h"

namespace lintel::test {

// The place in a test that calls a helper. Like std::source_location, which Clang before 16 lacks.
class Place {
 public:
  [[nodiscard]] static constexpr Place current(const char* file = __builtin_FILE(),
                                               unsigned line = __builtin_LINE()) noexcept {
    return {file, line};
  }
  [[nodiscard]] constexpr const char* file_name() const noexcept { return file_; }
  [[nodiscard]] constexpr unsigned line() const noexcept { return line_; }

 private:
  constexpr Place(const char* file, unsigned line) noexcept : file_(file), line_(line) {}
  const char* file_;
  unsigned line_;
};

class Rank {
 public:
  Rank(SharedArea& area, int index, int count);
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  // The rank that this process is.
  [[nodiscard]] static Rank& current();

  [[nodiscard]] int index() const noexcept { return index_; }
  [[nodiscard]] int count() const noexcept { return count_; }

  // Waits for all ranks that have not been killed on purpose.
  void barrier(Place place = Place::current());

  // One value of up to 64 bytes per slot, visible to the others after the next barrier or flag.
  template <typename T>
  void publish(int slot, const T& value) {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= value_bytes);
    std::memcpy(value_memory(index_, slot), &value, sizeof(T));
  }
  template <typename T>
  [[nodiscard]] T published(int rank, int slot) const {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= value_bytes);
    T value;
    std::memcpy(&value, value_memory(rank, slot), sizeof(T));
    return value;
  }

  // Flags count upwards; another rank can wait until a flag has reached a value.
  void raise(int flag, uint64_t value = 1);
  void await(int rank, int flag, uint64_t value = 1, Place place = Place::current());
  [[nodiscard]] uint64_t flag(int rank, int flag) const;

  // Sends SIGKILL and removes the rank from all barriers. Returns when the process has ended.
  void kill(int rank);

  // PtlInit; PtlFini follows when the body has returned.
  void initialise(Place place = Place::current());
  void finalise();  // undoes every initialise() now

  // A Portals pid for PtlNIInit that no concurrent test uses; 0 <= which < 32.
  [[nodiscard]] ptl_pid_t reserved_pid(int which) const noexcept;

  // Records where this rank is, for the report of a hang. Stops this rank if another one has
  // failed.
  void at(const char* activity, Place place);

  // Polls the condition; fails with `activity` after wait_deadline.
  void await_condition(const char* activity, const std::function<bool()>& condition,
                       Place place = Place::current());

  [[noreturn]] void fail(std::string_view text);

 private:
  [[nodiscard]] std::byte* value_memory(int rank, int slot) const;
  [[nodiscard]] RankState& mine() const { return area_.ranks[index_]; }

  SharedArea& area_;
  int index_;
  int count_;
  int initialisations_ = 0;
};

// A thread of a rank; exceptions end the rank as failed assertions do.
[[nodiscard]] std::thread start_thread(std::function<void()> body);

// Fails the rank at `place` unless the return code is PTL_OK.
void must(int return_code, Place place = Place::current());

}  // namespace lintel::test
