// Refused calls. With PTL_LOG_LEVEL=debug each writes one line with the call, the argument, its
// value and the rule. Otherwise there is none.
#include "api/refusal.h"

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "errors_of_child.h"
#include "portals4_lintel.h"
#include "unit/entry_for_all.h"
#include "util/config.h"

namespace lintel {
namespace {

// The lines about refused calls, from the name of the call onwards.
std::vector<std::string> refusals_in(const std::string& text) {
  std::vector<std::string> found;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    const size_t start = line.find(" debug: Ptl");
    if (start != std::string::npos && line.find(" returns ") != std::string::npos)
      found.push_back(line.substr(start + 8));
    at = end + 1;
  }
  return found;
}

std::string hexadecimal(uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

// An interface with one object of each kind, and calls that use them.
struct Program {
  explicit Program(unsigned options = PTL_NI_MATCHING | PTL_NI_PHYSICAL) {
    EXPECT_EQ(PtlInit(), PTL_OK);
    EXPECT_EQ(PtlNIInit(PTL_IFACE_DEFAULT, options, PTL_PID_ANY, nullptr, &limits, &interface),
              PTL_OK);
    EXPECT_EQ(PtlEQAlloc(interface, 16, &queue), PTL_OK);
    EXPECT_EQ(PtlCTAlloc(interface, &counter), PTL_OK);
    EXPECT_EQ(PtlMDBind(interface, &memory, &descriptor), PTL_OK);
    EXPECT_EQ(PtlPTAlloc(interface, 0, queue, 3, &portal), PTL_OK);
    EXPECT_EQ(PtlGetPhysId(interface, &self), PTL_OK);
  }
  [[nodiscard]] int put(ptl_size_t length, ptl_pt_index_t index = 3) const {
    return PtlPut(descriptor, 0, length, PTL_ACK_REQ, self, index, 0, 0, nullptr, 0);
  }
  [[nodiscard]] int append(const ptl_me_t& entry, ptl_pt_index_t index = 3,
                           ptl_list_t list = PTL_PRIORITY_LIST) const {
    ptl_handle_me_t handle;
    return PtlMEAppend(interface, index, &entry, list, nullptr, &handle);
  }
  [[nodiscard]] int bind(ptl_md_t md) const {
    ptl_handle_md_t handle;
    return PtlMDBind(interface, &md, &handle);
  }

  char buffer[64] = {};
  ptl_md_t memory{buffer, sizeof buffer, 0, PTL_EQ_NONE, PTL_CT_NONE};
  ptl_ni_limits_t limits{};
  ptl_handle_ni_t interface = PTL_INVALID_HANDLE;
  ptl_handle_eq_t queue = PTL_EQ_NONE;
  ptl_handle_ct_t counter = PTL_CT_NONE;
  ptl_handle_md_t descriptor = PTL_INVALID_HANDLE;
  ptl_pt_index_t portal = 0;
  ptl_process_t self{};
};

// A call, its return code, and the line that it must write.
struct Case {
  int code;
  std::string expected;
  std::function<int(Program&)> call;
};

void expect_lines(const std::vector<Case>& cases) {
  const auto run = [&] {
    Program program;
    for (const Case& one : cases) EXPECT_EQ(one.call(program), one.code) << one.expected;
  };
  const std::vector<std::string> lines = refusals_in(errors_of("debug", run));
  ASSERT_EQ(lines.size(), cases.size());
  for (size_t i = 0; i < lines.size(); ++i) EXPECT_EQ(lines[i], cases[i].expected);
  EXPECT_TRUE(refusals_in(errors_of("info", run)).empty());
}

TEST(RefusalTest, DataMovement) {
  expect_lines({
      {PTL_ARG_INVALID,
       "PtlPut returns PTL_ARG_INVALID: local_offset = 0: that offset and the length must lie "
       "within the memory descriptor (spec 3.15.2)",
       [](Program& p) { return p.put(65); }},
      {PTL_ARG_INVALID,
       "PtlGet returns PTL_ARG_INVALID: target_id.phys.pid = " + std::to_string(PTL_PID_ANY) +
           ": must not be PTL_PID_ANY (spec 3.15.3)",
       [](Program& p) {
         ptl_process_t any = p.self;
         any.phys.pid = PTL_PID_ANY;
         return PtlGet(p.descriptor, 0, 8, any, 3, 0, 0, nullptr);
       }},
      {PTL_ARG_INVALID,
       "PtlAtomic returns PTL_ARG_INVALID: operation = " + std::to_string(PTL_CSWAP) +
           ": must be allowed for the call and the datatype, see table 3-4 (spec 3.15.5)",
       [](Program& p) {
         return PtlAtomic(p.descriptor, 0, 8, PTL_NO_ACK_REQ, p.self, 3, 0, 0, nullptr, 0,
                          PTL_CSWAP, PTL_INT64_T);
       }},
      {PTL_ARG_INVALID,
       "PtlTriggeredPut returns PTL_ARG_INVALID: trig_ct_handle = " +
           hexadecimal(PTL_INVALID_HANDLE) +
           ": must be a handle of a counting event; it is PTL_INVALID_HANDLE (spec 3.16.1)",
       [](Program& p) {
         return PtlTriggeredPut(p.descriptor, 0, 8, PTL_NO_ACK_REQ, p.self, 3, 0, 0, nullptr, 0,
                                PTL_INVALID_HANDLE, 1);
       }},
  });
}

TEST(RefusalTest, AnInterfaceOfTheOtherKind) {
  const auto run = [] {
    Program p;
    const ptl_le_t le{};
    ptl_handle_le_t handle;
    EXPECT_EQ(PtlLEAppend(p.interface, 3, &le, PTL_PRIORITY_LIST, nullptr, &handle),
              PTL_ARG_INVALID);
  };
  const std::vector<std::string> lines = refusals_in(errors_of("trace", run));
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find("must be of an interface with PTL_NI_NO_MATCHING (spec 3.11.2)"),
            std::string::npos)
      << lines[0];
}

TEST(RefusalTest, WaitsAndPolls) {
  expect_lines({
      {PTL_ARG_INVALID,
       "PtlCTInc returns PTL_ARG_INVALID: increment.failure = 2: must be 0 where increment.success "
       "is not (spec 3.14.9)",
       [](Program& p) {
         return PtlCTInc(p.counter, {1, 2});
       }},
  });
}

TEST(RefusalTest, InterfacesAndPortalTables) {
  expect_lines({
      {PTL_ARG_INVALID,
       "PtlNIInit returns PTL_ARG_INVALID: options = 0x3: must be one of PTL_NI_MATCHING and "
       "PTL_NI_NO_MATCHING, with one of PTL_NI_LOGICAL and PTL_NI_PHYSICAL (spec 3.6.2)",
       [](Program&) {
         ptl_handle_ni_t handle;
         return PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_NO_MATCHING, PTL_PID_ANY,
                          nullptr, nullptr, &handle);
       }},
      {PTL_PID_IN_USE,
       "PtlNIInit returns PTL_PID_IN_USE: pid = 7: must be free on this node, and the same for all "
       "interfaces over one network (spec 3.6.2)",
       [](Program&) {
         ptl_handle_ni_t handle;
         return PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_NO_MATCHING | PTL_NI_PHYSICAL, 7, nullptr,
                          nullptr, &handle);
       }},
      {PTL_PT_EQ_NEEDED,
       "PtlPTAlloc returns PTL_PT_EQ_NEEDED: options = " + hexadecimal(PTL_PT_FLOWCTRL) +
           ": PTL_PT_FLOWCTRL must come with an event queue (spec 3.7.1)",
       [](Program& p) {
         ptl_pt_index_t index;
         return PtlPTAlloc(p.interface, PTL_PT_FLOWCTRL, PTL_EQ_NONE, 5, &index);
       }},
  });
}

TEST(RefusalTest, HandlesAreToldByWhatTheyName) {
  const auto run = [] {
    Program p;
    ptl_event_t event;
    EXPECT_EQ(PtlEQGet(p.counter, &event), PTL_ARG_INVALID);
    EXPECT_EQ(PtlEQFree(p.queue), PTL_OK);
    EXPECT_EQ(PtlEQGet(p.queue, &event), PTL_ARG_INVALID);
    EXPECT_EQ(PtlEQGet(0, &event), PTL_ARG_INVALID);
    Program other(PTL_NI_NO_MATCHING | PTL_NI_PHYSICAL);
    ptl_pt_index_t index;
    EXPECT_EQ(PtlPTAlloc(p.interface, 0, other.queue, 8, &index), PTL_ARG_INVALID);
    EXPECT_EQ(PtlNIFini(other.interface), PTL_OK);
    EXPECT_EQ(PtlEQGet(other.queue, &event), PTL_ARG_INVALID);
  };
  const std::vector<std::string> lines = refusals_in(errors_of("debug", run));
  const char* const reasons[] = {"it is one of a counting event", "that object was freed",
                                 "it is no handle", "it belongs to another interface",
                                 "its interface is not open"};
  ASSERT_EQ(lines.size(), std::size(reasons));
  for (size_t i = 0; i < lines.size(); ++i)
    EXPECT_NE(lines[i].find(reasons[i]), std::string::npos) << lines[i];
}

TEST(RefusalTest, CallsBeforePtlInit) {
  const auto run = [] {
    ptl_handle_ni_t handle;
    EXPECT_EQ(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, nullptr,
                        nullptr, &handle),
              PTL_NO_INIT);
    EXPECT_EQ(PtlEQWait(PTL_EQ_NONE, nullptr), PTL_NO_INIT);
  };
  const std::vector<std::string> lines = refusals_in(errors_of("debug", run));
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0],
            "PtlNIInit returns PTL_NO_INIT: PtlInit was not called, or PtlFini was (spec 3.5.1)");
  EXPECT_TRUE(refusals_in(errors_of("warn", run)).empty());
}

TEST(RefusalTest, BeforePtlInitTheLevelComesFromAFileToo) {
  std::string path = testing::TempDir() + "lintel.conf.XXXXXX";
  const int file = mkstemp(path.data());
  ASSERT_GE(file, 0);
  const std::string text = "PTL_LOG_LEVEL = debug\n";
  ASSERT_EQ(write(file, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  close(file);
  const auto run = [&] {
    setenv("XDG_CONFIG_HOME", "/nonexistent", 1);
    config_use_system_file(path);
    for (int i = 0; i < 2; ++i) EXPECT_EQ(PtlNIFini(PTL_INVALID_HANDLE), PTL_NO_INIT);
  };
  EXPECT_EQ(refusals_in(errors_of("", run)).size(), 2u);
  EXPECT_TRUE(refusals_in(errors_of("warn", run)).empty())
      << "the environment takes precedence over the file";
  unlink(path.c_str());
}

TEST(RefusalTest, LimitsThatAreReached) {
  const auto run = [] {
    EXPECT_EQ(PtlInit(), PTL_OK);
    ptl_ni_limits_t desired{};
    desired.max_cts = 1;
    ptl_ni_limits_t granted;
    ptl_handle_ni_t interface;
    EXPECT_EQ(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, &desired,
                        &granted, &interface),
              PTL_OK);
    ptl_handle_ct_t counter;
    for (int i = 0; i < granted.max_cts; ++i) EXPECT_EQ(PtlCTAlloc(interface, &counter), PTL_OK);
    EXPECT_EQ(PtlCTAlloc(interface, &counter), PTL_NO_SPACE);
  };
  const std::vector<std::string> lines = refusals_in(errors_of("debug", run));
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find("PtlCTAlloc returns PTL_NO_SPACE: max_cts = "), std::string::npos);
}

size_t times(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

testing::Matcher<const std::string&> contains_once(const std::string& part) {
  return testing::ResultOf(
      "how often it contains '" + part + "'",
      [part](const std::string& text) { return times(text, part); }, 1u);
}

TEST(RefusalTest, TheFirstOneOfAProcessSaysHowToLearnMore) {
  const auto run = [] {
    Program program;
    for (int i = 0; i < 3; ++i) EXPECT_EQ(program.put(65), PTL_ARG_INVALID);
    EXPECT_EQ(program.append({}, 100000), PTL_ARG_INVALID);
  };
  const char* const advice = "with PTL_LOG_LEVEL=debug a line says why, for each refused call\n";
  expect_errors_of_new_process(
      "warn", run,
      testing::AllOf(contains_once(advice),
                     contains_once("warn: PtlPut returns PTL_ARG_INVALID: ")));
  expect_errors_of_new_process("debug", run,
                               testing::Not(testing::HasSubstr("PTL_LOG_LEVEL=debug")));
}

// Correct programs cancel receives that may have happened (spec 3.12.3).
TEST(RefusalTest, AnUnlinkOfAnUsedEntryIsNoReasonForALine) {
  const std::string text = errors_of("warn", [] {
    Program program;
    const ptl_me_t entry = test::entry_for_all(nullptr, 0, PTL_ME_OP_PUT | PTL_ME_USE_ONCE);
    ptl_handle_me_t handle;
    EXPECT_EQ(PtlMEAppend(program.interface, 3, &entry, PTL_PRIORITY_LIST, nullptr, &handle),
              PTL_OK);
    ptl_event_t event{};
    EXPECT_EQ(PtlPut(program.descriptor, 0, 0, PTL_NO_ACK_REQ, program.self, 3, 0, 0, nullptr, 0),
              PTL_OK);
    while (event.type != PTL_EVENT_AUTO_UNLINK) EXPECT_EQ(PtlEQWait(program.queue, &event), PTL_OK);
    for (int i = 0; i < 3; ++i) EXPECT_NE(PtlMEUnlink(handle), PTL_OK);
  });
  EXPECT_EQ(times(text, "returns"), 0u) << text;
}

// Legal, and probably not meant: told once each.
TEST(RefusalTest, CombinationsWithoutEffectAreWarnedOfOnce) {
  struct Combination {
    const char* text;
    std::function<void(Program&)> use;
  };
  const Combination all[] = {
      {"nothing will report it", [](Program& program) { EXPECT_EQ(program.put(8), PTL_OK); }},
      {"PTL_MD_EVENT_CT_ option, but its ct_handle is PTL_CT_NONE",
       [](Program& program) {
         EXPECT_EQ(program.bind({program.buffer, 8, PTL_MD_EVENT_CT_ACK, PTL_EQ_NONE, PTL_CT_NONE}),
                   PTL_OK);
       }},
      {"a memory descriptor has a ct_handle, but none of",
       [](Program& program) {
         EXPECT_EQ(program.bind({program.buffer, 8, 0, PTL_EQ_NONE, program.counter}), PTL_OK);
       }},
      {"PTL_ME_EVENT_CT_OVERFLOW, but its ct_handle is PTL_CT_NONE",
       [](Program& program) {
         ptl_me_t entry{};
         entry.ct_handle = PTL_CT_NONE;
         entry.options = PTL_ME_EVENT_CT_COMM;
         EXPECT_EQ(program.append(entry), PTL_OK);
       }},
      {"an entry has a ct_handle, but neither",
       [](Program& program) {
         ptl_me_t entry{};
         entry.ct_handle = program.counter;
         EXPECT_EQ(program.append(entry), PTL_OK);
       }},
      {"PtlMDBind returns PTL_ARG_INVALID: md->eq_handle is 0, as in a zeroed structure; where there "
       "is to be none, it must be PTL_EQ_NONE (spec 3.10.3)",
       [](Program& program) {
         ptl_md_t md{};
         md.ct_handle = PTL_CT_NONE;
         EXPECT_EQ(program.bind(md), PTL_ARG_INVALID);
       }},
      {"PtlEQFree: memory descriptors or portal table entries still use the queue",
       [](Program& program) {
         EXPECT_EQ(PtlEQFree(program.queue), PTL_OK);
         EXPECT_EQ(PtlEQAlloc(program.interface, 4, &program.queue), PTL_OK);
         ptl_pt_index_t index;
         EXPECT_EQ(PtlPTAlloc(program.interface, 0, program.queue, PTL_PT_ANY, &index), PTL_OK);
       }},
  };
  for (const Combination& one : all) {
    const auto use_twice = [&] {
      Program program;
      one.use(program);
      one.use(program);
    };
    expect_errors_of_new_process("warn", use_twice, contains_once(one.text));
  }
  // Searches count whatever the options (spec 3.12.4).
  const auto search = [] {
    Program program;
    ptl_me_t entry{};
    entry.ct_handle = program.counter;
    entry.uid = PTL_UID_ANY;
    EXPECT_EQ(PtlMESearch(program.interface, 3, &entry, PTL_SEARCH_ONLY, nullptr), PTL_OK);
  };
  expect_errors_of_new_process("warn", search, testing::Not(testing::HasSubstr("warn")));
}

TEST(RefusalTest, AMapWithTwoRanksForThisProcessIsWarnedOfOnce) {
  const auto set_map = [] {
    Program program(PTL_NI_MATCHING | PTL_NI_LOGICAL);
    const ptl_process_t map[] = {program.self, program.self};
    EXPECT_EQ(PtlSetMap(program.interface, 2, map), PTL_OK);
  };
  expect_errors_of_new_process("warn", set_map,
                               contains_once("PtlSetMap: ranks 0 and 1 are both this process"));
}

}  // namespace
}  // namespace lintel
