// The events of a portal, by the operations that they belong to. Set-up path.
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
  std::vector<const Taken*> overflow;  // and of searches, in order
};

class Evidence {
 public:
  // Events that no message or entry explains are told in `problems`.
  Evidence(const PortalHistory& history, std::vector<std::string>& problems);

  // Of the event of a message; nullptr: of none.
  [[nodiscard]] const Message* message_of(const ptl_event_t& event) const;
  // What the target was told of a message; nullptr: nothing.
  [[nodiscard]] const Taken* arrival_of(uint32_t message) const;
  [[nodiscard]] const EntryEvents& events_of(uint32_t entry) const;
  [[nodiscard]] uint32_t disabled_events() const noexcept { return disabled_events_; }
  // An append or a search found the header of `later` before that of `earlier`: they did not arrive
  // in this order.
  [[nodiscard]] bool contradicts_order(uint32_t earlier, uint32_t later) const;
  // When the target was done with a message, at the latest.
  [[nodiscard]] uint64_t completed_ns(uint32_t message) const;
  // Where in the log the first event of an operation stands; `unknown`: it has none.
  static constexpr std::size_t unknown = SIZE_MAX;
  [[nodiscard]] std::size_t position_of(const Element& element) const;
  // What was seen leaves no choice of how each message ended.
  [[nodiscard]] bool is_decisive() const;
  // The field of an event that is not as the message in that place of that entry makes it; empty:
  // none.
  [[nodiscard]] std::string wrong_field(const ptl_event_t& event, const Message& message,
                                        const Entry& where, uint64_t offset,
                                        uint64_t mlength) const;

 private:
  void file(const Taken& taken, std::vector<std::string>& problems);

  const PortalHistory& history_;
  const Program& program_;
  std::map<uint32_t, const Taken*> arrivals_;  // by message
  std::map<uint32_t, EntryEvents> entry_events_;
  // By message: the entries whose overflow events name it, and which of their events that are.
  std::map<uint32_t, std::map<uint32_t, std::size_t>> found_by_;
  std::map<uint32_t, std::size_t> entry_positions_;  // of the first event
  uint32_t disabled_events_ = 0;
};

}  // namespace lintel::fuzz
