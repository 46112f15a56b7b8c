// An initiator and a target: two processes, or one process in both roles. The bodies of conformance
// tests are written once against this and run over every path and kind of interface.
//
//   run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
//     pair.on_target([&] { target.append(target.entry(PTL_ME_OP_PUT)); });
//     pair.on_initiator([&] { initiator.put({.length = 8}); });
//     pair.on_target([&] { target.events.expect(PTL_EVENT_PUT); });
//   });
//
// Every step runs in the processes that have its role and ends with a barrier of all.
#pragma once

#include <portals4.h>

#include <list>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/interface.h"
#include "support/memory.h"
#include "support/objects.h"
#include "support/ranks.h"
#include "support/text.h"

namespace lintel::test {

enum class Path {
  self,        // one process
  shm,         // two processes
  shm_copy,    // two processes that may not read each other's memory
  udp,         // two processes that share no memory, over the network
  udp_lossy,   // the same over a network that loses, doubles and reorders a twentieth of all frames
  dpdk_memif,  // two processes with an Ethernet of shared memory between them
  dpdk_af_packet,  // two processes in network namespaces with a cable between them
  dpdk_lossy,      // memif, with the losses above
  verbs,           // two processes with an RDMA device each, or one device for both
  verbs_ud,        // the same with datagrams only
};

struct PairKind {
  Path path = Path::shm;
  InterfaceKind interface;
};

// The requested kinds of interface over every path. Lossy paths are slow, so they get one kind
// only.
[[nodiscard]] std::vector<PairKind> all_pairs();
[[nodiscard]] std::vector<PairKind> matching_pairs();
[[nodiscard]] std::vector<PairKind> nonmatching_pairs();
// Every path with one kind of interface, for tests in which the kind makes no difference.
[[nodiscard]] std::vector<PairKind> one_pair_per_path();
[[nodiscard]] std::string pair_name(const testing::TestParamInfo<PairKind>& info);

class Pair {
 public:
  Pair(Rank& rank, const PairKind& kind, const ptl_ni_limits_t* desired);

  [[nodiscard]] bool is_initiator() const { return rank_.index() == initiator_rank(); }
  [[nodiscard]] bool is_target() const { return rank_.index() == target_rank(); }
  [[nodiscard]] int initiator_rank() const { return 0; }
  [[nodiscard]] int target_rank() const { return rank_.count() - 1; }
  [[nodiscard]] bool one_process() const { return rank_.count() == 1; }
  [[nodiscard]] bool matching() const { return interface_.kind().matching; }
  [[nodiscard]] bool logical() const { return interface_.kind().logical; }

  [[nodiscard]] Rank& rank() { return rank_; }
  [[nodiscard]] Interface& interface() { return interface_; }
  [[nodiscard]] ptl_handle_ni_t ni() const { return interface_.handle(); }
  [[nodiscard]] const ptl_ni_limits_t& limits() const { return interface_.limits(); }
  [[nodiscard]] ptl_process_t initiator_id() const { return interface_.address(initiator_rank()); }
  [[nodiscard]] ptl_process_t target_id() const { return interface_.address(target_rank()); }

  void barrier(Place place = Place::current()) { rank_.barrier(place); }

  template <typename Step>
  void on_target(Step&& step, Place place = Place::current()) {
    rank_.at("a step of the target", place);
    if (is_target()) step();
    rank_.barrier(place);
  }
  template <typename Step>
  void on_initiator(Step&& step, Place place = Place::current()) {
    rank_.at("a step of the initiator", place);
    if (is_initiator()) step();
    rank_.barrier(place);
  }

  // Zeroed memory that is released after the interface is closed.
  [[nodiscard]] std::span<std::byte> memory(std::size_t bytes);

 private:
  Rank& rank_;
  std::list<std::vector<std::byte>> memory_;  // declared before interface_, so released after it
  Interface interface_;
};

struct PairOptions {
  RunOptions run;
  const ptl_ni_limits_t* desired = nullptr;
};

void run_pair(const PairKind& kind, const std::function<void(Pair&)>& body);
void run_pair(const PairKind& kind, const PairOptions& options,
              const std::function<void(Pair&)>& body);

inline constexpr ptl_pt_index_t default_pt_index = 5;
inline constexpr ptl_pt_index_t fence_pt_index = 240;  // reserved for InitiatorSide::fence

struct TargetSettings {
  std::size_t bytes = 4096;
  unsigned pt_options = 0;
  ptl_size_t events = 256;
  ptl_pt_index_t pt_index = default_pt_index;
  bool with_event_queue = true;
};

// Values of an entry other than those of TargetSide::entry().
struct EntryChanges {
  std::optional<std::byte*> start = {};
  std::optional<ptl_size_t> length = {};
  ptl_handle_ct_t counter = PTL_CT_NONE;
  ptl_uid_t uid = PTL_UID_ANY;
  ptl_match_bits_t match_bits = 0;
  ptl_match_bits_t ignore_bits = 0;
  ptl_size_t min_free = 0;
  const ptl_process_t* match_id = nullptr;
};

// A portal table entry with its event queue, a counter, and memory to post. At other processes than
// the target it is empty and must not be used.
class TargetSide {
 public:
  explicit TargetSide(Pair& pair, const TargetSettings& settings = {},
                      Place place = Place::current());

  // An entry over all of the memory, without a LINK event.
  [[nodiscard]] EntrySpec entry(unsigned options, const EntryChanges& changes = {}) const;
  ptl_handle_any_t append(const EntrySpec& spec, ptl_list_t list = PTL_PRIORITY_LIST,
                          void* user_ptr = nullptr, Place place = Place::current()) const;
  ptl_handle_any_t append(unsigned options, const EntryChanges& changes = {},
                          Place place = Place::current()) const {
    return append(entry(options, changes), PTL_PRIORITY_LIST, nullptr, place);
  }
  ptl_handle_any_t append_overflow(unsigned options, const EntryChanges& changes = {},
                                   Place place = Place::current()) const {
    return append(entry(options, changes), PTL_OVERFLOW_LIST, nullptr, place);
  }

  EventQueue events;
  Counter counter;
  std::span<std::byte> memory;
  ptl_pt_index_t pt_index = default_pt_index;

 private:
  Pair& pair_;
};

struct InitiatorSettings {
  std::size_t bytes = 4096;
  unsigned options = 0;  // of both memory descriptors
  ptl_size_t events = 256;
};

// The arguments of an operation. The defaults suit most tests.
struct Request {
  ptl_size_t length = 0;
  ptl_size_t local_offset = 0;
  ptl_size_t remote_offset = 0;
  ptl_match_bits_t match_bits = 0;
  ptl_ack_req_t ack = PTL_ACK_REQ;
  void* user_ptr = nullptr;
  ptl_hdr_data_t hdr_data = 0;
  ptl_pt_index_t pt_index = default_pt_index;
};

// Memory with a memory descriptor over it, an event queue and a counter.
struct LocalMemory {
  LocalMemory() = default;
  LocalMemory(Pair& pair, const InitiatorSettings& settings, Place place);

  std::span<std::byte> memory;
  EventQueue events;
  Counter counter;
  Descriptor descriptor;
};

// The events of an operation that sends and is acknowledged.
struct SendAndAck {
  ptl_event_t send;
  ptl_event_t ack;
};

// Operations from the initiator's memory to the target. At other processes than the initiator it is
// empty and must not be used.
class InitiatorSide {
 public:
  explicit InitiatorSide(Pair& pair, const InitiatorSettings& settings = {},
                         Place place = Place::current());

  void put(const Request& request, Place place = Place::current()) const;
  void get(const Request& request, Place place = Place::current()) const;
  void atomic(const Request& request, ptl_op_t operation, ptl_datatype_t datatype,
              Place place = Place::current()) const;
  // The prior value arrives at the start of the result memory.
  void fetch_atomic(const Request& request, ptl_op_t operation, ptl_datatype_t datatype,
                    Place place = Place::current()) const;
  void swap(const Request& request, const void* operand, ptl_op_t operation,
            ptl_datatype_t datatype, Place place = Place::current()) const;

  // SEND and ACK in either order; SEND is successful.
  SendAndAck expect_send_and_ack(ptl_ni_fail_t ack_result = PTL_NI_OK,
                                 Place place = Place::current()) const;
  SendAndAck put_and_wait(const Request& request, ptl_ni_fail_t ack_result = PTL_NI_OK,
                          Place place = Place::current()) const;
  ptl_event_t get_and_wait(const Request& request, ptl_ni_fail_t result = PTL_NI_OK,
                           Place place = Place::current()) const;

  // Returns when the target has processed everything that was sent before. It waits for the
  // acknowledgment of a put to a portal table entry of its own.
  void fence(Place place = Place::current());

  LocalMemory source;  // puts and atomics send from here
  LocalMemory result;  // gets and fetches arrive here

 private:
  Pair& pair_;
  Counter fence_counter_;
  Descriptor fence_descriptor_;
  ptl_size_t fences_ = 0;
};

// run_pair() with both sides.
using SidesBody = std::function<void(Pair&, TargetSide&, InitiatorSide&)>;
void run_sides(const PairKind& kind, const TargetSettings& target,
               const InitiatorSettings& initiator, const SidesBody& body);
void run_sides(const PairKind& kind, const SidesBody& body);

}  // namespace lintel::test
