// The barrier of a neighbourhood of GASNet: what each member wrote before, all see behind it. It is
// called again at once.
#include "job/node_barrier.h"
#include "program.h"

namespace lintel::model {
namespace {

template <uint32_t members, uint32_t calls>
struct Barrier {
  std::atomic<uint32_t> arrived{0};
  std::atomic<uint32_t> generation{0};
  uint32_t written[calls][members]{};

  void cross(uint32_t member) {
    for (uint32_t call = 0; call < calls; ++call) {
      written[call][member] = member + 1;
      gasnet::await_members(arrived, generation, members);
      for (uint32_t other = 0; other < members; ++other)
        require(written[call][other] == other + 1, "all have arrived");
    }
  }
  template <uint32_t member>
  void of_member() {
    cross(member);
  }
};

}  // namespace

Protocol gasnet_barrier() {
  using Two = Barrier<2, 2>;
  using Three = Barrier<3, 1>;
  return {"await_members (GASNet)",
          {"job/node_barrier.h"},
          {share<Two>("two members, twice", {&Two::of_member<0>, &Two::of_member<1>}),
           share<Three>("three members",
                        {&Three::of_member<0>, &Three::of_member<1>, &Three::of_member<2>})}};
}

}  // namespace lintel::model
