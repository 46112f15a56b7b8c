// What the checks of a simulation know: every stream of messages, and what has gone wrong.
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
  uint64_t sent = 0;              // the transport has taken them
  uint64_t delivered = 0;         // all before this number
  std::set<uint64_t> early = {};  // delivered ahead of others, as kind data may be
  uint64_t last_delivery_ns = 0;  // from the start
  bool failed = false;            // the sender was told that the peer has failed
};

class Record {
 public:
  explicit Record(uint32_t processes) : severe_(processes) {}

  [[nodiscard]] uint64_t begin_stream(uint32_t from, uint32_t to) {
    streams_.push_back({from, to});
    return streams_.size();  // 0 is none
  }
  [[nodiscard]] Stream& stream(uint64_t number) { return streams_.at(number - 1); }
  [[nodiscard]] bool is_stream(uint64_t number) const noexcept {
    return number != 0 && number <= streams_.size();
  }
  // A message arrived at `to`, with this payload. Exactly once, in order, intact?
  void note_delivery(uint32_t to, const MessageHeader& header, const std::byte* payload,
                     uint32_t bytes);
  void note_failure(uint32_t at, uint32_t peer);
  // From here on connections of that process may fail.
  void note_severe_incident(uint32_t process) { severe_.at(process) = 1; }
  // Its application takes nothing more of what has arrived.
  void note_end(uint32_t process) {
    for (Stream& stream : streams_)
      if (stream.to == process) stream.failed = true;
  }
  [[nodiscard]] bool had_severe_incident(uint32_t process) const {
    return severe_.at(process) != 0;
  }
  // A peer has fetched this from the counter of that process and added to it. False: another has
  // fetched the same.
  [[nodiscard]] bool note_fetch(uint32_t from, uint64_t value) {
    return fetched_.emplace(from, value).second;
  }
  // At the end: what was sent has arrived, or its sender knows better.
  void check_streams(const std::vector<char>& is_dead);

  void add_problem(const std::string& text);
  [[nodiscard]] const std::vector<std::string>& problems() const noexcept { return problems_; }

  [[nodiscard]] uint64_t streams() const noexcept { return streams_.size(); }
  // When the last message of each stream was delivered.
  [[nodiscard]] std::vector<uint64_t> ends_ns() const;
  [[nodiscard]] uint64_t messages() const noexcept { return messages_; }
  [[nodiscard]] uint64_t bytes() const noexcept { return bytes_; }
  // Depends on every delivery and on when it was.
  [[nodiscard]] uint64_t trace() const noexcept { return trace_; }

  // Nanoseconds from send() to the delivery, of each message, where asked for.
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
// The payload of a message: part of a fixed sequence of random bytes, so that it may be sent from
// its place.
[[nodiscard]] const std::byte* payload_of(uint64_t stream, uint64_t number);
inline constexpr uint32_t longest_payload = 65536;

}  // namespace lintel::simulation
