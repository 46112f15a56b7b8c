// Registrations with the device: for the cache, and for one exposure alone. Not message path: system calls.
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "util/guarded_memory.h"
#include "verbs/verbs_transport.h"

namespace lintel {

namespace {

constexpr int populate_for_reading = 22;  // MADV_POPULATE_READ, Linux 5.14

bool populate(uint64_t start, uint64_t length) noexcept {
  static const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const uint64_t first = start & ~(page - 1);
  const uint64_t end = (start + length + page - 1) & ~(page - 1);
  return madvise(reinterpret_cast<void*>(first), end - first, populate_for_reading) == 0;
}

// The kernel pins memory for reading only by force, also where this process may not read it (Linux before
// 6.3). Every page is needed in memory anyway.
bool is_readable(const void* start, uint64_t length) noexcept {
  static const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  static const bool can_populate = populate(reinterpret_cast<uint64_t>(&page), sizeof page);
  const auto first = reinterpret_cast<uint64_t>(start);
  if (can_populate) return populate(first, length);
  std::byte byte;
  for (uint64_t at = first; at - first < length; at = (at / page + 1) * page)
    if (!guarded_copy(&byte, reinterpret_cast<const void*>(at), 1)) return false;
  return true;
}

}  // namespace

int VerbsTransport::register_memory(void* address, uint64_t length, bool writable,
                                    Registration& registration) noexcept {
  if (!writable && !is_readable(address, length)) return EFAULT;
  const int access =
      writable ? IBV_ACCESS_LOCAL_WRITE | (has_windows_ ? IBV_ACCESS_MW_BIND : 0) : 0;
  ibv_mr* const region = ibv_reg_mr(device_->pd, address, length, access);
  if (region == nullptr) return errno != 0 ? errno : EINVAL;
  registration = {region->lkey, 0, region};
  return 0;
}

void VerbsTransport::deregister_memory(Registration& registration) noexcept {
  ibv_dereg_mr(static_cast<ibv_mr*>(registration.handle));
}

bool VerbsTransport::register_piece(const Piece& piece, bool write, MemoryWindow& window) noexcept {
  if (!write && !is_readable(piece.base, piece.length)) return false;
  window.registration =
      ibv_reg_mr(device_->pd, piece.base, piece.length,
                 write ? IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE : IBV_ACCESS_REMOTE_READ);
  if (window.registration == nullptr) return false;
  window.key = window.registration->rkey;
  return true;
}

}  // namespace lintel
