// Arena: an object has one holder at a time, who sees what the previous one did. Live handles: a
// handle names one life of an object.
#include "util/arena.h"

#include "core/events/live_handle.h"
#include "program.h"

namespace lintel::model {
namespace {

struct Object {
  std::atomic<uint32_t> next_free{0};
  LiveHandle handle;
  int value = 1;
};

template <uint32_t capacity, uint32_t used>
struct Pool {
  Arena<Object> arena;
  Pool() {
    require(arena.open(capacity), "memory");
    uint32_t index[capacity + 1];
    for (uint32_t i = 0; i < used; ++i) index[i] = arena.allocate();
    for (uint32_t i = 0; i < used; ++i) arena.release(index[i]);
  }
  // Holders write to the object.
  void use_once() {
    const uint32_t index = arena.allocate();
    if (index == arena.no_index) return;
    Object& object = arena.at(index);
    require(object.value == 1, "the object is free");
    object.value = 2;
    object.value = 1;
    arena.release(index);
  }
  // Takes two, gives back the first while it holds the second: for the tag against ABA.
  void use_two() {
    const uint32_t first = arena.allocate();
    const uint32_t second = arena.allocate();
    if (first != arena.no_index) {
      require(first != second, "an object has one holder");
      arena.at(first).value = 2;
      arena.at(first).value = 1;
      arena.release(first);
    }
    if (second == arena.no_index) return;
    require(arena.at(second).value == 1, "the object is free");
    arena.at(second).value = 2;
    arena.at(second).value = 1;
    arena.release(second);
  }
  void all_free() {
    bool taken[capacity]{};
    for (uint32_t i = 0; i < capacity; ++i) {
      const uint32_t index = arena.allocate();
      require(index < capacity && !taken[index], "each object is free once");
      taken[index] = true;
    }
  }
  // Any index that was ever handed out names a constructed object.
  void look() {
    if (arena.contains(0)) require(!arena.at(0).handle.is(1), "the object is constructed");
  }
  void grow_only() { static_cast<void>(arena.allocate()); }
};

// The poller gives memory back while another thread releases the object that used it last.
struct Trimmed {
  Arena<Object> arena;
  uint32_t held = 0;
  Trimmed() {
    require(arena.open(2), "memory");
    const uint32_t other = arena.allocate();
    arena.release(arena.allocate());
    held = arena.allocate();
    arena.release(other);
  }
  void release() {
    arena.at(held).value = 1;
    arena.release(held);
  }
  void trim() { arena.trim(); }
  void trim_and_use() {
    trim();
    use_once();
  }
  void use_once() {
    const uint32_t index = arena.allocate();
    if (index == arena.no_index) return;
    require(arena.at(index).value == 1, "the object is free");
    arena.at(index).value = 2;
    arena.at(index).value = 1;
    arena.release(index);
  }
  void all_free() {
    require(arena.allocate() + arena.allocate() == 1, "each object is free once");
    require(arena.allocate() == arena.no_index, "there are no more");
  }
};

// Threads that come one after the other, without an order by that.
struct InTurn : Pool<1, 0> {
  std::atomic<uint32_t> turn{0};
  template <uint32_t number, typename Action>
  void act(const Action& action) {
    while (turn.load(std::memory_order_relaxed) != number) {
    }
    action();
    turn.store(number + 1, std::memory_order_relaxed);
  }
  template <uint32_t number>
  void allocate() {
    act<number>([this] { static_cast<void>(arena.allocate()); });
  }
  void trim() {
    act<0>([this] {
      const uint32_t index = arena.allocate();
      // By load buffering, the other thread may have taken it.
      if (index != arena.no_index) arena.release(index);
      arena.trim();
    });
  }
  void allocate_after_trim() {
    act<1>([this] { require(arena.allocate() == 0, "the object is free"); });
  }
};

// An object is made, ended and made again. Who holds its first handle sees its first life, or that
// it has ended.
struct Lives {
  Arena<Object> arena;
  std::atomic<uint64_t> published{0};
  Lives() { require(arena.open(2), "memory"); }
  void make() {
    const uint32_t index = arena.allocate();
    Object& object = arena.at(index);
    object.value = 7;
    published.store(object.handle.begin(index), std::memory_order_relaxed);
  }
  void use() {
    const uint64_t handle = published.load(std::memory_order_relaxed);
    if (handle == 0) return;
    if (!arena.contains(0) || !arena.at(0).handle.is(handle)) return;
    require(arena.at(0).value == 7, "the object is made");
  }
  // Two threads end the same life; one of them succeeds and has the object for itself.
  void end() {
    const uint64_t handle = published.load(std::memory_order_relaxed);
    if (handle == 0 || !arena.contains(0) || !arena.at(0).handle.end(handle)) return;
    require(arena.at(0).value == 7, "the object was made");
    arena.at(0).value = 0;
    arena.release(0);
  }
};

}  // namespace

Protocol arena() {
  using Fresh = Pool<2, 0>;
  using Used = Pool<3, 3>;
  using One = Pool<1, 1>;
  return {"Arena, LiveHandle",
          {"util/arena.h", "core/events/live_handle.h"},
          {share<Fresh>("fresh objects", {&Fresh::use_once, &Fresh::use_once}),
           share<Fresh>("construction", {&Fresh::look, &Fresh::grow_only}),
           share<One>("one object", {&One::use_once, &One::use_once, &One::use_once}),
           share<Used>("stale head", {&Used::use_once, &Used::use_two}, &Used::all_free),
           share<InTurn>("no more fresh objects",
                         {&InTurn::allocate<0>, &InTurn::allocate<1>, &InTurn::allocate<2>}),
           share<Trimmed>("trimmed, released", {&Trimmed::trim_and_use, &Trimmed::release},
                          &Trimmed::all_free),
           share<Trimmed>("trimmed, used", {&Trimmed::trim, &Trimmed::use_once}),
           share<InTurn>("trimmed, used later", {&InTurn::trim, &InTurn::allocate_after_trim}),
           share<Lives>("handles", {&Lives::make, &Lives::use}),
           share<Lives>("ends", {&Lives::make, &Lives::end, &Lives::end})}};
}

}  // namespace lintel::model
