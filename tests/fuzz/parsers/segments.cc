// Shared segments that a hostile process has made or writes into: the identity of its own segment,
// and the table of lanes, the counters and the lanes of the victim's, between any two steps.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>

#include "fuzz/parsers/input.h"
#include "shm/peer_segment.h"
#include "shm/segment_directory.h"
#include "unit/shm_test_support.h"
#include "util/log.h"

namespace lintel::fuzz {
namespace {

constexpr uint32_t forged_pid = 900;
constexpr uint64_t forged_nonce = 0x1230;
constexpr unsigned most_steps = 60;

std::string forged_path() {
  return SegmentDirectory::open(true)->path_of({{test::test_nid, forged_pid}, forged_nonce});
}

class CountingSink final : public MessageSink {
 public:
  void* on_new_link(Link& link) noexcept override {
    return link.context != nullptr ? link.context : this;
  }
  void on_messages(Link&, const InboundMessage* messages, unsigned count) noexcept override {
    uint64_t sum = 0;
    for (unsigned i = 0; i < count; ++i)
      for (uint32_t at = 0; at < messages[i].payload_length; ++at)
        sum += static_cast<uint64_t>(messages[i].payload[at]);
    volatile uint64_t read = sum;
    static_cast<void>(read);
  }
  void on_peer_failed(Link&) noexcept override {}
  void on_remote_done(Link&, uint32_t, RemoteResult) noexcept override {}
  bool may_access(Link&, const RemoteMemory&, bool) noexcept override { return true; }
};

// Opens a segment with an identity that another process has forged.
void open_forged(Input& input, const ShmTransport& genuine) {
  SegmentIdentity identity = genuine.segment().header().identity;
  identity.pid = forged_pid;
  identity.nonce = forged_nonce;
  input.damage(&identity, sizeof identity, 4);
  const SegmentGeometry checked =
      SegmentGeometry::checked(identity, genuine.segment().geometry().segment_bytes);
  for (uint32_t lane = 0; lane < checked.lane_count; ++lane) {
    const SegmentGeometry::Place place = checked.place(lane);
    FUZZ_CHECK(place.geometry.valid());
    FUZZ_CHECK(place.offset_bytes >= first_lane_offset);
    FUZZ_CHECK(place.offset_bytes + place.geometry.bytes() <=
               genuine.segment().geometry().segment_bytes);
  }
  const std::string path = forged_path();
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  FUZZ_CHECK(fd >= 0);
  const uint64_t bytes = input.below(4) == 0 ? input.take<uint32_t>() % (1u << 22)
                                             : genuine.segment().geometry().segment_bytes;
  FUZZ_CHECK(ftruncate(fd, 0) == 0 && ftruncate(fd, static_cast<off_t>(bytes)) == 0);
  FUZZ_CHECK(pwrite(fd, &identity, sizeof identity, 0) == sizeof identity);
  std::unique_ptr<PeerSegment> segment;
  std::string reason;
  if (PeerSegment::open({test::test_nid, forged_pid}, job_hash_of(test::test_settings().job_key),
                        segment, reason) == PeerSegment::Status::opened) {
    PeerSegment::Claim claim;
    while (segment->claim_lane({{1, 1}, 16}, claim, reason) == PeerSegment::ClaimStatus::claimed) {
      // The first and last byte must be accessible.
      *reinterpret_cast<volatile char*>(claim.control) = 0;
      *(reinterpret_cast<volatile char*>(claim.control) + claim.geometry.bytes() - 1) = 0;
    }
  }
  close(fd);
  unlink(path.c_str());
}

class Fuzzed {
 public:
  explicit Fuzzed(Input& input)
      : input_(input), victim_(test::open_transport()), peer_(test::open_transport()) {}

  void run() {
    open_forged(input_, *victim_);
    std::string reason;
    std::unique_ptr<PeerSegment> segment;
    FUZZ_CHECK(PeerSegment::open(victim_->id(), job_hash_of(test::test_settings().job_key), segment,
                                 reason) == PeerSegment::Status::opened);
    segment_ = std::move(segment);
    for (unsigned step = 0; step < most_steps && !input_.is_empty(); ++step) {
      act();
      victim_->poll(sink_, 16);
      if (input_.below(8) == 0) victim_->check_peers(sink_, nullptr, 0);
      if (input_.below(8) == 0 && victim_->arm(input_.flag())) victim_->disarm();
    }
  }

 private:
  void act() {
    SegmentHeader& header = segment_->header();
    const uint32_t lanes = victim_->segment().geometry().lane_count;
    const uint32_t lane = input_.byte() % lanes;
    switch (input_.below(8)) {
      case 0: {
        PeerSegment::Claim claim;
        std::string reason;
        static_cast<void>(
            segment_->claim_lane({peer_->id(), peer_->segment().nonce()}, claim, reason));
        break;
      }
      case 1: {
        LaneEntry& entry = victim_->segment().entry(lane);
        entry.nid = input_.flag() ? input_.take<uint32_t>() : peer_->id().nid;
        entry.pid = input_.flag() ? input_.take<uint32_t>() : peer_->id().pid;
        const uint64_t nonce =
            input_.flag() ? peer_->segment().nonce() : input_.take<uint64_t>() & ~lane_state_mask;
        entry.owner.store(nonce | input_.below(16));
        break;
      }
      case 2:
        // The doorbell, the counters and the joint copy, but not the identity, which does not
        // change.
        input_.damage(reinterpret_cast<std::byte*>(&header) + sizeof(SegmentIdentity),
                      sizeof header - sizeof(SegmentIdentity), 8);
        break;
      case 3: {
        const SegmentGeometry::Place place = victim_->segment().geometry().place(lane);
        auto* const bytes = reinterpret_cast<std::byte*>(victim_->segment().lane(lane));
        const size_t at = input_.take<uint32_t>() % (place.length_bytes - 8);
        input_.fill(bytes + at, input_.below(9));
        break;
      }
      case 4: {  // an almost valid message
        LaneCell& cell = cells_of(victim_->segment().lane(lane))[input_.below(4)];
        MessageHeader message{};
        message.kind = static_cast<MessageKind>(1 + input_.below(message_kinds));
        message.link_word = 1u << 16 | input_.take<uint16_t>();
        message.set_length(message.link_word & 0xffff);
        input_.damage(&message, sizeof message, 2);
        cell.header = message;
        break;
      }
      case 5:
        link_ = victim_->connect(peer_->id(), nullptr);
        break;
      case 6:
        if (link_ != nullptr) {
          MessageHeader header = test::put_header(1);
          static_cast<void>(victim_->send(*link_, header, nullptr, 0));
        }
        peer_->poll(sink_, 16);
        break;
      default:
        break;
    }
    header.lane_generation.fetch_add(1);
  }

  Input& input_;
  std::unique_ptr<ShmTransport> victim_;
  std::unique_ptr<ShmTransport> peer_;
  std::unique_ptr<PeerSegment> segment_;
  CountingSink sink_;
  Link* link_ = nullptr;
};

}  // namespace
}  // namespace lintel::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lintel;
  set_log_level(static_cast<LogLevel>(0));
  fuzz::Input input(data, size);
  fuzz::Fuzzed(input).run();
  return 0;
}
