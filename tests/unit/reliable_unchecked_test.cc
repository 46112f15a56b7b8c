// Payloads in place between processes of one node, over a link that keeps their frames: the check
// of such a frame ends at its payload.
#include <sys/mman.h>

#include <gtest/gtest.h>

#include "reliable_test_support.h"
#include "util/guarded_memory.h"

namespace lintel::test {
namespace {

constexpr size_t payload_bytes = 8192;
constexpr uint32_t frame_bytes = 9000;
constexpr uint64_t capacity_bytes = 256 * 1024;

MessageHeader data_header() {
  MessageHeader header{};
  header.kind = MessageKind::data;
  header.flags = flag_last;
  return header;
}

class ReliableUnchecked : public testing::Test {
 protected:
  ReliableUnchecked() { install_fault_handler(); }
  ~ReliableUnchecked() override {
    network_.script = nullptr;
    if (memory_ != nullptr) munmap(memory_, payload_bytes);
  }
  // `keep`: which of the two links says that it keeps frames of a node.
  void connect(ProcessId second, bool first_keeps = true, bool second_keeps = true,
               const ReliableSettings& settings = {}) {
    for (const ProcessId id : {ProcessId{1, 1}, second})
      processes_.push_back(std::make_unique<MemoryProcess>(network_, id, settings, frame_bytes,
                                                           capacity_bytes, true));
    all_ = {processes_[0].get(), processes_[1].get()};
    processes_[0]->link().keep_frames_of_node(first_keeps);
    processes_[1]->link().keep_frames_of_node(second_keeps);
    memory_ = static_cast<std::byte*>(
        mmap(nullptr, payload_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    std::fill_n(memory_, payload_bytes, std::byte{1});
    link_ = processes_[0]->connect(second);
    ASSERT_NE(link_, nullptr);
    send_surely(*processes_[0], link_, all_, numbered_put(0), {});
    ASSERT_TRUE(run_until(all_, [&] { return to().messages.size() == 1; }));
    to().messages.clear();
  }
  MemoryProcess& to() { return *processes_[1]; }
  SendStatus send_data() {
    const Piece piece{memory_, payload_bytes};
    return processes_[0]->transport().send(*link_, data_header(), &piece, 1);
  }
  // Changes that byte of the first long frame; it is counted from the end if negative.
  void damage(int at) {
    network_.script = [this, at](const LinkAddress&, const LinkAddress&, const Frame& frame) {
      Frame sent = frame;
      if (frame.size() > payload_bytes && !std::exchange(damaged_, true))
        sent[at < 0 ? sent.size() - static_cast<size_t>(-at) : static_cast<size_t>(at)] ^=
            std::byte{0x40};
      return std::vector<MemoryNetwork::Copy>{{std::move(sent), 0}};
    };
  }
  uint64_t found_damaged() { return to().transport().counters().damaged; }
  // The last byte of a payload arrives changed, and so it is delivered, or it is sent again.
  void expect_check_of_payload(bool checked) {
    damage(-1);
    ASSERT_EQ(send_data(), SendStatus::sent);
    ASSERT_TRUE(run_until(all_, [&] { return to().messages.size() == 1; }));
    EXPECT_EQ(to().messages[0].payload.back(), checked ? std::byte{1} : std::byte{0x41});
    EXPECT_EQ(found_damaged(), checked ? 1u : 0u);
  }

  MemoryNetwork network_;
  std::vector<std::unique_ptr<MemoryProcess>> processes_;
  std::vector<MemoryProcess*> all_;
  Link* link_ = nullptr;
  std::byte* memory_ = nullptr;
  bool damaged_ = false;
};

TEST_F(ReliableUnchecked, WithinANodePayloadsNeedNoCheck) {
  connect({1, 2});
  expect_check_of_payload(false);
}

TEST_F(ReliableUnchecked, OtherNodesAreChecked) {
  connect({2, 2});
  expect_check_of_payload(true);
}

TEST_F(ReliableUnchecked, OneSideDoesNotDecideAlone) {
  connect({1, 2}, true, false);
  expect_check_of_payload(true);
}

TEST_F(ReliableUnchecked, HeadersAreAlwaysChecked) {
  connect({1, 2});
  for (const int at : {7, 20, static_cast<int>(message_frame_overhead) - 1}) {
    damaged_ = false;
    damage(at);
    const uint64_t before = found_damaged();
    ASSERT_EQ(send_data(), SendStatus::sent);
    ASSERT_TRUE(run_until(all_, [&] { return to().messages.size() == 1; })) << at;
    EXPECT_EQ(to().messages[0].payload, std::vector<std::byte>(payload_bytes, std::byte{1}));
    EXPECT_EQ(found_damaged(), before + 1) << at;
    to().messages.clear();
  }
}

// What is copied into the frame is checked with it.
TEST_F(ReliableUnchecked, ShortMessagesAreChecked) {
  connect({1, 2});
  network_.script = [this](const LinkAddress&, const LinkAddress&, const Frame& frame) {
    Frame sent = frame;
    if (frame.size() > 1000 && !std::exchange(damaged_, true)) sent.back() ^= std::byte{1};
    return std::vector<MemoryNetwork::Copy>{{std::move(sent), 0}};
  };
  send_surely(*processes_[0], link_, all_, numbered_put(1), numbered_bytes(1, 1000));
  ASSERT_TRUE(run_until(all_, [&] { return to().messages.size() == 1; }));
  EXPECT_EQ(to().messages[0].payload, numbered_bytes(1, 1000));
  EXPECT_EQ(found_damaged(), 1u);
}

}  // namespace
}  // namespace lintel::test
