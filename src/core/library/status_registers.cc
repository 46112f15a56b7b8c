// Reading status registers. Any thread; values may lag behind by the message in hand.
#include "core/library/status_registers.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/operations/physical_interface.h"
#include "portals4_lintel.h"
#include "util/config.h"
#include "util/local_rank.h"
#include "util/log.h"
#include "util/new_descriptor.h"
#include "util/node_identity.h"
#include "util/text.h"

namespace lintel {

namespace {

// The message kinds that a register of a group adds up.
struct KindGroup {
  MessageKind first;
  MessageKind second;  // MessageKind::none if the group has one kind
};
constexpr KindGroup kind_groups[PTL_SR_LINTEL_KINDS] = {
    {MessageKind::put, MessageKind::none},    {MessageKind::get, MessageKind::none},
    {MessageKind::atomic, MessageKind::none}, {MessageKind::fetch_atomic, MessageKind::swap},
    {MessageKind::reply, MessageKind::none},  {MessageKind::ack, MessageKind::ack_batch},
};

uint64_t sum_over_kinds(const PhysicalInterface& physical, unsigned group, bool sent,
                        bool bytes) noexcept {
  uint64_t sum = 0;
  for (const MessageKind kind : {kind_groups[group].first, kind_groups[group].second}) {
    if (kind == MessageKind::none) continue;
    const auto index = static_cast<unsigned>(kind);
    if (sent) {
      sum += physical.peers().sent(kind, bytes);
    } else {
      sum += (bytes ? physical.received.bytes : physical.received.messages)[index].get();
    }
  }
  return sum;
}

// `counter`: a member, or a function of all.
template <typename Counter>
uint64_t sum_over_transports(const PhysicalInterface& physical, const Counter& counter) noexcept {
  uint64_t sum = 0;
  for (const auto& transport : physical.transports())
    sum += std::invoke(counter, transport->network_counters());
  return sum;
}

// nullopt: there is no such register.
std::optional<uint64_t> value_of(const NetworkInterface& interface, ptl_sr_index_t index) noexcept {
  const PhysicalInterface& physical = interface.physical();
  const InterfaceStatus& status = interface.status;
  if (index >= PTL_SR_LINTEL_MESSAGES_SENT && index < PTL_SR_LINTEL_SENDS_QUEUED) {
    const unsigned at = index - PTL_SR_LINTEL_MESSAGES_SENT;
    const unsigned table = at / PTL_SR_LINTEL_KINDS;
    return sum_over_kinds(physical, at % PTL_SR_LINTEL_KINDS, table % 2 == 0, table >= 2);
  }
  if (index >= PTL_SR_LINTEL_DROPPED && index < PTL_SR_LINTEL_DROPPED + PTL_LINTEL_DROP_REASONS)
    return physical.refused_requests.count(static_cast<Refusal>(index - PTL_SR_LINTEL_DROPPED));
  if (index >= PTL_SR_LINTEL_RAIL_BYTES && index < PTL_SR_LINTEL_RAIL_BYTES + PTL_LINTEL_RAILS)
    return sum_over_transports(physical, [&](const NetworkCounters& all) {
      return all.rail_bytes[index - PTL_SR_LINTEL_RAIL_BYTES];
    });
  switch (index) {
    case PTL_SR_DROP_COUNT:
      return status.dropped.get();
    case PTL_SR_PERMISSION_VIOLATIONS:
      return status.permission_violations.get();
    case PTL_SR_OPERATION_VIOLATIONS:
      return status.operation_violations.get();
    case PTL_SR_LINTEL_SENDS_QUEUED:
      return physical.queues().queued.get();
    case PTL_SR_LINTEL_LANE_FULL_RETRIES:
      return physical.queues().retries.get();
    case PTL_SR_LINTEL_UNEXPECTED_DEPTH:
      return status.unexpected_depth.load(std::memory_order_relaxed);
    case PTL_SR_LINTEL_UNEXPECTED_PEAK:
      return status.unexpected_peak.load(std::memory_order_relaxed);
    case PTL_SR_LINTEL_POLLS:
      return physical.poller().polls();
    case PTL_SR_LINTEL_POLLS_WITH_WORK:
      return physical.poller().polls_with_work();
    case PTL_SR_LINTEL_SLEEPS:
      return physical.poller().counters.sleeps.get();
    case PTL_SR_LINTEL_WAKEUPS:
      return physical.poller().counters.wakeups.get();
    case PTL_SR_LINTEL_FRAMES_REFUSED:
      return physical.refused_requests.messages.get();
    case PTL_SR_LINTEL_PEERS_FAILED:
      return physical.peers_failed.get();
    case PTL_SR_LINTEL_RETRANSMISSIONS:
      return sum_over_transports(physical, &NetworkCounters::retransmissions);
    case PTL_SR_LINTEL_FRAMES_DROPPED:
      return sum_over_transports(physical, &NetworkCounters::frames_dropped);
    case PTL_SR_LINTEL_UNRELIABLE_SENT:
      return sum_over_transports(physical, &NetworkCounters::unreliable_sent);
    case PTL_SR_LINTEL_CONNECTIONS_REFUSED:
      return sum_over_transports(physical, &NetworkCounters::connections_refused);
    case PTL_SR_LINTEL_PATHS_NARROWED:
      return sum_over_transports(physical, &NetworkCounters::paths_narrowed);
    case PTL_SR_LINTEL_HELD:
      return physical.target().held().held.get();
    case PTL_SR_LINTEL_STOPPED:
      return physical.queues().stopped.get();
    default:
      return std::nullopt;
  }
}

}  // namespace

bool read_status_register(const NetworkInterface& interface, ptl_sr_index_t index,
                          ptl_sr_value_t* value) noexcept {
  const std::optional<uint64_t> found = value_of(interface, index);
  if (found) *value = static_cast<ptl_sr_value_t>(*found);
  return found.has_value();
}

namespace {

// The numbers of one line, by the subject of the line.
struct Line {
  std::string subject;
  std::vector<Statistic> numbers;
};

struct Report {
  std::vector<Line> kinds;
  Line dropped;
  Line devices;
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
  for (const Peer& peer : physical.peers().all()) {
    if (peer.route.transport != &transport) continue;
    ++peers;
    messages += sum_of(peer.sent.messages) + peer.acknowledged_in_place.get();
    bytes += sum_of(peer.sent.bytes);
  }
  Line line{transport.capabilities().name,
            {{"peers", peers}, {"messages sent", messages}, {"bytes sent", bytes}}};
  const std::vector<Statistic> own = transport.statistics();
  line.numbers.insert(line.numbers.end(), own.begin(), own.end());
  return line;
}

// Long messages with memory of devices; no numbers if there were none.
Line devices_line(const DeviceWays& ways) {
  struct Names {
    const char* messages;
    const char* bytes;
  };
  constexpr Names names[device_ways] = {
      {"messages copied by the device", "bytes copied by the device"},
      {"messages through a mapping", "bytes through a mapping"},
      {"messages by remote access", "bytes by remote access"},
      {"messages staged", "bytes staged"}};
  Line line{"memory of devices", {}};
  for (unsigned way = 0; way < device_ways; ++way) {
    const DeviceWays::Traffic& traffic = ways.of(static_cast<DeviceWay>(way));
    if (traffic.messages.get() == 0) continue;
    line.numbers.push_back({names[way].messages, traffic.messages.get()});
    line.numbers.push_back({names[way].bytes, traffic.bytes.get()});
  }
  return line;
}

Report gather(const PhysicalInterface& physical) {
  Report report;
  for (unsigned kind = 1; kind < message_kinds; ++kind) {
    const auto k = static_cast<MessageKind>(kind);
    const Line line{kind_name(static_cast<MessageKind>(kind)),
                    {{"messages sent", physical.peers().sent(k, false)},
                     {"bytes sent", physical.peers().sent(k, true)},
                     {"messages received", physical.received.messages[kind].get()},
                     {"bytes received", physical.received.bytes[kind].get()}}};
    if (line.numbers[0].value != 0 || line.numbers[2].value != 0) report.kinds.push_back(line);
  }
  report.dropped.subject = "dropped";
  for (unsigned reason = 0; reason < PTL_LINTEL_DROP_REASONS; ++reason) {
    const auto refusal = static_cast<Refusal>(reason);
    const uint64_t count = physical.refused_requests.count(refusal);
    if (count != 0) report.dropped.numbers.push_back({refusal_text(refusal).name, count});
  }
  report.devices = devices_line(physical.staging().ways());
  const PollCounters& polls = physical.poller().counters;
  report.progress = {"progress",
                     {{"sends queued", physical.queues().queued.get()},
                      {"messages held", physical.target().held().held.get()},
                      {"requests stopped", physical.queues().stopped.get()},
                      {"messages refused", physical.refused_requests.messages.get()},
                      {"peers failed", physical.peers_failed.get()},
                      {"polls", physical.poller().polls()},
                      {"polls with work", physical.poller().polls_with_work()},
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
      ", \"messages\": ", json_lines(report.kinds), ", \"dropped\": ", json_numbers(report.dropped),
      ", \"memory of devices\": ", json_numbers(report.devices),
      ", \"progress\": ", json_numbers(report.progress),
      ", \"transports\": ", json_lines(report.transports), "}\n");
}

// Appends with one write(), so that the lines of several processes do not mix.
void append(const std::string& path, const std::string& text) {
  const Descriptor file = open_file(path.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0666);
  const bool written = file.is_open() && write(file.get(), text.data(), text.size()) ==
                                             static_cast<ssize_t>(text.size());
  if (!written)
    log_message(LogLevel::error, "PTL_STATS: %s cannot be written: %s", path.c_str(),
                std::strerror(errno));
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
  for (const Line* line : {&report.dropped, &report.devices})
    if (!line->numbers.empty()) text += text_line(physical, *line);
  text += text_line(physical, report.progress);
  for (const Line& line : report.transports) text += text_line(physical, line);
  write_to_standard_error(text.data(), text.size());
} catch (...) {
  log_message(LogLevel::error, "PTL_STATS: no memory");
}

}  // namespace lintel
