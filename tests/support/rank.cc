// What a rank does together with the other ranks: barriers, values, flags, signals. Set-up path.
#include "support/rank.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <exception>

#include <gtest/gtest.h>

#include "../src/util/peer_order.h"
#include "support/text.h"

namespace lintel::test {

namespace {

using Clock = std::chrono::steady_clock;

Rank* current_rank = nullptr;

}  // namespace

Rank::Rank(SharedArea& area, int index, int count) : area_(area), index_(index), count_(count) {
  current_rank = this;
}

Rank& Rank::current() {
  if (current_rank == nullptr) throw std::logic_error("not inside a rank");
  return *current_rank;
}

std::byte* Rank::value_memory(int rank, int slot) const {
  if (rank < 0 || rank >= max_ranks || slot < 0 || slot >= values_per_rank)
    throw std::out_of_range("value slot");
  return area_.ranks[rank].values[slot];
}

void Rank::at(const char* activity, Place place) {
  mine().file.store(place.file_name());
  mine().line.store(place.line());
  mine().activity.store(activity);
  if (area_.any_failed.load() != 0) _exit(0);
}

void Rank::await_condition(const char* activity, const std::function<bool()>& condition,
                           Place place) {
  const auto deadline = Clock::now() + wait_deadline;
  for (;;) {
    const uint32_t seen = area_.changes.load();
    at(activity, place);
    if (condition()) {
      note_received();
      return;
    }
    if (Clock::now() > deadline) {
      ADD_FAILURE_AT(place.file_name(), static_cast<int>(place.line())) << "gave up: " << activity;
    }
    area_.wait_for_change(seen);
  }
}

void Rank::barrier(Place place) {
  note_sending();
  const uint32_t generation = mine().barriers_entered.load() + 1;
  mine().barriers_entered.store(generation);
  area_.announce();
  await_condition(
      "waiting for the other ranks at a barrier",
      [&] {
        for (int other = 0; other < count_; ++other) {
          const RankState& state = area_.ranks[other];
          if (state.killed_on_purpose.load() == 0 && state.barriers_entered.load() < generation)
            return false;
        }
        return true;
      },
      place);
}

void Rank::raise(int flag, uint64_t value) {
  note_sending();
  mine().flags.at(static_cast<std::size_t>(flag)).store(value);
  area_.announce();
}

uint64_t Rank::flag(int rank, int flag) const {
  return area_.ranks[rank].flags.at(static_cast<std::size_t>(flag)).load();
}

void Rank::await(int rank, int which, uint64_t value, Place place) {
  await_condition(
      "waiting for a flag of another rank", [&] { return flag(rank, which) >= value; }, place);
}

void Rank::kill(int rank) {
  const int pid = area_.pids[rank].load();
  area_.ranks[rank].killed_on_purpose.store(1);
  if (::kill(pid, SIGKILL) != 0) throw std::runtime_error("cannot kill a rank");
  area_.announce();
  // The process is a zombie until the parent reaps it; its memory and descriptors are released
  // already.
  await_condition("waiting for a killed rank to disappear", [&] { return ::kill(pid, 0) != 0; });
}

void Rank::initialise(Place place) {
  must(PtlInit(), place);
  ++initialisations_;
}

void Rank::finalise() {
  for (; initialisations_ > 0; --initialisations_) PtlFini();
}

ptl_pid_t Rank::reserved_pid(int which) const noexcept {
  const auto family = static_cast<ptl_pid_t>(getppid()) % 1900;
  return 1024 + family * 32 + static_cast<ptl_pid_t>(which);
}

void Rank::fail(std::string_view text) {
  static std::atomic_flag failing;
  if (failing.test_and_set()) {
    for (;;) pause();  // another thread is already ending this rank
  }
  const std::size_t length = std::min(text.size(), sizeof(RankState::message) - 1);
  std::copy_n(text.data(), length, mine().message);
  mine().failed.store(1);
  area_.any_failed.store(1);
  area_.announce();
  _exit(1);
}

std::thread start_thread(std::function<void()> body) {
  return std::thread([body = std::move(body)] {
    try {
      body();
    } catch (const std::exception& error) {
      Rank::current().fail(std::string("exception in a thread: ") + error.what());
    }
  });
}

void must(int return_code, Place place) {
  if (return_code == PTL_OK) return;
  ADD_FAILURE_AT(place.file_name(), static_cast<int>(place.line()))
      << "expected PTL_OK, got " << return_code_name(return_code);
}

}  // namespace lintel::test
