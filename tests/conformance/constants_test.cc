// The names of portals4.h as the specification demands them: compile-time constants, distinct where
// necessary, usable as case labels.
#include <portals.h>
#include <portals4.h>
#include <portals4_ext.h>

#include <cstddef>
#include <set>
#include <type_traits>

#include <gtest/gtest.h>

namespace lintel::test {
namespace {

constinit ptl_handle_eq_t static_queue = PTL_EQ_NONE;
constinit ptl_handle_ct_t static_counter = PTL_CT_NONE;
constinit ptl_handle_any_t static_handle = PTL_INVALID_HANDLE;

// spec 3.2.1, 3.3.1, 3.3.2, 3.3.4, 3.3.7, 3.14.1
TEST(ConstantsTest, TypesHaveTheSpecifiedProperties) {
  static_assert(PTL_MAJOR_VERSION == 4 && PTL_MINOR_VERSION == 3);
  static_assert(std::is_unsigned_v<ptl_size_t> && sizeof(ptl_size_t) == 8);
  static_assert(PTL_SIZE_MAX == static_cast<ptl_size_t>(-1));
  static_assert(std::is_unsigned_v<ptl_match_bits_t> && sizeof(ptl_match_bits_t) == 8);
  static_assert(sizeof(ptl_hdr_data_t) == 8);
  static_assert(std::is_signed_v<ptl_sr_value_t> && sizeof(ptl_sr_value_t) >= 4);
  static_assert(std::is_unsigned_v<decltype(ptl_ct_event_t::success)>);
  static_assert(sizeof(ptl_handle_any_t) <= sizeof(void*));
  static_assert(std::is_convertible_v<ptl_handle_eq_t, ptl_handle_any_t>);

  // The first fields of an ME are those of an LE.
  static_assert(offsetof(ptl_le_t, start) == offsetof(ptl_me_t, start));
  static_assert(offsetof(ptl_le_t, length) == offsetof(ptl_me_t, length));
  static_assert(offsetof(ptl_le_t, ct_handle) == offsetof(ptl_me_t, ct_handle));
  static_assert(offsetof(ptl_le_t, uid) == offsetof(ptl_me_t, uid));
  static_assert(offsetof(ptl_le_t, options) == offsetof(ptl_me_t, options));
  static_assert(PTL_LE_OP_PUT == PTL_ME_OP_PUT && PTL_LE_OP_GET == PTL_ME_OP_GET);
  static_assert(PTL_LE_USE_ONCE == PTL_ME_USE_ONCE);
  static_assert(PTL_LE_EVENT_CT_BYTES == PTL_ME_EVENT_CT_BYTES);
}

template <typename... Values>
std::size_t distinct(Values... values) {
  return std::set<unsigned long long>{static_cast<unsigned long long>(values)...}.size();
}

// spec 3.3.2, 3.13.1
TEST(ConstantsTest, SpecialHandlesAreDistinct) {
  EXPECT_EQ(distinct(static_queue, static_counter, static_handle), 3u);
}

// spec 3.13.1, 3.2
TEST(ConstantsTest, EventKindsAreLabels) {
  const auto known = [](ptl_event_kind_t kind) {
    switch (kind) {
      case PTL_EVENT_GET:
      case PTL_EVENT_GET_OVERFLOW:
      case PTL_EVENT_PUT:
      case PTL_EVENT_PUT_OVERFLOW:
      case PTL_EVENT_ATOMIC:
      case PTL_EVENT_ATOMIC_OVERFLOW:
      case PTL_EVENT_FETCH_ATOMIC:
      case PTL_EVENT_FETCH_ATOMIC_OVERFLOW:
      case PTL_EVENT_REPLY:
      case PTL_EVENT_SEND:
      case PTL_EVENT_ACK:
      case PTL_EVENT_PT_DISABLED:
      case PTL_EVENT_LINK:
      case PTL_EVENT_AUTO_UNLINK:
      case PTL_EVENT_AUTO_FREE:
      case PTL_EVENT_SEARCH:
      case PTL_EVENT_ERROR:
        return true;
    }
    return false;
  };
  EXPECT_TRUE(known(PTL_EVENT_ERROR));
}

// spec 3.13.3, 3.2
TEST(ConstantsTest, FailureTypesAndReturnCodesAreLabels) {
  const auto known_failure = [](ptl_ni_fail_t failure) {
    switch (failure) {
      case PTL_NI_OK:
      case PTL_NI_UNDELIVERABLE:
      case PTL_NI_PT_DISABLED:
      case PTL_NI_DROPPED:
      case PTL_NI_PERM_VIOLATION:
      case PTL_NI_OP_VIOLATION:
      case PTL_NI_SEGV:
      case PTL_NI_NO_MATCH:
        return true;
    }
    return false;
  };
  const auto known_code = [](int code) {
    switch (code) {
      case PTL_OK:
      case PTL_FAIL:
      case PTL_ABORTED:
      case PTL_ARG_INVALID:
      case PTL_CT_NONE_REACHED:
      case PTL_EQ_DROPPED:
      case PTL_EQ_EMPTY:
      case PTL_IGNORED:
      case PTL_IN_USE:
      case PTL_LIST_TOO_LONG:
      case PTL_NO_INIT:
      case PTL_NO_SPACE:
      case PTL_PID_IN_USE:
      case PTL_PT_EQ_NEEDED:
      case PTL_PT_FULL:
      case PTL_PT_IN_USE:
      case PTL_INTERRUPTED:
        return true;
      default:
        return false;
    }
  };
  EXPECT_TRUE(known_failure(PTL_NI_OK));
  EXPECT_TRUE(known_code(PTL_OK));
  EXPECT_FALSE(known_code(-12345));
}

// spec 3.6.2, 3.7.1, 3.10.1, 3.11.1, 3.12.1
TEST(ConstantsTest, OptionsAreDistinctBits) {
  EXPECT_EQ(distinct(PTL_NI_MATCHING, PTL_NI_NO_MATCHING, PTL_NI_LOGICAL, PTL_NI_PHYSICAL), 4u);
  EXPECT_EQ(
      distinct(PTL_PT_ONLY_USE_ONCE, PTL_PT_ONLY_TRUNCATE, PTL_PT_FLOWCTRL, PTL_PT_ALLOC_DISABLED),
      4u);
  EXPECT_EQ(distinct(PTL_IOVEC, PTL_MD_EVENT_SEND_DISABLE, PTL_MD_EVENT_SUCCESS_DISABLE,
                     PTL_MD_EVENT_CT_SEND, PTL_MD_EVENT_CT_REPLY, PTL_MD_EVENT_CT_ACK,
                     PTL_MD_EVENT_CT_BYTES, PTL_MD_UNORDERED, PTL_MD_VOLATILE, PTL_MD_UNRELIABLE),
            10u);
  EXPECT_EQ(distinct(PTL_IOVEC, PTL_LE_OP_PUT, PTL_LE_OP_GET, PTL_LE_USE_ONCE,
                     PTL_LE_UNEXPECTED_HDR_DISABLE, PTL_LE_IS_ACCESSIBLE, PTL_LE_EVENT_LINK_DISABLE,
                     PTL_LE_EVENT_COMM_DISABLE, PTL_LE_EVENT_FLOWCTRL_DISABLE,
                     PTL_LE_EVENT_SUCCESS_DISABLE, PTL_LE_EVENT_OVER_DISABLE,
                     PTL_LE_EVENT_UNLINK_DISABLE, PTL_LE_EVENT_CT_COMM, PTL_LE_EVENT_CT_OVERFLOW,
                     PTL_LE_EVENT_CT_BYTES, PTL_ME_MANAGE_LOCAL, PTL_ME_NO_TRUNCATE,
                     PTL_ME_MAY_ALIGN, PTL_ME_LOCAL_INC_UH_RLENGTH),
            19u);
  EXPECT_EQ(distinct(PTL_TARGET_BIND_INACCESSIBLE, PTL_TOTAL_DATA_ORDERING, PTL_COHERENT_ATOMICS),
            3u);
}

// spec 3.3.6, 3.6.2
TEST(ConstantsTest, WildcardsAreNoIdentifiers) {
  EXPECT_GT(PTL_PID_ANY, PTL_PID_MAX);
  EXPECT_EQ(PTL_NID_ANY, static_cast<ptl_nid_t>(PTL_NID_ANY));
  EXPECT_EQ(PTL_RANK_ANY, static_cast<ptl_rank_t>(PTL_RANK_ANY));
  EXPECT_EQ(PTL_UID_ANY, static_cast<ptl_uid_t>(PTL_UID_ANY));
}

// spec C.1
TEST(ConstantsTest, DeprecatedNamesStillCompile) {
  EXPECT_EQ(PTL_LE_ACK_DISABLE | PTL_LE_OP_PUT, PTL_LE_OP_PUT | PTL_LE_ACK_DISABLE);
  EXPECT_EQ(PTL_ME_ACK_DISABLE | PTL_ME_OP_PUT, PTL_ME_OP_PUT | PTL_ME_ACK_DISABLE);
  EXPECT_NE(PTL_INTERRUPTED, PTL_OK);
}

// Programs written for other Portals 4 libraries include portals4_ext.h. Another vendor has a
// header of the same name. PORTALS4_LINTEL_H shows that this one was included.
// spec 3.3.1
TEST(ConstantsTest, NamesOfOtherLibrariesCompile) {
#ifndef PORTALS4_LINTEL_H
#error "portals4_ext.h does not include portals4_lintel.h"
#endif
  static_assert(std::is_same_v<ptl_index_t, ptl_pt_index_t>);
  constexpr unsigned others =
      PTL_PT_ONLY_USE_ONCE | PTL_PT_ONLY_TRUNCATE | PTL_PT_FLOWCTRL | PTL_PT_ALLOC_DISABLED;
  static_assert(PTL_PT_MATCH_UNORDERED != 0 && (PTL_PT_MATCH_UNORDERED & others) == 0);
  EXPECT_STREQ(PtlToStr(PTL_NO_SPACE, PTL_STR_ERROR), "PTL_NO_SPACE");
  const ptl_event_t event{};
  char text[PTL_EV_STR_SIZE];
  EXPECT_GT(PtlEvToStr(1, &event, text), 0);
}

}  // namespace
}  // namespace lintel::test
