// Registration of memory. Where the limit of locked memory is reached, memory is registered without
// being pinned, on devices for which the kernel fetches pages when they are used (on-demand
// paging).
#include "verbs/device_memory.h"

#include <sys/mman.h>

#include <cerrno>

#include "util/guarded_memory.h"
#include "util/page_size.h"
#include "util/text.h"
#include "verbs/device.h"

// Missing in libibverbs before 1.12 (rdma-core 34), also in its header.
// NOLINTNEXTLINE(readability-redundant-declaration)
extern "C" [[gnu::weak]] ibv_mr* ibv_reg_dmabuf_mr(ibv_pd* domain, uint64_t offset, size_t length,
                                                   uint64_t iova, int descriptor, int access);

namespace lintel {

RegisteredBuffer::~RegisteredBuffer() {
  if (region_ != nullptr) ibv_dereg_mr(region_);
  if (data_ != nullptr) munmap(data_, bytes_);
}

bool RegisteredBuffer::open(ibv_pd* pd, size_t bytes, int access, const char* what,
                            std::string& reason) {
  void* const memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return explained(false, reason, text_of("no memory for ", what));
  data_ = static_cast<std::byte*>(memory);
  bytes_ = bytes;
  region_ = ibv_reg_mr(pd, memory, bytes, access);
  if (region_ == nullptr) reason = registration_failure(what, bytes, errno);
  return region_ != nullptr;
}

namespace {

// Linux 5.14
constexpr int populate_for_reading = 22;  // MADV_POPULATE_READ
constexpr int populate_for_writing = 23;  // MADV_POPULATE_WRITE

bool populate(uint64_t start, uint64_t length, int how) noexcept {
  const uint64_t first = page_start(start);
  const uint64_t end = page_start(start + length + system_page_bytes() - 1);
  return madvise(reinterpret_cast<void*>(first), end - first, how) == 0;
}

// Linux before 6.3 pins memory for reading even where this process may not read it. All pages are
// needed in memory anyway.
bool is_accessible(const void* start, uint64_t length, bool writable) noexcept {
  static const char byte = 0;
  static const bool can_populate =
      populate(reinterpret_cast<uint64_t>(&byte), sizeof byte, populate_for_reading);
  return can_populate ? populate(reinterpret_cast<uint64_t>(start), length,
                                 writable ? populate_for_writing : populate_for_reading)
                      : is_readable(start, length);
}

bool is_limit_of_locked_memory(int error) noexcept {
  return error == ENOMEM || error == EAGAIN || error == EPERM;
}

// rxe (the kernel's software device, of this vendor) repeats what concerns memory windows when it
// repeats the messages around it, after a receiver was not ready or a packet was lost: the queue
// pair stops.
bool has_reliable_windows(const ibv_device_attr& device) noexcept {
  return (device.device_cap_flags &
          (IBV_DEVICE_MEM_WINDOW_TYPE_2A | IBV_DEVICE_MEM_WINDOW_TYPE_2B)) != 0 &&
         device.vendor_id != vendor_of_rxe;
}

}  // namespace

DeviceMemory::DeviceMemory(VerbsDevice& device)
    : device_(device), has_windows_(has_reliable_windows(device.attributes)) {}

void DeviceMemory::open(RegistrationCache* cache) {
  if (cache != nullptr) registered_ = cache->attach(*this);
}

// Returns nullptr with errno on failure. Pinned pages are preferred: the device never waits for
// them.
ibv_mr* DeviceMemory::register_pages(void* address, uint64_t length, int access) noexcept {
  ibv_mr* region = ibv_reg_mr(device_.pd, address, length, access);
  if (region != nullptr || !device_.has_on_demand_paging || !is_limit_of_locked_memory(errno))
    return region;
  // Otherwise a missing page breaks the queue pair that uses it.
  if (!is_accessible(address, length, (access & IBV_ACCESS_LOCAL_WRITE) != 0)) {
    errno = EFAULT;
    return nullptr;
  }
  region = ibv_reg_mr(device_.pd, address, length, access | IBV_ACCESS_ON_DEMAND);
  if (region != nullptr) on_demand_.increment();
  return region;
}

int DeviceMemory::register_memory(void* address, uint64_t length, bool writable,
                                  Registration& registration) noexcept {
  if (!writable && !is_accessible(address, length, false)) return EFAULT;
  const int access =
      writable ? IBV_ACCESS_LOCAL_WRITE | (has_windows_ ? IBV_ACCESS_MW_BIND : 0) : 0;
  ibv_mr* const region = register_pages(address, length, access);
  if (region == nullptr) return errno != 0 ? errno : EINVAL;
  registration = {region->lkey, region};
  return 0;
}

void DeviceMemory::deregister_memory(Registration& registration) noexcept {
  ibv_dereg_mr(static_cast<ibv_mr*>(registration.handle));
}

// Returns nullptr with errno on failure. By its dmabuf; or by its address, which succeeds where the
// kernel knows the memory of that accelerator (peer memory). With read access alone old kernels
// would pin pages that nobody may touch.
ibv_mr* DeviceMemory::register_range(const AcceleratorRange& range, int access) noexcept {
  access |= IBV_ACCESS_LOCAL_WRITE;
  ibv_mr* region = nullptr;
  if (range.dmabuf.is_open() && ibv_reg_dmabuf_mr != nullptr)
    region =
        ibv_reg_dmabuf_mr(device_.pd, range.offset, range.length,
                          reinterpret_cast<uint64_t>(range.address), range.dmabuf.get(), access);
  if (region == nullptr) region = ibv_reg_mr(device_.pd, range.address, range.length, access);
  if (region != nullptr) of_accelerators_.increment();
  return region;
}

int DeviceMemory::register_accelerator(const AcceleratorRange& range,
                                       Registration& registration) noexcept {
  ibv_mr* const region = register_range(range, 0);
  if (region == nullptr) return errno != 0 ? errno : EINVAL;
  registration = {region->lkey, region};
  return 0;
}

const RegisteredRegion* DeviceMemory::acquire_for_window(const Piece& piece) noexcept {
  const RegisteredRegion* const region = acquire(piece, true);
  if (region == nullptr || !region->of_accelerator) return region;
  release(region);
  return nullptr;
}

ibv_mr* DeviceMemory::register_once(const Piece& piece, bool write) noexcept {
  AcceleratorRange range;
  if (registered_ != nullptr && registered_->find_accelerator(piece.base, piece.length, &range))
    return range.length == 0
               ? nullptr
               : register_range(range, write ? IBV_ACCESS_REMOTE_WRITE : IBV_ACCESS_REMOTE_READ);
  if (!write && !is_accessible(piece.base, piece.length, false)) return nullptr;
  return register_pages(
      piece.base, piece.length,
      write ? IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE : IBV_ACCESS_REMOTE_READ);
}

}  // namespace lintel
