// A process of Portals: its interfaces, queues, counters and memory, and the threads that run its
// part of a program. Set-up path.
#pragma once

#include <portals4.h>

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "fuzz/model.h"
#include "fuzz/program.h"
#include "fuzz/shared.h"

namespace lintel::fuzz {

// An event queue and all that was taken from it, in order.
struct Queue {
  ptl_handle_eq_t handle = PTL_EQ_NONE;
  std::size_t room = 0;  // events that it holds under flow control
  std::mutex mutex;
  std::vector<Taken> log{};
};

class Endpoint {
 public:
  // Opens the interfaces; PtlInit was called. `lossy`: the network may lose frames.
  Endpoint(Shared& shared, const Shape& shape, int index, ptl_interface_t interface, bool lossy);

  // Once all endpoints exist; all call it.
  void connect();
  // All endpoints run the same phase. What is wrong, or nothing.
  [[nodiscard]] std::vector<std::string> run(uint64_t phase);
  // After the last phase: no queue has lost room.
  [[nodiscard]] std::vector<std::string> check_room();

 private:
  // The objects of one logical interface: matching or not.
  struct Objects {
    ptl_handle_ni_t interface = PTL_INVALID_HANDLE;
    std::array<Queue, max_threads> thread_queues;
    std::array<Queue, portals> portal_queues;
    std::array<std::array<ptl_handle_ct_t, portal_counters>, portals> portal_counts{};
    std::array<ptl_handle_ct_t, max_threads * descriptors_per_thread> descriptor_counts{};
    std::array<ptl_handle_ct_t, max_threads> trigger_counts{};
    ptl_handle_ct_t fence_count = PTL_CT_NONE;
    ptl_handle_md_t fence_descriptor = PTL_INVALID_HANDLE;
    ptl_size_t fences = 0;
    // For messages of no bytes to portals that take everything.
    ptl_handle_ct_t plain_count = PTL_CT_NONE;
    ptl_handle_md_t plain_descriptor = PTL_INVALID_HANDLE;
    std::array<ptl_handle_ct_t, max_threads> reused_counts{};
    std::array<ptl_handle_md_t, max_threads> reused_descriptors{};
    std::array<ptl_handle_ct_t, max_threads> probe_counts{};
    std::array<ptl_size_t, max_threads> probes{};
    std::vector<ptl_process_t> processes;
  };
  // An entry of the running phase.
  struct EntryCalls {
    ptl_handle_any_t handle = PTL_INVALID_HANDLE;
    CallSeen append;  // or search
  };
  struct PortalCall {
    Element element;
    CallSeen seen;
  };

  void open(Objects& objects, bool matching, ptl_interface_t interface);
  void bind_counting(Objects& objects, ptl_handle_ct_t& count, ptl_handle_md_t& descriptor);
  // A portal with one entry, which takes puts of no bytes.
  [[nodiscard]] ptl_handle_any_t open_sink(Objects& objects, ptl_pt_index_t index, unsigned options,
                                           ptl_handle_eq_t queue);
  void close_sink(Objects& objects, ptl_pt_index_t index, ptl_handle_any_t entry);
  // Puts to the own sink, each acknowledged before the next; how many were accepted.
  std::size_t put_to_sink(Objects& objects, ptl_pt_index_t index, std::size_t most);
  [[nodiscard]] std::size_t measure_room(Objects& objects, const Queue& queue);
  void prepare();
  void run_thread(int thread);
  void take_step(int thread, const Step& step);
  void send(const Message& message);
  [[nodiscard]] int start(const Message& message);
  void reuse_counter(int thread, const Step& step);
  void append(const Entry& entry);
  void search(const Entry& entry);
  void unlink(int thread, const Entry& entry);
  [[nodiscard]] ptl_me_t match_entry(const Entry& entry);
  void note_call(int thread, Action action, uint32_t id, const CallSeen& seen);

  std::size_t drain(Queue& queue, std::size_t most, int portal);
  void note_initiator_event(const Taken& taken);
  void note_target_event(int portal, const Taken& taken);
  void finish_operations();
  [[nodiscard]] std::string unfinished();
  void fence();
  void empty_portals();
  void check_portal(int portal);
  void complain(const std::string& text);
  void expect_ok(int code, const char* call);

  [[nodiscard]] Objects& objects() { return objects_[program_->matching ? 0 : 1]; }
  [[nodiscard]] std::size_t slot_of(uint32_t descriptor) const;
  [[nodiscard]] Count read(ptl_handle_ct_t counter);

  Shared& shared_;
  Shape shape_;
  bool lossy_;
  int index_;
  bool logical_;
  uint32_t uid_ = 0;
  ptl_size_t volatile_bytes_ = 0;
  std::array<Objects, 2> objects_;
  std::vector<std::byte> entry_memory_;
  std::vector<std::byte> send_memory_;
  std::unique_ptr<Program> program_;

  std::vector<ptl_handle_md_t> descriptors_;  // of this phase, by number
  std::vector<std::vector<ptl_iovec_t>> descriptor_vectors_;
  std::vector<EntryCalls> entries_;
  std::vector<std::vector<ptl_iovec_t>> entry_vectors_;
  std::array<ptl_handle_any_t, portals> fillers_{};  // entries that fill tight queues
  // By thread; the last is what is called when all threads have ended.
  std::vector<std::vector<PortalCall>> calls_;
  std::mutex problems_mutex_;
  std::vector<std::string> problems_;
};

}  // namespace lintel::fuzz
