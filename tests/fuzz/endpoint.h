// A process of Portals: its interfaces and memory, and the threads that execute its part of a
// program. Set-up path.
#pragma once

#include <portals4.h>

#include <string>
#include <vector>

#include "fuzz/interface_objects.h"
#include "fuzz/list_calls.h"
#include "fuzz/phase.h"

namespace lintel::fuzz {

class Endpoint {
 public:
  // Opens the interfaces, after PtlInit. `lossy`: the network may lose frames.
  Endpoint(Shared& shared, const Shape& shape, int index, ptl_interface_t interface, bool lossy);

  // All endpoints must call it once they all exist.
  void connect();
  // Executes a phase; all endpoints execute the same one. Returns all problems found.
  [[nodiscard]] const std::vector<std::string>& run(uint64_t phase);
  // Called after the last phase: checks that each queue still holds as many events as before.
  [[nodiscard]] const std::vector<std::string>& check_room();

 private:
  void open_portals(const Phase& phase);
  void run_threads(const Phase& phase, EventTaker& events, ListCalls& lists);
  void empty_portals(const Phase& phase, EventTaker& events, ListCalls& lists);

  Shared& shared_;
  Shape shape_;
  bool lossy_;
  int index_;
  Problems problems_;
  ptl_uid_t uid_ = 0;
  InterfaceObjects matching_;
  InterfaceObjects nonmatching_;
  EndpointMemory memory_;
};

}  // namespace lintel::fuzz
