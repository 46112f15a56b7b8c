// The problems that an endpoint has found. Any thread. Set-up path.
#pragma once

#include <portals4.h>

#include <mutex>
#include <string>
#include <vector>

#include "support/text.h"

namespace lintel::fuzz {

class Problems {
 public:
  explicit Problems(int endpoint) : endpoint_(endpoint) {}

  void add(const std::string& text) {
    const std::lock_guard guard(mutex_);
    texts_.push_back("endpoint " + std::to_string(endpoint_) + ": " + text);
  }
  void expect_ok(int code, const char* call) {
    if (code != PTL_OK) add(std::string(call) + " returned " + test::return_code_name(code));
  }
  // Other threads must have stopped adding problems.
  [[nodiscard]] const std::vector<std::string>& texts() const noexcept { return texts_; }
  [[nodiscard]] bool none() const noexcept { return texts_.empty(); }

 private:
  int endpoint_;
  std::mutex mutex_;
  std::vector<std::string> texts_;
};

}  // namespace lintel::fuzz
