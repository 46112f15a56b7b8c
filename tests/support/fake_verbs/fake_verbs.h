// A stand-in for libibverbs: RDMA devices in the memory of this process. Tests link it in place of
// the library, so that src/verbs runs on machines without a device, and meets what real devices do
// rarely.
//
// Queue pairs of type UD and RC talk to each other, with shared and own receive queues, inline
// data, immediate data, RDMA reads and writes with all checks of keys and ranges, memory windows of
// type 2, selective signalling, and the limits that were asked for. Work is done when it is posted,
// unless hold() or a condition (no receive posted, port down) is in its way; nothing takes time.
//
// It is stricter than devices: places in a send queue come back when a completion has been polled,
// not before; sizes are exactly those asked for; and misuse that devices answer with silence is
// recorded in violations(). All functions may be called from any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <infiniband/verbs.h>

namespace lintel::fake_verbs {

struct Settings {
  unsigned devices = 1;          // fake0, fake1, ..., each with one Ethernet port
  uint32_t ipv4 = 0x7f000001;    // of the first; of the others one more each
  const char* interface = "lo";  // which the port of every device belongs to
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
  int max_reads = 16;      // of a queue pair at once, as target and as initiator
  bool windows = true;     // memory windows of type 2
  bool on_demand = false;  // memory need not be pinned
  uint32_t vendor = 0;
  // Completions of a queue pair that is destroyed or reset vanish (mlx5), or stay (rxe).
  bool completions_vanish = true;
  std::vector<uint16_t> pkeys{0xffff};  // of each port
};

// Resets everything. No former object may be in use.
void reset(const Settings& settings = {});

// --- what is in use

struct InUse {
  unsigned contexts = 0, domains = 0, regions = 0, windows = 0, channels = 0, completion_queues = 0,
           shared_queues = 0, queue_pairs = 0, address_handles = 0;
  bool operator==(const InUse&) const = default;
};
[[nodiscard]] InUse in_use();
[[nodiscard]] uint64_t registered_bytes();
[[nodiscard]] uint64_t locked_bytes();  // of them
// The numbers of the queue pairs of that type.
[[nodiscard]] std::vector<uint32_t> queue_pairs(ibv_qp_type type);
[[nodiscard]] ibv_qp_state state_of(uint32_t queue_pair);
// As ibv_modify_qp() was told.
[[nodiscard]] ibv_qp_attr attributes_of(uint32_t queue_pair);
// Of the address handle that was made last.
[[nodiscard]] ibv_ah_attr last_address();
// Calls of that function so far, such as "ibv_reg_mr".
[[nodiscard]] unsigned calls(const std::string& function);
// Work requests that were done, by opcode.
[[nodiscard]] unsigned done(ibv_wr_opcode opcode);

// What a user of verbs must not do. Each a sentence.
[[nodiscard]] std::vector<std::string> violations();

// --- faults

// The `nth` call from now on of that function fails with `error`, and `times` - 1 after it.
void fail_call(const std::string& function, int error, unsigned nth = 1, unsigned times = 1);

// The next work request for which this holds fails with `status`, and its queue pair with it.
// Inside, nothing of this interface may be called.
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

// Datagrams for which this holds are lost on the way. Empty: none.
struct Datagram {
  uint32_t from;  // queue pairs
  uint32_t to;
  const std::byte* data;
  size_t bytes;
};
void lose_datagrams(std::function<bool(const Datagram&)> which);

// Registrations fail with ENOMEM if more bytes than this would be pinned in all.
void limit_locked_bytes(uint64_t bytes);

// Work requests stay where they are until release(), which does all that waits, or let_pass().
void hold();
void release();
// Does so many of the work requests that wait; returns how many there were.
unsigned let_pass(unsigned count);

// The port goes down or comes up: both are told as asynchronous events. While it is down, datagrams
// are lost and connected queue pairs wait.
void set_port(unsigned device, bool up);
// Queue pairs whose work requests wait (because a port is down, or nothing is posted to receive
// them) lose their patience: their requests fail as retried too often.
void expire_retries();
// Every queue pair whose send queue waits for a receive at the other end.
[[nodiscard]] unsigned waiting_for_receivers();

// An asynchronous event: of the device, or of a queue pair, which then stops.
void raise_device_event(unsigned device, ibv_event_type type);
void raise_queue_pair_event(uint32_t queue_pair, ibv_event_type type);
// The completion queue in which that queue pair ends its sends is lost.
void break_completion_queue(uint32_t queue_pair);
// The shared receive queue of that queue pair fails: what was posted to it is never used.
void break_receive_queue(uint32_t queue_pair);

}  // namespace lintel::fake_verbs
