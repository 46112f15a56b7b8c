// A simulated network: a switch with one cable to each process. Cables have a rate and a latency,
// and the switch has a buffer for each process. Faults are random. Further rails are such networks
// with another rate.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "simulation/dice.h"
#include "simulation/event_queue.h"
#include "transport/packet_link.h"

namespace lintel::simulation {

// Probabilities per frame.
struct Trouble {
  double drop = 0;
  double duplicate = 0;
  double delay = 0;  // by up to `longest_delay_ns`: other frames overtake this one
  double damage = 0;
  uint64_t longest_delay_ns = 0;
};

struct NetworkShape {
  unsigned rails = 1;
  double rail_rates[most_rails] = {1, 1, 1, 1};  // times bytes_per_ns
  uint64_t latency_ns = 2'000;                   // of a cable and half of the switch
  double bytes_per_ns = 12.5;                    // 100 Gbit/s
  uint64_t buffer_bytes = 1 << 20;               // in the switch, for each process
  uint32_t bytes_beside_each_frame =
      66;  // headers of Ethernet, IP and UDP, and the gap between frames
};

struct NetworkCounters {
  uint64_t carried = 0;  // frames that processes sent
  uint64_t arrived = 0;
  uint64_t lost_by_dice = 0;
  uint64_t lost_in_switch = 0;  // its buffer was full
  uint64_t lost_by_partition = 0;
  uint64_t lost_by_length = 0;
  uint64_t duplicated = 0;
  uint64_t delayed = 0;
  uint64_t damaged = 0;
};

struct TravellingFrame {
  uint32_t from = 0;
  uint32_t to = 0;
  unsigned rail = 0;
  std::vector<std::byte> bytes;
};

class Network {
 public:
  Network(EventQueue& events, Dice& dice, const NetworkShape& shape, uint32_t processes);

  // Applies to frames sent from now on.
  void set_trouble(uint32_t from, uint32_t to, const Trouble& trouble) noexcept {
    trouble_[pair(from, to)] = trouble;
  }
  // Longer frames are lost.
  void set_longest(uint32_t bytes) noexcept { longest_ = bytes; }
  [[nodiscard]] uint32_t longest() const noexcept { return longest_; }
  // Data in that direction are lost, and nothing else.
  void cut_data(uint32_t from, uint32_t to, bool is_cut) noexcept {
    data_cut_[pair(from, to)] = is_cut;
  }
  // Frames in that direction are lost.
  void cut(uint32_t from, uint32_t to, bool is_cut) noexcept { cut_[pair(from, to)] = is_cut; }

  // Frames by that rail are lost.
  void cut_rail(unsigned rail, bool is_cut) noexcept { rail_cut_[rail] = is_cut; }
  [[nodiscard]] unsigned rails() const noexcept { return shape_.rails; }

  void carry(TravellingFrame frame);
  // The frame of an event `frame_arrives`.
  [[nodiscard]] TravellingFrame take(uint32_t index);

  // Faults are stored per pair, so they are limited to networks with few processes.
  static constexpr uint32_t most_with_faults = 256;

  [[nodiscard]] const NetworkCounters& counters() const noexcept { return counters_; }

 private:
  [[nodiscard]] size_t pair(uint32_t from, uint32_t to) const noexcept {
    return size_t{from} * processes_ + to;
  }
  void pass_switch(TravellingFrame frame, uint64_t extra_ns);

  EventQueue& events_;
  Dice& dice_;
  const NetworkShape shape_;
  const uint32_t processes_;
  uint32_t longest_ = UINT32_MAX;
  std::vector<Trouble> trouble_;
  std::vector<char> cut_;
  std::vector<char> data_cut_;
  bool rail_cut_[most_rails] = {};
  // By rail and process.
  std::vector<uint64_t> sends_until_ns_;     // when the cable from a process to the switch is free
  std::vector<uint64_t> receives_until_ns_;  // when the cable from the switch is free
  std::vector<TravellingFrame> frames_;
  std::vector<uint32_t> free_;
  NetworkCounters counters_;
};

}  // namespace lintel::simulation
