// PeerTable: look-ups while a peer is added, and while the table grows.
#include "core/operations/peer_directory.h"
#include "program.h"

namespace lintel::model {
namespace {

template <uint32_t known>
struct Table {
  static constexpr ProcessId added{1, known + 1};
  PeerTable table;
  Table() {
    require(table.open(), "memory");
    for (uint32_t pid = 1; pid <= known; ++pid) require(table.insert({1, pid}) != nullptr, "room");
  }
  void insert() { require(table.insert(added) != nullptr, "room"); }
  void find() {
    const Peer* const peer = table.find(added);
    require(peer == nullptr || peer->id == added, "the peer is the one that was asked for");
    require(peer == nullptr || table.find(added) == peer, "a later look finds it as well");
    if constexpr (known != 0) require(table.find({1, 1}) != nullptr, "a known peer is found");
  }
};

}  // namespace

Protocol peer_table() {
  using Few = Table<1>;
  using Grows = Table<32>;
  return {"PeerTable",
          {"core/operations/peer_directory"},
          {share<Few>("a peer is added", {&Few::find, &Few::insert}),
           share<Grows>("the table grows", {&Grows::find, &Grows::insert})}};
}

}  // namespace lintel::model
