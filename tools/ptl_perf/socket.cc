// SPDX-License-Identifier: BSD-3-Clause
#include "ptl_perf/socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "ptl_perf/errors.h"

namespace lintel::perf {
namespace {

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

// Null: `problem` says why.
Addresses look_up(const char* host, const std::string& port, int flags, std::string& problem) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* list = nullptr;
  if (const int error = getaddrinfo(host, port.c_str(), &hints, &list); error != 0) {
    problem = gai_strerror(error);
    list = nullptr;
  }
  return {list, &freeaddrinfo};
}

void set(int descriptor, int level, int option) {
  const int on = 1;
  setsockopt(descriptor, level, option, &on, sizeof on);
}

[[noreturn]] void throw_lost() {
  throw Failure(ExitCode::peer_lost, "the process at the other host has ended the connection");
}

void send_all(int descriptor, const void* data, std::size_t bytes) {
  const auto* at = static_cast<const std::byte*>(data);
  while (bytes > 0) {
    const ssize_t sent = ::send(descriptor, at, bytes, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) throw_lost();
    at += sent;
    bytes -= static_cast<std::size_t>(sent);
  }
}

void receive_all(int descriptor, void* data, std::size_t bytes) {
  auto* at = static_cast<std::byte*>(data);
  while (bytes > 0) {
    const ssize_t received = ::recv(descriptor, at, bytes, 0);
    if (received < 0 && errno == EINTR) continue;
    if (received <= 0) throw_lost();
    at += received;
    bytes -= static_cast<std::size_t>(received);
  }
}

using GetName = int (*)(int, sockaddr*, socklen_t*);

std::string address_text(int descriptor, GetName get_name) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  char text[NI_MAXHOST] = "";
  if (get_name(descriptor, reinterpret_cast<sockaddr*>(&address), &length) != 0) return "";
  getnameinfo(reinterpret_cast<sockaddr*>(&address), length, text, sizeof text, nullptr, 0,
              NI_NUMERICHOST);
  const std::string name = text;
  constexpr const char* mapped = "::ffff:";  // an IPv4 address at a socket for both
  return name.starts_with(mapped) ? name.substr(std::strlen(mapped)) : name;
}

// An IPv6 socket takes IPv4 as well; a node without IPv6 has none.
Socket listen_at(unsigned port, int& descriptor) {
  std::string problem;
  int error = 0;
  for (const int family : {AF_INET6, AF_INET}) {
    const Addresses list =
        look_up(family == AF_INET6 ? "::" : "0.0.0.0", std::to_string(port), AI_PASSIVE, problem);
    if (list == nullptr) continue;
    descriptor = socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (descriptor < 0) continue;
    Socket made(descriptor);
    set(descriptor, SOL_SOCKET, SO_REUSEADDR);
    if (bind(descriptor, list->ai_addr, list->ai_addrlen) == 0 && listen(descriptor, 16) == 0)
      return made;
    error = errno;
  }
  throw Failure(ExitCode::failed, "cannot listen at TCP port " + std::to_string(port) + ": " +
                                      (error != 0 ? std::strerror(error) : problem));
}

}  // namespace

Socket::~Socket() {
  if (descriptor_ >= 0) close(descriptor_);
}

Socket Socket::connect(const std::string& host, unsigned port) {
  std::string problem;
  const Addresses list = look_up(host.c_str(), std::to_string(port), 0, problem);
  for (const addrinfo* each = list.get(); each != nullptr; each = each->ai_next) {
    const int descriptor = socket(each->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (descriptor < 0) continue;
    Socket made(descriptor);
    if (::connect(descriptor, each->ai_addr, each->ai_addrlen) == 0) {
      set(descriptor, IPPROTO_TCP, TCP_NODELAY);
      return made;
    }
    problem = std::strerror(errno);
  }
  throw Failure(ExitCode::failed, "cannot connect to " + host + ", TCP port " +
                                      std::to_string(port) + ": " + problem +
                                      "; start `ptl_perf --listen` there");
}

void Socket::send(std::span<const std::byte> bytes) {
  const auto length = static_cast<std::uint32_t>(bytes.size());
  send_all(descriptor_, &length, sizeof length);
  send_all(descriptor_, bytes.data(), bytes.size());
}

Bytes Socket::receive() {
  std::uint32_t length = 0;
  receive_all(descriptor_, &length, sizeof length);
  if (length > max_exchange_bytes) {
    throw Failure(ExitCode::failed, "the other end of the connection is no ptl_perf");
  }
  Bytes bytes(length);
  receive_all(descriptor_, bytes.data(), bytes.size());
  return bytes;
}

std::string Socket::receive_text() {
  const Bytes bytes = receive();
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

std::string Socket::own_address() const { return address_text(descriptor_, &getsockname); }
std::string Socket::peer_address() const { return address_text(descriptor_, &getpeername); }

bool is_host(const std::string& name) {
  std::string problem;
  return look_up(name.c_str(), "1", 0, problem) != nullptr;
}

void serve_connections(unsigned port, const std::function<int(Socket)>& serve) {
  int listener = -1;
  const Socket owner = listen_at(port, listener);
  std::fprintf(stderr, "ptl_perf: listening at TCP port %u; measure with `ptl_perf HOST`\n", port);
  for (;;) {
    const int descriptor = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (descriptor < 0) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      throw Failure(ExitCode::failed, std::string("accept: ") + std::strerror(errno));
    }
    Socket connection(descriptor);
    set(descriptor, IPPROTO_TCP, TCP_NODELAY);
    // A process can use Portals only once (spec 3.5.1).
    const pid_t child = fork();
    if (child == 0) std::exit(serve(std::move(connection)));
    if (child > 0) waitpid(child, nullptr, 0);
  }
}

}  // namespace lintel::perf
