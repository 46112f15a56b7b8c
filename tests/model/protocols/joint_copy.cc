// Joint copies: two processes copy the chunks of an offer, each chunk once, and the copy ends when
// all are there. The place of the offer is used again.
#include "program.h"
#include "shm/joint_help.h"
#include "shm/joint_offers.h"

namespace lintel::model {
namespace {

constexpr uint64_t chunk_bytes = uint64_t{1} << 16;
constexpr unsigned chunks = 2;
constexpr uint64_t owner_start = uint64_t{1} << 30;
constexpr uint64_t helper_start = uint64_t{1} << 31;

struct Sink final : MessageSink {
  void* on_new_link(Link&) noexcept override { return nullptr; }
  void on_messages(Link&, const InboundMessage*, unsigned) noexcept override {}
  void on_peer_failed(Link&) noexcept override {}
  void on_remote_done(Link&, uint32_t, RemoteResult) noexcept override {}
  bool may_access(Link&, const RemoteMemory& memory, bool) noexcept override {
    return memory.address >= helper_start && memory.key == 1;
  }
};

struct Joint final : ChunkCopier {
  SegmentHeader headers[2]{};
  Segment owner{headers[0], 16};
  Segment helper{headers[1], 32};
  ShmLink to_owner;
  ShmLink to_helper;
  ReceiveLanes lanes{to_owner};
  JointOffers offers{headers[0]};
  JointHelp help{helper, lanes};
  Sink sink;
  int source[chunks]{};
  int copy[chunks]{};
  std::atomic<bool> owner_waits{false};
  std::atomic<bool> helped{false};

  Joint() {
    fence_detail::registered.store(true, std::memory_order_relaxed);
    to_owner.segment = &owner;
    to_helper.segment = &helper;
    to_helper.nonce = helper.nonce();
    to_owner.copier = to_helper.copier = this;
  }
  void copy_chunk(uint64_t address) noexcept override {
    const bool helps = address >= helper_start;
    const uint64_t chunk = (address - (helps ? helper_start : owner_start)) / chunk_bytes;
    if (helps) {
      helped.store(true, std::memory_order_relaxed);
    } else if (owner_waits.load(std::memory_order_relaxed)) {
      while (!helped.load(std::memory_order_relaxed)) {
      }
    }
    copy[chunk] = source[chunk];
  }
  void offer(int value) {
    for (int& word : source) word = value;
    const Piece local{reinterpret_cast<std::byte*>(owner_start), chunks * chunk_bytes};
    const RemoteMemory remote{helper_start, chunks * chunk_bytes, 1};
    const RemoteResult result =
        offers.copy(to_helper, CopyDirection::to_here, &local, 1, &remote, 1, 0);
    require(result.status == RemoteStatus::done && result.bytes == chunks * chunk_bytes,
            "all chunks are copied");
    for (const int word : copy) require(word == value, "the copy is complete");
  }
  void offer_once() { offer(1); }
  void offer_twice() {
    offer(1);
    offer(2);
  }
  // It goes on with its first chunk when the other has one.
  void offer_and_wait() {
    owner_waits.store(true, std::memory_order_relaxed);
    offer(1);
  }
  void look() {
    if (help.wanted()) static_cast<void>(help.help(sink));
  }
  void look_twice() {
    look();
    look();
  }
  void help_when_asked() {
    while (!help.wanted()) {
    }
    static_cast<void>(help.help(sink));
  }
};

}  // namespace

Protocol joint_copy() {
  return {"JointCopy, JointOffers, JointHelp",
          {"shm/joint_"},
          {share<Joint>("one offer", {&Joint::offer_once, &Joint::look}),
           share<Joint>("two offers", {&Joint::offer_twice, &Joint::look_twice}),
           share<Joint>("the owner waits for help",
                        {&Joint::offer_and_wait, &Joint::help_when_asked})}};
}

}  // namespace lintel::model
