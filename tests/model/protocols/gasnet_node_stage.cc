// NodeStage of GASNet: neighbours share the slots of small collectives. Each call uses the same
// slot, as if there were one, so that a slot is used again after each call.
#include <cstring>

#include "coll/node_stage.h"
#include "program.h"

namespace lintel::model {
namespace {

using gasnet::NodeStage;

template <uint32_t members, uint32_t calls>
struct Stages {
  alignas(64) char memory[NodeStage::bytes(members)];

  static uint64_t value_of(uint32_t call, uint32_t member) { return call * 16 + member + 1; }
  static void await_free_slot(NodeStage& stage, uint32_t call) {
    while (!stage.have_finished(call)) {
    }
  }
  static void contribute(const NodeStage& stage, uint32_t call, uint32_t member) {
    const uint64_t value = value_of(call, member);
    std::memcpy(stage.own_contribution(0).bytes, &value, sizeof value);
  }
  static uint64_t sum_of_contributions(const NodeStage& stage) {
    uint64_t sum = 0;
    for (uint32_t member = 0; member < members; ++member) {
      uint64_t value = 0;
      std::memcpy(&value, stage.contribution(0, member).bytes, sizeof value);
      sum += value;
    }
    return sum;
  }
  static void check(uint32_t call, uint64_t sum) {
    uint64_t expected = 0;
    for (uint32_t member = 0; member < members; ++member) expected += value_of(call, member);
    require(sum == expected, "the sum is that of all contributions to this call");
  }

  // Each reads what the others contributed.
  void read_all(uint32_t member) {
    NodeStage stage(memory, members, member);
    for (uint32_t call = 0; call < calls; ++call) {
      await_free_slot(stage, call);
      contribute(stage, call, member);
      stage.show(0, call + 1);
      for (uint32_t other = 0; other < members; ++other)
        while (!stage.is_shown(0, call + 1, other)) {
        }
      check(call, sum_of_contributions(stage));
      stage.finish(call + 1);
    }
  }
  // The last one combines the contributions and releases the others.
  void await_last(uint32_t member) {
    NodeStage stage(memory, members, member);
    for (uint32_t call = 0; call < calls; ++call) {
      await_free_slot(stage, call);
      contribute(stage, call, member);
      if (stage.arrive(0)) {
        const uint64_t sum = sum_of_contributions(stage);
        std::memcpy(stage.slot(0).result, &sum, sizeof sum);
        stage.release(0, call + 1);
      } else {
        while (!stage.is_released(0, call + 1)) {
        }
      }
      uint64_t sum = 0;
      std::memcpy(&sum, stage.slot(0).result, sizeof sum);
      check(call, sum);
      stage.finish(call + 1);
    }
  }
  template <uint32_t member>
  void reads() {
    read_all(member);
  }
  template <uint32_t member>
  void arrives() {
    await_last(member);
  }
};

}  // namespace

Protocol gasnet_node_stage() {
  using Two = Stages<2, 2>;
  using Three = Stages<3, 1>;
  return {"NodeStage (GASNet)",
          {"coll/node_stage"},
          {share<Two>("contributions are read by all", {&Two::reads<0>, &Two::reads<1>}),
           share<Two>("the last releases the other", {&Two::arrives<0>, &Two::arrives<1>}),
           share<Three>("the last of three",
                        {&Three::arrives<0>, &Three::arrives<1>, &Three::arrives<2>})}};
}

}  // namespace lintel::model
