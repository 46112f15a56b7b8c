// The objects of verbs as the stand-in represents them. One lock protects them all.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include <infiniband/verbs.h>

#include "support/fake_verbs/fake_verbs.h"

namespace lintel::fake_verbs {

struct QueuePair;
struct CompletionQueue;

struct Device : ibv_device {
  unsigned number = 0;
  uint16_t lid = 0;
  ibv_gid gid{};
  bool up = true;
};

struct Context : ibv_context {
  Device* owner = nullptr;
  std::deque<ibv_async_event> events;
  unsigned users = 0;
};

// A context with its extension in front: functions newer than the first version of the library look
// there.
struct ExtendedContext {
  alignas(verbs_context) std::byte before[offsetof(verbs_context, context)];
  Context context;
};

struct Domain : ibv_pd {
  unsigned users = 0;
};

struct Region : ibv_mr {
  int access = 0;
  // Mapping of a dmabuf. `inside`: of the first byte of the region; nullptr: ordinary memory.
  void* mapping = nullptr;
  size_t mapped = 0;
  std::byte* inside = nullptr;
  unsigned windows = 0;  // bound to it
};

struct Window : ibv_mw {
  Region* region = nullptr;  // bound to, or null
  uint64_t begin = 0;
  uint64_t length = 0;
  unsigned access = 0;
  uint32_t queue_pair = 0;  // the only one that may use it
  uint32_t key = 0;         // as the device has it; the user keeps ibv_mw::rkey equal to it
};

struct Channel : ibv_comp_channel {
  std::deque<CompletionQueue*> events;
};

struct Completion {
  ibv_wc shown;
  uint32_t queue_pair;
  bool of_send;
  uint64_t requests;  // work requests of the send queue that end with this completion
};

struct CompletionQueue : ibv_cq {
  std::deque<Completion> entries;
  bool armed = false;
  bool broken = false;
  unsigned events = 0;  // taken and not acknowledged
  unsigned users = 0;
};

struct Receive {
  uint64_t id;
  std::vector<ibv_sge> pieces;
};

struct SharedQueue : ibv_srq {
  ibv_srq_attr limits{};
  std::deque<Receive> receives;
  unsigned users = 0;
};

struct AddressHandle : ibv_ah {
  ibv_ah_attr attributes{};
};

struct Send {
  ibv_send_wr request{};
  uint32_t window_key = 0;  // of the window to be bound, as it was when the request was posted
  std::vector<ibv_sge> pieces;
  std::vector<std::byte> inlined;
  uint64_t bytes = 0;
  bool is_inline = false;
  bool chained = false;  // posted by the same call as the one before
};

struct QueuePair : ibv_qp {
  ibv_qp_cap limits{};
  bool signals_all = false;
  ibv_qp_attr attributes{};
  std::deque<Send> sends;
  std::deque<Receive> receives;
  uint64_t posted = 0;   // requests posted to the send queue
  uint64_t retired = 0;  // those whose places are free again
  bool waits_for_receiver = false;
  bool waits_for_port = false;
  unsigned events = 0;  // taken and not acknowledged
};

struct CallFault {
  unsigned before;  // calls that succeed first
  unsigned times;
  int error;
};

struct RequestFault {
  ibv_wc_status status;
  std::function<bool(const Request&)> which;
};

struct World {
  std::mutex lock;
  std::condition_variable acknowledged;
  Settings settings;
  std::vector<std::unique_ptr<Device>> devices;
  std::vector<std::unique_ptr<Device>> former_devices;  // of worlds before reset()
  std::set<Context*> contexts;
  std::map<uint32_t, Region*> regions;  // by key
  std::map<uint32_t, Window*> windows;  // by key without its last byte
  std::map<uint32_t, QueuePair*> queue_pairs;
  std::map<std::string, unsigned> calls;
  std::map<std::string, std::deque<CallFault>> call_faults;
  std::deque<RequestFault> request_faults;
  std::function<bool(const Datagram&)> loses;
  std::map<ibv_wr_opcode, unsigned> done;
  std::vector<std::string> violations;
  InUse in_use;
  ibv_ah_attr last_address{};
  int last_dmabuf = -1;
  uint64_t registered_bytes = 0;
  uint64_t locked_bytes = 0;
  uint64_t most_locked_bytes = UINT64_MAX;
  uint32_t next_key = 0x1000;
  uint32_t next_queue_pair = 0x11;
  bool held = false;
};

[[nodiscard]] World& world();

// Counts this call. Returns the errno if it is to fail, or 0. Lock held.
[[nodiscard]] int call_fault(const char* function);
void violation(std::string text);

[[nodiscard]] Device& device_of(const ibv_context* context);

// events.cc: lock held
void raise(Context& context, const ibv_async_event& event);
void forget_events(Context& context, const void* object);  // which is being destroyed
// Like real devices, waits until all events of the object have been acknowledged. After 20 s it
// records a violation and returns.
void await_acknowledgements(std::unique_lock<std::mutex>& lock, const unsigned& events,
                            const char* what);
void raise_everywhere(Device& device, ibv_event_type type);
void complete(CompletionQueue& queue, const Completion& completion);
void break_queue(CompletionQueue& queue);

// memory.cc: lock held. Whether this local key permits access to the piece of memory.
[[nodiscard]] bool local_access(const ibv_pd* domain, const ibv_sge& piece, bool write);
// The same for access by a peer through this queue pair.
[[nodiscard]] bool remote_access(const QueuePair& target, uint32_t key, uint64_t address,
                                 uint64_t length, bool write);
// Where the bytes at an address are that is accessed with this key.
[[nodiscard]] std::byte* memory_at(uint32_t key, uint64_t address);
[[nodiscard]] bool bind(QueuePair& pair, const Send& send);
// By the owner, or by a peer that sends to `target`. In that case the window must be bound to
// `target`.
[[nodiscard]] bool invalidate(uint32_t key, const QueuePair* target);

// queue_pair.cc, requests.cc: lock held
void stop(QueuePair& pair, ibv_qp_state state);
void remove_completions(uint32_t queue_pair);
// Executes at most `most` work requests, of all queue pairs. Returns how many.
unsigned work(unsigned most = UINT32_MAX);

// The functions in the table of each context.
void fill_operations(ibv_context_ops& operations);
ibv_mw* alloc_mw(ibv_pd* domain, ibv_mw_type type);
int dealloc_mw(ibv_mw* window);
int poll_cq(ibv_cq* queue, int most, ibv_wc* completions);
int req_notify_cq(ibv_cq* queue, int solicited_only);
int post_send(ibv_qp* pair, ibv_send_wr* requests, ibv_send_wr** refused);
int post_recv(ibv_qp* pair, ibv_recv_wr* requests, ibv_recv_wr** refused);
int post_srq_recv(ibv_srq* queue, ibv_recv_wr* requests, ibv_recv_wr** refused);

}  // namespace lintel::fake_verbs
