// The launcher that started this process, and its services. Set-up path; no thread safety.
//
// Functions that can fail return what went wrong, or an empty text.
#pragma once

#include <portals4.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace lintel {

struct JobPlace {
  std::string name;
  uint32_t rank = 0;
  uint32_t size = 1;
  uint32_t local_rank = 0;
  uint32_t local_size = 1;
  uint32_t node_count = 1;
  uint32_t local_leader = 0;  // the lowest rank on this node
};

class Launcher {
 public:
  Launcher() = default;
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;
  virtual ~Launcher() = default;

  [[nodiscard]] virtual const char* name() const noexcept = 0;
  [[nodiscard]] virtual std::string start(JobPlace& place) = 0;
  virtual void finish() = 0;

  // Processes of the job as the launcher gives them; nullptr where each publishes its own address.
  [[nodiscard]] virtual const std::vector<ptl_process_t>* known_processes() const noexcept {
    return nullptr;
  }
  // The first interface that was published, for launchers that use Portals themselves.
  virtual void use_interface(ptl_interface_t) {}

  // Whether secrets that are stored stay within the job.
  [[nodiscard]] virtual bool keeps_secrets() const noexcept = 0;
  [[nodiscard]] virtual std::string put(const std::string& key,
                                        std::span<const std::byte> value) = 0;
  // Waits for the value.
  [[nodiscard]] virtual std::string get(uint32_t rank, const std::string& key,
                                        std::vector<std::byte>& value) = 0;
  // No process returns before all have called; values put before are then available.
  [[nodiscard]] virtual std::string fence() = 0;
  // Numbers that are equal for ranks of one node; nothing else is to be read into them.
  [[nodiscard]] virtual std::string nodes(std::vector<uint64_t>& node_of_rank) = 0;
  // Ends the others, as far as that is possible.
  virtual void abort(int code, const char* text) = 0;
};

// Interface of the module pmix (src/util/module.h). The object lives as long as the process.
struct LauncherModule {
  Launcher* (*launcher)();
};

}  // namespace lintel
