#include "domain/region_table.h"

#include <rdma/fi_domain.h>

namespace lintel::ofi {

int registration_mode(uint32_t api_version, int offered, uint64_t caps) noexcept {
  if (offered == FI_MR_BASIC || offered == FI_MR_SCALABLE) return offered;
  if (FI_VERSION_LT(api_version, FI_VERSION(1, 5))) return FI_MR_SCALABLE;
  // A registration tells that a driver has been loaded since the domain was opened.
  const int devices = (caps & FI_HMEM) != 0 ? offered & FI_MR_HMEM : 0;
  // Some programs register each region with the same key as soon as they may leave keys to the
  // provider. A virtual address is checked with the help of such a key only.
  if ((offered & FI_MR_PROV_KEY) == 0) return devices;
  return devices | (offered & (FI_MR_PROV_KEY | FI_MR_VIRT_ADDR));
}

RegionTable::RegionTable(int mode) noexcept
    : chooses_keys_(mode == FI_MR_BASIC || (mode & FI_MR_PROV_KEY) != 0),
      uses_virtual_addresses_(mode == FI_MR_BASIC || (mode & FI_MR_VIRT_ADDR) != 0) {}

uint64_t RegionTable::choose_key(const void* start) noexcept {
  const uint64_t address = reinterpret_cast<uint64_t>(start);
  if (!uses_virtual_addresses_) return next_key_++;
  if ((address & ~start_mask) != 0) return FI_KEY_NOTAVAIL;
  constexpr uint64_t numbers = uint64_t{1} << (64 - start_bits);
  for (uint64_t i = 0; i < numbers; ++i) {
    const uint64_t key = (next_key_++ % numbers) << start_bits | address;
    if (key != FI_KEY_NOTAVAIL && !regions_.contains(key)) return key;
  }
  return FI_KEY_NOTAVAIL;
}

bool RegionTable::add(LinkedRegion& region, uint64_t key) {
  return regions_.try_emplace(key, &region).second;
}

int RegionTable::add_endpoint(Endpoint& endpoint) noexcept {
  for (const auto& [key, region] : regions_)
    if (const int code = region->link(endpoint); code != 0) return code;
  return 0;
}

void RegionTable::remove_endpoint(Endpoint& endpoint) noexcept {
  for (const auto& [key, region] : regions_) region->unlink(endpoint);
}

}  // namespace lintel::ofi
