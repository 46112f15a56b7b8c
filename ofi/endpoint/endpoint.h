// fi_endpoint: a name, two channels for messages, and where completions go. Set-up path; what the
// functions of transfer/ use is on the message path.
#pragma once

#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>

#include "address/address_vector.h"
#include "base/assert.h"
#include "base/object.h"
#include "completion/completion_queue.h"
#include "completion/counter.h"
#include "domain/domain.h"
#include "endpoint/channel.h"
#include "endpoint/claimed_messages.h"
#include "endpoint/deferral.h"
#include "endpoint/operation.h"
#include "endpoint/operation_pool.h"
#include "endpoint/portal_block.h"
#include "endpoint/posted_table.h"
#include "endpoint/transmit_context.h"
#include "wire/address.h"

namespace lintel::ofi {

// One of the two directions of an endpoint.
struct Direction {
  CompletionQueue* queue = nullptr;
  bool is_selective = false;  // only operations with FI_COMPLETION give entries
  // Endpoints that share a receive context have queues, so messages tell whom they are for.
  bool is_shared = false;
  unsigned entry_options = 0;  // of posted receives, beside the usual ones
  uint64_t op_flags = 0;       // of calls that have no flags of their own

  // Whether an entry is wanted; at a shared receive context in any case.
  [[nodiscard]] bool reports(uint64_t flags) const noexcept {
    return (queue != nullptr || is_shared) && (!is_selective || (flags & FI_COMPLETION) != 0);
  }
  // A work gives an entry only if it asks for that.
  [[nodiscard]] bool reports(uint64_t flags, const Deferral* deferral) const noexcept {
    const bool is_work = deferral != nullptr && deferral->is_work();
    return reports(flags) && (!is_work || (flags & FI_COMPLETION) != 0);
  }
};

struct EndpointCounters {
  Counter* send = nullptr;
  Counter* receive = nullptr;
  Counter* read = nullptr;
  Counter* write = nullptr;
  // Accesses of peers, which Portals counts.
  Counter* remote_read = nullptr;
  Counter* remote_write = nullptr;
};

class Endpoint;

// FI_SHARED_CONTEXT: what the endpoint shares with others.
struct SharedContexts {
  const bool transmits;
  const bool receives;
  TransmitContext* transmit = nullptr;
  Endpoint* receive = nullptr;
  std::vector<Endpoint*> sharers = {};  // of a shared receive context
};

// Which calls are common cases. False at first.
struct CommonCases {
  // Contexts have room for an Operation (FI_CONTEXT2).
  const bool in_contexts;
  // A received message needs an entry of the queue, and nothing else.
  bool reports = false;
  // The same holds for a receive with a context and without flags of its own, which lies in it.
  bool posts = false;
  // A short message without flags of its own is copied, and has an entry of the queue.
  bool sends = false;
};

// Whether peers live (transfer/peer_check.h).
struct PeerProbes {
  size_t pending = 0;
  fi_addr_t last_peer = 0;  // not all are probed at a time
  ptl_handle_me_t entry = PTL_INVALID_HANDLE;
};

// Operations with an event to come at this initiator.
struct PendingCounts {
  size_t immediate = 0;
  size_t deferred = 0;
};

// Keys of long messages.
struct LongKeys {
  uint32_t own = 0;
  uint32_t* shared = nullptr;  // those of a scalable endpoint

  [[nodiscard]] uint32_t next() noexcept { return (shared != nullptr ? *shared : own)++; }
};

// Its functions, which the parts above it give it.
struct EndpointCalls {
  fi_ops_ep* general;
  fi_ops_cm* names;
  fi_ops_msg* message;
  fi_ops_rma* memory;
  fi_ops_tagged* tagged;
  fi_ops_atomic* atomic;
  fi_ops_collective* collective;
};

class ScalableEndpoint;

// The role of an endpoint: itself, a context of a scalable one, or what others receive through
// (fi_srx_context), which has blocks of memory and receives in their place.
enum class Role { whole, transmit, receive, shared_receive };
struct Membership {
  ScalableEndpoint* parent = nullptr;
  Role role = Role::whole;
  uint32_t position = 0;
};

class Endpoint : public fid_ep {
 public:
  Endpoint(Domain& domain, const fi_info& info, const EndpointCalls& calls, void* context,
           const Membership& membership = {}) noexcept;

  [[nodiscard]] static Endpoint& of(fid_ep* endpoint) noexcept {
    return *static_cast<Endpoint*>(endpoint);
  }
  [[nodiscard]] static Endpoint& of(Object* object) noexcept {
    return of(reinterpret_cast<fid_ep*>(object));
  }
  int close() noexcept;
  // fi_srx_context: it is enabled from the start. Returns 0 or a negative error number; then
  // close() is called.
  [[nodiscard]] int open_shared() noexcept;
  int bind(Object* object, uint64_t flags) noexcept;
  int control(int command, void* argument) noexcept;
  int name(void* buffer, size_t* size) const noexcept;
  int get_option(int level, int option, void* value, size_t* size) const noexcept;
  int set_option(int level, int option, const void* value, size_t size) noexcept;

  [[nodiscard]] Domain& domain() const noexcept { return domain_; }
  [[nodiscard]] uint64_t caps() const noexcept { return caps_; }
  [[nodiscard]] bool is_enabled() const noexcept { return index_ != no_index; }
  [[nodiscard]] uint32_t index() const noexcept { return index_; }
  [[nodiscard]] ptl_pt_index_t portal(Portal which) const noexcept {
    return portal_of(index_, which);
  }
  [[nodiscard]] const Direction& transmit() const noexcept { return transmit_; }
  [[nodiscard]] const Direction& receive() const noexcept { return receive_; }
  [[nodiscard]] const EndpointCounters& counters() const noexcept { return counters_; }
  [[nodiscard]] Channel& channel(bool is_message) noexcept {
    return is_message ? message_ : tagged_;
  }
  [[nodiscard]] PostedTable& posted() noexcept { return posted_; }
  [[nodiscard]] ClaimedMessages& claimed() noexcept { return claimed_; }
  [[nodiscard]] size_t least_free() const noexcept { return least_free_; }
  [[nodiscard]] const AddressVector& addresses() const noexcept { return *addresses_; }
  // A shared receive context has the vector of the endpoints that share it.
  [[nodiscard]] bool has_addresses() const noexcept { return addresses_ != nullptr; }
  [[nodiscard]] const CommonCases& common() const noexcept { return common_; }
  // Endpoints receive through it (fi_srx_context).
  [[nodiscard]] bool is_shared() const noexcept { return receive_.is_shared; }
  // Whom a message is reported to: one of those that share this, or this.
  [[nodiscard]] Endpoint& recipient(uint32_t index) noexcept {
    return is_shared() ? sharer(index) : *this;
  }
  // Whom the end of a receive without a message is reported to.
  [[nodiscard]] Endpoint& first_recipient() noexcept {
    return shared_.sharers.empty() ? *this : *shared_.sharers.front();
  }
  // The fi_addr_t of a sender, for completions.
  [[nodiscard]] fi_addr_t source(fi_addr_t encoded) const noexcept {
    return (caps_ & FI_SOURCE) != 0 ? addresses_->find(encoded) : FI_ADDR_NOTAVAIL;
  }

  // An operation for a context of the program. end_operation() frees it.
  [[nodiscard]] Operation& begin_operation(OwnerKind kind, void* context, bool own_memory = false) {
    const bool in_place = common_.in_contexts && context != nullptr && !own_memory;
    auto* const operation = in_place ? static_cast<Operation*>(context) : pool_.take();
    operation->kind = kind;
    operation->state = in_place ? 0 : is_pooled;
    operation->posted = Operation::not_posted;
    operation->endpoint = this;
    operation->context = context;
    return *operation;
  }
  // The same for an operation that is held back, unless `deferral` is NULL.
  [[nodiscard]] Operation& begin_operation(OwnerKind kind, void* context, Deferral* deferral) {
    if (deferral == nullptr) [[likely]]
      return begin_operation(kind, context);
    Operation& operation = begin_operation(kind, deferral, true);
    operation.state |= is_deferred;
    return operation;
  }
  void end_operation(Operation& operation) {
    if (operation.has(is_pooled)) end_pooled(operation);
  }
  // Frees an operation that has not begun in the end. Its deferral stays.
  void abandon(Operation& operation) {
    if (operation.has(is_pooled)) pool_.give_back(&operation);
  }
  void forget(const OperationReference& reference) {
    if (reference.in_pool) end_operation(*reference.operation);
  }
  // Operations with an event to come at this initiator.
  [[nodiscard]] bool may_transmit(size_t count = 1) { return domain_.pump().may_transmit(count); }
  void add_transmits(const Operation& operation, size_t count = 1) noexcept {
    (operation.has(is_deferred) ? pending_.deferred : pending_.immediate) += count;
    domain_.pump().add_transmits(count);
  }
  void remove_transmit(const Operation& operation) noexcept {
    size_t& count = operation.has(is_deferred) ? pending_.deferred : pending_.immediate;
    OFI_ASSERT(count != 0);
    --count;
    domain_.pump().remove_transmit();
  }
  // Probes of this endpoint that are on their way.
  [[nodiscard]] size_t probes() const noexcept { return probes_.pending; }
  void add_probe() noexcept { ++probes_.pending; }
  void remove_probe() noexcept {
    OFI_ASSERT(probes_.pending != 0);
    --probes_.pending;
  }
  // The peer that was probed last; not all are at a time.
  [[nodiscard]] fi_addr_t& probed_peer() noexcept { return probes_.last_peer; }
  // A key for a long message, unique among those that wait.
  [[nodiscard]] uint32_t next_key() noexcept { return keys_.next(); }
  // An operation with FI_FENCE waits until those before it are complete.
  [[nodiscard]] bool may_begin(uint64_t flags) {
    if ((flags & FI_FENCE) == 0 || pending_.immediate == 0) [[likely]]
      return true;
    domain_.progress();
    return pending_.immediate == 0;
  }
  // From time to time when the program only sends.
  void progress_while_sending() {
    if ((++sends_ & 31) == 0) [[unlikely]]
      domain_.progress();
  }

 private:
  static constexpr uint32_t no_index = UINT32_MAX;

  void end_pooled(Operation& operation) {
    if (operation.has(is_deferred)) [[unlikely]]
      deferral_of(operation).end();
    pool_.give_back(&operation);
  }
  int bind_queue(CompletionQueue& queue, uint64_t flags) noexcept;
  int bind_counter(Counter& counter, uint64_t flags) noexcept;
  int bind_addresses(AddressVector& addresses) noexcept;
  int bind_receive_context(Endpoint& context) noexcept;
  [[nodiscard]] int join_receive_context() noexcept;
  [[nodiscard]] Endpoint& sharer(uint32_t index) noexcept;
  int enable() noexcept;
  [[nodiscard]] int check_bindings() noexcept;
  [[nodiscard]] int take_index() noexcept;
  [[nodiscard]] int open_channels() noexcept;
  void close_channels() noexcept;
  void withdraw_entries() noexcept;
  void withdraw_long_send(Operation& operation) noexcept;
  void wait_for_operations() noexcept;
  void release_bindings() noexcept;
  void find_common_cases() noexcept;
  void withdraw_deferrals() noexcept;

  Domain& domain_;
  const Membership membership_;
  const uint64_t caps_;
  SharedContexts shared_;
  CommonCases common_;
  Direction transmit_;
  Direction receive_;
  EndpointCounters counters_;
  AddressVector* addresses_ = nullptr;
  uint32_t index_ = no_index;
  LongKeys keys_;
  uint32_t sends_ = 0;
  PendingCounts pending_;
  size_t least_free_ = 64;  // FI_OPT_MIN_MULTI_RECV
  OperationPool pool_;
  PostedTable posted_;
  ClaimedMessages claimed_;
  PeerProbes probes_;
  Channel tagged_{*this, domain_, posted_};
  Channel message_{*this, domain_, posted_};
};

}  // namespace lintel::ofi
