// Entries that puts have used up are kept for the next appends to their portal table entry.
#include <portals4.h>

#include <array>

#include <gtest/gtest.h>

#include "core/library/library.h"
#include "support/objects.h"
#include "unit/entry_for_all.h"

namespace lintel::test {
namespace {

// Puts of the own process, which are delivered within PtlPut.
TEST(SpareEntriesTest, ThoseOfManyPortalTableEntriesDoNotAddUp) {
  constexpr unsigned portals = 30;
  constexpr unsigned entries = 500;
  must(PtlInit());
  ptl_handle_ni_t ni{};
  must(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, nullptr,
                 nullptr, &ni));
  ptl_process_t self{};
  must(PtlGetPhysId(ni, &self));
  ptl_handle_eq_t events{};
  must(PtlEQAlloc(ni, 16, &events));
  std::array<std::byte, 8> memory{};
  const ptl_md_t description = {.start = memory.data(),
                                .length = memory.size(),
                                .options = PTL_MD_EVENT_SEND_DISABLE,
                                .eq_handle = PTL_EQ_NONE,
                                .ct_handle = PTL_CT_NONE};
  ptl_handle_md_t descriptor{};
  must(PtlMDBind(ni, &description, &descriptor));
  const ptl_me_t entry = entry_for_all(
      memory.data(), memory.size(),
      PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_UNLINK_DISABLE);
  ptl_event_t event{};
  for (unsigned portal = 0; portal < portals; ++portal) {
    ptl_pt_index_t index = 0;
    must(PtlPTAlloc(ni, 0, events, PTL_PT_ANY, &index));
    ptl_handle_me_t handle{};
    for (unsigned i = 0; i < entries; ++i)
      must(PtlMEAppend(ni, index, &entry, PTL_PRIORITY_LIST, nullptr, &handle));
    for (unsigned i = 0; i < entries; ++i) {
      must(PtlPut(descriptor, 0, 8, PTL_NO_ACK_REQ, self, index, 0, 0, nullptr, 0));
      must(PtlEQWait(events, &event));
    }
  }
  EXPECT_LT(find_interface(ni)->entries().high_water(), portals * entries / 2);
  must(PtlNIFini(ni));
  PtlFini();
}

}  // namespace
}  // namespace lintel::test
