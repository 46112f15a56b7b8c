// SpinLock: two threads exclude each other, and a third tries.
#include "../../../src/util/spin_lock.h"  // the real one, see include/util/spin_lock.h

#include "program.h"

namespace lintel::model {
namespace {

struct Locked {
  SpinLock lock;
  int entered = 0;
  void enter() {
    lock.lock();
    ++entered;
    lock.unlock();
  }
  void try_to_enter() {
    if (!lock.try_lock()) return;
    ++entered;
    lock.unlock();
  }
  void all_entered() { require(entered == 2 || entered == 3, "each thread entered once"); }
};

}  // namespace

Protocol spin_lock() {
  return {"SpinLock",
          {"util/spin_lock.h"},
          {share<Locked>("two threads, a third tries",
                         {&Locked::enter, &Locked::enter, &Locked::try_to_enter},
                         &Locked::all_entered)}};
}

}  // namespace lintel::model
