// Registrations with the device: for the cache, and for one exposure alone. What the limit of locked memory has no
// room for is registered without being pinned, on devices that have the kernel fetch its pages as they are used
// (on-demand paging). Not message path: system calls.
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "util/guarded_memory.h"
#include "verbs/verbs_transport.h"

namespace lintel {

namespace {

// Linux 5.14
constexpr int populate_for_reading = 22;  // MADV_POPULATE_READ
constexpr int populate_for_writing = 23;  // MADV_POPULATE_WRITE

bool populate(uint64_t start, uint64_t length, int how) noexcept {
  static const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const uint64_t first = start & ~(page - 1);
  const uint64_t end = (start + length + page - 1) & ~(page - 1);
  return madvise(reinterpret_cast<void*>(first), end - first, how) == 0;
}

// The kernel pins memory for reading only by force, also where this process may not read it (Linux before
// 6.3). Every page is needed in memory anyway.
bool is_there(const void* start, uint64_t length, bool writable) noexcept {
  static const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  static const bool can_populate =
      populate(reinterpret_cast<uint64_t>(&page), sizeof page, populate_for_reading);
  const auto first = reinterpret_cast<uint64_t>(start);
  if (can_populate)
    return populate(first, length, writable ? populate_for_writing : populate_for_reading);
  std::byte byte;
  for (uint64_t at = first; at - first < length; at = (at / page + 1) * page)
    if (!guarded_copy(&byte, reinterpret_cast<const void*>(at), 1)) return false;
  return true;
}

// What the limit of locked memory does.
bool wants_less_pinned(int error) noexcept {
  return error == ENOMEM || error == EAGAIN || error == EPERM;
}

}  // namespace

// nullptr: errno says why. Pinned pages are preferred: the device never waits for them.
ibv_mr* VerbsTransport::register_pages(void* address, uint64_t length, int access) noexcept {
  ibv_mr* region = ibv_reg_mr(device_->pd, address, length, access);
  if (region != nullptr || !device_->has_on_demand_paging || !wants_less_pinned(errno))
    return region;
  // Pages that are missing would be noticed only by the queue pair that uses them, which breaks.
  if (!is_there(address, length, (access & IBV_ACCESS_LOCAL_WRITE) != 0)) {
    errno = EFAULT;
    return nullptr;
  }
  region = ibv_reg_mr(device_->pd, address, length, access | IBV_ACCESS_ON_DEMAND);
  if (region != nullptr) add(counts_.on_demand);
  return region;
}

int VerbsTransport::register_memory(void* address, uint64_t length, bool writable,
                                    Registration& registration) noexcept {
  if (!writable && !is_there(address, length, false)) return EFAULT;
  const int access =
      writable ? IBV_ACCESS_LOCAL_WRITE | (has_windows_ ? IBV_ACCESS_MW_BIND : 0) : 0;
  ibv_mr* const region = register_pages(address, length, access);
  if (region == nullptr) return errno != 0 ? errno : EINVAL;
  registration = {region->lkey, 0, region};
  return 0;
}

void VerbsTransport::deregister_memory(Registration& registration) noexcept {
  ibv_dereg_mr(static_cast<ibv_mr*>(registration.handle));
}

bool VerbsTransport::register_piece(const Piece& piece, bool write, MemoryWindow& window) noexcept {
  if (!write && !is_there(piece.base, piece.length, false)) return false;
  window.registration = register_pages(
      piece.base, piece.length,
      write ? IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE : IBV_ACCESS_REMOTE_READ);
  if (window.registration == nullptr) return false;
  window.key = window.registration->rkey;
  return true;
}

}  // namespace lintel
