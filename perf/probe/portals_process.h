// One process of a measurement: its Portals objects, and how it meets the others.
//
// Everything here ends the program with a message when a call fails: a measurement that went on
// after an error would be worth nothing.
#pragma once

#include <portals4.h>
#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace probe {

// Ends the program unless `code` is PTL_OK.
void check(int code, const char* call);

void pin_to(int cpu);
double now_s();

// Memory shared with forked children, zeroed.
void* allocate_shared(std::size_t length_bytes);

// Spins, giving way to others, until `ready()`; ends the program after `deadline_s`.
void wait_until(const std::function<bool()>& ready, const char* what, double deadline_s = 20);

// Runs `body(index)` in `count` forked children, none of which may have touched Portals before.
std::vector<pid_t> fork_children(int count, const std::function<void(int)>& body);

// Ends the program if any of them failed.
void join_children(const std::vector<pid_t>& children);

// A matching, physically addressed interface with one event queue and portal table entry 1.
class PortalsProcess {
 public:
  static constexpr ptl_pt_index_t portal_index = 1;
  static constexpr ptl_match_bits_t match_bits = 0x5eed;

  PortalsProcess();
  ~PortalsProcess();
  PortalsProcess(const PortalsProcess&) = delete;
  PortalsProcess& operator=(const PortalsProcess&) = delete;

  [[nodiscard]] ptl_handle_ni_t interface() const { return interface_; }
  [[nodiscard]] ptl_process_t id() const { return id_; }

  // Opens `length_bytes` at `start` for puts and gets of anyone; stays until the end.
  void expose(void* start, std::size_t length_bytes);
  // Makes `length_bytes` at `start` the memory of put() and get().
  void bind(void* start, std::size_t length_bytes);

  void put(ptl_process_t target, std::size_t length_bytes) const;
  void get(ptl_process_t target, std::size_t length_bytes) const;
  // Waits for the next event, which must be a successful one of this kind.
  void expect(ptl_event_kind_t kind) const;

 private:
  ptl_handle_ni_t interface_ = PTL_INVALID_HANDLE;
  ptl_handle_eq_t events_ = PTL_INVALID_HANDLE;
  ptl_handle_me_t entry_ = PTL_INVALID_HANDLE;
  ptl_handle_md_t memory_ = PTL_INVALID_HANDLE;
  ptl_process_t id_{};
};

}  // namespace probe
