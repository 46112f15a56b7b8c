// A stand-in for libibverbs: RDMA devices in the memory of this process. Tests link it in place of
// the library. So src/verbs runs on machines without a device, and in situations that are rare with
// real devices.
//
// Queue pairs of type UD and RC exchange messages. Supported are shared and own receive queues,
// inline data, immediate data, RDMA reads and writes with all checks of keys and ranges, memory
// windows of type 2, selective signalling, and the requested limits. A work request is executed
// when it is posted, unless hold() or a condition (no receive posted, port down) prevents it.
// Nothing takes time.
//
// It is stricter than devices. A place in a send queue is free only after a completion has been
// polled. Sizes are exactly the requested ones. Misuse that real devices do not report is recorded
// in violations(). All functions may be called from any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <infiniband/verbs.h>

namespace lintel::fake_verbs {

struct Settings {
  unsigned devices = 1;          // fake0, fake1, ..., each with one Ethernet port
  uint32_t ipv4 = 0x7f000001;    // of the first device; each further one has the next address
  const char* interface = "lo";  // that the ports of all devices belong to
  bool infiniband = false;       // ports are InfiniBand ports, with LIDs
  ibv_mtu mtu = IBV_MTU_4096;
  uint32_t max_message_bytes = 1u << 30;
  int max_qp = 4096;
  int max_qp_wr = 4096;
  int max_cqe = 65536;
  int max_srq_wr = 4096;
  int max_sge = 16;
  int max_mr = 65536;
  uint32_t max_inline_bytes = 256;
  int max_reads = 16;       // of a queue pair at once, as target and as initiator
  bool windows = true;      // memory windows of type 2
  bool on_demand = false;   // memory need not be pinned
  bool dmabuf = false;      // files of memory can be registered as dmabufs
  bool peer_memory = true;  // memory that the processor cannot access can be registered
  uint32_t vendor = 0;
  // When a queue pair is destroyed or reset, its completions are removed (mlx5) or remain (rxe).
  bool completions_vanish = true;
  std::vector<uint16_t> pkeys{0xffff};  // of each port
};

// Resets everything. No object made before may be in use.
void reset(const Settings& settings = {});

// --- objects in use

struct InUse {
  unsigned contexts = 0, domains = 0, regions = 0, windows = 0, channels = 0, completion_queues = 0,
           shared_queues = 0, queue_pairs = 0, address_handles = 0;
  bool operator==(const InUse&) const = default;
};
[[nodiscard]] InUse in_use();
[[nodiscard]] uint64_t registered_bytes();
[[nodiscard]] uint64_t locked_bytes();  // the registered bytes that are pinned
// The numbers of the queue pairs of this type.
[[nodiscard]] std::vector<uint32_t> queue_pairs(ibv_qp_type type);
[[nodiscard]] ibv_qp_state state_of(uint32_t queue_pair);
// The attributes set by ibv_modify_qp().
[[nodiscard]] ibv_qp_attr attributes_of(uint32_t queue_pair);
// The attributes of the address handle that was created last.
[[nodiscard]] ibv_ah_attr last_address();
// The descriptor of the last call of ibv_reg_dmabuf_mr; -1: none.
[[nodiscard]] int last_dmabuf();
// How often this function, such as "ibv_reg_mr", was called so far.
[[nodiscard]] unsigned calls(const std::string& function);
// Number of executed work requests, by opcode.
[[nodiscard]] unsigned done(ibv_wr_opcode opcode);

// Misuse of the verbs interface, one sentence each.
[[nodiscard]] std::vector<std::string> violations();

// --- faults

// The `nth` call of this function from now on fails with `error`, and so do the `times` - 1 calls
// after it. A refusal of work requests with EINVAL does not say which, as rxe in some states.
void fail_call(const std::string& function, int error, unsigned nth = 1, unsigned times = 1);

// The next work request for which `which` is true fails with `status`, and so does its queue pair.
// `which` must not call functions of this interface.
struct Request {
  uint32_t queue_pair;
  ibv_qp_type type;
  ibv_wr_opcode opcode;
  uint64_t bytes;
  std::vector<ibv_sge>
      pieces;      // where they come from or go to in memory of the caller; none if inline
  unsigned flags;  // ibv_send_flags
  bool chained;    // posted by the same call as the one before
};
void fail_request(ibv_wc_status status, std::function<bool(const Request&)> which = {});

// Datagrams for which `which` is true are lost. An empty function: none are lost.
struct Datagram {
  uint32_t from;  // queue pairs
  uint32_t to;
  const std::byte* data;
  size_t bytes;
};
void lose_datagrams(std::function<bool(const Datagram&)> which);

// Registrations fail with ENOMEM if the total of pinned bytes would exceed this.
void limit_locked_bytes(uint64_t bytes);

// Work requests wait until release(), which executes all of them, or let_pass().
void hold();
void release();
// Executes up to `count` of the waiting work requests; returns how many it executed.
unsigned let_pass(unsigned count);

// The port goes down or comes up; both raise an asynchronous event. While it is down, datagrams are
// lost and connected queue pairs wait.
void set_port(unsigned device, bool up);
// The waiting work requests of all queue pairs fail with "retry exceeded". They wait because a port
// is down, or because the receiver has posted no receive.
void expire_retries();
// The number of queue pairs whose send queue waits for a receive at the other end.
[[nodiscard]] unsigned waiting_for_receivers();

// An asynchronous event of the device, or of a queue pair, which then stops.
void raise_device_event(unsigned device, ibv_event_type type);
void raise_queue_pair_event(uint32_t queue_pair, ibv_event_type type);
// Breaks the completion queue for sends of this queue pair.
void break_completion_queue(uint32_t queue_pair);
// The shared receive queue of this queue pair fails: receives posted to it are never used.
void break_receive_queue(uint32_t queue_pair);

}  // namespace lintel::fake_verbs
