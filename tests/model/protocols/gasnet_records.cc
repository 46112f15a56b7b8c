// RecordPool of GASNet: a record has one user at a time, who sees what the previous one did.
#include "am/records.h"
#include "program.h"

namespace lintel::model {
namespace {

using gasnet::RecordPool;
using gasnet::SendRecord;

template <uint32_t count>
struct Pool {
  RecordPool pool{gasnet::PortalIndex::kRequest, count};

  SendRecord* take() {
    SendRecord* record = nullptr;
    while ((record = pool.take()) == nullptr) {
    }
    require(record->target == 0, "the record is free");
    record->target = 1;
    return record;
  }
  void give_back(SendRecord* record) {
    record->target = 0;
    pool.give_back(record);
  }
  void use_once() { give_back(take()); }
  // Returns the first while it holds the second: for the number against ABA.
  void use_two() {
    SendRecord* const first = take();
    SendRecord* const second = take();
    give_back(first);
    give_back(second);
  }
  void all_free() { require(pool.are_all_free(), "all records are back"); }
};
// Of records that have been used.
template <uint32_t count>
struct UsedPool : Pool<count> {
  UsedPool() {
    SendRecord* taken[count];
    for (SendRecord*& record : taken) record = this->pool.take();
    for (SendRecord* record : taken) this->pool.give_back(record);
  }
};

}  // namespace

Protocol gasnet_records() {
  using One = Pool<1>;
  using Used = UsedPool<1>;
  using Three = UsedPool<3>;
  return {"RecordPool (GASNet)",
          {"am/records"},
          {share<One>("one record, two users", {&One::use_once, &One::use_once}, &One::all_free),
           share<Used>("one used record, three users",
                       {&Used::use_once, &Used::use_once, &Used::use_once}, &Used::all_free),
           share<Three>("stale head", {&Three::use_once, &Three::use_two}, &Three::all_free)}};
}

}  // namespace lintel::model
