// Runs triggered operations whose counter has reached the threshold (spec 3.16). Message path.
#pragma once

#include "core/events/triggered_operation.h"

namespace lintel {

class NetworkInterface;

class TriggeredExecution final : public TriggerExecutor {
 public:
  explicit TriggeredExecution(NetworkInterface& interface) noexcept : interface_(interface) {}
  void execute(TriggeredOperation& operation) noexcept override;
  void release(TriggeredOperation& operation) noexcept override;

 private:
  NetworkInterface& interface_;
};

}  // namespace lintel
