// SPDX-License-Identifier: BSD-3-Clause
#include "ptl_perf/host_rendezvous.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "ptl_perf/errors.h"

namespace lintel::perf {
namespace {

constexpr const char* greeting = "ptl_perf " LINTEL_VERSION " ";
constexpr char separator = '\0';

std::string host_name() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

// Names of hosts are often the same ("localhost"): the number that the kernel draws at its start,
// and the network namespace, within which local ranks count.
std::string identity_of_host() {
  std::string number;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> number;
  struct stat network {};
  const bool known = stat("/proc/self/ns/net", &network) == 0;
  return number + "." + std::to_string(known ? network.st_ino : 0);
}

}  // namespace

HostRendezvous::HostRendezvous(const Settings& settings, const std::vector<std::string>& arguments)
    : rank_(0), connection_(Socket::connect(settings.host, settings.port)) {
  greet();
  std::string text;
  for (const std::string& argument : arguments) text += argument + separator;
  connection_.send(text);
}

HostRendezvous::HostRendezvous(Socket connection) : rank_(1), connection_(std::move(connection)) {
  greet();
  std::string argument;
  for (const char c : connection_.receive_text()) {
    if (c != separator) {
      argument += c;
      continue;
    }
    arguments_.push_back(argument);
    argument.clear();
  }
}

void HostRendezvous::greet() {
  own_host_ = host_name() + " " + identity_of_host();
  const std::string own = greeting + own_host_;
  const std::string other = [&] {
    connection_.send(own);
    return connection_.receive_text();
  }();
  if (!other.starts_with(greeting)) {
    throw Failure(ExitCode::usage, "the process at the other host is '" + other.substr(0, 40) +
                                       "', not this version, '" + greeting + "'");
  }
  other_host_ = other.substr(std::string(greeting).size());
  // The network that leads to the other host is the one to measure, unless another was asked for.
  setenv("PTL_NID", connection_.own_address().c_str(), 0);
  // Two hosts share no secret, unless the user gave both the same job key.
  setenv("PTL_UDP_OPEN", "1", 0);
}

void HostRendezvous::await_answer() {
  const std::string problem = connection_.receive_text();
  if (!problem.empty())
    throw Failure(ExitCode::usage, "the process at the other host refuses: " + problem);
}

std::string HostRendezvous::description() const {
  return same_host() ? "2 processes started by hand on this machine"
                     : "2 processes, here and on " + connection_.peer_address();
}

Bytes HostRendezvous::exchange(std::span<const std::byte> own) {
  connection_.send(own);
  return connection_.receive();
}

std::vector<ptl_process_t> HostRendezvous::exchange_identifiers(ptl_interface_t,
                                                                const ptl_process_t& own) {
  const Bytes bytes = exchange(std::as_bytes(std::span(&own, 1)));
  if (bytes.size() != sizeof own)
    throw Failure(ExitCode::failed, "the other process sent an address of another size");
  std::vector<ptl_process_t> all{own, own};
  std::memcpy(&all[rank_ ^ 1u], bytes.data(), bytes.size());
  return all;
}

std::vector<Bytes> HostRendezvous::gather(std::span<const std::byte> own) {
  const Bytes other = exchange(rank_ == 0 ? std::span<const std::byte>() : own);
  if (rank_ != 0) return {};
  return {Bytes(own.begin(), own.end()), other};
}

Bytes HostRendezvous::broadcast(std::span<const std::byte> from_rank_0) {
  const Bytes other = exchange(rank_ == 0 ? from_rank_0 : std::span<const std::byte>());
  return rank_ == 0 ? Bytes(from_rank_0.begin(), from_rank_0.end()) : other;
}

}  // namespace lintel::perf
