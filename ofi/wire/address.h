// Names of endpoints: what fi_getname gives, its text, and its 64 bits in an fi_addr_t. Set-up
// path, but for encode() and decode().
#pragma once

#include <portals4.h>

#include <cstddef>
#include <cstdint>

#include <rdma/fabric.h>

namespace lintel::ofi {

// Portal table entries of an endpoint, counted from its first.
enum class Portal : ptl_pt_index_t {
  tagged,
  message,
  rendezvous,    // long messages wait here until their receiver gets them
  memory,        // regions: writes, atomics
  memory_event,  // the same regions: writes with data for a completion at the target
  memory_read,   // the same regions: reads
};
inline constexpr ptl_pt_index_t portals_per_endpoint = 8;

// As it travels between programs.
struct Address {
  static constexpr uint32_t signature = 0x314e544c;  // "LTN1"

  uint32_t magic = signature;
  ptl_nid_t nid = 0;
  ptl_pid_t pid = 0;
  uint32_t index = 0;  // see Peer

  // Returns the index for an endpoint with its own receive context, or the shared one with block
  // `receiver` of the portal table.
  [[nodiscard]] static constexpr uint32_t index_of(uint32_t own, uint32_t receiver) noexcept {
    return (own ^ receiver) << 8 | own;
  }

  // Whether the address fits in an fi_addr_t, and in a portal table.
  [[nodiscard]] bool is_valid() const noexcept {
    return magic == signature && nid != PTL_NID_ANY && pid < (1u << 16) && index < (1u << 16);
  }
};
static_assert(sizeof(Address) == 16);

// A name in 64 bits: nid, pid, index.
[[nodiscard]] constexpr fi_addr_t encode(ptl_process_t process, uint32_t index) noexcept {
  return uint64_t{process.phys.nid} << 32 | uint64_t{process.phys.pid} << 16 | index;
}
[[nodiscard]] inline fi_addr_t encode(const Address& address) noexcept {
  return encode({.phys = {address.nid, address.pid}}, address.index);
}
[[nodiscard]] Address decode(fi_addr_t encoded) noexcept;
// The name as messages tell it: without the shared receive context.
[[nodiscard]] constexpr fi_addr_t sender_name(fi_addr_t encoded) noexcept {
  return encoded & ~fi_addr_t{0xff00};
}

// Where what is for an endpoint goes.
struct Peer {
  explicit Peer(fi_addr_t encoded) noexcept
      : process{.phys = {static_cast<ptl_nid_t>(encoded >> 32),
                         static_cast<ptl_pid_t>(encoded >> 16 & 0xffff)}},
        index(static_cast<uint32_t>(encoded & 0xff)),
        receiver(index ^ static_cast<uint32_t>(encoded >> 8 & 0xff)) {}

  [[nodiscard]] ptl_pt_index_t portal(Portal which) const noexcept {
    return index * portals_per_endpoint + static_cast<ptl_pt_index_t>(which);
  }
  // For messages.
  [[nodiscard]] ptl_pt_index_t channel(bool is_message) const noexcept {
    return receiver * portals_per_endpoint +
           static_cast<ptl_pt_index_t>(is_message ? Portal::message : Portal::tagged);
  }
  // Returns the remote offset of messages: a shared receive context learns from it whom
  // they are for.
  [[nodiscard]] ptl_size_t recipient() const noexcept { return receiver != index ? index : 0; }

  ptl_process_t process;
  uint32_t index;     // of its block of the portal table
  uint32_t receiver;  // that of its receive context, which may be shared
};

// "fi_lintel://nid:pid:index".
class AddressText {
 public:
  explicit AddressText(const Address& address) noexcept;

  [[nodiscard]] const char* c_str() const noexcept { return text_; }
  [[nodiscard]] size_t size() const noexcept { return size_; }

 private:
  char text_[48];
  size_t size_;
};

[[nodiscard]] bool parse(const char* text, Address& address) noexcept;

// Copies a name, or its text, as far as there is room (*size bytes), and sets *size to what it
// needs. Returns 0, or -FI_ETOOSMALL.
[[nodiscard]] int copy_name(const Address& address, bool as_text, void* name,
                            size_t* size) noexcept;

}  // namespace lintel::ofi
