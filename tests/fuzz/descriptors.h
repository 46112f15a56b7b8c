// The memory descriptors of an endpoint in one phase. Set-up path.
#pragma once

#include <vector>

#include "fuzz/phase.h"

namespace lintel::fuzz {

class Descriptors {
 public:
  explicit Descriptors(const Phase& phase);

  // Calls visit(uint32_t) with the number of each descriptor of this endpoint.
  template <typename Visit>
  void for_each(Visit&& visit) const {
    for (uint32_t i = 0; i < handles_.size(); ++i) visit(first_ + i);
  }
  [[nodiscard]] ptl_handle_md_t handle_of(uint32_t number) const {
    return handles_[number - first_];
  }
  // The counter reserved for the descriptor, which may not use it.
  [[nodiscard]] ptl_handle_ct_t counter_of(uint32_t number) const {
    return phase_.objects.descriptor_count(number - first_);
  }

 private:
  [[nodiscard]] ptl_handle_md_t bind(uint32_t number);

  const Phase& phase_;
  uint32_t first_;  // the first one of this endpoint
  std::vector<ptl_handle_md_t> handles_;
  std::vector<std::vector<ptl_iovec_t>> vectors_;
};

}  // namespace lintel::fuzz
