// A portal table entry that messages arrive at: tagged ones, or the others. Receives are posted in
// their order; those for whose events the queue has no room now are held back, behind the others,
// so nothing that matches changes. Message path, but for open() and close().
#pragma once

#include <portals4.h>
#include <sys/types.h>

#include <deque>

#include "domain/event_pump.h"
#include "endpoint/operation.h"
#include "endpoint/unexpected_store.h"
#include "wire/address.h"

namespace lintel::ofi {

class Endpoint;

class Channel final : public DelayedReceives {
 public:
  Channel(Endpoint& endpoint, Portal which) noexcept;

  [[nodiscard]] int open() noexcept;
  // After discard_delayed().
  void close() noexcept;

  // Posts a receive, now or later. Returns 0 or a negative error number; then it is not posted.
  [[nodiscard]] ssize_t post(const ptl_me_t& entry, Operation& operation);
  // Posts what was held back, as far as there is room. True: nothing is left.
  bool post_delayed() override;
  [[nodiscard]] bool has_delayed() const noexcept { return !delayed_.empty(); }
  // Takes back a receive that was held back; NULL: there is none with this context.
  [[nodiscard]] Operation* withdraw_delayed(const void* context);
  void discard_delayed() noexcept;

  [[nodiscard]] ptl_pt_index_t portal() const noexcept;

 private:
  struct Delayed {
    ptl_me_t entry;
    OperationReference reference;
  };

  [[nodiscard]] ssize_t append(const ptl_me_t& entry, Operation& operation);

  Endpoint& endpoint_;
  const Portal which_;
  UnexpectedStore store_;
  std::deque<Delayed> delayed_;
};

}  // namespace lintel::ofi
