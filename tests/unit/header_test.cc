// The public headers: the same objects in C11 and C++, and properties that clients rely on. Most of
// it is checked when header_c11.c and this file are compiled.
#include <portals.h>
#include <portals4_lintel.h>

#include <cstddef>
#include <type_traits>

#include <gtest/gtest.h>

#include "header_c11.h"

namespace {

// A client in C++ compares results of several types with PTL_OK without a warning.
static_assert(PTL_NI_OK == PTL_OK);
static_assert(noexcept(PtlInit()) && noexcept(PtlFini()));
static_assert(std::is_standard_layout_v<ptl_me_t> && std::is_trivially_copyable_v<ptl_event_t>);
static_assert(std::is_same_v<decltype(iovec::iov_base), void*> &&
                  sizeof(ptl_iovec_t::iov_len) == sizeof(ptl_size_t),
              "3.10.2: an iovec of the system is one of Portals");

// Any value of 32 bits is a valid value of the enumeration, also one without a name (a bad
// argument).
static_assert(static_cast<unsigned int>(static_cast<ptl_op_t>(0xffffffffu)) == 0xffffffffu);

TEST(Header, CAndCxxSeeTheSameLayout) {
  header_layout layout{};
  ASSERT_EQ(header_c11_failure(&layout), nullptr);
  EXPECT_EQ(layout.le_bytes, sizeof(ptl_le_t));
  EXPECT_EQ(layout.me_bytes, sizeof(ptl_me_t));
  EXPECT_EQ(layout.md_bytes, sizeof(ptl_md_t));
  EXPECT_EQ(layout.event_bytes, sizeof(ptl_event_t));
  EXPECT_EQ(layout.limits_bytes, sizeof(ptl_ni_limits_t));
  EXPECT_EQ(layout.process_bytes, sizeof(ptl_process_t));
  EXPECT_EQ(layout.event_type_offset, offsetof(ptl_event_t, type));
  EXPECT_EQ(layout.event_datatype_offset, offsetof(ptl_event_t, atomic_type));
  EXPECT_EQ(layout.features_offset, offsetof(ptl_ni_limits_t, features));
}

}  // namespace
