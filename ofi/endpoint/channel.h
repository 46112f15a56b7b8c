// A portal table entry that messages arrive at: tagged ones, or the others. Receives are posted in
// their order; those for whose events the queue has no room now are held back, behind the others,
// so nothing that matches changes. Message path, but for open() and close().
#pragma once

#include <portals4.h>
#include <sys/types.h>

#include <deque>

#include "domain/domain.h"
#include "endpoint/operation.h"
#include "endpoint/posted_table.h"
#include "endpoint/unexpected_store.h"

namespace lintel::ofi {

class Endpoint;

class Channel final : public DelayedReceives {
 public:
  Channel(Endpoint& endpoint, Domain& domain, PostedTable& posted) noexcept;

  // At a portal table entry.
  [[nodiscard]] int open(ptl_pt_index_t portal) noexcept;
  // After discard_delayed().
  void close() noexcept;

  // Posts a receive, now or later. Returns 0 or a negative error number; then it is not posted.
  [[nodiscard]] ssize_t post(const ptl_me_t& entry, Operation& operation) {
    if (delayed_.empty() && domain_.pump().has_room()) [[likely]]
      return append(entry, operation);
    return delay(entry, operation);
  }
  // Posts what was held back, as far as there is room. True: nothing is left.
  bool post_delayed() override;
  [[nodiscard]] bool has_delayed() const noexcept { return !delayed_.empty(); }
  // Takes back a receive that was held back; NULL: there is none with this context.
  [[nodiscard]] Operation* withdraw_delayed(const void* context);
  void discard_delayed() noexcept;

  [[nodiscard]] ptl_pt_index_t portal() const noexcept { return portal_; }

 private:
  struct Delayed {
    ptl_me_t entry;
    OperationReference reference;
  };

  [[nodiscard]] ssize_t append(const ptl_me_t& entry, Operation& operation) {
    ptl_handle_me_t* const handle = posted_.add(operation);
    const int code = PtlMEAppend(domain_.network().interface(), portal_, &entry, PTL_PRIORITY_LIST,
                                 &operation, handle);
    if (code != PTL_OK) [[unlikely]]
      return not_appended(operation, code);
    if (operation.kind == OwnerKind::receive) domain_.pump().add_receive();
    return 0;
  }
  [[nodiscard]] ssize_t not_appended(Operation& operation, int code);
  [[nodiscard]] ssize_t delay(const ptl_me_t& entry, Operation& operation);

  Endpoint& endpoint_;
  Domain& domain_;
  PostedTable& posted_;
  ptl_pt_index_t portal_ = PTL_PT_ANY;
  UnexpectedStore store_;
  std::deque<Delayed> delayed_;
};

}  // namespace lintel::ofi
