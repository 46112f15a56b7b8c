// The events of a portal, assigned to the operations that caused them. Set-up path.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "fuzz/history.h"

namespace lintel::fuzz {

struct EntryEvents {
  uint32_t links = 0;
  uint32_t unlinks = 0;
  uint32_t frees = 0;
  std::vector<const Taken*> overflow;  // also of searches, in order
};

class Evidence {
 public:
  // Events that no message or entry explains are added to `problems`.
  Evidence(const PortalHistory& history, std::vector<std::string>& problems);

  // The message that caused an event; nullptr: none did.
  [[nodiscard]] const Message* message_of(const ptl_event_t& event) const;
  // The event of a message at the target; nullptr: there is none.
  [[nodiscard]] const Taken* arrival_of(uint32_t message) const;
  [[nodiscard]] const EntryEvents& events_of(uint32_t entry) const;
  [[nodiscard]] uint32_t disabled_events() const noexcept { return disabled_events_; }
  // True if an append or a search found the header of `later` before that of `earlier`. Then the
  // messages did not arrive in this order.
  [[nodiscard]] bool contradicts_order(uint32_t earlier, uint32_t later) const;
  // The time at which the target had completed a message, at the latest.
  [[nodiscard]] uint64_t completed_ns(uint32_t message) const;
  // The position of the first event of an operation in the log; `unknown`: it has none.
  static constexpr std::size_t unknown = SIZE_MAX;
  [[nodiscard]] std::size_t position_of(const Element& element) const;
  // Whether the observations leave no choice of how each message ended.
  [[nodiscard]] bool is_decisive() const;
  // The field of an event that differs from what the message would produce at this place of the
  // entry; empty: none.
  [[nodiscard]] std::string wrong_field(const ptl_event_t& event, const Message& message,
                                        const Entry& where, uint64_t offset,
                                        uint64_t mlength) const;

 private:
  void file(const Taken& taken, std::vector<std::string>& problems);

  const PortalHistory& history_;
  const Program& program_;
  std::map<uint32_t, const Taken*> arrivals_;  // by message
  std::map<uint32_t, EntryEvents> entry_events_;
  // By message: the entries whose overflow events name it, and the indexes of these events.
  std::map<uint32_t, std::map<uint32_t, std::size_t>> found_by_;
  std::map<uint32_t, std::size_t> entry_positions_;  // of the first event
  uint32_t disabled_events_ = 0;
};

}  // namespace lintel::fuzz
