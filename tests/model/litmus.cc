// The checker proves itself: known small programs and all their outcomes, with and without each
// fence and order.
#include <atomic>
#include <set>
#include <string>

#include "program.h"

namespace lintel::model {
namespace {

using std::memory_order_acq_rel;
using std::memory_order_acquire;
using std::memory_order_relaxed;
using std::memory_order_release;
using std::memory_order_seq_cst;
using Outcomes = std::set<std::string>;

enum class Between : uint8_t { nothing, acquire, release, acq_rel, seq_cst, light, heavy };
template <Between kind>
inline void fence() {
  if constexpr (kind == Between::acquire) std::atomic_thread_fence(memory_order_acquire);
  if constexpr (kind == Between::release) std::atomic_thread_fence(memory_order_release);
  if constexpr (kind == Between::acq_rel) std::atomic_thread_fence(memory_order_acq_rel);
  if constexpr (kind == Between::seq_cst) std::atomic_thread_fence(memory_order_seq_cst);
  if constexpr (kind == Between::light) std::atomic_signal_fence(memory_order_seq_cst);
  if constexpr (kind == Between::heavy) membarrier();
}

struct Variables {
  std::atomic<int> x{0};
  std::atomic<int> y{0};
  int data = 0;
  int results[4] = {-1, -1, -1, -1};
  void show(unsigned count) {
    std::string text;
    for (unsigned i = 0; i < count; ++i) text += std::to_string(results[i]);
    outcome(text);
  }
  void show2() { show(2); }
  void show3() { show(3); }
  void show4() { show(4); }
};

template <std::memory_order store, std::memory_order load, Between first, Between second>
struct StoreBuffering : Variables {
  void left() {
    x.store(1, store);
    fence<first>();
    results[0] = y.load(load);
  }
  void right() {
    y.store(1, store);
    fence<second>();
    results[1] = x.load(load);
  }
};
template <std::memory_order store = memory_order_relaxed,
          std::memory_order load = memory_order_relaxed, Between first = Between::nothing,
          Between second = first>
void store_buffering(Litmus& litmus, const char* name, const Outcomes& expected) {
  using State = StoreBuffering<store, load, first, second>;
  litmus.expect(share<State>(name, {&State::left, &State::right}, &State::show2), expected);
}

template <std::memory_order store, std::memory_order load, Between first, Between second>
struct MessagePassing : Variables {
  void sender() {
    x.store(1, memory_order_relaxed);
    fence<first>();
    y.store(1, store);
  }
  void receiver() {
    results[0] = y.load(load);
    fence<second>();
    results[1] = x.load(memory_order_relaxed);
  }
};
template <std::memory_order store = memory_order_relaxed,
          std::memory_order load = memory_order_relaxed, Between first = Between::nothing,
          Between second = Between::nothing>
void message_passing(Litmus& litmus, const char* name, const Outcomes& expected) {
  using State = MessagePassing<store, load, first, second>;
  litmus.expect(share<State>(name, {&State::sender, &State::receiver}, &State::show2), expected);
}

template <std::memory_order store, std::memory_order load, Between between>
struct Iriw : Variables {
  void first() { x.store(1, store); }
  void second() { y.store(1, store); }
  void third() {
    results[0] = x.load(load);
    fence<between>();
    results[1] = y.load(load);
  }
  void fourth() {
    results[2] = y.load(load);
    fence<between>();
    results[3] = x.load(load);
  }
};
// Whether the two readers may see the stores in different orders.
template <std::memory_order store, std::memory_order load, Between between = Between::nothing>
void iriw(Litmus& litmus, const char* name, bool differ) {
  using State = Iriw<store, load, between>;
  Outcomes expected;
  for (unsigned i = 0; i < 16; ++i) {
    std::string text;
    for (unsigned bit : {8u, 4u, 2u, 1u}) text += (i & bit) != 0 ? '1' : '0';
    if (differ || text != "1010") expected.insert(text);
  }
  litmus.expect(share<State>(name, {&State::first, &State::second, &State::third, &State::fourth},
                             &State::show4),
                expected);
}

template <std::memory_order store, Between between>
struct TwoPlusTwoWrites : Variables {
  void left() {
    x.store(1, store);
    fence<between>();
    y.store(2, store);
  }
  void right() {
    y.store(1, store);
    fence<between>();
    x.store(2, store);
  }
  void show() { outcome(std::to_string(x.load()) + std::to_string(y.load())); }
};
template <std::memory_order store, Between between = Between::nothing>
void two_plus_two_writes(Litmus& litmus, const char* name, bool both_first) {
  using State = TwoPlusTwoWrites<store, between>;
  Outcomes expected{"12", "21", "22"};
  if (both_first) expected.insert("11");
  litmus.expect(share<State>(name, {&State::left, &State::right}, &State::show), expected);
}

struct ReadCoherence : Variables {
  void writer() {
    x.store(1, memory_order_relaxed);
    x.store(2, memory_order_relaxed);
  }
  void reader() {
    results[0] = x.load(memory_order_relaxed);
    results[1] = x.load(memory_order_relaxed);
  }
};

template <std::memory_order load, std::memory_order store, Between first, Between second>
struct LoadBuffering : Variables {
  void left() {
    results[0] = x.load(load);
    fence<first>();
    y.store(1, store);
  }
  void right() {
    results[1] = y.load(load);
    fence<second>();
    x.store(1, store);
  }
};
template <std::memory_order load = memory_order_relaxed,
          std::memory_order store = memory_order_relaxed, Between first = Between::nothing,
          Between second = first>
void load_buffering(Litmus& litmus, const char* name, bool allowed) {
  using State = LoadBuffering<load, store, first, second>;
  Outcomes expected{"00", "01", "10"};
  if (allowed) expected.insert("11");
  litmus.expect(share<State>(name, {&State::left, &State::right}, &State::show2), expected);
}

// The right thread stores whatever it loads; the left one depends on what it loads, in one of two
// ways. With both, the right one depends as well: then nothing may come out of thin air.
template <bool branches, bool both>
struct Dependency : Variables {
  void copy(const std::atomic<int>& from, std::atomic<int>& to, int& result) {
    result = from.load(memory_order_relaxed);
    if (!branches) to.store(result, memory_order_relaxed);
    if (branches && result == 1) to.store(1, memory_order_relaxed);
  }
  void left() { copy(x, y, results[0]); }
  void right() {
    if (both) return copy(y, x, results[1]);
    results[1] = y.load(memory_order_relaxed);
    x.store(1, memory_order_relaxed);
  }
};
template <bool branches, bool both>
void dependency(Litmus& litmus, const char* name, const Outcomes& expected) {
  using State = Dependency<branches, both>;
  litmus.expect(share<State>(name, {&State::left, &State::right}, &State::show2), expected);
}

// Through a third thread.
template <std::memory_order load, std::memory_order store>
struct LongLoadBuffering : Variables {
  std::atomic<int> z{0};
  void pass(const std::atomic<int>& from, std::atomic<int>& to, int& result) {
    result = from.load(load);
    to.store(1, store);
  }
  void first() { pass(x, y, results[0]); }
  void second() { pass(y, z, results[1]); }
  void third() { pass(z, x, results[2]); }
};
template <std::memory_order load, std::memory_order store>
void long_load_buffering(Litmus& litmus, const char* name, bool allowed) {
  using State = LongLoadBuffering<load, store>;
  Outcomes expected{"000", "001", "010", "011", "100", "101", "110"};
  if (allowed) expected.insert("111");
  litmus.expect(share<State>(name, {&State::first, &State::second, &State::third}, &State::show3),
                expected);
}

// A read-modify-write operation stores early.
template <std::memory_order order>
struct ExchangeBuffering : Variables {
  void left() {
    results[0] = x.load(memory_order_relaxed);
    y.store(1, memory_order_relaxed);
  }
  void right() {
    results[1] = y.load(memory_order_acquire);
    x.fetch_add(1, order);
  }
};

// A store, then a read-modify-write operation (release sequence) or a store of another thread.
template <bool exchanges>
struct ReleaseSequence : Variables {
  void head() {
    data = 1;
    x.store(1, memory_order_release);
  }
  void middle() {
    if (exchanges) {
      int one = 1;
      x.compare_exchange_strong(one, 2, memory_order_relaxed, memory_order_relaxed);
    } else if (x.load(memory_order_relaxed) == 1) {
      x.store(2, memory_order_relaxed);
    }
  }
  void reader() {
    if (x.load(memory_order_acquire) == 2) results[0] = data;
  }
  void show() { show4(); }
};
// In C++20 a later store of the same thread does not continue the sequence.
struct SameThreadSequence : Variables {
  void head() {
    data = 1;
    x.store(1, memory_order_release);
    x.store(2, memory_order_relaxed);
  }
  void reader() {
    if (x.load(memory_order_acquire) == 2) results[0] = data;
  }
};

struct Additions : Variables {
  void add() { x.fetch_add(1, memory_order_relaxed); }
  void show() { outcome(std::to_string(x.load())); }
};
struct OneWinner : Variables {
  void left() { results[0] = x.exchange(1, memory_order_relaxed); }
  void right() { results[1] = x.exchange(1, memory_order_relaxed); }
};

template <std::memory_order lock, std::memory_order unlock>
struct SpinningLock : Variables {
  void enter() {
    while (x.exchange(1, lock) != 0) {
    }
    ++data;
    x.store(0, unlock);
  }
  void show() { outcome(std::to_string(data)); }
};

struct WaitsForNobody : Variables {
  void wait() {
    while (x.load(memory_order_relaxed) == 0) {
    }
  }
  void other() { y.store(1, memory_order_relaxed); }
};

template <bool looks_again, std::memory_order order>
struct Sleep : Variables {
  std::atomic<uint32_t> word{0};
  void sleeper() {
    for (;;) {
      const uint32_t seen = looks_again ? word.load(memory_order_acquire) : 0;
      if (x.load(memory_order_relaxed) != 0) return;
      wait_on(word, looks_again ? seen : word.load(memory_order_relaxed));
    }
  }
  void waker() {
    x.store(1, memory_order_relaxed);
    word.fetch_add(1, order);
    wake(word);
  }
};

}  // namespace

void run_litmus_tests(Litmus& litmus) {
  const Outcomes all{"00", "01", "10", "11"};
  const Outcomes not_both_old{"01", "10", "11"};
  constexpr auto relaxed = memory_order_relaxed;
  constexpr auto seq_cst = memory_order_seq_cst;
  store_buffering(litmus, "SB relaxed", all);
  store_buffering<memory_order_release, memory_order_acquire>(litmus, "SB release/acquire", all);
  store_buffering<seq_cst, seq_cst>(litmus, "SB seq_cst", not_both_old);
  store_buffering<seq_cst, memory_order_acquire>(litmus, "SB seq_cst/acquire", all);
  store_buffering<relaxed, relaxed, Between::seq_cst>(litmus, "SB fences", not_both_old);
  store_buffering<relaxed, relaxed, Between::acq_rel>(litmus, "SB fences acq_rel", all);
  store_buffering<relaxed, relaxed, Between::seq_cst, Between::nothing>(litmus, "SB one fence",
                                                                        all);
  store_buffering<relaxed, relaxed, Between::light, Between::heavy>(litmus, "SB light/heavy",
                                                                    not_both_old);
  store_buffering<relaxed, relaxed, Between::heavy, Between::heavy>(litmus, "SB heavy/heavy",
                                                                    not_both_old);
  store_buffering<relaxed, relaxed, Between::light, Between::light>(litmus, "SB light/light", all);
  store_buffering<relaxed, relaxed, Between::light, Between::seq_cst>(litmus, "SB light/seq_cst",
                                                                      all);
  store_buffering<relaxed, relaxed, Between::nothing, Between::heavy>(litmus, "SB nothing/heavy",
                                                                      all);
  const Outcomes ordered{"00", "01", "11"};
  message_passing(litmus, "MP relaxed", all);
  message_passing<memory_order_release, memory_order_acquire>(litmus, "MP release/acquire",
                                                              ordered);
  message_passing<memory_order_release>(litmus, "MP release/relaxed", all);
  message_passing<relaxed, memory_order_acquire>(litmus, "MP relaxed/acquire", all);
  message_passing<relaxed, relaxed, Between::release, Between::acquire>(litmus, "MP fences",
                                                                        ordered);
  message_passing<relaxed, memory_order_acquire, Between::release>(litmus, "MP fence/acquire",
                                                                   ordered);
  message_passing<memory_order_release, relaxed, Between::nothing, Between::acquire>(
      litmus, "MP release/fence", ordered);
  message_passing<relaxed, relaxed, Between::acquire, Between::release>(litmus, "MP wrong fences",
                                                                        all);
  message_passing<relaxed, relaxed, Between::release>(litmus, "MP one fence", all);
  iriw<relaxed, relaxed>(litmus, "IRIW relaxed", true);
  iriw<memory_order_release, memory_order_acquire>(litmus, "IRIW release/acquire", true);
  iriw<seq_cst, seq_cst>(litmus, "IRIW seq_cst", false);
  iriw<relaxed, relaxed, Between::seq_cst>(litmus, "IRIW fences", false);
  iriw<relaxed, relaxed, Between::acq_rel>(litmus, "IRIW fences acq_rel", true);
  two_plus_two_writes<relaxed>(litmus, "2+2W relaxed", true);
  two_plus_two_writes<memory_order_release>(litmus, "2+2W release", true);
  two_plus_two_writes<seq_cst>(litmus, "2+2W seq_cst", false);
  two_plus_two_writes<relaxed, Between::seq_cst>(litmus, "2+2W fences", false);
  litmus.expect(share<ReadCoherence>("CoRR", {&ReadCoherence::writer, &ReadCoherence::reader},
                                     &ReadCoherence::show2),
                {"00", "01", "02", "11", "12", "22"});
  load_buffering(litmus, "LB relaxed", true);
  load_buffering<memory_order_acquire>(litmus, "LB acquire", false);
  load_buffering<relaxed, memory_order_release>(litmus, "LB release", true);
  load_buffering<memory_order_acquire, memory_order_release>(litmus, "LB acquire/release", false);
  load_buffering<seq_cst, seq_cst>(litmus, "LB seq_cst", false);
  load_buffering<relaxed, relaxed, Between::acq_rel>(litmus, "LB fences", false);
  load_buffering<relaxed, relaxed, Between::acq_rel, Between::nothing>(litmus, "LB one fence",
                                                                       true);
  dependency<false, false>(litmus, "LB data", {"00", "10", "11"});
  dependency<true, false>(litmus, "LB control", {"00", "10", "11"});
  dependency<false, true>(litmus, "LB data, data", {"00"});
  dependency<true, true>(litmus, "LB control, control", {"00"});
  long_load_buffering<relaxed, relaxed>(litmus, "LB of three", true);
  long_load_buffering<memory_order_acquire, memory_order_release>(litmus, "LB of three acq/rel",
                                                                  false);
  using Relaxed = ExchangeBuffering<relaxed>;
  litmus.expect(share<Relaxed>("LB exchange", {&Relaxed::left, &Relaxed::right}, &Relaxed::show2),
                all);
  using Sequence = ReleaseSequence<true>;
  litmus.expect(
      share<Sequence>("release sequence", {&Sequence::head, &Sequence::middle, &Sequence::reader}),
      {""});
  using Broken = ReleaseSequence<false>;
  litmus.expect_error(share<Broken>("release sequence, store of another thread",
                                    {&Broken::head, &Broken::middle, &Broken::reader}),
                      "data race");
  litmus.expect_error(
      share<SameThreadSequence>("release sequence, store of the same thread",
                                {&SameThreadSequence::head, &SameThreadSequence::reader}),
      "data race");
  litmus.expect(share<Additions>("additions", {&Additions::add, &Additions::add, &Additions::add},
                                 &Additions::show),
                {"3"});
  litmus.expect(
      share<OneWinner>("exchanges", {&OneWinner::left, &OneWinner::right}, &OneWinner::show2),
      {"01", "10"});
  using Lock = SpinningLock<memory_order_acquire, memory_order_release>;
  // Not three: two that spin would exchange each other's value without end.
  litmus.expect(share<Lock>("lock", {&Lock::enter, &Lock::enter}, &Lock::show), {"2"});
  using NoAcquire = SpinningLock<relaxed, memory_order_release>;
  litmus.expect_error(share<NoAcquire>("lock, relaxed", {&NoAcquire::enter, &NoAcquire::enter}),
                      "data race");
  using NoRelease = SpinningLock<memory_order_acquire, relaxed>;
  litmus.expect_error(share<NoRelease>("unlock, relaxed", {&NoRelease::enter, &NoRelease::enter}),
                      "data race");
  litmus.expect_error(
      share<WaitsForNobody>("endless wait", {&WaitsForNobody::wait, &WaitsForNobody::other}),
      "a thread waits for ever");
  using Woken = Sleep<true, memory_order_release>;
  litmus.expect(share<Woken>("futex", {&Woken::sleeper, &Woken::waker}), {""});
  using Late = Sleep<false, memory_order_release>;
  litmus.expect_error(share<Late>("futex, value read late", {&Late::sleeper, &Late::waker}),
                      "a thread waits for ever");
  using Unordered = Sleep<true, relaxed>;
  litmus.expect_error(share<Unordered>("futex, relaxed", {&Unordered::sleeper, &Unordered::waker}),
                      "a thread waits for ever");
}

}  // namespace lintel::model
