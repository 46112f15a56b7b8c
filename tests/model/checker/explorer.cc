#include "checker/explorer.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <utility>

#include "checker/trace.h"

namespace lintel::model {

Explorer* Explorer::current_ = nullptr;

namespace {
constexpr size_t stack_bytes = 128 << 10;
constexpr unsigned most_operations = 110;  // of one thread
constexpr unsigned most_further = 2;       // than without load buffering
constexpr uint64_t most_promised = 5'000;  // graphs with a promised store
constexpr unsigned longest_loop = 12;      // operations
constexpr unsigned most_unshared = 2000;   // accesses of one thread to what others do not use
constexpr uintptr_t futex_queue = uintptr_t{1} << 62;

std::vector<ThreadLocal>& thread_locals() {
  static std::vector<ThreadLocal> variables;
  return variables;
}
uint64_t mask_of(unsigned bytes) noexcept {
  return bytes == 8 ? ~uint64_t{0} : (uint64_t{1} << 8 * bytes) - 1;
}
uint64_t read_memory(uintptr_t address, unsigned bytes) noexcept {
  uint64_t value = 0;
  std::memcpy(&value, reinterpret_cast<void*>(address), bytes);
  return value;
}
}  // namespace

void keep_per_thread(ThreadLocal variable) {
  Explorer::current()->in_model = false;
  thread_locals().push_back(variable);
  Explorer::current()->in_model = true;
}
void* allocate(size_t bytes) { return Explorer::current()->allocate(bytes); }
void outcome(const std::string& text) {
  Explorer::current()->in_model = false;
  Explorer::current()->add_outcome(text);
  Explorer::current()->in_model = true;
}
void require(bool condition, const char* what) {
  if (condition) return;
  Explorer::current()->in_model = false;
  Explorer::current()->fail(what);
  Explorer::current()->in_model = true;
}

Result Explorer::run(const Scenario& scenario, bool buffers_loads, uint64_t limit) {
  const auto start = std::chrono::steady_clock::now();
  current_ = this;
  scenario_ = &scenario;
  locations_.clear();
  constructed_.clear();
  threads_.resize(scenario.threads.size());
  for (Thread& thread : threads_) {
    thread.stack.resize(stack_bytes);
    thread.longest = 0;
    getcontext(&thread.context);
  }
  Result result;
  // Until no location proves to be shared that was not taken for shared.
  for (bool done = false; !done;) {
    result = {};
    promises_.clear();
    for (const Promised promised : {Promised::none, Promised::relaxed, Promised::releasing}) {
      promised_ = promised;
      done = explore(scenario, limit, result);
      if (!done || !result.error.empty() || !buffers_loads) break;
    }
  }
  current_ = nullptr;
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

// False: has to begin anew.
bool Explorer::explore(const Scenario& scenario, uint64_t limit, Result& result) {
  open_.assign(1, Graph());
  while (!open_.empty()) {
    graph_ = std::move(open_.back());
    open_.pop_back();
    if (graph_.has_promise() && ++result.promised > most_promised) {
      result.is_cut_short = true;
      return true;
    }
    switch (execute(scenario)) {
      case End::complete:
        ++(graph_.has_promise() ? result.buffered : result.executions);
        result.outcomes.insert(outcome_);
        if (graph_.has_promise()) break;
        note_promises();
        for (Thread& thread : threads_) thread.longest = std::max(thread.longest, thread.executed);
        break;
      case End::blocked:
        ++result.blocked;
        break;
      case End::cut:
        ++result.cut;
        break;
      case End::abandoned:
        break;
      case End::restart:
        return false;
      case End::failed:
        result.error = error_;
        sites_.name_all(racy_site_);
        result.trace = trace_of(graph_, sites_);
        if (racy_site_ != 0) result.trace += "  race at " + sites_.line_of(racy_site_) + "\n";
        return true;
    }
    if (result.executions + result.buffered + result.blocked + result.cut >= limit) {
      result.error = "too many executions";
      break;
    }
  }
  return true;
}

void Explorer::start_thread() { current_->enter_thread(); }

void Explorer::enter_thread() {
  in_model = true;
  scenario_->threads[static_cast<size_t>(running_)]();
  in_model = false;
  construct_locations();
  pause(State::ended);
}

void Explorer::exchange_locals(Thread& thread, bool enters) noexcept {
  std::byte* locals = thread.locals.data();
  for (const ThreadLocal& variable : thread_locals()) {
    std::memcpy(enters ? variable.start : locals, enters ? locals : variable.start, variable.bytes);
    locals += variable.bytes;
  }
}

void Explorer::switch_to(int thread) {
  Thread& next = threads_[static_cast<size_t>(thread)];
  running_ = thread;
  exchange_locals(next, true);
  // Much faster than swapcontext(), which changes the signal mask.
  if (_setjmp(scheduler_) == 0) {
    if (next.has_started) _longjmp(next.jump, 1);
    next.has_started = true;
    setcontext(&next.context);
  }
  exchange_locals(threads_[static_cast<size_t>(running_)], false);
  running_ = -1;
}

void Explorer::pause(State state) {
  Thread& thread = threads_[static_cast<size_t>(running_)];
  thread.state = state;
  if (_setjmp(thread.jump) == 0) _longjmp(scheduler_, 1);
}

void Explorer::end_execution(End end) {
  end_ = end;
  pause(State::ended);
  __builtin_unreachable();
}

void Explorer::fail(const std::string& what) {
  if (error_.empty()) error_ = what;
  // The promise must still be kept.
  if (in_thread() && graph_.has_promise()) {
    written_.clear();
    pause(State::ended);
  }
  if (in_thread()) end_execution(End::failed);
  end_ = End::failed;
}

// What follows a data race may differ.
void Explorer::fail_replay() {
  if (!error_.empty()) end_execution(End::abandoned);
  error_ = "the model is not deterministic";
  end_execution(End::failed);
}

Explorer::End Explorer::execute(const Scenario& scenario) {
  memory_.reset();
  thread_locals().clear();
  outcome_.clear();
  error_.clear();
  racy_site_ = 0;
  written_.clear();
  running_ = extends_ = -1;
  end_ = End::complete;
  in_model = true;
  scenario.set_up();
  in_model = false;
  size_t bytes_of_locals = 0;
  for (const ThreadLocal& variable : thread_locals()) bytes_of_locals += variable.bytes;
  for (Thread& thread : threads_) {
    thread.state = State::ready;
    thread.executed = thread.window = thread.unshared = thread.plain_stores = 0;
    thread.locals.assign(bytes_of_locals, std::byte{0});
    thread.has_started = false;
    thread.context.uc_stack.ss_sp = thread.stack.data();
    thread.context.uc_stack.ss_size = thread.stack.size();
    thread.context.uc_link = nullptr;
    makecontext(&thread.context, &Explorer::start_thread, 0);
  }
  const int count = static_cast<int>(threads_.size());
  // What is in the graph already.
  for (bool moved = true; moved;) {
    moved = false;
    for (int i = 0; i < count; ++i) {
      Thread& thread = threads_[static_cast<size_t>(i)];
      const bool goes_on = thread.state == State::ready ||
                           (thread.state == State::waits && has_executed(thread.awaited));
      if (!goes_on) continue;
      switch_to(i);
      if (end_ != End::complete) return end_;
      moved = true;
    }
  }
  // New events. A read-modify-write operation that has loaded stores first.
  for (;;) {
    extends_ = -1;
    for (int i = count - 1; i >= 0; --i)
      if (threads_[static_cast<size_t>(i)].state == State::pending) extends_ = i;
    for (int i = 0; i < count; ++i)
      if (const Thread& thread = threads_[static_cast<size_t>(i)];
          thread.state == State::pending && thread.completes_exchange)
        extends_ = i;
    if (extends_ < 0) break;
    switch_to(extends_);
    if (end_ != End::complete) return end_;
  }
  if (promised_ != Promised::none) {
    if (!graph_.has_promise()) promise_stores();
    if (!graph_.is_promise_kept()) return End::abandoned;
    if (!error_.empty()) return End::failed;
  }
  bool blocked = false;
  bool stuck = true;
  for (unsigned i = 0; i < threads_.size(); ++i) {
    if (threads_[i].state == State::ended) continue;
    blocked = true;
    stuck &= is_stuck(i);
  }
  if (blocked) {
    if (!stuck) return End::blocked;
    fail("a thread waits for ever");
    return end_;
  }
  for (const auto& [address, location] : locations_)
    if (const EventId last = graph_.last_store(location.number);
        location.is_shared() && last != initial && address < futex_queue)
      store_in_memory(address, location.bytes, graph_.at(last).value);
  in_model = true;
  if (scenario.finish) scenario.finish();
  in_model = false;
  return end_;
}

bool Explorer::has_executed(EventId id) const noexcept {
  const Event& event = graph_.at(id);
  return event.thread == promised_thread || event.index < threads_[event.thread].executed;
}

bool Explorer::is_stuck(unsigned number) const {
  const Thread& thread = threads_[number];
  for (unsigned i = thread.executed - thread.window; i < thread.executed; ++i) {
    const Event& load = graph_.at(graph_.id_of(number, i));
    if (load.kind != Kind::load) continue;
    const EventId last = graph_.last_store(load.location);
    if (last == initial || last == load.from) continue;
    // The last one of a loop that changes nothing is its own.
    const Event& store = graph_.at(last);
    if (store.thread != number || store.index + thread.window < thread.executed) return false;
  }
  return true;
}

void Explorer::store_in_memory(uintptr_t address, unsigned bytes, uint64_t value) noexcept {
  std::memcpy(reinterpret_cast<void*>(address), &value, bytes);
}

// --- Operations of threads

Explorer::Location& Explorer::location_of(const Access& access, bool reads, bool writes) {
  const auto [found, is_new] = locations_.try_emplace(access.address);
  Location& location = found->second;
  if (is_new) {
    location.number = static_cast<uint16_t>(locations_.size() - 1);
    location.bytes = access.bytes;
    if (access.address < futex_queue) {
      const bool whole =
          access.address % 8 == 0 && memory_.owns(reinterpret_cast<void*>(access.address));
      location.first_value = read_memory(access.address, whole ? 8 : access.bytes);
    }
  }
  location.bytes = std::max(location.bytes, access.bytes);
  if (access.address < futex_queue && memory_.was_written(access.address) &&
      !constructed_.contains(access.address)) {
    constructed_[access.address] = access.bytes;
    end_execution(End::restart);
  }
  const bool was_shared = location.is_shared();
  const auto bit = static_cast<uint8_t>(1u << running_);
  if (reads) location.readers |= bit;
  if (writes) location.writers |= bit;
  // A loop may wait for a thread that has not run yet.
  if (reads && !location.is_shared() &&
      ++threads_[static_cast<size_t>(running_)].unshared >= most_unshared)
    location.awaited = true;
  if (location.is_shared() && !was_shared && !is_new) end_execution(End::restart);
  return location;
}

void Explorer::await_turn(bool completes_exchange) {
  if (extends_ != running_) {
    threads_[static_cast<size_t>(running_)].completes_exchange = completes_exchange;
    pause(State::pending);
  }
  Thread& thread = threads_[static_cast<size_t>(running_)];
  // A promise that is not kept may lock a lock for ever.
  if (graph_.has_promise() && thread.executed >= thread.longest + most_further)
    end_execution(End::abandoned);
  if (graph_.events().size() >= most_events || thread.executed >= most_operations)
    end_execution(End::cut);
}

const Event* Explorer::repeated(const Event& event) {
  const Thread& thread = threads_[static_cast<size_t>(running_)];
  const auto number = static_cast<unsigned>(running_);
  if (thread.executed >= graph_.length(number)) return nullptr;
  const Event& found = graph_.at(graph_.id_of(number, thread.executed));
  if (found.kind != event.kind || found.site != event.site ||
      (found.kind != Kind::fence && found.location != event.location))
    fail_replay();
  return &found;
}

void Explorer::complete_step() noexcept {
  Thread& thread = threads_[static_cast<size_t>(running_)];
  thread.stores_before[thread.executed++] = thread.plain_stores;
}

uint64_t Explorer::step_load(Event event) {
  const auto number = static_cast<unsigned>(running_);
  Thread& thread = threads_[number];
  event.kind = Kind::load;
  event.thread = static_cast<uint8_t>(number);
  if (const Event* found = repeated(event); found != nullptr) {
    while (found->from != initial && !has_executed(found->from)) {
      thread.awaited = found->from;
      pause(State::waits);
      // The graph does not change meanwhile.
    }
  } else {
    await_turn(false);
    std::vector<Event> candidates;
    for (const EventId source : graph_.sources(event)) {
      event.from = source;
      const uint64_t value = source == initial ? event.value : graph_.at(source).value;
      Event candidate = event;
      Graph::settle(candidate, value & event.mask);
      graph_.add(candidate);
      if (graph_.has_total_order()) candidates.push_back(candidate);
      graph_.remove_last();
    }
    if (candidates.empty()) end_execution(End::abandoned);
    for (size_t i = candidates.size(); --i > 0;) {
      open_.push_back(graph_);
      open_.back().add(candidates[i]);
    }
    graph_.add(candidates.front());
  }
  const uint64_t value = graph_.at(graph_.id_of(number, thread.executed)).value;
  complete_step();
  return value;
}

void Explorer::step_store(Event event) {
  const auto number = static_cast<unsigned>(running_);
  event.kind = Kind::store;
  event.thread = static_cast<uint8_t>(number);
  if (const Event* found = repeated(event); found != nullptr) {
    if (found->value != event.value) fail_replay();
  } else {
    await_turn(event.exclusive);
    if (Graph graph = graph_; graph.fulfil(event)) open_.push_back(std::move(graph));
    for (size_t i = 0; i < graph_.events().size(); ++i) {
      const Event& load = graph_.events()[i];
      if (load.kind != Kind::load || load.location != event.location || load.thread == number)
        continue;
      const auto id = static_cast<EventId>(i);
      const std::optional<Graph> without = graph_.without_followers(id, event);
      if (!without) continue;
      for (const unsigned place : without->places(event)) {
        Graph graph = *without;
        graph.add_store(event, place);
        if (graph.redirect(id)) open_.push_back(std::move(graph));
      }
    }
    std::optional<Graph> first;
    for (const unsigned place : graph_.places(event)) {
      Graph graph = graph_;
      graph.add_store(event, place);
      if (!graph.has_total_order()) continue;
      if (first) {
        open_.push_back(std::move(graph));
      } else {
        first = std::move(graph);
      }
    }
    if (!first) end_execution(End::abandoned);
    graph_ = std::move(*first);
  }
  complete_step();
}

// Stores of a complete execution. A thread that has loaded nothing before buffers no load.
void Explorer::note_promises() {
  for (const auto& [address, location] : locations_) {
    if (address >= futex_queue) continue;
    for (const Event& store : graph_.events()) {
      if (store.kind != Kind::store || store.location != location.number || store.site == 0)
        continue;
      const bool has_loaded = std::ranges::any_of(graph_.events(), [&](const Event& load) {
        return load.kind == Kind::load && load.thread == store.thread && load.index < store.index;
      });
      if (!has_loaded) continue;
      const bool releases = store.message != Clock{};
      const Promise promise{store.location, store.value, store.thread};
      promises_.try_emplace(promise, releases).first->second &= releases;
    }
  }
}

// As step_store(). Also loads that the promise does not survive read it: a later store may let them
// read something else.
void Explorer::promise_stores() {
  for (const auto& [promise, releases] : promises_) {
    if (releases != (promised_ == Promised::releasing)) continue;
    Event store;
    store.kind = Kind::store;
    store.location = promise.location;
    store.value = promise.value;
    store.thread = promised_thread;
    for (size_t i = 0; i < graph_.events().size(); ++i) {
      const Event& load = graph_.events()[i];
      if (load.kind != Kind::load || load.location != promise.location) continue;
      const auto id = static_cast<EventId>(i);
      const std::optional<Graph> without = graph_.without_followers(id, store);
      if (!without) continue;
      for (const unsigned place : without->places(store)) {
        Graph graph = *without;
        graph.promise(store, place, promise.thread);
        if (graph.redirect(id)) open_.push_back(std::move(graph));
      }
    }
  }
}

void Explorer::fence(Order order, uintptr_t site) {
  construct_locations();
  Event event;
  event.thread = static_cast<uint8_t>(running_);
  event.order = order;
  event.site = site;
  if (repeated(event) == nullptr) {
    await_turn(false);
    graph_.add(event);
  }
  complete_step();
}

// Blocks a thread whose last operations repeat those before them, all without effect: they only
// loaded; or what they stored to has the value again that they had loaded there, this was the
// thread's own, so that nobody took a lock meanwhile, and they stored nothing plainly.
void Explorer::look_for_loop() {
  const auto number = static_cast<unsigned>(running_);
  Thread& thread = threads_[number];
  const auto event = [&](unsigned index) -> const Event& {
    return graph_.at(graph_.id_of(number, index));
  };
  const auto repeats = [&](unsigned length) {
    const unsigned start = thread.executed - length;
    for (unsigned i = start; i < thread.executed; ++i) {
      const Event& now = event(i);
      const Event& before = event(i - length);
      if (now.kind != before.kind || now.site != before.site) return false;
      if (now.kind == Kind::fence) continue;
      if (now.location != before.location || now.value != before.value) return false;
      unsigned first_load = thread.executed;
      const Event* last_store = nullptr;
      for (unsigned j = thread.executed; j-- > start;) {
        const Event& other = event(j);
        if (other.kind == Kind::fence || other.location != now.location) continue;
        if (other.kind == Kind::load) first_load = j;
        if (other.kind == Kind::store && last_store == nullptr) last_store = &other;
      }
      if (last_store == nullptr) {
        if (now.from != before.from) return false;
        continue;
      }
      if (first_load == thread.executed || event(first_load).value != last_store->value ||
          thread.stores_before[start - length] != thread.plain_stores)
        return false;
      const EventId from = event(first_load).from;
      if (from == initial || graph_.at(from).thread != number) return false;
    }
    return true;
  };
  for (unsigned length = 1; length <= longest_loop && 2 * length <= thread.executed; ++length) {
    if (!repeats(length)) continue;
    thread.window = length;
    pause(State::blocked);
  }
}

uint64_t Explorer::load(const Access& access, Order order) {
  construct_locations();
  const Location& location = location_of(access, true, false);
  note(access, SharedMemory::Use::atomic_read);
  if (!location.is_shared()) return read_memory(access.address, access.bytes);
  Event event = event_of(access, location);
  event.order = order;
  const uint64_t value = step_load(event);
  look_for_loop();
  return value;
}

void Explorer::store(const Access& access, Order order, uint64_t value) {
  construct_locations();
  const Location& location = location_of(access, false, true);
  note(access, SharedMemory::Use::atomic_write);
  const bool shared = location.is_shared();
  if (shared) {
    Event event = event_of(access, location);
    event.order = order;
    event.value = value & mask_of(access.bytes);
    step_store(event);
  }
  store_in_memory(access.address, access.bytes, value);
  if (shared) look_for_loop();
}

uint64_t Explorer::exchange(const Access& access, const Exchange& exchange,
                            const std::function<uint64_t(uint64_t)>& compute) {
  construct_locations();
  const Location& location = location_of(access, true, true);
  const bool in_memory = access.address < futex_queue;
  if (in_memory) note(access, SharedMemory::Use::atomic_write);
  const auto succeeds = [&](uint64_t value) {
    return exchange.always || value == exchange.expected;
  };
  uint64_t value;
  if (location.is_shared() || !in_memory) {
    Event event = event_of(access, location);
    event.exchanges = true;
    event.exchange = exchange;
    value = step_load(event);
    if (succeeds(value)) {
      event.exchanges = false;
      event.exclusive = true;
      event.order = exchange.success;
      event.value = compute(value) & mask_of(access.bytes);
      step_store(event);
    }
    look_for_loop();
  } else {
    value = read_memory(access.address, access.bytes);
  }
  if (in_memory && succeeds(value)) store_in_memory(access.address, access.bytes, compute(value));
  return value;
}

void Explorer::await_exchange(const Access& access, const Exchange& exchange, uint64_t value) {
  if (this->exchange(access, exchange, [=](uint64_t) { return value; }) == exchange.expected)
    return;
  threads_[static_cast<size_t>(running_)].window = 1;
  pause(State::blocked);
}

Event Explorer::event_of(const Access& access, const Location& location) const noexcept {
  Event event;
  event.location = location.number;
  event.value = location.first_value;
  event.mask = mask_of(access.bytes);
  event.site = access.site;
  return event;
}

void Explorer::note(const Access& access, SharedMemory::Use use) {
  const void* const start = reinterpret_cast<void*>(access.address);
  if (!memory_.owns(start)) return;
  const auto number = static_cast<unsigned>(running_);
  const unsigned executed = threads_[number].executed;
  const Clock clock =
      executed == 0 ? Clock{} : graph_.at(graph_.id_of(number, executed - 1)).before;
  if (memory_.use(access.address, access.bytes, use, number, clock, executed)) {
    if (racy_site_ == 0) racy_site_ = access.site;
    fail("data race");
  }
}

void Explorer::plain(uintptr_t address, size_t bytes, bool writes, uintptr_t site) {
  const Access access{address, static_cast<unsigned>(bytes), site};
  if (!memory_.owns(reinterpret_cast<void*>(address))) return;
  note(access, writes ? SharedMemory::Use::write : SharedMemory::Use::read);
  if (!writes) return;
  written_.push_back({address, bytes});
  ++threads_[static_cast<size_t>(running_)].plain_stores;
}

// Plain stores to what other threads use as atomic variables, such as by a constructor.
void Explorer::construct_locations() {
  if (written_.empty()) return;
  const std::vector<Written> written = std::exchange(written_, {});
  for (const Written& range : written)
    for (auto next = constructed_.lower_bound(range.address);
         next != constructed_.end() && next->first < range.address + range.bytes; ++next) {
      const Access access{next->first, next->second, 0};
      const uint64_t value = read_memory(access.address, access.bytes);
      const Location& location = location_of(access, false, true);
      if (!location.is_shared()) continue;
      Event event = event_of(access, location);
      event.value = value;
      step_store(event);
    }
}

// A queue is a counter of wake-ups, changed under the lock of the kernel.
void Explorer::futex_wait(const Access& word, uint64_t expected) {
  const Access queue{word.address | futex_queue, 8, word.site};
  const Exchange locked{true, 0, Order::acq_rel, Order::acq_rel};
  const uint64_t seen = exchange(queue, locked, [](uint64_t value) { return value; });
  if (load({word.address, 4, word.site + 1}, Order::relaxed) != expected) return;
  Event event = event_of({queue.address, 8, word.site + 2}, location_of(queue, true, false));
  if (step_load(event) != seen) return;
  threads_[static_cast<size_t>(running_)].window = 1;
  pause(State::blocked);
}

void Explorer::futex_wake(const Access& word) {
  exchange({word.address | futex_queue, 8, word.site}, {true, 0, Order::acq_rel, Order::acq_rel},
           [](uint64_t value) { return value + 1; });
}

}  // namespace lintel::model
