// The example of a transport carries Portals between two interfaces.
#include "example_transport.h"

#include <portals4.h>

#include <array>
#include <vector>

#include <gtest/gtest.h>

#include "core/library/library.h"
#include "support/objects.h"

namespace lintel::test {
namespace {

OpenedTransports open_example(uint32_t, uint32_t pid) {
  OpenedTransports opened;
  opened.status = OpenStatus::opened;
  opened.id = {1, pid};
  opened.transports.push_back(std::make_unique<ExampleTransport>(opened.id));
  return opened;
}

class ExampleTransportTest : public ::testing::Test {
 protected:
  static constexpr size_t largest = 100'000;  // in many messages

  ExampleTransportTest() {
    must(PtlInit());
    for (uint32_t i = 0; i < 2; ++i)
      must(open_interface(i, 1, 10 + i, nullptr, open_example, &interfaces_[i]));
  }
  ~ExampleTransportTest() override {
    for (NetworkInterface* interface : interfaces_) must(PtlNIFini(interface->handle()));
  }
  [[nodiscard]] ptl_handle_ni_t interface(unsigned number) const {
    return interfaces_[number]->handle();
  }
  std::array<NetworkInterface*, 2> interfaces_{};
};

TEST_F(ExampleTransportTest, PutsOfAnyLengthAreAcknowledgedAndWhatTheyWroteIsReadBack) {
  ptl_pt_index_t portal;
  must(PtlPTAlloc(interface(1), 0, PTL_EQ_NONE, PTL_PT_ANY, &portal));
  std::vector<char> kept(largest);
  ptl_me_t entry{};
  entry.start = kept.data();
  entry.length = kept.size();
  entry.ct_handle = PTL_CT_NONE;
  entry.uid = PTL_UID_ANY;
  entry.match_id.phys = {PTL_NID_ANY, PTL_PID_ANY};
  entry.options = PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE;
  ptl_handle_me_t appended;
  must(PtlMEAppend(interface(1), portal, &entry, PTL_PRIORITY_LIST, nullptr, &appended));

  ptl_handle_ct_t done;
  must(PtlCTAlloc(interface(0), &done));
  std::vector<char> sent(largest), back(largest);
  for (size_t i = 0; i < largest; ++i) sent[i] = static_cast<char>(i * 7);
  const auto bind = [&](std::vector<char>& memory) {
    const ptl_md_t description{memory.data(), memory.size(),
                               PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_REPLY, PTL_EQ_NONE, done};
    ptl_handle_md_t descriptor;
    must(PtlMDBind(interface(0), &description, &descriptor));
    return descriptor;
  };
  const ptl_handle_md_t from = bind(sent);
  const ptl_handle_md_t into = bind(back);
  const ptl_process_t target{.phys = {1, 11}};
  ptl_size_t operations = 0;
  for (const size_t length : {size_t{0}, size_t{8}, size_t{4096}, size_t{4097}, largest}) {
    ptl_ct_event_t counted{};
    must(PtlPut(from, 0, length, PTL_ACK_REQ, target, portal, 0, 0, nullptr, 0));
    must(PtlCTWait(done, ++operations, &counted));
    must(PtlGet(into, 0, length, target, portal, 0, 0, nullptr));
    must(PtlCTWait(done, ++operations, &counted));
    ASSERT_EQ(counted.failure, 0u) << length;
    EXPECT_TRUE(std::equal(sent.begin(), sent.begin() + static_cast<long>(length), back.begin()))
        << length;
  }
  must(PtlMEUnlink(appended));
}

}  // namespace
}  // namespace lintel::test
