#include "wire/address.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>

#include <rdma/fi_errno.h>

namespace lintel::ofi {
namespace {

constexpr char scheme[] = "fi_lintel://";

// Reads a number that ends at `end`, and moves `text` behind that character.
bool read_number(const char*& text, char end, uint32_t& number) noexcept {
  const char* const limit = text + strlen(text);
  const auto [stop, error] = std::from_chars(text, limit, number);
  if (error != std::errc() || *stop != end) return false;
  text = stop + (end != '\0' ? 1 : 0);
  return true;
}

}  // namespace

Address decode(fi_addr_t encoded) noexcept {
  const Peer peer(encoded);
  return {.nid = peer.process.phys.nid,
          .pid = peer.process.phys.pid,
          .index = Address::index_of(peer.index, peer.receiver)};
}

AddressText::AddressText(const Address& address) noexcept
    : size_(static_cast<size_t>(std::snprintf(text_, sizeof text_, "%s%u:%u:%u", scheme,
                                              address.nid, address.pid, address.index))) {}

bool parse(const char* text, Address& address) noexcept {
  if (strncmp(text, scheme, strlen(scheme)) != 0) return false;
  text += strlen(scheme);
  Address read;
  if (!read_number(text, ':', read.nid) || !read_number(text, ':', read.pid) ||
      !read_number(text, '\0', read.index) || !read.is_valid())
    return false;
  address = read;
  return true;
}

int copy_name(const Address& address, bool as_text, void* name, size_t* size) noexcept {
  const AddressText text(address);
  const size_t needed = as_text ? text.size() + 1 : sizeof address;
  const size_t room = *size;
  *size = needed;
  if (name != nullptr)
    memcpy(name, as_text ? static_cast<const void*>(text.c_str()) : &address,
           std::min(room, needed));
  return room < needed ? -FI_ETOOSMALL : 0;
}

}  // namespace lintel::ofi
