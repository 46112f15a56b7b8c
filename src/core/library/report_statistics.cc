#include "core/library/report_statistics.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "util/config.h"
#include "util/local_rank.h"
#include "util/log.h"
#include "util/node_identity.h"
#include "util/text.h"

namespace lintel {

namespace {

constexpr const char* kind_names[message_kinds] = {
    "none", "put",       "get",   "atomic",       "fetch_atomic", "swap",
    "ack",  "ack_batch", "reply", "data_request", "data",         "connection"};

// The numbers of one line, by the subject of the line.
struct Line {
  std::string subject;
  std::vector<Statistic> numbers;
};

struct Report {
  std::vector<Line> kinds;
  Line progress;
  std::vector<Line> transports;
};

uint64_t sum_of(const Counter (&counters)[message_kinds]) noexcept {
  uint64_t sum = 0;
  for (const Counter& counter : counters) sum += counter.get();
  return sum;
}

Line transport_line(const PhysicalInterface& physical, const Transport& transport) {
  uint64_t peers = 0;
  uint64_t messages = 0;
  uint64_t bytes = 0;
  const PeerTable& all = physical.peers().all();
  for (uint32_t i = 0; i < all.size(); ++i) {
    const Peer& peer = all.at(i);
    if (peer.transport != &transport) continue;
    ++peers;
    messages += sum_of(peer.sent.messages);
    bytes += sum_of(peer.sent.bytes);
  }
  Line line{transport.capabilities().name,
            {{"peers", peers}, {"messages sent", messages}, {"bytes sent", bytes}}};
  const std::vector<Statistic> own = transport.statistics();
  line.numbers.insert(line.numbers.end(), own.begin(), own.end());
  return line;
}

Report gather(const PhysicalInterface& physical) {
  Report report;
  for (unsigned kind = 1; kind < message_kinds; ++kind) {
    const auto k = static_cast<MessageKind>(kind);
    const Line line{kind_names[kind],
                    {{"messages sent", physical.peers().sent(k, false)},
                     {"bytes sent", physical.peers().sent(k, true)},
                     {"messages received", physical.received.messages[kind].get()},
                     {"bytes received", physical.received.bytes[kind].get()}}};
    if (line.numbers[0].value != 0 || line.numbers[2].value != 0) report.kinds.push_back(line);
  }
  const PollCounters& polls = physical.poller().counters;
  report.progress = {"progress",
                     {{"sends queued", physical.queues().queued.get()},
                      {"messages refused", physical.messages_refused.get()},
                      {"peers failed", physical.peers_failed.get()},
                      {"polls", polls.polls.get()},
                      {"polls with work", polls.polls_with_work.get()},
                      {"sleeps", polls.sleeps.get()},
                      {"wakeups", polls.wakeups.get()}}};
  for (const auto& transport : physical.transports())
    report.transports.push_back(transport_line(physical, *transport));
  return report;
}

std::string text_line(const PhysicalInterface& physical, const Line& line) {
  std::string text = text_of("lintel[", log_speaker().text, "] interface ", physical.number(), " ",
                             line.subject, ":");
  const char* separator = " ";
  for (const Statistic& number : line.numbers) {
    text += text_of(separator, number.name, " ", number.value);
    separator = ", ";
  }
  return text + "\n";
}

// Names and host names hold no character that JSON would have to escape.
std::string json_numbers(const Line& line) {
  std::string text;
  for (const Statistic& number : line.numbers)
    text += text_of(text.empty() ? "\"" : ", \"", number.name, "\": ", number.value);
  return "{" + text + "}";
}

std::string json_lines(const std::vector<Line>& lines) {
  std::string text;
  for (const Line& line : lines)
    text += text_of(text.empty() ? "\"" : ", \"", line.subject, "\": ", json_numbers(line));
  return "{" + text + "}";
}

std::string json_line(const PhysicalInterface& physical, const Report& report) {
  const std::optional<uint32_t> rank = find_job_rank();
  return text_of(
      "{\"version\": 1, \"host\": \"", host_name(), "\", \"process\": ", static_cast<int>(getpid()),
      ", \"rank\": ", rank ? std::to_string(*rank) : "null", ", \"interface\": ", physical.number(),
      ", \"nid\": \"", nid_text(physical.id().nid), "\", \"pid\": ", physical.id().pid,
      ", \"messages\": ", json_lines(report.kinds),
      ", \"progress\": ", json_numbers(report.progress),
      ", \"transports\": ", json_lines(report.transports), "}\n");
}

// With one write(), so that what several processes append does not mix.
void append(const std::string& path, const std::string& text) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  const bool written =
      file >= 0 && write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (!written)
    log_message(LogLevel::error, "PTL_STATS: %s cannot be written: %s", path.c_str(),
                std::strerror(errno));
  if (file >= 0) close(file);
}

}  // namespace

void report_statistics(const PhysicalInterface& physical) noexcept try {
  const Report report = gather(physical);
  const std::string& wanted = config_string(ConfigKey::stats);
  if (wanted.starts_with(stats_file_prefix)) {
    append(wanted.substr(stats_file_prefix.size()), json_line(physical, report));
    return;
  }
  std::string text;
  for (const Line& line : report.kinds) text += text_line(physical, line);
  text += text_line(physical, report.progress);
  for (const Line& line : report.transports) text += text_line(physical, line);
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
} catch (...) {
  log_message(LogLevel::error, "PTL_STATS: no memory");
}

}  // namespace lintel
