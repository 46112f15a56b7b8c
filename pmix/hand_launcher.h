// A job by hand: the environment names the processes, which exchange values through Portals itself.
// They meet through Portals, too, or in memory that a launcher of one node gives them.
// Set-up path.
#pragma once

#include <chrono>
#include <memory>

#include "hand_environment.h"
#include "job_barrier.h"
#include "launcher.h"

namespace lintel {

class HandExchange;

class HandLauncher final : public Launcher {
 public:
  explicit HandLauncher(const HandEnvironment& environment);
  ~HandLauncher() override;

  [[nodiscard]] const char* name() const noexcept override { return "environment"; }
  [[nodiscard]] std::string start(JobPlace& place) override;
  void finish() override;
  [[nodiscard]] const std::vector<ptl_process_t>* known_processes() const noexcept override {
    return &processes_;
  }
  void use_interface(ptl_interface_t iface) override { interface_ = iface; }
  [[nodiscard]] bool keeps_secrets() const noexcept override { return false; }
  [[nodiscard]] std::string put(const std::string& key, std::span<const std::byte> value) override;
  [[nodiscard]] std::string get(uint32_t rank, const std::string& key,
                                std::vector<std::byte>& value) override;
  [[nodiscard]] std::string fence() override;
  [[nodiscard]] std::string nodes(std::vector<uint64_t>& node_of_rank) override;
  void abort(int, const char*) override {}

 private:
  [[nodiscard]] std::string open_exchange();

  uint32_t rank_;
  std::optional<uint32_t> job_;
  std::chrono::seconds wait_;  // maximum time of waiting for a process that has not started
  std::vector<ptl_process_t> processes_;
  ptl_interface_t interface_ = PTL_IFACE_DEFAULT;
  std::unique_ptr<HandExchange> exchange_;
  const std::string memory_;
  JobBarrier barrier_;
};

}  // namespace lintel
