// RankMap: operations look ranks up while a map is set for the first time, and again.
#include "core/objects/rank_map.h"

#include "program.h"

namespace lintel {

// Maps of the models are too small to be shared.
SharedRanks::~SharedRanks() = default;
const ProcessId* SharedRanks::entries() const noexcept { return nullptr; }
std::unique_ptr<SharedRanks> SharedRanks::obtain(const ptl_process_t*, uint64_t) { return nullptr; }

namespace model {
namespace {

struct Map {
  static constexpr ProcessId first{1, 10};
  static constexpr ProcessId second{2, 20};
  RankMap map;

  void set(uint64_t count) {
    ptl_process_t mapping[2];
    mapping[0].phys = {first.nid, first.pid};
    mapping[1].phys = {second.nid, second.pid};
    require(map.set(mapping, count, first), "memory");
  }
  void set_once() { set(2); }
  void set_twice() {
    set(1);
    set(2);
  }
  void find() {
    ProcessId id{};
    if (!map.find(1, &id)) return;
    require(id == second, "the entry is there");
    require(map.size() == 2 && map.is_set(), "a later look finds the same map");
  }
  void find_initiator() {
    const uint32_t rank = map.rank_of(first, PTL_RANK_ANY);
    require(rank == 0 || rank == PTL_RANK_ANY, "the rank is that of the entry");
    if (rank == 0) require(map.rank_of(first, 0) == 0, "a later look finds it as well");
  }
  void find_itself() {
    const uint32_t rank = map.own_rank();
    require(rank == 0 || rank == PTL_RANK_ANY, "the rank of this process");
  }
  void look_for_second() {
    require(map.second_own_rank() == PTL_RANK_ANY, "this process has one rank");
  }
  void ask_size() { require(map.size() <= 2, "the size is that of a map"); }
};

}  // namespace

Protocol rank_map() {
  return {"RankMap",
          {"core/objects/rank_map"},
          {share<Map>("set once, find", {&Map::set_once, &Map::find}),
           share<Map>("set again, find", {&Map::set_twice, &Map::find}),
           share<Map>("set again, initiator", {&Map::set_twice, &Map::find_initiator}),
           share<Map>("own rank", {&Map::set_once, &Map::find_itself}),
           share<Map>("second own rank", {&Map::set_once, &Map::look_for_second}),
           share<Map>("size", {&Map::set_twice, &Map::ask_size})}};
}

}  // namespace model
}  // namespace lintel
