// The memory regions of a domain, and the keys that the provider chose for them. Set-up path, with
// the lock of the domain.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace lintel::ofi {

class Endpoint;

// A region, which has entries at endpoints.
class LinkedRegion {
 public:
  // Appends its entries at an endpoint. Returns 0 or a negative error number.
  [[nodiscard]] virtual int link(Endpoint& endpoint) noexcept = 0;
  virtual void unlink(Endpoint& endpoint) noexcept = 0;

 protected:
  ~LinkedRegion() = default;
};

// Returns the modes of registration in force for a program that offers these, with its caps.
// FI_MR_BASIC and FI_MR_SCALABLE, of programs before version 1.5, stay as they are.
[[nodiscard]] int registration_mode(uint32_t api_version, int offered, uint64_t caps) noexcept;

class RegionTable {
 public:
  // `mode` is that of fi_getinfo: FI_MR_BASIC, or bits.
  explicit RegionTable(int mode) noexcept;

  [[nodiscard]] bool chooses_keys() const noexcept { return chooses_keys_; }
  // Remote addresses are virtual addresses; a key then holds the start of its region.
  [[nodiscard]] bool uses_virtual_addresses() const noexcept { return uses_virtual_addresses_; }
  // The offset in a region of what a program names by address and key.
  [[nodiscard]] uint64_t offset(uint64_t address, uint64_t key) const noexcept {
    return uses_virtual_addresses_ ? address - (key & start_mask) : address;
  }

  // A key for a new region, or FI_KEY_NOTAVAIL.
  [[nodiscard]] uint64_t choose_key(const void* start) noexcept;
  // False: another region has the key.
  [[nodiscard]] bool add(LinkedRegion& region, uint64_t key);
  void remove(uint64_t key) noexcept { regions_.erase(key); }

  // Links the regions of the domain to an endpoint, and the other way round. Returns 0 or a
  // negative error number.
  [[nodiscard]] int add_endpoint(Endpoint& endpoint) noexcept;
  void remove_endpoint(Endpoint& endpoint) noexcept;

 private:
  static constexpr unsigned start_bits = 48;  // of user addresses
  static constexpr uint64_t start_mask = (uint64_t{1} << start_bits) - 1;

  bool chooses_keys_;
  bool uses_virtual_addresses_;
  uint64_t next_key_ = 0;
  std::unordered_map<uint64_t, LinkedRegion*> regions_;
};

}  // namespace lintel::ofi
