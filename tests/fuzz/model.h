// A portal table entry as the specification describes it: calls and arriving messages change it one
// after the other (spec 2.9). Each operation leads from a state to all states that agree with what
// was seen of it. Set-up path.
#pragma once

#include <array>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "fuzz/observation.h"
#include "fuzz/program.h"

namespace lintel::fuzz {

enum class Life : uint8_t { absent, linked, unlinked_itself, unlinked_by_call };

struct LiveEntry {
  Life life = Life::absent;
  uint64_t offset = 0;         // locally managed
  uint32_t headers = 0;        // unexpected ones of its messages
  uint64_t pending_until = 0;  // long messages in it may be under way so long
  std::vector<std::byte> cells{};
};

struct Header {
  uint32_t message;
  uint32_t entry;
  uint64_t offset;
  uint64_t mlength;
};

struct Delivery {
  uint32_t message;
  uint32_t entry;
  uint64_t offset;
  uint64_t mlength;
};

struct State {
  bool enabled = true;
  uint32_t disabled_events = 0;  // PTL_EVENT_PT_DISABLED
  std::array<std::vector<uint32_t>, 2> lists;
  std::vector<Header> unexpected;
  std::map<uint32_t, LiveEntry> entries;
  std::array<Count, portal_counters> counts{};
  std::map<uint32_t, Count> descriptor_counts;
  std::vector<Delivery> deliveries;

  [[nodiscard]] uint64_t hash() const;
};

// One operation on the portal and when it took place.
struct Element {
  Action action = Action::send;
  uint32_t id = 0;  // message or entry
  const CallSeen* call = nullptr;
  uint64_t begin_ns = 0;
  uint64_t end_ns = never;
  bool may_vanish = false;  // PTL_MD_UNRELIABLE
};

// What was seen of a portal.
struct PortalHistory {
  const Program* program = nullptr;
  int endpoint = 0;
  int portal = 0;
  uint32_t pt_index = 0;
  const std::vector<Taken>* log = nullptr;
  std::span<const MessageSeen> messages;
  std::span<const Count> descriptor_counts;
  std::array<Count, portal_counters> counts{};
  std::byte* memory = nullptr;           // of the endpoint's entries
  std::vector<ptl_process_t> processes;  // as operations name endpoints
  uint32_t uid = 0;
  std::vector<std::vector<Element>> sequences;  // each in its order
};

// user_ptr of entries and searches, and what names a message at its target.
[[nodiscard]] inline uint64_t user_number(const ptl_event_t& event) {
  return reinterpret_cast<uintptr_t>(event.user_ptr);
}
inline constexpr uint64_t entry_user_base = 0x100000;
inline constexpr int tag_bits = 8;

class Model {
 public:
  // Problems with events that no message or entry explains are told in `problems`.
  Model(const PortalHistory& history, std::vector<std::string>& problems);

  [[nodiscard]] State first() const;
  // The states after `element`; none: `why` says what disagrees.
  [[nodiscard]] std::vector<State> after(const State& state, const Element& element,
                                         std::string& why) const;
  // What must hold at the end; the difference, or nothing.
  [[nodiscard]] std::string disagreement(const State& state) const;
  [[nodiscard]] std::string describe(const Element& element) const;
  // What was seen leaves no choice of how each message ended.
  [[nodiscard]] bool decisive() const noexcept { return decisive_; }
  // When the target was done with it, at the latest.
  [[nodiscard]] uint64_t completed_ns(uint32_t message) const;
  // Of the event of a message; nullptr: of none.
  [[nodiscard]] const Message* message_of(const ptl_event_t& event) const;

 private:
  struct EntryEvents {
    uint32_t links = 0;
    uint32_t unlinks = 0;
    uint32_t frees = 0;
    std::vector<const Taken*> overflow;  // and of searches, in order
  };
  struct Outcome {
    ptl_ni_fail_t fail = PTL_NI_OK;
    uint64_t mlength = 0;
    uint64_t offset = 0;
    const Entry* entry = nullptr;
  };

  [[nodiscard]] const Entry& entry(uint32_t id) const { return program_.entries[id]; }
  [[nodiscard]] const Message& message(uint32_t id) const { return program_.messages[id]; }
  [[nodiscard]] std::string name(const Element& element) const;
  [[nodiscard]] const EntryEvents& events_of(uint32_t entry) const;
  [[nodiscard]] bool matches(const Entry& entry, const Message& message) const;
  [[nodiscard]] bool used_up(const Entry& entry, const LiveEntry& live) const;
  // Its data may still be moving when other calls are made. Longer messages to the own process are
  // copied later.
  static constexpr uint64_t longest_at_once = 80;
  [[nodiscard]] bool is_slow(const Message& message) const {
    return message.length > longest_at_once;
  }

  // In a full queue a PTL_EVENT_PT_DISABLED that nobody has taken stands for the next one, too.
  [[nodiscard]] bool may_share_disabled_event() const { return portal_.tight; }

  [[nodiscard]] const Entry* find(const State& state, const Message& message) const;
  bool arrive(State& state, const Message& message, std::string& why) const;
  // The same if its events find no room in the queue (spec 2.8).
  bool arrive_without_room(State& state, const Message& message, std::string& why) const;
  bool append(State& state, const Element& element, std::string& why) const;
  bool unlink(State& state, const Element& element, std::string& why) const;
  void search(const State& state, const Element& element, std::string& why,
              std::vector<State>& next) const;
  void claim(State& state, std::size_t position, const Entry& by) const;
  void drop_header(State& state, std::size_t position) const;
  [[nodiscard]] bool agrees_with_initiator(State& state, const Message& message,
                                           const Outcome& outcome, std::string& why) const;
  [[nodiscard]] bool agrees_with_target(const Message& message, const Outcome& outcome,
                                        std::string& why) const;
  [[nodiscard]] std::string wrong_field(const ptl_event_t& event, const Message& message,
                                        const Entry& where, uint64_t offset,
                                        uint64_t mlength) const;
  void apply(State& state, const Message& message, const Outcome& outcome,
             std::byte* fetched) const;

  const PortalHistory& history_;
  const Program& program_;
  const Portal& portal_;
  std::map<uint32_t, const Taken*> arrivals_;  // by message
  std::map<uint32_t, EntryEvents> entry_events_;
  uint32_t disabled_events_ = 0;
  bool decisive_ = true;
  uint64_t origin_ns_ = never;
};

}  // namespace lintel::fuzz
