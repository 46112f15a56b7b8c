// Address vectors: which fi_addr_t stands for which endpoint. In a map the fi_addr_t holds the name
// itself; in a table it is a position. Message path: resolve() and find(); the rest is set-up path.
#pragma once

#include <unordered_map>
#include <vector>

#include <rdma/fi_domain.h>

#include "base/object.h"
#include "fabric/event_queue.h"
#include "wire/address.h"

namespace lintel::ofi {

class Domain;

class AddressVector : public fid_av {
 public:
  AddressVector(Domain& domain, const fi_av_attr& attr, void* context) noexcept;

  // fi_av_open.
  static int open(fid_domain* domain, fi_av_attr* attr, fid_av** result, void* context) noexcept;
  int close() noexcept;
  int bind(Object* queue) noexcept;

  int insert(const void* addresses, size_t count, fi_addr_t* results, uint64_t flags,
             void* context) noexcept;
  int insert_text(const char* node, const char* service, fi_addr_t* result, uint64_t flags,
                  void* context) noexcept;
  int remove(const fi_addr_t* addresses, size_t count) noexcept;
  int look_up(fi_addr_t address, void* name, size_t* size) const noexcept;
  // fi_av_straddr.
  const char* describe(const void* name, char* buffer, size_t* size) const noexcept;

  // The name of an endpoint in 64 bits, or FI_ADDR_NOTAVAIL for a position that is not in use.
  [[nodiscard]] fi_addr_t resolve(fi_addr_t address) const noexcept {
    if (!is_table_) return address;
    if (address < table_.size()) return table_[address];
    return context_bits_ != 0 ? resolve_context(address) : FI_ADDR_NOTAVAIL;
  }
  // The fi_addr_t that completions report for a sender_name(), or FI_ADDR_NOTAVAIL.
  [[nodiscard]] fi_addr_t find(fi_addr_t encoded) const noexcept;

  void add_user() noexcept { ++users_; }
  void remove_user() noexcept { --users_; }

 private:
  // Reads the name at a position of what insert() was given.
  [[nodiscard]] bool read(const void* addresses, size_t position, Address& address) const noexcept;
  // Resolves a receive context of a scalable endpoint (fi_rx_addr): number in the highest bits.
  [[nodiscard]] fi_addr_t resolve_context(fi_addr_t address) const noexcept;
  [[nodiscard]] size_t take_place(fi_addr_t encoded);
  // Returns the fi_addr_t. `reported` is a user identifier, or NULL.
  [[nodiscard]] fi_addr_t add(fi_addr_t encoded, const fi_addr_t* reported);

  void report_error(void* context, size_t position) noexcept;

  Domain& domain_;
  const bool is_table_;  // FI_AV_TABLE, or the highest bits are needed
  const int context_bits_;
  const bool as_text_;
  const bool reports_;  // FI_EVENT: insertions are reported to the event queue
  EventQueue* events_ = nullptr;
  size_t users_ = 0;              // endpoints
  std::vector<fi_addr_t> table_;  // of a table: names by position
  size_t first_free_ = 0;         // no place before it is free
  // Addresses in completions, by sender_name(): of a table, and of names with a user identifier or
  // a shared receive context.
  std::unordered_map<fi_addr_t, fi_addr_t> reported_;
};

}  // namespace lintel::ofi
