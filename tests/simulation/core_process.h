// A simulated process with the core: its application calls Portals. It puts to its peers, gets from
// them, and adds to their counters. Every operation must end with its events, messages must match
// in the order sent, and at the end all objects can be released.
#pragma once

#include <portals4.h>

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "core/objects/network_interface.h"
#include "simulation/dice.h"
#include "simulation/simulated_device.h"
#include "simulation/simulated_process.h"

namespace lintel::simulation {

class CoreProcess final : public SimulatedProcess {
 public:
  // The number of interfaces that one process can have.
  static constexpr uint32_t most_processes = 8;

  // Must be called before the first object is made.
  static void set_up();

  CoreProcess(Network& network, Record& record, uint32_t number, const ProcessShape& shape);
  ~CoreProcess() override;

  void add(uint32_t to, const OutgoingMessage& message) override;
  void give_up(uint32_t peer) override;
  void start() override;
  void end(bool politely) override;
  uint64_t run() override;
  [[nodiscard]] bool is_done() override;
  [[nodiscard]] std::string describe_rest() override;
  void check_rest() override;

 private:
  enum class Kind : uint8_t { put, get, fetch };
  struct Operation {
    Kind kind = Kind::put;
    uint32_t to = 0;
    uint32_t bytes = 0;
    uint64_t from = 0;  // offset in the memory of the target
    bool awaits_send = false;
    bool awaits_ack = false;
    bool awaits_reply = false;
    [[nodiscard]] bool has_ended() const noexcept {
      return !awaits_send && !awaits_ack && !awaits_reply;
    }
  };
  struct Peer {
    std::deque<OutgoingMessage> waiting;
    uint64_t stream = 0;  // of puts; 0: the next put begins another stream
    uint64_t stream_from = 0;
    std::map<uint64_t, uint64_t> entries;  // by message of stream_from: the entry that it matched
    uint64_t retry_ns = 0;
    unsigned outstanding = 0;
    // For puts that are counted only.
    ptl_handle_ct_t counter = PTL_CT_NONE;
    ptl_handle_md_t counting = PTL_INVALID_HANDLE;
    uint64_t counted = 0;  // puts started
    ptl_ct_event_t seen{};
    uint64_t last_fetched = 0;
  };
  struct Entry {
    ptl_handle_me_t handle = PTL_INVALID_HANDLE;
    Memory memory;
  };

  [[nodiscard]] ptl_handle_ni_t handle() const noexcept { return interface_->handle(); }
  [[nodiscard]] PhysicalInterface& physical() noexcept { return interface_->physical(); }
  void require(int code, const char* what);
  void make_objects();
  void append_expected();
  void append_overflow();
  // Whether to use memory of the device this time.
  [[nodiscard]] bool on_device() {
    return SimulatedDevice::current() != nullptr && dice_.happens(0.5);
  }
  Entry append(ptl_pt_index_t portal, ptl_list_t list, void* memory, uint64_t length,
               unsigned options, uint64_t min_free, uint64_t name);

  bool send_waiting();
  void start_operation(uint32_t to, Peer& peer, const OutgoingMessage& message);
  void put(uint32_t to, Peer& peer, uint32_t bytes);
  uint64_t begin(Kind kind, uint32_t to, uint32_t bytes);
  bool take_events();
  void take(const ptl_event_t& event);
  void take_own(const ptl_event_t& event);
  void check_result(const ptl_event_t& event, const Operation& operation, uint64_t slot,
                    const std::string& text);
  void take_message(const ptl_event_t& event);
  void take_counts(uint32_t to, Peer& peer);
  void fail(uint32_t to);
  // A copy of the device has failed: a message of the stream is lost.
  void lose_message(Peer& peer);

  Dice dice_;
  // Its entry for puts holds messages, and has little room on its overflow list.
  bool holds_;
  NetworkInterface* interface_ = nullptr;
  uint32_t starts_ = 0;
  bool armed_ = false;
  std::map<uint32_t, Peer> peers_;
  std::map<uint64_t, Operation> operations_;  // operations in progress
  uint64_t operations_begun_ = 0;
  ptl_handle_eq_t events_ = PTL_EQ_NONE;
  ptl_handle_md_t source_ = PTL_INVALID_HANDLE;
  ptl_handle_md_t sink_ = PTL_INVALID_HANDLE;
  Memory payloads_;  // those of the record; in memory of the host, they are not copied
  Memory into_;      // for results of gets and fetches, one slot for each
  std::vector<uint64_t> free_slots_;
  std::map<uint64_t, Entry> expected_;  // by their numbers
  uint64_t entries_appended_ = 0;
  std::map<uint64_t, Entry> overflow_;
  Entry exposed_;
  Entry counted_;
  Memory counter_;  // peers add to it
};

}  // namespace lintel::simulation
