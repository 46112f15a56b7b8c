// A triggered operation: a call that waits until a counter reaches a threshold (spec 3.16).
// Message path. Objects live in an Arena of the interface; no constructor runs when one is reused.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/request.h"
#include "portals4.h"

namespace lintel {

class CountingEvent;

enum class TriggeredKind : uint8_t {
  movement,  // put, get, atomic, fetch_atomic, swap: the header of the request says which
  ct_inc,
  ct_set,
  me_append,
  me_unlink,
};

// ct_inc, ct_set. The counter executes these itself.
struct TriggeredCount {
  CountingEvent* target;
  ptl_size_t success;
  ptl_size_t failure;
};

// me_append, me_unlink (extensions). The handle exists from the call on.
struct TriggeredEntry {
  ptl_handle_me_t handle;
  ptl_pt_index_t pt_index;
  ptl_list_t list;
  void* user_ptr;
  const ptl_me_t* description;  // the application's, read when the append is due
  ptl_handle_ct_t failures;     // counts a failed append, or PTL_CT_NONE
};

struct alignas(64) TriggeredOperation {
  // Links this operation in whatever list holds it: ascending list, heap siblings, ready list.
  TriggeredOperation* next = nullptr;
  uint64_t threshold = 0;
  uint64_t posting = 0;                // order among equal thresholds; set by TriggerQueue::push()
  std::atomic<uint32_t> next_free{0};  // belongs to the Arena
  TriggeredKind kind = TriggeredKind::movement;
  // ct_inc, ct_set: the generation of the target when the operation was created. If the
  // target has been freed since, the operation has no effect.
  uint32_t target_generation = 0;

  union {
    TriggeredCount count;
    Request request;  // put, get, atomic, fetch_atomic, swap
    TriggeredEntry entry;
  };

  TriggeredOperation* child = nullptr;  // first child in the heap

  TriggeredOperation() noexcept : count{nullptr, 0, 0} {}
};
static_assert(offsetof(TriggeredOperation, count) + sizeof(TriggeredCount) <= 64,
              "a triggered increment touches one cache line of its operation");
static_assert(sizeof(TriggeredOperation) <= 256);

// Functions of the core that a counter calls.
class TriggerExecutor {
 public:
  // Runs a fired operation of any kind but ct_inc and ct_set, and gives it back to its pool, now or
  // later. Called without any lock of the counter held, one at a time per counter; may change
  // counters, whose operations then run after this call has returned to the counter.
  virtual void execute(TriggeredOperation& operation) noexcept = 0;

  // Gives back an executed ct_inc or ct_set.
  virtual void release(TriggeredOperation& operation) noexcept = 0;

  // Gives back several at once, linked by `next` from `first` to `last`, where the pool has a
  // cheaper way than one by one.
  virtual void release_chain(TriggeredOperation& first, TriggeredOperation& last) noexcept;

 protected:
  ~TriggerExecutor() = default;
};

}  // namespace lintel
