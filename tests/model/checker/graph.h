// An execution as a graph: what each atomic operation of each thread was, from which store each
// load took its value, and the order of the stores to each location (modification order). The
// graph is consistent if C++20 allows the execution, in the form of RC11 (Lahav and others,
// "Repairing sequential consistency in C/C++11"): coherence, atomicity of read-modify-write
// operations, the order of seq_cst operations and fences, and no cycle of program order and
// reads-from. Release sequences are those of C++20: later stores of the same thread are not in
// them.
//
// The last rule excludes load buffering: no load takes a value from the future. C++ and Arm allow
// that. So a graph may have one promised store (Kang and others, "A promising semantics for
// relaxed-memory concurrency"), as if it were of a thread of its own. Loads read it before its
// thread comes to it, which fulfils the promise. A load must not happen before the store that it
// reads, and a store not come before a load of its own thread that acquires what the store brought
// about: C++ would let it, but no compiler and no processor does. Arm lets still fewer: it also
// keeps stores that release behind all loads, and stores behind what they depend on.
//
// Asymmetric fences follow the proposal P1202 for C++: a light fence is ordered with every heavy
// one as two seq_cst fences are, and orders nothing else. That is what a compiler barrier and
// membarrier provide: the kernel interrupts the light thread either before or after the barrier.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace lintel::model {

inline constexpr unsigned most_threads = 5;
inline constexpr unsigned promised_thread = most_threads - 1;  // has the promised store only
inline constexpr unsigned most_events = 250;                   // of one execution

enum class Order : uint8_t { relaxed, acquire, release, acq_rel, seq_cst, light, heavy };
enum class Kind : uint8_t { load, store, fence };

// Number of events per thread that come before.
using Clock = std::array<uint8_t, most_threads>;
void join(Clock& to, const Clock& other) noexcept;

using EventId = int16_t;
inline constexpr EventId initial = -1;  // in place of a store: the value from before the threads

// What a read-modify-write operation does with the value that it loads.
struct Exchange {
  bool always = false;  // else only if the value is `expected`
  uint64_t expected = 0;
  Order success = Order::relaxed;
  Order failure = Order::relaxed;
};

struct Event {
  Kind kind = Kind::fence;
  Order order = Order::relaxed;
  bool exclusive = false;  // load or store of a read-modify-write operation; the store follows
  bool exchanges = false;  // a load with `exchange`
  bool fulfils = false;    // a store that is the promised one, in its thread and with its place
  uint8_t thread = 0;
  uint8_t index = 0;  // in its thread
  uint8_t place = 0;  // stores: in the modification order; the initial value has place 0
  EventId from = initial;
  uint16_t location = 0;
  uint64_t value = 0;
  uint64_t mask = ~uint64_t{0};  // of the bits that a load takes
  uintptr_t site = 0;            // return address, for texts and the recognition of loops
  Exchange exchange;
  // Each with the event itself.
  Clock before{};      // happens before
  Clock prefix{};      // through program order and reads-from
  Clock to_acquire{};  // what an acquire fence would add
  Clock released{};    // what the last release fence released
  Clock message{};     // stores: what an acquiring load of it adds
};

class Graph {
 public:
  [[nodiscard]] const std::vector<Event>& events() const noexcept { return events_; }
  [[nodiscard]] const Event& at(EventId id) const noexcept {
    return events_[static_cast<size_t>(id)];
  }
  [[nodiscard]] unsigned length(unsigned thread) const noexcept {
    return static_cast<unsigned>(threads_[thread].size());
  }
  [[nodiscard]] EventId id_of(unsigned thread, unsigned index) const noexcept {
    return threads_[thread][index];
  }
  // Of the store, or of the one that a load reads.
  [[nodiscard]] unsigned place_of(const Event& event) const noexcept;
  [[nodiscard]] EventId last_store(uint16_t location) const noexcept;
  [[nodiscard]] const Event* last_of(unsigned thread) const noexcept;

  // Appends to the thread of the event, without a check. A load has `from` and its value.
  EventId add(Event event) noexcept;
  void add_store(Event event, unsigned place) noexcept;
  // Adds a store to which its thread, `promiser`, has not come.
  void promise(Event store, unsigned place, uint8_t promiser) noexcept;
  [[nodiscard]] bool has_promise() const noexcept { return length(promised_thread) != 0; }
  // Adds the promised store to its thread, if this is it, and if the thread has come to it by what
  // a load of it brought about. False: not so, or inconsistent.
  [[nodiscard]] bool fulfil(Event store) noexcept;
  // And nothing was acquired from it that the promise did not tell.
  [[nodiscard]] bool is_promise_kept() const noexcept;

  // Stores that the next load of that thread may read, the latest first.
  [[nodiscard]] std::vector<EventId> sources(const Event& load) const;
  // Places at which the next store of that thread may be inserted, the last first.
  [[nodiscard]] std::vector<unsigned> places(const Event& store) const;
  // The order of seq_cst operations and fences has no cycle. Before the last event was added, it
  // had none.
  [[nodiscard]] bool has_total_order() const {
    return !may_close_cycle(events_.back()) || is_acyclic();
  }

  // Before `store` is added, so that `load` reads it instead: the graph without the events that
  // were added after the load and that do not come before the store. Nothing if another exploration
  // finds what follows (TruSt: not "maximally added"). The load keeps its number.
  [[nodiscard]] std::optional<Graph> without_followers(EventId load, const Event& store) const;
  // The load reads the store that was added last. False: that is inconsistent.
  [[nodiscard]] bool redirect(EventId load);
  // A load or fence that was added last.
  void remove_last() noexcept;

  // Decides by the value whether a read-modify-write operation stores.
  static void settle(Event& load, uint64_t value) noexcept;

 private:
  // The latest place of the location that the next event of the thread must not precede.
  [[nodiscard]] unsigned view(unsigned thread, unsigned length, uint16_t location) const noexcept;
  [[nodiscard]] bool may_close_cycle(const Event& event) const noexcept;
  [[nodiscard]] bool is_acyclic() const;
  void compute_clocks(Event& event) const noexcept;
  [[nodiscard]] bool was_added_last(EventId event, const Clock& prefix) const noexcept;

  [[nodiscard]] EventId fulfilment() const noexcept;

  uint8_t promiser_ = promised_thread;  // thread of the promised store
  std::vector<Event> events_;           // in the order in which they were added
  std::array<std::vector<EventId>, most_threads> threads_;
};

}  // namespace lintel::model
