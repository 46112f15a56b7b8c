// The objects of one logical interface of an endpoint that are used in all phases: queues,
// counters, and portals that accept all messages. Set-up path.
#pragma once

#include <portals4.h>

#include <array>
#include <mutex>
#include <vector>

#include "fuzz/observation.h"
#include "fuzz/problems.h"
#include "fuzz/program.h"

namespace lintel::fuzz {

inline constexpr ptl_pt_index_t first_portal = 10;
inline constexpr ptl_pt_index_t fence_portal = 30;
inline constexpr ptl_pt_index_t first_filler = 40;

// An event queue and all events removed from it, in order.
struct Queue {
  ptl_handle_eq_t handle = PTL_EQ_NONE;
  std::size_t room = 0;  // events that it can hold under flow control
  std::mutex mutex;
  std::vector<Taken> log{};
};

// A descriptor without memory, and the counter of its acknowledgments.
struct CountingDescriptor {
  ptl_handle_ct_t count = PTL_CT_NONE;
  ptl_handle_md_t handle = PTL_INVALID_HANDLE;
};

class InterfaceObjects {
 public:
  // PtlInit must have been called.
  InterfaceObjects(bool matching, bool logical, ptl_interface_t interface, int index,
                   Problems& problems);

  // Called when the physical identifiers of all endpoints are known.
  void connect(const ptl_process_t* physical, int endpoints);
  // Checks that each queue holds as many events as at connect().
  void check_room();
  // Leaves `portal.room` slots free in the queue of a tight portal; empty_queue() reverses that.
  void fill_queue(int index, const Portal& portal);
  void empty_queue(int index);

  [[nodiscard]] ptl_handle_ni_t handle() const noexcept { return handle_; }
  [[nodiscard]] bool matching() const noexcept { return matching_; }
  [[nodiscard]] bool logical() const noexcept { return logical_; }
  [[nodiscard]] ptl_size_t max_volatile_size() const noexcept { return max_volatile_size_; }
  // The addresses of the endpoints, as used in operations.
  [[nodiscard]] const std::vector<ptl_process_t>& processes() const noexcept { return processes_; }
  [[nodiscard]] ptl_process_t process(int endpoint) const {
    return processes_[static_cast<std::size_t>(endpoint)];
  }

  [[nodiscard]] Queue& thread_queue(int thread) {
    return thread_queues_[static_cast<std::size_t>(thread)];
  }
  [[nodiscard]] Queue& portal_queue(int portal) {
    return portal_queues_[static_cast<std::size_t>(portal)];
  }
  [[nodiscard]] ptl_handle_ct_t portal_count(int portal, int counter) const {
    return portal_counts_[static_cast<std::size_t>(portal * portal_counters + counter)];
  }
  // `number`: index among the descriptors of the endpoint.
  [[nodiscard]] ptl_handle_ct_t descriptor_count(std::size_t number) const {
    return descriptor_counts_[number];
  }
  // The counter for triggered operations of a thread.
  [[nodiscard]] ptl_handle_ct_t trigger_count(int thread) const {
    return trigger_counts_[static_cast<std::size_t>(thread)];
  }
  [[nodiscard]] const CountingDescriptor& fence() const noexcept { return fence_; }
  [[nodiscard]] const CountingDescriptor& reused(int thread) const {
    return reused_[static_cast<std::size_t>(thread)];
  }
  [[nodiscard]] ptl_handle_ct_t probe(int thread) const {
    return probes_[static_cast<std::size_t>(thread)];
  }

  // Returns after a millisecond in which messages could make progress.
  void poll() const;
  [[nodiscard]] Count read(ptl_handle_ct_t counter);

 private:
  [[nodiscard]] ptl_handle_ct_t new_count();
  [[nodiscard]] CountingDescriptor bind_counting();
  // Opens a portal with one entry that accepts puts of length zero.
  [[nodiscard]] ptl_handle_any_t open_sink(ptl_pt_index_t index, unsigned options,
                                           ptl_handle_eq_t queue);
  void close_sink(ptl_pt_index_t index, ptl_handle_any_t entry);
  // Puts to the sink of this process, each after the acknowledgment of the one before. Returns how
  // many were accepted.
  std::size_t put_to_sink(ptl_pt_index_t index, std::size_t most);
  [[nodiscard]] std::size_t measure_room(const Queue& queue);

  bool matching_;
  bool logical_;
  int index_;
  Problems& problems_;
  ptl_handle_ni_t handle_ = PTL_INVALID_HANDLE;
  ptl_size_t max_volatile_size_ = 0;
  std::vector<ptl_process_t> processes_;
  std::array<Queue, max_threads> thread_queues_;
  std::array<Queue, portals> portal_queues_;
  std::array<ptl_handle_ct_t, std::size_t{portals} * portal_counters> portal_counts_{};
  std::array<ptl_handle_ct_t, std::size_t{max_threads} * descriptors_per_thread>
      descriptor_counts_{};
  std::array<ptl_handle_ct_t, max_threads> trigger_counts_{};
  std::array<CountingDescriptor, max_threads> reused_{};
  std::array<ptl_handle_ct_t, max_threads> probes_{};
  CountingDescriptor fence_;
  CountingDescriptor plain_;
  std::array<ptl_handle_any_t, portals> fillers_{};  // entries that fill tight queues
};

}  // namespace lintel::fuzz
