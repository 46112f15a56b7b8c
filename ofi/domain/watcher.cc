#include "domain/watcher.h"

#include <mutex>
#include <system_error>

#include "base/limits.h"
#include "base/provider.h"
#include "domain/domain.h"
#include "wire/address.h"

namespace lintel::ofi {
namespace {

constexpr ptl_time_t longest_wait_ms = 500;  // until peers are looked after

}  // namespace

int Watcher::start() noexcept {
  if (thread_.joinable()) return 0;
  const ptl_handle_ni_t interface = domain_.network().interface();
  // The last entry of a block, which no endpoint uses.
  int code = PTL_PT_IN_USE;
  for (size_t block = 0; block < most_endpoints && code == PTL_PT_IN_USE; ++block) {
    const auto wanted = static_cast<ptl_pt_index_t>((block + 1) * portals_per_endpoint - 1);
    code = PtlPTAlloc(interface, 0, domain_.network().events(), wanted, &portal_);
  }
  if (code != PTL_OK) {
    portal_ = PTL_PT_ANY;
    return failed(FI_LOG_CQ, "PtlPTAlloc", code);
  }
  domain_.lock().require();
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& error) {
    FI_WARN(provider(), FI_LOG_CQ, "FI_WAIT_FD needs a thread: %s\n", error.what());
    return -FI_EAGAIN;
  }
  return 0;
}

Watcher::~Watcher() {
  if (thread_.joinable()) {
    {
      const Guard guard(domain_.lock());
      ends_ = true;
      changed_.notify_all();
      if (is_taking_) interrupt();
    }
    thread_.join();
  }
  if (portal_ != PTL_PT_ANY) PtlPTFree(domain_.network().interface(), portal_);
}

// A search that finds nothing has an event; without a user pointer, it is ignored.
void Watcher::interrupt() noexcept {
  ptl_me_t nothing{};
  nothing.ct_handle = PTL_CT_NONE;
  nothing.uid = PTL_UID_ANY;
  nothing.options = PTL_ME_OP_PUT | PTL_ME_USE_ONCE;
  nothing.match_id.phys = {PTL_NID_ANY, PTL_PID_ANY};
  PtlMESearch(domain_.network().interface(), portal_, &nothing, PTL_SEARCH_ONLY, nullptr);
}

void Watcher::pause() noexcept {
  if (!is_taking_) return;
  ++pauses_;
  interrupt();
  changed_.wait(domain_.lock(), [this] { return !is_taking_; });
  --pauses_;
  changed_.notify_all();
}

void Watcher::run() noexcept {
  const Guard guard(domain_.lock());
  while (!ends_) {
    if (armed_ == 0 || pauses_ != 0) {
      changed_.wait(domain_.lock());
      continue;
    }
    const ptl_handle_eq_t queue = domain_.network().events();
    ptl_event_t event;
    unsigned which = 0;
    is_taking_ = true;
    domain_.lock().unlock();
    const int code = PtlEQPoll(&queue, 1, longest_wait_ms, &event, &which);
    domain_.lock().lock();
    is_taking_ = false;
    changed_.notify_all();
    domain_.pump().take(event, code);
    domain_.progress();
    domain_.pump().check_peers();
  }
}

}  // namespace lintel::ofi
