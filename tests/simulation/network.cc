#include "simulation/network.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "reliable/frame.h"
#include "simulation/virtual_time.h"

namespace lintel::simulation {

namespace {
bool has_data(const std::vector<std::byte>& frame) noexcept {
  FrameHeader header;
  if (frame.size() < sizeof header) return false;
  std::memcpy(&header, frame.data(), sizeof header);
  return header.type == FrameType::data || header.type == FrameType::part;
}
}  // namespace

Network::Network(EventQueue& events, Dice& dice, const NetworkShape& shape, uint32_t processes)
    : events_(events),
      dice_(dice),
      shape_(shape),
      processes_(processes),
      sends_until_ns_(size_t{shape.rails} * processes),
      receives_until_ns_(size_t{shape.rails} * processes) {
  if (processes > most_with_faults) return;
  trouble_.resize(size_t{processes} * processes);
  cut_.resize(size_t{processes} * processes);
  data_cut_.resize(size_t{processes} * processes);
}

void Network::carry(TravellingFrame frame) {
  ++counters_.carried;
  if (trouble_.empty()) {
    pass_switch(std::move(frame), 0);
    return;
  }
  const size_t between = pair(frame.from, frame.to);
  std::vector<std::byte>& bytes = frame.bytes;
  const Trouble& trouble = trouble_[between];
  if (cut_[between] != 0 || (data_cut_[between] != 0 && has_data(bytes)) || rail_cut_[frame.rail]) {
    ++counters_.lost_by_partition;
    return;
  }
  if (bytes.size() > longest_) {
    ++counters_.lost_by_length;
    return;
  }
  if (dice_.happens(trouble.drop)) {
    ++counters_.lost_by_dice;
    return;
  }
  if (dice_.happens(trouble.damage)) {
    ++counters_.damaged;
    const uint64_t bit = dice_.below(bytes.size() * 8);
    bytes[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
  }
  uint64_t extra_ns = 0;
  if (dice_.happens(trouble.delay)) {
    ++counters_.delayed;
    extra_ns = dice_.below(trouble.longest_delay_ns + 1);
  }
  if (dice_.happens(trouble.duplicate)) {
    ++counters_.duplicated;
    pass_switch(frame, extra_ns + dice_.below(trouble.longest_delay_ns + 1));
  }
  pass_switch(std::move(frame), extra_ns);
}

void Network::pass_switch(TravellingFrame frame, uint64_t extra_ns) {
  const auto length = static_cast<double>(frame.bytes.size() + shape_.bytes_beside_each_frame);
  const double bytes_per_ns = shape_.bytes_per_ns * shape_.rail_rates[frame.rail];
  const auto cable_ns = static_cast<uint64_t>(length / bytes_per_ns);
  uint64_t& sends_until_ns = sends_until_ns_[size_t{frame.rail} * processes_ + frame.from];
  sends_until_ns = std::max(sends_until_ns, virtual_now_ns) + cable_ns;
  const uint64_t in_switch_ns = sends_until_ns + shape_.latency_ns;
  uint64_t& receives_until_ns = receives_until_ns_[size_t{frame.rail} * processes_ + frame.to];
  const uint64_t queue_ns = receives_until_ns > in_switch_ns ? receives_until_ns - in_switch_ns : 0;
  if (static_cast<double>(queue_ns) * bytes_per_ns + length >
      static_cast<double>(shape_.buffer_bytes)) {
    ++counters_.lost_in_switch;
    return;
  }
  receives_until_ns = in_switch_ns + queue_ns + cable_ns;
  uint32_t index;
  if (free_.empty()) {
    index = static_cast<uint32_t>(frames_.size());
    frames_.emplace_back();
  } else {
    index = free_.back();
    free_.pop_back();
  }
  frames_[index] = std::move(frame);
  events_.add(receives_until_ns + shape_.latency_ns + extra_ns, EventKind::frame_arrives, index);
}

TravellingFrame Network::take(uint32_t index) {
  ++counters_.arrived;
  free_.push_back(index);
  return std::exchange(frames_[index], {});
}

}  // namespace lintel::simulation
