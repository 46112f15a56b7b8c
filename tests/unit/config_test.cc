// The configuration table: defaults, parsing, ranges, warnings.
#include "util/config.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "util/config_parse.h"
#include "util/log.h"

namespace lintel {
namespace {

// Sets variables, reads the configuration and returns what was written to standard error. The
// destructor restores all variables.
class ConfigTest : public testing::Test {
 protected:
  std::string load(const std::map<std::string, std::string>& variables) {
    for (const auto& [name, value] : variables) {
      const char* old = std::getenv(name.c_str());
      saved_.try_emplace(name, old ? std::optional<std::string>(old) : std::nullopt);
      setenv(name.c_str(), value.c_str(), 1);
    }
    testing::internal::CaptureStderr();
    config_reload();
    return testing::internal::GetCapturedStderr();
  }

  void TearDown() override {
    for (const auto& [name, value] : saved_) {
      if (value)
        setenv(name.c_str(), value->c_str(), 1);
      else
        unsetenv(name.c_str());
    }
    config_reload();
  }

 private:
  std::map<std::string, std::optional<std::string>> saved_;
};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Configuration files in a directory of the test, which replace those of the user and of the
// system.
class ConfigFilesTest : public ConfigTest {
 protected:
  ConfigFilesTest() { config_use_system_file(directory_ / "system.conf"); }
  ~ConfigFilesTest() override {
    config_use_system_file("/etc/lintel.conf");
    std::filesystem::remove_all(directory_);
  }
  std::string load(const std::string& user, const std::string& system,
                   std::map<std::string, std::string> variables = {}) {
    std::ofstream(directory_ / "lintel.conf") << user;
    std::ofstream(directory_ / "system.conf") << system;
    variables["XDG_CONFIG_HOME"] = directory_.string();
    return ConfigTest::load(variables);
  }
  std::string place(const char* file) const { return (directory_ / file).string(); }

 private:
  static std::filesystem::path make_directory() {
    std::string name = testing::TempDir() + "lintel-config-XXXXXX";
    return mkdtemp(name.data());
  }
  const std::filesystem::path directory_ = make_directory();
};

TEST_F(ConfigFilesTest, TheEnvironmentGoesBeforeTheFileOfTheUserAndThatBeforeTheOneOfTheSystem) {
  const std::string said = load("PTL_SPIN_US = 2\nPTL_NID=\"eth7\"\n",
                                "# of the system\n\nPTL_SPIN_US=1\n  PTL_NID = eth1\n"
                                "PTL_PEER_TIMEOUT_MS = 77 \n",
                                {{"PTL_SPIN_US", "3"}});
  EXPECT_EQ(said, "");
  EXPECT_EQ(config_u64(ConfigKey::spin_us), 3u);
  EXPECT_EQ(config_origin_text(ConfigKey::spin_us), "environment");
  EXPECT_EQ(config_string(ConfigKey::nid), "eth7");
  EXPECT_EQ(config_origin_text(ConfigKey::nid), place("lintel.conf") + ":2");
  EXPECT_EQ(config_u64(ConfigKey::peer_timeout_ms), 77u);
  EXPECT_EQ(config_origin_text(ConfigKey::peer_timeout_ms), place("system.conf") + ":5");
  EXPECT_EQ(config_origin_text(ConfigKey::progress), "default");
}

TEST_F(ConfigFilesTest, WhatIsWrongInAFileIsWarnedOfWithItsLine) {
  const std::string said = load("PTL_SPIM_US = 2\nnonsense\n", "PTL_SPIN_US = soon\n");
  EXPECT_TRUE(contains(said, place("lintel.conf") + ":1: PTL_SPIM_US is not a variable")) << said;
  EXPECT_TRUE(contains(said, "did you mean PTL_SPIN_US?")) << said;
  EXPECT_TRUE(contains(said, place("lintel.conf") + ":2: ignored")) << said;
  EXPECT_TRUE(contains(said, place("system.conf") + ":1: PTL_SPIN_US=soon is not usable")) << said;
  EXPECT_EQ(config_u64(ConfigKey::spin_us), 50u);
}

TEST_F(ConfigFilesTest, AFileThatCannotBeReadIsWarnedOf) {
  std::filesystem::create_directory(place("system.conf"));
  const std::string said = load("PTL_SPIN_US = 2\n", "");
  EXPECT_TRUE(contains(said, place("system.conf") + " cannot be read: Is a directory")) << said;
  EXPECT_EQ(config_u64(ConfigKey::spin_us), 2u);
}

TEST_F(ConfigFilesTest, BadLinesAreWarnedOfByPtlInitAloneAndNotByACallThatIsRefusedBeforeIt) {
  EXPECT_TRUE(contains(load("nonsense\n", ""), ":1: ignored"));
  EXPECT_EQ(config_complaints(),
            std::vector{place("lintel.conf") + ":1: ignored, as it is not a line NAME = value"});
  config_use_system_file(place("system.conf"));
  testing::internal::CaptureStderr();
  config_find_log_level();
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST_F(ConfigFilesTest, ASecretIsNotTakenFromAFile) {
  const std::string said = load("PTL_JOB_KEY = tell-nobody\n", "");
  EXPECT_TRUE(contains(said, "PTL_JOB_KEY is not taken from a file")) << said;
  EXPECT_FALSE(contains(said, "tell-nobody")) << said;
  EXPECT_EQ(config_string(ConfigKey::job_key), "");
}

TEST_F(ConfigFilesTest, ACommentMayFollowAValue) {
  EXPECT_EQ(load("PTL_SPIN_US = 7  # short\nPTL_NID = eth1\t# the fast one\n", ""), "");
  EXPECT_EQ(config_u64(ConfigKey::spin_us), 7u);
  EXPECT_EQ(config_string(ConfigKey::nid), "eth1");
  EXPECT_EQ(load("PTL_NID = # none\n", ""), "");
  EXPECT_EQ(config_string(ConfigKey::nid), "");
  EXPECT_EQ(load("PTL_NID = a#b # c # d\n", ""), "");
  EXPECT_EQ(config_string(ConfigKey::nid), "a#b");
  EXPECT_EQ(load("PTL_NID = \"a # b\" # \"c\"\n", ""), "");
  EXPECT_EQ(config_string(ConfigKey::nid), "a # b");
  EXPECT_EQ(load("PTL_NID = \"a\" and \"b\"\n", ""), "");
  EXPECT_EQ(config_string(ConfigKey::nid), "\"a\" and \"b\"");
}

TEST_F(ConfigFilesTest, OfSeveralLinesWithOneNameTheLastOneCounts) {
  EXPECT_EQ(load("PTL_SPIN_US = 2\nPTL_SPIN_US = 4\n", ""), "");
  EXPECT_EQ(config_u64(ConfigKey::spin_us), 4u);
}

TEST_F(ConfigTest, StatisticsGoToStandardErrorOrToAFile) {
  load({{"PTL_STATS", "file:/tmp/stats"}});
  EXPECT_TRUE(config_bool(ConfigKey::stats));
  EXPECT_EQ(config_string(ConfigKey::stats), "file:/tmp/stats");
  EXPECT_TRUE(contains(load({{"PTL_STATS", "file:"}}), "allowed: 1, 0 or file:PATH"));
  EXPECT_FALSE(config_bool(ConfigKey::stats));
}

TEST_F(ConfigTest, EveryRowIsCompleteAndItsDefaultIsAllowed) {
  std::set<std::string> names;
  for (const ConfigVariable& variable : config_table()) {
    EXPECT_TRUE(names.insert(variable.name).second) << variable.name << " is defined twice";
    EXPECT_EQ(std::string(variable.name).rfind("PTL_", 0), 0u) << variable.name;
    EXPECT_TRUE(parse_value(variable, variable.default_value)) << variable.name;
    EXPECT_GT(std::string(variable.help).size(), 10u) << variable.name;
    EXPECT_EQ(variable.help[std::string(variable.help).size() - 1], '.') << variable.name;
    if (variable.type == ConfigType::u64) {
      EXPECT_LT(variable.minimum, variable.maximum) << variable.name;
      EXPECT_FALSE(parse_value(variable, std::to_string(variable.maximum + 1))) << variable.name;
      EXPECT_TRUE(parse_value(variable, std::to_string(variable.maximum))) << variable.name;
      EXPECT_TRUE(parse_value(variable, std::to_string(variable.minimum))) << variable.name;
    }
  }
}

TEST_F(ConfigTest, UnsetAndEmptyVariablesHaveTheirDefault) {
  EXPECT_EQ(load({{"PTL_SPIN_US", ""}}), "");
  EXPECT_EQ(config_u64(ConfigKey::spin_us), 50u);
  EXPECT_EQ(config_origin(ConfigKey::spin_us), ConfigOrigin::default_value);
}

TEST_F(ConfigTest, ValuesComeFromTheEnvironment) {
  EXPECT_EQ(load({{"PTL_SPIN_US", "1000"},
                  {"PTL_STATS", "yes"},
                  {"PTL_PROGRESS", "Caller"},
                  {"PTL_TRANSPORT", " shm , local,"},
                  {"PTL_SHM_CMA_THRESHOLD", "4K"},
                  {"PTL_PROGRESS_CPUS", "3,0-1,1"}}),
            "");
  EXPECT_EQ(config_u64(ConfigKey::spin_us), 1000u);
  EXPECT_EQ(config_origin(ConfigKey::spin_us), ConfigOrigin::environment);
  EXPECT_TRUE(config_bool(ConfigKey::stats));
  EXPECT_EQ(config_choice(ConfigKey::progress), 2u);
  EXPECT_EQ(config_string(ConfigKey::progress), "caller");
  EXPECT_EQ(config_list(ConfigKey::transport), (std::vector<std::string>{"shm", "local"}));
  EXPECT_EQ(config_u64(ConfigKey::shm_cma_threshold), 4096u);
  EXPECT_EQ(config_cpus(ConfigKey::progress_cpus), (std::vector<unsigned>{0, 1, 3}));
}

TEST_F(ConfigTest, RefusedValueIsNamedWithItsRangeAndTheDefaultStays) {
  const std::string warning = load({{"PTL_PEER_TIMEOUT_MS", "49"}});
  EXPECT_TRUE(contains(warning, "PTL_PEER_TIMEOUT_MS=49")) << warning;
  EXPECT_TRUE(contains(warning, "50 to 3600000 ms")) << warning;
  EXPECT_TRUE(contains(warning, "10000")) << warning;
  EXPECT_EQ(config_u64(ConfigKey::peer_timeout_ms), 10000u);
  EXPECT_EQ(config_origin(ConfigKey::peer_timeout_ms), ConfigOrigin::default_value);
}

TEST_F(ConfigTest, RefusesWhatIsNotOfTheType) {
  for (const auto& [name, value] : std::map<std::string, std::string>{{"PTL_SPIN_US", "fast"},
                                                                      {"PTL_STATS", "2"},
                                                                      {"PTL_PROGRESS", "often"},
                                                                      {"PTL_TRANSPORT", ",,"},
                                                                      {"PTL_PROGRESS_CPUS", "4-2"},
                                                                      {"PTL_LOG_LEVEL", "loud"}}) {
    const std::string warning = load({{name, value}});
    EXPECT_TRUE(contains(warning, name + "=" + value)) << name << ": " << warning;
    setenv(name.c_str(), "", 1);
  }
}

TEST_F(ConfigTest, UnknownNameIsReportedOnceWithTheClosestKnownOne) {
  const std::string warning = load({{"PTL_SPIN_SU", "1"}});
  EXPECT_TRUE(contains(warning, "PTL_SPIN_SU")) << warning;
  EXPECT_TRUE(contains(warning, "did you mean PTL_SPIN_US?")) << warning;
  EXPECT_EQ(load({{"PTL_SPIN_SU", "2"}}), "");
}

TEST_F(ConfigTest, UnknownNameThatResemblesNothingIsReportedWithoutGuess) {
  const std::string warning = load({{"PTL_QQQQQQQQQQQQQQQQQQQQQQ", "1"}});
  EXPECT_TRUE(contains(warning, "PTL_QQQQQQQQQQQQQQQQQQQQQQ")) << warning;
  EXPECT_FALSE(contains(warning, "did you mean")) << warning;
}

TEST_F(ConfigTest, NamesOfRuntimesAreKnown) {
  EXPECT_EQ(load({{"PTL_MY_RID", "0"},
                  {"PTL_NIDMAP", "1"},
                  {"PTL_PIDMAP", "1"},
                  {"PTL_MY_JID", "7"},
                  {"PTL_WAIT_S", "3"}}),
            "");
}

TEST_F(ConfigTest, NumbersMayBeHexadecimalAndOptional) {
  EXPECT_EQ(config_optional(ConfigKey::verbs_gid_index), std::nullopt);
  EXPECT_EQ(config_u64(ConfigKey::verbs_pkey), 0xffffu);
  EXPECT_EQ(load({{"PTL_VERBS_PKEY", "0x8001"}, {"PTL_VERBS_GID_INDEX", "3"}}), "");
  EXPECT_EQ(config_u64(ConfigKey::verbs_pkey), 0x8001u);
  EXPECT_EQ(config_optional(ConfigKey::verbs_gid_index), 3u);
  const std::string warning = load({{"PTL_VERBS_PKEY", "0"}, {"PTL_VERBS_GID_INDEX", "256"}});
  EXPECT_TRUE(contains(warning, "1 to 65535")) << warning;
  EXPECT_TRUE(contains(warning, "0 to 255")) << warning;
  EXPECT_EQ(config_optional(ConfigKey::verbs_gid_index), std::nullopt);
}

TEST_F(ConfigTest, SecretIsNeverShown) {
  EXPECT_EQ(load({{"PTL_JOB_KEY", "open sesame"}}), "");
  EXPECT_EQ(config_display(ConfigKey::job_key), "set");
  EXPECT_EQ(config_string(ConfigKey::job_key), "open sesame");
  testing::internal::CaptureStderr();
  config_refuse(ConfigKey::job_key, "another one");
  EXPECT_FALSE(contains(testing::internal::GetCapturedStderr(), "sesame"));
  EXPECT_EQ(config_display(ConfigKey::job_key), "unset");
}

TEST_F(ConfigTest, ValueRefusedByItsUserGoesBackToTheDefault) {
  EXPECT_EQ(load({{"PTL_TRANSPORT", "pigeon"}}), "");
  testing::internal::CaptureStderr();
  config_refuse(ConfigKey::transport, "local, shm");
  const std::string warning = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(contains(warning, "PTL_TRANSPORT=pigeon")) << warning;
  EXPECT_TRUE(contains(warning, "local, shm")) << warning;
  EXPECT_EQ(config_list(ConfigKey::transport),
            (std::vector<std::string>{"local", "shm", "verbs", "dpdk", "udp"}));
}

TEST_F(ConfigTest, LogLevelAppliesToTheWarningsOfTheSameLoad) {
  EXPECT_EQ(load({{"PTL_LOG_LEVEL", "error"}, {"PTL_SPIN_US", "-1"}}), "");
  EXPECT_FALSE(log_enabled(LogLevel::warn));
  load({{"PTL_LOG_LEVEL", "trace"}});
  EXPECT_TRUE(log_enabled(LogLevel::trace));
}

TEST(ConfigParse, NumbersWithSuffixDoNotOverflow) {
  EXPECT_EQ(parse_number("16777215G", true), uint64_t{16777215} << 30);
  EXPECT_FALSE(parse_number("17179869184G", true));
  EXPECT_FALSE(parse_number("18446744073709551616", false));
  EXPECT_FALSE(parse_number("1K", false));
  EXPECT_FALSE(parse_number("K", true));
  EXPECT_FALSE(parse_number("0x10", false));
}

TEST(ConfigParse, CpuListsAreBounded) {
  EXPECT_FALSE(parse_cpu_list("0-4294967295"));
  EXPECT_FALSE(parse_cpu_list("-1"));
  EXPECT_FALSE(parse_cpu_list("1-"));
  EXPECT_EQ(parse_cpu_list("4095")->front(), 4095u);
}

TEST(ConfigParse, EditDistanceCountsSwapsOfNeighboursOnce) {
  EXPECT_EQ(edit_distance("PTL_STATS", "PTL_STATS"), 0u);
  EXPECT_EQ(edit_distance("PTL_STAST", "PTL_STATS"), 1u);
  EXPECT_EQ(edit_distance("PTL_STAT", "PTL_STATS"), 1u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
}

}  // namespace
}  // namespace lintel
