// The steps of all threads of all endpoints in one phase. They are a function of the seed, so every
// endpoint can compute all of them. A shorter program is a prefix of a longer one. Set-up path.
#pragma once

#include <portals4.h>

#include <array>
#include <cstdint>
#include <random>
#include <vector>

#include "fuzz/layout.h"

namespace lintel::fuzz {

inline constexpr int max_endpoints = 4;
inline constexpr int max_threads = 4;
inline constexpr int max_steps = 64;  // per thread and phase
inline constexpr int portals = 2;     // per endpoint
inline constexpr int portal_counters = 4;
inline constexpr int descriptors_per_thread = 3;
inline constexpr int max_messages = max_endpoints * max_threads * max_steps;
inline constexpr uint64_t thread_entry_bytes = uint64_t{3} << 20;  // for the entries of a thread
inline constexpr uint64_t thread_send_bytes = uint64_t{3}
                                              << 20;  // for what a thread sends and gets
inline constexpr uint64_t cell_bytes = 64;            // of an entry for atomics
// max_waw_ordered_size and max_war_ordered_size: the data of longer messages may arrive later (spec
// 2.7).
inline constexpr uint64_t ordered_bytes = 4096;

struct Shape {
  uint64_t seed = 1;
  int endpoints = 2;
  int threads = 2;
  int steps = 24;
  bool unreliable =
      true;  // PTL_MD_UNRELIABLE: a network that doubles frames delivers such puts twice
};

enum class Kind : uint8_t { put, get, atomic, fetch_atomic, swap };

struct Descriptor {
  int endpoint = 0;
  int thread = 0;
  int target = 0;  // all its operations go to this portal of this endpoint
  int portal = 0;
  unsigned options = 0;
  bool has_queue = false;
  bool has_counter = false;
  Layout memory;  // within the thread's send memory
};

struct Message {
  uint32_t id = 0;
  uint32_t descriptor = 0;
  int endpoint = 0;  // the initiator
  int thread = 0;
  int target = 0;
  int portal = 0;
  Kind kind = Kind::put;
  ptl_match_bits_t tag = 0;
  uint64_t length = 0;
  uint64_t remote_offset = 0;
  uint64_t source = 0;  // offsets in the descriptor
  uint64_t result = 0;
  ptl_ack_req_t ack = PTL_NO_ACK_REQ;
  ptl_op_t operation = PTL_SUM;
  ptl_datatype_t datatype = PTL_UINT64_T;
  std::array<std::byte, 32> item{};  // of atomics
  std::array<std::byte, 32> operand{};
  bool triggered = false;
  uint64_t threshold = 0;
  bool starts = true;  // false for a triggered one that is never started
};

// An entry to append, or the arguments of a search.
struct Entry {
  uint32_t id = 0;
  int endpoint = 0;
  int thread = 0;
  int portal = 0;
  ptl_list_t list = PTL_PRIORITY_LIST;
  unsigned options = 0;
  ptl_match_bits_t tag = 0;
  ptl_match_bits_t ignored_tags = 0;
  int source = -1;   // endpoint; -1: any
  int counter = -1;  // of the portal; -1: none
  uint64_t min_free = 0;
  bool foreign = false;  // its usage id matches no process
  bool is_search = false;
  ptl_search_op_t search = PTL_SEARCH_ONLY;
  Layout memory;  // within the endpoint's entry memory
  bool triggered = false;
  uint64_t threshold = 0;
  bool starts = true;  // false for a triggered append that is never executed

  [[nodiscard]] bool has(unsigned option) const { return (options & option) != 0; }
};

struct Portal {
  unsigned options = 0;
  bool has_queue = false;
  // The queue has few free slots. Only arriving messages post events, and may trigger flow control.
  bool tight = false;
  uint64_t room = 0;  // free slots at the start of the phase
  bool cells =
      false;  // for atomics: entries of the priority list are items, and puts do not come here

  [[nodiscard]] bool flow_controlled() const { return (options & PTL_PT_FLOWCTRL) != 0; }
};

enum class Action : uint8_t {
  send,     // index: message
  append,   // index: entry
  unlink,   // index: entry
  search,   // index: entry
  disable,  // index: portal
  enable,
  cancel,       // index: entry whose append has not been triggered
  count,        // adds `amount` to the thread's counter for triggered operations
  set,          // sets it to `amount`
  count_later,  // the same, triggered at the threshold `index`
  set_later,
  unlink_later,  // index: entry; amount: threshold
  drain,         // receives up to `amount` events
  reuse,  // resets a counter of acknowledgments of endpoint `index` that others may have changed
  poll,   // lets the library make progress
  begin_bundle,
  end_bundle,
  sync,  // PtlAtomicSync
};

// A triggered operation whose threshold has been reached.
struct Fired {
  enum class What : uint8_t { message, append, unlink, count, set };
  What what;
  uint32_t id;  // message or entry
};

struct Step {
  Action action = Action::poll;
  uint32_t index = 0;
  uint64_t amount = 0;
  std::vector<Fired> fires{};  // triggered by this step, in order; without counts and sets
};

struct Program {
  Program(const Shape& shape, uint64_t phase);

  [[nodiscard]] const std::vector<Step>& steps(int endpoint, int thread) const {
    return all_steps[static_cast<std::size_t>(endpoint * shape.threads + thread)];
  }
  [[nodiscard]] const Portal& portal(int endpoint, int index) const {
    return all_portals[static_cast<std::size_t>(endpoint * portals + index)];
  }

  // The search that empties the unexpected list of a portal at the end.
  [[nodiscard]] uint32_t last_search(int endpoint, int index) const {
    return first_last_search + static_cast<uint32_t>(endpoint * portals + index);
  }

  Shape shape;
  bool matching = true;
  uint32_t first_last_search = 0;
  std::vector<Descriptor> descriptors;
  std::vector<Message> messages;
  std::vector<Entry> entries;

  std::vector<uint64_t>
      final_counts;  // of the counters for triggered operations, by endpoint and thread
  std::vector<Portal> all_portals;
  std::vector<std::vector<Step>> all_steps;  // by endpoint and thread
};

// Byte `index` of the payload of message `id`.
[[nodiscard]] constexpr std::byte payload_at(uint32_t id, uint64_t index) {
  const uint64_t word = ((index >> 3) + 1) * 0x9e3779b97f4a7c15u + id * 0xd1b54a32d192ed03u;
  return static_cast<std::byte>((word ^ (word >> 29)) >> (index & 7) * 8);
}
// Byte `index` of the entry memory of an endpoint before the phase.
[[nodiscard]] constexpr std::byte background_at(int endpoint, uint64_t index) {
  return payload_at(0x40000000u + static_cast<uint32_t>(endpoint), index);
}

}  // namespace lintel::fuzz
