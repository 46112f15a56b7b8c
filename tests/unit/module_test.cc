// Modules are found. Unsuitable ones are refused, and the message says why.
#include "util/module.h"

#include <cstdlib>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lintel {

using testing::HasSubstr;

class ModuleTest : public testing::Test {
 protected:
  ModuleTest() { setenv("PTL_MODULE_PATH", "/nowhere:" LINTEL_TEST_MODULE_DIRECTORY, 1); }
  ~ModuleTest() override { unsetenv("PTL_MODULE_PATH"); }

  // The reason why the module is refused.
  static std::string refusal(const std::string& name) {
    std::string reason;
    EXPECT_EQ(load_module(name, reason), nullptr);
    return reason;
  }
};

TEST_F(ModuleTest, OneThatIsMissingIsLookedForInAllDirectories) {
  const std::string reason = refusal("missing");
  EXPECT_THAT(reason, HasSubstr("the module missing is not installed"));
  EXPECT_THAT(reason, HasSubstr("/nowhere/missing.so, "));
  EXPECT_THAT(reason, HasSubstr(LINTEL_TEST_MODULE_DIRECTORY "/missing.so, "));
  EXPECT_THAT(reason, HasSubstr("/lintel/missing.so)"));
}

TEST_F(ModuleTest, OneOfAnotherVersionIsRefused) {
  EXPECT_THAT(refusal("other_version"),
              HasSubstr("is of version 0.0.0 of this library, which is " LINTEL_VERSION));
}

TEST_F(ModuleTest, OneOfAnotherBuildIsRefused) {
  const std::string reason = refusal("other_build");
  EXPECT_THAT(reason, HasSubstr("is of version " LINTEL_VERSION
                                " build 0 of this library, which is " LINTEL_VERSION " build "));
}

TEST_F(ModuleTest, OneWithoutAnEntryIsRefused) {
  EXPECT_THAT(refusal("no_entry"), HasSubstr("it has no lintel_module"));
}

TEST_F(ModuleTest, WhatIsNotALibraryIsRefused) {
  std::ofstream(LINTEL_TEST_MODULE_DIRECTORY "/text.so") << "not a library";
  EXPECT_THAT(refusal("text"), HasSubstr("cannot load the module"));
}

#ifdef LINTEL_HAS_CRYPTO
TEST_F(ModuleTest, OneOfThisBuildIsLoadedOnce) {
  setenv("PTL_MODULE_PATH", LINTEL_MODULE_DIRECTORY, 1);
  std::string reason;
  const void* const offer = load_module("crypto", reason);
  EXPECT_NE(offer, nullptr) << reason;
  EXPECT_EQ(load_module("crypto", reason), offer);
}
#endif

}  // namespace lintel
