// A sender and a receiver: two endpoints of one process, or of two. Bodies of tests are written
// once.
//
//   run_pair(GetParam(), {}, [](Pair& pair) {
//     pair.receiver([&](Side& side) { fi_trecv(side.endpoint(), ...); });
//     pair.sender([&](Side& side) { fi_tsend(side.endpoint(), ..., side.peer(), ...); });
//     pair.receiver([&](Side& side) { side.next(side.received()); });
//   });
//
// Each step runs in the process with that role and ends with a barrier. Set-up path.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "ofi/side.h"
#include "support/ranks.h"

namespace lintel::test::ofi {

struct PairKind {
  std::string name;
  std::string transport;  // PTL_TRANSPORT
  int processes;
  bool contexts = true;
  fi_av_type vector = FI_AV_MAP;
  fi_threading threading = FI_THREAD_DOMAIN;
  std::vector<std::pair<std::string, std::string>> environment = {};
};

// local, shm and udp; with contexts, a map and one thread, or with none of these.
[[nodiscard]] std::vector<PairKind> all_pairs();
// Those of two processes.
[[nodiscard]] std::vector<PairKind> pairs_of_two();
[[nodiscard]] std::string name_of(const testing::TestParamInfo<PairKind>& info);

class Pair {
 public:
  Pair(Rank& rank, const Settings& settings);

  template <typename Step>
  void sender(Step&& step, Place place = Place::current()) {
    run("a step of the sender", sender_, step, place);
  }
  template <typename Step>
  void receiver(Step&& step, Place place = Place::current()) {
    run("a step of the receiver", receiver_, step, place);
  }
  // Each process with its only side, at the same time.
  template <typename Step>
  void concurrently(Step&& step, Place place = Place::current()) {
    run("a step of both", sender_.has_value() ? sender_ : receiver_, step, place);
  }
  // Kills the process of the receiver. Steps of the sender may follow.
  void kill_receiver();
  // A value that the receiver tells the sender.
  void tell(int slot, uint64_t value) { rank_.publish(slot, value); }
  [[nodiscard]] uint64_t told(int slot) const {
    return rank_.published<uint64_t>(rank_.count() - 1, slot);
  }
  [[nodiscard]] Rank& rank() { return rank_; }

 private:
  template <typename Step>
  void run(const char* what, std::optional<Side>& side, Step&& step, Place place) {
    rank_.at(what, place);
    if (side.has_value()) step(*side);
    rank_.barrier(place);
  }
  void publish_name(const Side& side, int slot);
  [[nodiscard]] std::vector<std::byte> name_from(int rank, int slot) const;

  Rank& rank_;
  std::optional<Side> sender_;
  std::optional<Side> receiver_;
};

void run_pair(const PairKind& kind, Settings settings, const std::function<void(Pair&)>& body);
// One process, without endpoints.
void run_alone(const std::function<void(Rank&)>& body);

// Bytes that differ for each seed and offset.
[[nodiscard]] std::vector<std::byte> bytes(size_t size, unsigned seed);

}  // namespace lintel::test::ofi
