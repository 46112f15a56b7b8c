// Operations for which the program gives no memory. Message path; memory is never returned to the
// system before the endpoint is closed.
#pragma once

#include <memory>
#include <vector>

#include "base/assert.h"
#include "endpoint/operation.h"

namespace lintel::ofi {

class OperationPool {
 public:
  [[nodiscard]] Operation* take() {
    if (free_.empty()) grow();
    Operation* const operation = free_.back();
    free_.pop_back();
    return operation;
  }
  void give_back(Operation* operation) {
    OFI_ASSERT(free_.size() < slabs_.size() * slab_size);
    free_.push_back(operation);
  }

 private:
  static constexpr size_t slab_size = 256;

  void grow() {
    slabs_.push_back(std::make_unique<Operation[]>(slab_size));
    for (size_t i = slab_size; i > 0; --i) free_.push_back(&slabs_.back()[i - 1]);
  }

  std::vector<std::unique_ptr<Operation[]>> slabs_;
  std::vector<Operation*> free_;
};

}  // namespace lintel::ofi
