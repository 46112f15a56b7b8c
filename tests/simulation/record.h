// The data for the checks of a simulation: every stream of messages, and all problems found.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "transport/message.h"

namespace lintel::simulation {

// The messages that one process sends to another over one connection, numbered from 0.
struct Stream {
  uint32_t from = 0;
  uint32_t to = 0;
  uint64_t sent = 0;              // messages that the transport has accepted
  uint64_t delivered = 0;         // all messages before this number
  std::set<uint64_t> early = {};  // messages delivered ahead of others; only kind data may be
  uint64_t last_delivery_ns = 0;  // from the start
  bool failed = false;            // the failure of the peer was reported to the sender
};

class Record {
 public:
  explicit Record(uint32_t processes) : severe_(processes) {}

  [[nodiscard]] uint64_t begin_stream(uint32_t from, uint32_t to) {
    streams_.push_back({from, to});
    return streams_.size();  // 0 means none
  }
  [[nodiscard]] Stream& stream(uint64_t number) { return streams_.at(number - 1); }
  [[nodiscard]] bool is_stream(uint64_t number) const noexcept {
    return number != 0 && number <= streams_.size();
  }
  // A message arrived at `to` with this payload. Checks that each arrives once, in order and
  // intact.
  void note_delivery(uint32_t to, const MessageHeader& header, const std::byte* payload,
                     uint32_t bytes);
  void note_failure(uint32_t at, uint32_t peer);
  // From now on, connections of this process may fail.
  void note_severe_incident(uint32_t process) { severe_.at(process) = 1; }
  // The application of this process receives nothing more.
  void note_end(uint32_t process) {
    for (Stream& stream : streams_)
      if (stream.to == process) stream.failed = true;
  }
  [[nodiscard]] bool had_severe_incident(uint32_t process) const {
    return severe_.at(process) != 0;
  }
  // A peer has fetched this value from the counter of that process and added to it. Returns false
  // if another fetch returned the same value.
  [[nodiscard]] bool note_fetch(uint32_t from, uint64_t value) {
    return fetched_.emplace(from, value).second;
  }
  // At the end: every message sent has arrived, or its sender has been told of a failure.
  void check_streams(const std::vector<char>& is_dead);

  void add_problem(const std::string& text);
  [[nodiscard]] const std::vector<std::string>& problems() const noexcept { return problems_; }

  [[nodiscard]] uint64_t streams() const noexcept { return streams_.size(); }
  // When the last message of each stream was delivered.
  [[nodiscard]] std::vector<uint64_t> ends_ns() const;
  [[nodiscard]] uint64_t messages() const noexcept { return messages_; }
  [[nodiscard]] uint64_t bytes() const noexcept { return bytes_; }
  // A hash of all deliveries and their times.
  [[nodiscard]] uint64_t trace() const noexcept { return trace_; }

  // Whether to record the time from send() to the delivery of each message, in nanoseconds.
  bool keeps_latencies = false;
  [[nodiscard]] std::vector<uint64_t>& latencies_ns() noexcept { return latencies_ns_; }

 private:
  std::vector<Stream> streams_;
  std::vector<char> severe_;
  std::set<std::pair<uint32_t, uint64_t>> fetched_;
  std::vector<std::string> problems_;
  std::vector<uint64_t> latencies_ns_;
  uint64_t messages_ = 0;
  uint64_t bytes_ = 0;
  uint64_t trace_ = 0;
};

// All payloads are parts of these bytes.
inline constexpr size_t all_payload_bytes = 1 << 20;
[[nodiscard]] const std::byte* all_payloads();
// The payload of a message: part of a fixed sequence of random bytes, so it may be sent without a
// copy.
[[nodiscard]] const std::byte* payload_of(uint64_t stream, uint64_t number);
inline constexpr uint32_t longest_payload = 65536;

}  // namespace lintel::simulation
