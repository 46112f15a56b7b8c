#include "simulation/record.h"

#include <cstring>

#include "simulation/dice.h"
#include "simulation/virtual_time.h"

namespace lintel::simulation {

namespace {

constexpr size_t most_problems = 10;

bool may_overtake(const MessageHeader& header) noexcept {
  return header.kind == MessageKind::data && (header.flags & flag_last) == 0;
}

}  // namespace

const std::byte* all_payloads() {
  static const std::vector<std::byte> pattern = [] {
    std::vector<std::byte> random(all_payload_bytes);
    Dice dice(1);
    for (std::byte& byte : random) byte = static_cast<std::byte>(dice.roll());
    return random;
  }();
  return pattern.data();
}

const std::byte* payload_of(uint64_t stream, uint64_t number) {
  Dice dice(stream << 32 ^ number);
  return all_payloads() + dice.below(all_payload_bytes - longest_payload);
}

void Record::add_problem(const std::string& text) {
  if (problems_.size() >= most_problems) return;
  const double at_ms = static_cast<double>(virtual_now_ns - start_ns) / millisecond;
  problems_.push_back("at " + std::to_string(at_ms) + " ms: " + text);
}

void Record::note_delivery(uint32_t to, const MessageHeader& header, const std::byte* payload,
                           uint32_t bytes) {
  ++messages_;
  bytes_ += bytes;
  trace_ = Dice(trace_ ^ virtual_now_ns ^ header.match_bits << 20 ^ header.hdr_data << 40).roll();
  if (keeps_latencies) latencies_ns_.push_back(virtual_now_ns - start_ns - header.length());
  const uint64_t number = header.match_bits;
  const std::string name =
      "message " + std::to_string(number) + " of stream " + std::to_string(header.hdr_data);
  if (!is_stream(header.hdr_data) || stream(header.hdr_data).to != to) {
    add_problem(name + " arrives at process " + std::to_string(to) + ", to which it was not sent");
    return;
  }
  Stream& from = stream(header.hdr_data);
  from.last_delivery_ns = virtual_now_ns - start_ns;
  if (number >= from.sent + 1) add_problem(name + " arrives, but was not sent");
  if (number < from.delivered || from.early.contains(number)) add_problem(name + " arrives twice");
  if (may_overtake(header))
    from.early.insert(number);
  else if (number != from.delivered)
    add_problem(name + " arrives before number " + std::to_string(from.delivered));
  else
    ++from.delivered;
  while (from.early.erase(from.delivered) != 0) ++from.delivered;
  if (bytes != header.remote_offset)
    add_problem(name + " has " + std::to_string(bytes) + " bytes in place of " +
                std::to_string(header.remote_offset));
  else if (bytes != 0 && std::memcmp(payload, payload_of(header.hdr_data, number), bytes) != 0)
    add_problem(name + " has other contents");
}

void Record::note_failure(uint32_t at, uint32_t peer) {
  trace_ = Dice(trace_ ^ virtual_now_ns ^ at << 8 ^ peer).roll();
  if (severe_[at] == 0 && severe_[peer] == 0)
    add_problem("process " + std::to_string(at) + " is told that process " + std::to_string(peer) +
                " has failed, which it has not");
}

std::vector<uint64_t> Record::ends_ns() const {
  std::vector<uint64_t> ends;
  for (const Stream& stream : streams_) ends.push_back(stream.last_delivery_ns);
  return ends;
}

void Record::check_streams(const std::vector<char>& is_dead) {
  for (size_t i = 0; i < streams_.size(); ++i) {
    const Stream& stream = streams_[i];
    if (stream.failed || is_dead[stream.from] != 0 || stream.delivered == stream.sent) continue;
    add_problem("of stream " + std::to_string(i + 1) + " from process " +
                std::to_string(stream.from) + " to " + std::to_string(stream.to) + ", " +
                std::to_string(stream.sent) + " messages were sent and " +
                std::to_string(stream.delivered) + " delivered");
  }
}

}  // namespace lintel::simulation
