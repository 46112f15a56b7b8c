// Reading a process group from the environment. Set-up path.
#include "hand_environment.h"

#include <arpa/inet.h>
#include <portals4.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <map>
#include <utility>

#include "util/node_identity.h"

namespace lintel {

namespace {

std::string read_one(const char* variable, std::optional<uint32_t>& value) {
  const char* const text = std::getenv(variable);
  if (text == nullptr || *text == '\0') return "";
  value = read_identifier(text);
  return value ? "" : std::string(variable) + "=" + text + " is not a number";
}

// `limit`: no value is so large.
std::string read_list(const char* variable, uint32_t limit, std::vector<uint32_t>& values) {
  const char* const text = std::getenv(variable);
  if (text == nullptr || *text == '\0') return "";
  const std::string list = text;
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(':', begin), list.size());
    const std::string item = list.substr(begin, end - begin);
    const std::optional<uint32_t> value = read_identifier(item);
    if (!value || *value >= limit) {
      return std::string(variable) + ": the entry of rank " + std::to_string(values.size()) +
             ", '" + item + "', is not a number" +
             (value ? " below " + std::to_string(limit) : "") +
             ": write one for each process, separated by colons";
    }
    values.push_back(*value);
    begin = end + 1;
  }
  return "";
}

// Two ranks with one address: messages for either would come to one process.
std::string find_twins(const HandEnvironment& environment) {
  std::map<std::pair<uint32_t, uint32_t>, size_t> ranks;
  const size_t both = std::min(environment.nids.size(), environment.pids.size());
  for (size_t rank = 0; rank < both; ++rank) {
    const uint32_t nid = environment.nids[rank];
    const uint32_t pid = environment.pids[rank];
    const auto [first, is_new] = ranks.try_emplace({nid, pid}, rank);
    if (!is_new)
      return "PTL_NIDMAP and PTL_PIDMAP give ranks " + std::to_string(first->second) + " and " +
             std::to_string(rank) + " the same nid " + nid_text(nid) + " and pid " +
             std::to_string(pid) + ": each process needs a pair of its own";
  }
  return "";
}

}  // namespace

std::optional<uint32_t> read_identifier(const std::string& text) {
  if (text.find('.') != std::string::npos) {
    in_addr address{};
    if (inet_pton(AF_INET, text.c_str(), &address) != 1) return std::nullopt;
    return ntohl(address.s_addr);
  }
  const bool hexadecimal = text.starts_with("0x") || text.starts_with("0X");
  const char* const first = text.data() + (hexadecimal ? 2 : 0);
  const char* const last = text.data() + text.size();
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(first, last, value, hexadecimal ? 16 : 10);
  if (error != std::errc{} || end != last) return std::nullopt;
  return value;
}

std::string read_hand_environment(HandEnvironment& environment) {
  std::string why = read_one("PTL_MY_RID", environment.rank);
  if (why.empty()) why = read_one("PTL_MY_JID", environment.job);
  if (why.empty()) why = read_one("PTL_WAIT_S", environment.wait_s);
  if (why.empty()) why = read_list("PTL_NIDMAP", PTL_NID_ANY, environment.nids);
  if (why.empty()) why = read_list("PTL_PIDMAP", PTL_PID_MAX, environment.pids);
  if (!why.empty()) return why;
  if (const char* const path = std::getenv("PTL_JOB_MEMORY"); path != nullptr && *path != '\0') {
    if (access(path, R_OK | W_OK) != 0)
      return std::string("PTL_JOB_MEMORY=") + path + ": " + std::strerror(errno) +
             "; gasnetrun_portals4 sets it, unset it in jobs by hand";
    environment.memory = path;
  }
  const size_t nids = environment.nids.size();
  const size_t pids = environment.pids.size();
  if (nids != 0 && pids != 0 && nids != pids)
    return "PTL_NIDMAP names " + std::to_string(nids) + " processes, PTL_PIDMAP " +
           std::to_string(pids);
  const size_t size = std::max(nids, pids);
  if (std::string why_alike = find_twins(environment); !why_alike.empty()) return why_alike;
  if (environment.rank && *environment.rank >= size)
    return "PTL_MY_RID=" + std::to_string(*environment.rank) + " is not a rank below " +
           std::to_string(size) + ", the number of processes that PTL_NIDMAP and PTL_PIDMAP name";
  return "";
}

}  // namespace lintel
