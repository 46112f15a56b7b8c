// The status registers by name (spec 3.3.7, portals4_lintel.h). Set-up path.
// SPDX-License-Identifier: BSD-3-Clause
#include <portals4_lintel.h>

#include <algorithm>

#include "ptl_info/facts.h"

namespace lintel::info {
namespace {

struct Kind {
  unsigned offset;
  const char* name;
  const char* plural;
};

constexpr Kind kinds[] = {
    {PTL_SR_LINTEL_PUT, "PUT", "puts"},
    {PTL_SR_LINTEL_GET, "GET", "gets"},
    {PTL_SR_LINTEL_ATOMIC, "ATOMIC", "atomics"},
    {PTL_SR_LINTEL_FETCH_ATOMIC, "FETCH_ATOMIC", "fetch-atomics and swaps"},
    {PTL_SR_LINTEL_REPLY, "REPLY", "replies"},
    {PTL_SR_LINTEL_ACK, "ACK", "acknowledgments"},
};
static_assert(std::size(kinds) == PTL_SR_LINTEL_KINDS);

struct Group {
  unsigned first;
  const char* name;
  const char* before;
  const char* after;
};

constexpr Group groups[] = {
    {PTL_SR_LINTEL_MESSAGES_SENT, "MESSAGES_SENT", "", " sent"},
    {PTL_SR_LINTEL_MESSAGES_RECEIVED, "MESSAGES_RECEIVED", "", " received"},
    {PTL_SR_LINTEL_BYTES_SENT, "BYTES_SENT", "bytes of ", " sent"},
    {PTL_SR_LINTEL_BYTES_RECEIVED, "BYTES_RECEIVED", "bytes of ", " received"},
};

struct Single {
  unsigned index;
  const char* name;
  const char* meaning;
};

constexpr Single singles[] = {
    {PTL_SR_DROP_COUNT, "PTL_SR_DROP_COUNT", "messages dropped"},
    {PTL_SR_PERMISSION_VIOLATIONS, "PTL_SR_PERMISSION_VIOLATIONS",
     "messages refused by the usage identifier of an entry"},
    {PTL_SR_OPERATION_VIOLATIONS, "PTL_SR_OPERATION_VIOLATIONS",
     "messages refused by the allowed operations of an entry"},
    {PTL_SR_LINTEL_SENDS_QUEUED, "PTL_SR_LINTEL_SENDS_QUEUED",
     "messages that could not be sent at once"},
    {PTL_SR_LINTEL_LANE_FULL_RETRIES, "PTL_SR_LINTEL_LANE_FULL_RETRIES",
     "attempts that found the queue to the peer full"},
    {PTL_SR_LINTEL_UNEXPECTED_DEPTH, "PTL_SR_LINTEL_UNEXPECTED_DEPTH",
     "headers on the unexpected lists now"},
    {PTL_SR_LINTEL_UNEXPECTED_PEAK, "PTL_SR_LINTEL_UNEXPECTED_PEAK",
     "the most headers there have been"},
    {PTL_SR_LINTEL_POLLS, "PTL_SR_LINTEL_POLLS", "polls of the transports"},
    {PTL_SR_LINTEL_POLLS_WITH_WORK, "PTL_SR_LINTEL_POLLS_WITH_WORK", "polls that found something"},
    {PTL_SR_LINTEL_SLEEPS, "PTL_SR_LINTEL_SLEEPS", "times that a thread slept"},
    {PTL_SR_LINTEL_WAKEUPS, "PTL_SR_LINTEL_WAKEUPS", "times that such a sleep was ended"},
    {PTL_SR_LINTEL_FRAMES_REFUSED, "PTL_SR_LINTEL_FRAMES_REFUSED",
     "messages malformed, or from a process that is not allowed"},
    {PTL_SR_LINTEL_PEERS_FAILED, "PTL_SR_LINTEL_PEERS_FAILED", "peers found dead"},
    {PTL_SR_LINTEL_RETRANSMISSIONS, "PTL_SR_LINTEL_RETRANSMISSIONS", "network: frames sent again"},
    {PTL_SR_LINTEL_FRAMES_DROPPED, "PTL_SR_LINTEL_FRAMES_DROPPED",
     "network: frames damaged, malformed, or of no connection"},
    {PTL_SR_LINTEL_UNRELIABLE_SENT, "PTL_SR_LINTEL_UNRELIABLE_SENT",
     "network: messages of PTL_MD_UNRELIABLE sent once"},
    {PTL_SR_LINTEL_CONNECTIONS_REFUSED, "PTL_SR_LINTEL_CONNECTIONS_REFUSED",
     "network: processes of other jobs or users that wanted to connect"},
    {PTL_SR_LINTEL_PATHS_NARROWED, "PTL_SR_LINTEL_PATHS_NARROWED",
     "network: paths that lost long frames and get shorter ones"},
    {PTL_SR_LINTEL_HELD, "PTL_SR_LINTEL_HELD", "messages held as their target"},
    {PTL_SR_LINTEL_STOPPED, "PTL_SR_LINTEL_STOPPED", "requests that waited for such a target"},
};

struct Reason {
  ptl_lintel_drop_t reason;
  const char* name;
  const char* meaning;
};

constexpr Reason reasons[] = {
    {PTL_LINTEL_DROP_NO_INTERFACE, "NO_INTERFACE", "no such interface is open"},
    {PTL_LINTEL_DROP_MALFORMED, "MALFORMED", "malformed"},
    {PTL_LINTEL_DROP_NO_PORTAL, "NO_PORTAL", "the portal table entry is not allocated"},
    {PTL_LINTEL_DROP_DISABLED, "DISABLED", "the portal table entry is disabled"},
    {PTL_LINTEL_DROP_NO_MATCH, "NO_MATCH", "no entry accepts them"},
    {PTL_LINTEL_DROP_NO_HEADER, "NO_HEADER", "no unexpected header is free"},
    {PTL_LINTEL_DROP_NO_EVENT, "NO_EVENT", "no room in the event queue"},
    {PTL_LINTEL_DROP_NO_TRANSFER, "NO_TRANSFER", "too many long messages"},
    {PTL_LINTEL_DROP_USER, "USER", "the entry is for another uid"},
    {PTL_LINTEL_DROP_OPERATION, "OPERATION", "the entry does not allow the operation"},
};
static_assert(std::size(reasons) == PTL_LINTEL_DROP_REASONS);

}  // namespace

std::vector<StatusRegister> known_registers() {
  std::vector<StatusRegister> registers;
  for (const Single& single : singles) {
    registers.push_back({single.index, single.name, single.meaning, 0});
  }
  for (const Group& group : groups) {
    for (const Kind& kind : kinds) {
      registers.push_back(
          {group.first + kind.offset,
           std::string("PTL_SR_LINTEL_") + group.name + " + PTL_SR_LINTEL_" + kind.name,
           std::string(group.before) + kind.plural + group.after, 0});
    }
  }
  for (const Reason& each : reasons) {
    registers.push_back({PTL_SR_LINTEL_DROPPED + static_cast<unsigned>(each.reason),
                         std::string("PTL_SR_LINTEL_DROPPED + PTL_LINTEL_DROP_") + each.name,
                         std::string("messages dropped: ") + each.meaning, 0});
  }
  for (unsigned port = 0; port < PTL_LINTEL_RAILS; ++port)
    registers.push_back(
        {PTL_SR_LINTEL_RAIL_BYTES + port, "PTL_SR_LINTEL_RAIL_BYTES + " + std::to_string(port),
         "network: bytes that port " + std::to_string(port) + " sent in frames", 0});
  std::sort(registers.begin(), registers.end(),
            [](const StatusRegister& a, const StatusRegister& b) { return a.index < b.index; });
  return registers;
}

}  // namespace lintel::info
