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

}  // namespace
