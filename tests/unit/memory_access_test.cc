// Which memory a peer may request this process to copy from or to: the memory that its operations
// have described, while they last.
#include <portals4.h>

#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "bare_target_support.h"

namespace lintel::test {
namespace {

constexpr uint64_t bytes = 1 << 20;

class MemoryAccessTest : public test::BareTargetTest {
 protected:
  void SetUp() override {
    BareTargetTest::SetUp();
    const ptl_md_t description{memory_.data(), memory_.size(), 0, PTL_EQ_NONE, PTL_CT_NONE};
    must(PtlMDBind(ni_, &description, &md_));
  }

  // The description that the request contained.
  RemoteMemory received_description() {
    RemoteMemory memory{};
    const auto& payload = received(1).front().payload;
    EXPECT_EQ(payload.size(), sizeof memory);
    std::memcpy(&memory, payload.data(), sizeof memory);
    return memory;
  }
  bool may_access(const RemoteMemory& memory, bool write, uint32_t pid) {
    Link* link = physical().peers().find_or_connect({target().phys.nid, pid})->route.link;
    bool answer = false;
    physical().poller().exclusively([&] { answer = physical().may_access(*link, memory, write); });
    return answer;
  }
  bool may_access(const RemoteMemory& memory, bool write) {
    return may_access(memory, write, target().phys.pid);
  }

  void expect_only_its_part(const RemoteMemory& described, bool write) {
    EXPECT_TRUE(may_access(described, write));
    EXPECT_TRUE(may_access({described.address + 10, described.length - 10, described.key}, write));
    EXPECT_FALSE(may_access(described, !write)) << "the other direction";
    EXPECT_FALSE(may_access({described.address - 1, 2, described.key}, write)) << "before it";
    EXPECT_FALSE(may_access({described.address, described.length + 1, described.key}, write));
    EXPECT_FALSE(may_access({described.address + described.length, 1, described.key}, write));
    EXPECT_FALSE(may_access({described.address, UINT64_MAX, described.key}, write));
    EXPECT_FALSE(may_access({described.address, 1, described.key + 1}, write))
        << "another operation";
    EXPECT_FALSE(may_access({described.address, 1, UINT32_MAX}, write));
  }

  ptl_handle_md_t md_{};
  std::vector<std::byte> memory_ = std::vector<std::byte>(2 * bytes);
};

TEST_F(MemoryAccessTest, APutIsReadWhereItLies) {
  must(PtlPut(md_, 4096, bytes, PTL_ACK_REQ, target(), 0, 0, 0, nullptr, 0));
  const RemoteMemory described = received_description();
  EXPECT_EQ(described.address, reinterpret_cast<uint64_t>(memory_.data() + 4096));
  EXPECT_EQ(described.length, bytes);
  expect_only_its_part(described, false);
}

TEST_F(MemoryAccessTest, AGetIsWrittenWhereItGoes) {
  must(PtlGet(md_, 4096, bytes, target(), 0, 0, 0, nullptr));
  const RemoteMemory described = received_description();
  EXPECT_EQ(described.address, reinterpret_cast<uint64_t>(memory_.data() + 4096));
  expect_only_its_part(described, true);
}

TEST_F(MemoryAccessTest, AnotherPeerMayNot) {
  const auto other = test::open_transport(target_settings());
  must(PtlPut(md_, 0, bytes, PTL_ACK_REQ, target(), 0, 0, 0, nullptr, 0));
  const RemoteMemory described = received_description();
  EXPECT_TRUE(may_access(described, false));
  EXPECT_FALSE(may_access(described, false, other->id().pid));
}

TEST_F(MemoryAccessTest, NotAfterItsAnswer) {
  must(PtlPut(md_, 0, bytes, PTL_ACK_REQ, target(), 0, 0, 0, nullptr, 0));
  const RemoteMemory described = received_description();
  ASSERT_TRUE(may_access(described, false));
  MessageHeader ack{};
  ack.kind = MessageKind::ack;
  ack.operation = PTL_NI_OK;
  ack.cookie = static_cast<uint32_t>(described.key);
  ack.set_length(bytes);
  ASSERT_EQ(target_->send(*sink_.by_link.begin()->first, ack, nullptr, 0), SendStatus::sent);
  EXPECT_TRUE(wait_until([&] { return !may_access(described, false); }));
}

}  // namespace
}  // namespace lintel::test
