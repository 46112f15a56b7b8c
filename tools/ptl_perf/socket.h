// Messages of bytes over a TCP connection, for two processes that only know each other's host.
// Set-up path. SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <span>
#include <string>
#include <utility>

#include "ptl_perf/rendezvous.h"

namespace lintel::perf {

class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  ~Socket();
  Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }

  /** Throws if no process listens there. */
  static Socket connect(const std::string& host, unsigned port);

  void send(std::span<const std::byte> bytes);
  void send(const std::string& text) { send(std::as_bytes(std::span(text))); }
  /** Throws if the other end is gone. */
  Bytes receive();
  std::string receive_text();

  /** The address by which the other end reaches this process, without a port. */
  std::string own_address() const;
  std::string peer_address() const;
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_ = -1;
};

/** Whether `name` is an address, or the name service has one for it. */
bool is_host(const std::string& name);

/** Waits for connections at all addresses of this node, and calls `serve` for each in a
 *  process of its own, one after the other. Returns only by exception. */
[[noreturn]] void serve_connections(unsigned port, const std::function<int(Socket)>& serve);

}  // namespace lintel::perf
