// Runs the threads of a scenario in every execution that the memory model allows (graph.h). The
// algorithm is TruSt (Kokologiannakis and others, "Truly stateless, optimal dynamic partial order
// reduction"): each consistent graph is found once. A new load tries every store; a new store also
// lets earlier loads read it. A further graph is run from the start: operations that are in it
// repeat, then new ones are added.
//
// Threads are contexts of one thread of the system, which change only at operations that hooks.cc
// reports. Plain memory is the real one. That is sound since threads run in an order in which
// stores precede the loads that read them, and since data races are errors.
//
// A thread that repeats the same loads with the same results and stores nothing waits: it goes on
// only where a later store lets one of these loads read something else. If there is none at the
// end, the threads are deadlocked. The same holds for a futex. Waits have no timeout, so a lost
// wake-up is a deadlock. The lock of the kernel orders wake-ups and waits of a futex, and each
// wake-up wakes all. compare_exchange_weak does not fail without reason.
//
// Then, load buffering (graph.h): at the end of each execution, stores that came about in any
// execution are promised, one at a time, and loads read that. Only executions count in which the
// promise is kept, by a store with the same value; so no value comes out of thin air. This is
// bounded: threads must not make many more steps than in other executions, and of a scenario with
// very many graphs only the first few thousand are tried ("at least" in the table).
#pragma once

#include <setjmp.h>
#include <ucontext.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "checker/graph.h"
#include "checker/shared_memory.h"
#include "checker/sites.h"
#include "model.h"

namespace lintel::model {

struct Result {
  uint64_t executions = 0;    // complete
  uint64_t buffered = 0;      // further ones, with load buffering
  uint64_t promised = 0;      // graphs that were tried for that
  bool is_cut_short = false;  // by the limit of these
  uint64_t blocked = 0;       // in which a thread waits for what comes in another one
  uint64_t cut = 0;           // with too many operations
  std::string trace;
  std::string error;  // of the first faulty execution; exploration ends there
  std::set<std::string> outcomes;
  double seconds = 0;
};

class Explorer {
 public:
  explicit Explorer(Sites& sites) noexcept : sites_(sites) {}

  // `limit`: executions in all.
  [[nodiscard]] Result run(const Scenario& scenario, bool buffers_loads,
                           uint64_t limit = 20'000'000);

  bool in_model = false;  // code of the scenario runs, rather than the checker
  // For hooks. The exploration that runs now, or nullptr.
  static Explorer* current() noexcept { return current_; }
  [[nodiscard]] bool in_thread() const noexcept { return running_ >= 0; }
  [[nodiscard]] int thread() const noexcept { return running_; }

  struct Access {
    uintptr_t address;
    unsigned bytes;
    uintptr_t site;
  };
  uint64_t load(const Access& access, Order order);
  void store(const Access& access, Order order, uint64_t value);
  // Returns the value before. `compute` gives the new one.
  uint64_t exchange(const Access& access, const Exchange& exchange,
                    const std::function<uint64_t(uint64_t)>& compute);
  // Waits until it succeeds.
  void await_exchange(const Access& access, const Exchange& exchange, uint64_t value);
  void fence(Order order, uintptr_t site);
  void plain(uintptr_t address, size_t bytes, bool writes, uintptr_t site);
  void futex_wait(const Access& word, uint64_t expected);
  void futex_wake(const Access& word);
  void fail(const std::string& what);
  void add_outcome(const std::string& outcome) { outcome_ += outcome; }
  [[nodiscard]] void* allocate(size_t bytes) { return memory_.allocate(running_ + 1, bytes); }
  [[nodiscard]] bool owns(const void* address) const noexcept { return memory_.owns(address); }

 private:
  enum class State : uint8_t { ready, pending, waits, blocked, ended };
  struct Thread {
    ucontext_t context{};  // at its start
    bool has_started = false;
    jmp_buf jump{};
    std::vector<std::byte> stack;
    std::vector<std::byte> locals;
    State state = State::ready;
    bool completes_exchange = false;  // its next operation
    unsigned executed = 0;
    unsigned longest = 0;  // of the complete executions without load buffering
    EventId awaited = initial;
    unsigned window = 0;  // operations that repeat
    unsigned unshared = 0;
    unsigned plain_stores = 0;                              // to the memory of the scenario
    std::array<unsigned, most_events + 1> stores_before{};  // of them, before each operation
  };
  // Of an address that several threads use. Others need no events.
  struct Location {
    uint16_t number = 0;
    uint64_t first_value = 0;
    unsigned bytes = 0;
    uint8_t readers = 0;
    uint8_t writers = 0;
    bool awaited = false;  // in a loop
    [[nodiscard]] bool is_shared() const noexcept {
      if (awaited) return true;
      return writers != 0 && ((readers | writers) & ((readers | writers) - 1)) != 0;
    }
  };
  enum class End : uint8_t { complete, blocked, cut, failed, abandoned, restart };
  struct Promise {
    uint16_t location;
    uint64_t value;
    uint8_t thread;
    auto operator<=>(const Promise&) const = default;
  };

  [[nodiscard]] bool explore(const Scenario& scenario, uint64_t limit, Result& result);
  void enter_thread();
  static void start_thread();
  [[nodiscard]] End execute(const Scenario& scenario);
  static void exchange_locals(Thread& thread, bool enters) noexcept;
  void switch_to(int thread);
  void pause(State state);
  void await_turn(bool completes_exchange);
  [[noreturn]] void end_execution(End end);
  [[noreturn]] void fail_replay();
  Location& location_of(const Access& access, bool reads, bool writes);
  [[nodiscard]] Event event_of(const Access& access, const Location& location) const noexcept;
  [[nodiscard]] const Event* repeated(const Event& event);
  void note_promises();
  void promise_stores();
  [[nodiscard]] bool has_executed(EventId id) const noexcept;
  void complete_step() noexcept;
  uint64_t step_load(Event event);
  void step_store(Event event);
  static void store_in_memory(uintptr_t address, unsigned bytes, uint64_t value) noexcept;
  void note(const Access& access, SharedMemory::Use use);
  void construct_locations();
  void look_for_loop();
  [[nodiscard]] bool is_stuck(unsigned number) const;

  static Explorer* current_;
  Sites& sites_;
  SharedMemory memory_;
  const Scenario* scenario_ = nullptr;
  Graph graph_;
  std::vector<Graph> open_;
  std::map<Promise, bool> promises_;  // whether each such store releases
  enum class Promised : uint8_t { none, relaxed, releasing } promised_ = Promised::none;
  std::vector<Thread> threads_;
  jmp_buf scheduler_{};
  int running_ = -1;
  int extends_ = -1;  // the thread that may add events
  End end_ = End::complete;
  std::string error_;
  std::string outcome_;
  std::map<uintptr_t, Location> locations_;
  std::map<uintptr_t, unsigned> constructed_;  // shared, and stored to plainly by a thread; bytes
  struct Written {
    uintptr_t address;
    size_t bytes;
  };
  std::vector<Written> written_;  // plainly by the running thread since its last operation
  uintptr_t racy_site_ = 0;
};

}  // namespace lintel::model
