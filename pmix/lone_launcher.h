// A process without a launcher: a job of one. Set-up path.
#pragma once

#include <map>

#include "launcher.h"

namespace lintel {

class LoneLauncher final : public Launcher {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "none"; }
  [[nodiscard]] std::string start(JobPlace& place) override;
  void finish() override {}
  [[nodiscard]] bool keeps_secrets() const noexcept override { return false; }
  [[nodiscard]] std::string put(const std::string& key, std::span<const std::byte> value) override;
  [[nodiscard]] std::string get(uint32_t rank, const std::string& key,
                                std::vector<std::byte>& value) override;
  [[nodiscard]] std::string fence() override { return ""; }
  [[nodiscard]] std::string nodes(std::vector<uint64_t>& node_of_rank) override;
  void abort(int, const char*) override {}

 private:
  std::map<std::string, std::vector<std::byte>> stored_;
};

}  // namespace lintel
