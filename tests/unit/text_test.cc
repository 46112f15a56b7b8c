// PtlToStr and PtlEvToStr: names of constants, and events as text.
#include <cstring>
#include <string>

#include <gtest/gtest.h>

#include "portals4_lintel.h"

namespace {

TEST(TextTest, NamesConstantsOfEachKind) {
  EXPECT_STREQ(PtlToStr(PTL_OK, PTL_STR_ERROR), "PTL_OK");
  EXPECT_STREQ(PtlToStr(PTL_EVENT_PUT, PTL_STR_EVENT), "PTL_EVENT_PUT");
  EXPECT_STREQ(PtlToStr(PTL_NI_DROPPED, PTL_STR_FAIL_TYPE), "PTL_NI_DROPPED");
  EXPECT_STREQ(PtlToStr(-1, PTL_STR_ERROR), "unknown");
  for (int code = PTL_OK; code <= PTL_INTERRUPTED; ++code) {
    const std::string name = PtlToStr(code, PTL_STR_ERROR);
    if (name == "unknown") continue;
    EXPECT_EQ(std::string(PtlLintelStrError(code)).rfind(name + ": ", 0), 0u) << name;
  }
  EXPECT_STREQ(PtlLintelStrError(-1), "not a return code of Portals");
  EXPECT_STREQ(PtlToStr(10000, PTL_STR_EVENT), "unknown");
}

TEST(TextTest, AnEventFitsItsBufferAndNamesItsKindAndResult) {
  ptl_event_t event;
  std::memset(&event, 0xff, sizeof event);  // the largest numbers
  event.type = PTL_EVENT_PUT_OVERFLOW;
  event.ni_fail_type = PTL_NI_SEGV;
  for (const int verbose : {0, 1}) {
    char text[PTL_EV_STR_SIZE];
    const int length = PtlEvToStr(verbose, &event, text);
    EXPECT_EQ(static_cast<size_t>(length), std::strlen(text));
    EXPECT_LT(length, PTL_EV_STR_SIZE);
    EXPECT_NE(std::string(text).find("PTL_EVENT_PUT_OVERFLOW"), std::string::npos) << text;
    EXPECT_NE(std::string(text).find("PTL_NI_SEGV"), std::string::npos) << text;
  }
}

std::string verbose_text(ptl_event_kind_t kind, ptl_ni_fail_t fail) {
  ptl_event_t event;
  std::memset(&event, 0xee, sizeof event);  // what was in the program's variable before
  event.type = kind;
  event.ni_fail_type = fail;
  event.user_ptr = nullptr;
  event.pt_index = 4;
  event.mlength = 8;
  char text[PTL_EV_STR_SIZE];
  PtlEvToStr(1, &event, text);
  return text;
}

// spec 3.13.4, table 3-3
TEST(TextTest, AnEventShowsTheFieldsThatItsKindDefines) {
  EXPECT_EQ(verbose_text(PTL_EVENT_SEND, PTL_NI_OK),
            "PTL_EVENT_SEND PTL_NI_OK mlength 8 user_ptr (nil)");
  EXPECT_EQ(verbose_text(PTL_EVENT_ACK, PTL_NI_DROPPED),
            "PTL_EVENT_ACK PTL_NI_DROPPED user_ptr (nil)");
  EXPECT_EQ(verbose_text(PTL_EVENT_LINK, PTL_NI_OK),
            "PTL_EVENT_LINK PTL_NI_OK pt_index 4 user_ptr (nil)");
  EXPECT_EQ(verbose_text(PTL_EVENT_PT_DISABLED, PTL_NI_OK),
            "PTL_EVENT_PT_DISABLED PTL_NI_OK pt_index 4");
  EXPECT_EQ(verbose_text(PTL_EVENT_ERROR, PTL_NI_UNDELIVERABLE),
            "PTL_EVENT_ERROR PTL_NI_UNDELIVERABLE user_ptr (nil)");
  EXPECT_EQ(verbose_text(PTL_EVENT_SEARCH, PTL_NI_NO_MATCH),
            "PTL_EVENT_SEARCH PTL_NI_NO_MATCH user_ptr (nil)");
  const std::string get = verbose_text(PTL_EVENT_GET, PTL_NI_OK);
  for (const char* field : {"initiator", "uid", "pt_index 4", "match_bits", "rlength", "start"})
    EXPECT_NE(get.find(field), std::string::npos) << field << ": " << get;
  for (const char* field : {"list", "hdr_data", "operation", "type"})
    EXPECT_EQ(get.find(field), std::string::npos) << field << ": " << get;
  const std::string atomic = verbose_text(PTL_EVENT_ATOMIC, PTL_NI_OK);
  EXPECT_NE(atomic.find("operation"), std::string::npos) << atomic;
}

}  // namespace
