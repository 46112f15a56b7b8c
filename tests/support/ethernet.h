// An Ethernet of two ports for two ranks, used through DPDK: shared memory between them (memif), or
// a cable between two network namespaces (af_packet on veth). Nothing remains after a test, however
// it ends: sockets are abstract. The namespaces are shared by all tests of a program and belong to
// processes that end with it. Set-up path.
#pragma once

#include <string>

namespace lintel::test {

enum class Ethernet {
  memif,      // shared memory between ranks 0 and 1
  af_packet,  // a cable between two hosts, rank 0 and rank 1
  hosts,      // two hosts at a switch, with a port for each of two ranks: 0 and 1, 2 and 3
};

// Why there is no such Ethernet here; empty if there is.
[[nodiscard]] std::string why_no_ethernet(Ethernet ethernet);

// Before the ranks start.
void prepare_ethernet(Ethernet ethernet);

// Of Ethernet::hosts, after prepare_ethernet(): longer frames are dropped between the hosts without
// a word. The ports still take 9000 bytes.
void set_mtu_between_hosts(unsigned mtu);

// Called in a rank before it opens an interface: takes the port of rank `index` and sets the
// environment so that DPDK is the only network. With Ethernet::hosts, ranks of one host also use
// shared memory.
void join_ethernet(int index, Ethernet ethernet);

// Moves a process with one thread to the host that has `port`<index>; it takes no port.
void enter_host_of(int index, Ethernet ethernet);

[[nodiscard]] bool run_command(const std::string& command);

// Waits until the kernel has noted the carrier of the links of this network namespace, and made
// addresses for them: up to a second after the command that brings them up has returned. False: it
// does not.
[[nodiscard]] bool await_links();

}  // namespace lintel::test
