// Reading a process group from the environment. Set-up path.
#include "hand_environment.h"

#include <arpa/inet.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>

namespace lintel {

namespace {

std::string read_one(const char* variable, std::optional<uint32_t>& value) {
  const char* const text = std::getenv(variable);
  if (text == nullptr || *text == '\0') return "";
  value = read_identifier(text);
  return value ? "" : std::string(variable) + "=" + text + " is not a number";
}

std::string read_list(const char* variable, std::vector<uint32_t>& values) {
  const char* const text = std::getenv(variable);
  if (text == nullptr || *text == '\0') return "";
  const std::string list = text;
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(':', begin), list.size());
    const std::string item = list.substr(begin, end - begin);
    const std::optional<uint32_t> value = read_identifier(item);
    if (!value)
      return std::string(variable) + ": '" + item +
             "' is not a number: write one for each process, separated by colons";
    values.push_back(*value);
    begin = end + 1;
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
  if (why.empty()) why = read_list("PTL_NIDMAP", environment.nids);
  if (why.empty()) why = read_list("PTL_PIDMAP", environment.pids);
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
  if (environment.rank && *environment.rank >= size)
    return "PTL_MY_RID=" + std::to_string(*environment.rank) + " is not a rank below " +
           std::to_string(size) + ", the number of processes that PTL_NIDMAP and PTL_PIDMAP name";
  return "";
}

}  // namespace lintel
