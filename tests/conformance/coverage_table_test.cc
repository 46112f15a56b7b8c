// Checks that tests/conformance/sections.md is complete. Its table of sections and tests is derived
// from the `// spec` lines above the tests. With LINTEL_UPDATE_CONFORMANCE_TABLE=1 in the
// environment, this test rewrites the table.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

#include "tests_directory.h"

namespace lintel::test {
namespace {

namespace fs = std::filesystem;

// Sections with a statement that a test can check from outside; each must have a test.
constexpr const char* testable_sections[] = {
    "1.6",    "2.1",    "2.2",    "2.5",    "2.5.1",  "2.5.2",  "2.6",    "2.7",    "2.7.1",
    "2.7.2",  "2.7.3",  "2.7.4",  "2.7.5",  "2.8",    "2.9",    "3.2",    "3.2.1",  "3.3.1",
    "3.3.2",  "3.3.4",  "3.3.5",  "3.3.6",  "3.3.7",  "3.4",    "3.5",    "3.5.1",  "3.5.2",
    "3.5.3",  "3.6",    "3.6.1",  "3.6.2",  "3.6.3",  "3.6.4",  "3.6.5",  "3.6.6",  "3.6.7",
    "3.7",    "3.7.1",  "3.7.2",  "3.7.3",  "3.7.4",  "3.8",    "3.8.1",  "3.9",    "3.9.2",
    "3.9.3",  "3.10",   "3.10.1", "3.10.2", "3.10.3", "3.10.4", "3.11",   "3.11.1", "3.11.2",
    "3.11.3", "3.11.4", "3.12",   "3.12.1", "3.12.2", "3.12.3", "3.12.4", "3.13",   "3.13.1",
    "3.13.2", "3.13.3", "3.13.4", "3.13.5", "3.13.6", "3.13.7", "3.13.8", "3.13.9", "3.14",
    "3.14.1", "3.14.2", "3.14.3", "3.14.4", "3.14.5", "3.14.6", "3.14.7", "3.14.8", "3.14.9",
    "3.15.1", "3.15.2", "3.15.3", "3.15.4", "3.15.5", "3.15.6", "3.15.7", "3.15.8", "3.16",
    "3.16.1", "3.16.2", "3.16.3", "3.16.4", "3.16.5", "3.16.6", "3.16.7", "3.17",   "3.17.1",
    "3.17.2", "3.18.1", "4.2.2"};

// Sorts sections in the order of the document: 2.9 before 2.10, appendices last.
std::vector<int> sort_key(const std::string& section) {
  std::vector<int> key;
  std::istringstream parts(section);
  for (std::string part; std::getline(parts, part, '.') && !part.empty();)
    key.push_back(std::isdigit(static_cast<unsigned char>(part[0])) != 0 ? std::stoi(part)
                                                                         : 1000 + part[0]);
  return key;
}

struct BySection {
  bool operator()(const std::string& left, const std::string& right) const {
    return sort_key(left) < sort_key(right);
  }
};

using Coverage = std::map<std::string, std::set<std::string>, BySection>;

// The tests without a `// spec` line, and the contents of all these lines.
struct Survey {
  Coverage coverage;
  std::vector<std::string> unmarked;
};

// "Suite.Name" if the line begins a test, otherwise empty.
std::string test_of(const std::string& line) {
  for (const std::string_view macro : {"TEST(", "TEST_P(", "TEST_F("}) {
    if (!line.starts_with(macro)) continue;
    const std::size_t comma = line.find(", ");
    const std::size_t end = line.find(')');
    if (comma == std::string::npos || end == std::string::npos) return {};
    return line.substr(macro.size(), comma - macro.size()) + "." +
           line.substr(comma + 2, end - comma - 2);
  }
  return {};
}

void survey_file(const fs::path& file, Survey& survey) {
  constexpr std::string_view mark = "// spec ";
  std::ifstream lines(file);
  std::string sections;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(mark)) {
      sections = line.substr(mark.size());
      continue;
    }
    if (const std::string test = test_of(line); !test.empty()) {
      if (sections.empty()) survey.unmarked.push_back(file.filename().string() + ": " + test);
      std::istringstream list(sections);
      for (std::string section; std::getline(list, section, ',');) {
        section.erase(0, section.find_first_not_of(' '));
        survey.coverage[section].insert(test);
      }
    }
    if (!line.starts_with("//")) sections.clear();  // a comment may stand in between
  }
}

Survey survey_tests(const fs::path& tests) {
  Survey survey;
  for (const char* suite : {"conformance", "processes", "faults"}) {
    if (!fs::exists(tests / suite)) continue;
    for (const fs::directory_entry& entry : fs::directory_iterator(tests / suite)) {
      if (entry.path().extension() == ".cc") survey_file(entry.path(), survey);
    }
  }
  return survey;
}

std::string table_of(const Coverage& coverage) {
  std::ostringstream table;
  table << "| section | tests |\n| --- | --- |\n";
  for (const auto& [section, tests] : coverage) {
    table << "| " << section << " |";
    const char* separator = " ";
    for (const std::string& test : tests) {
      table << separator << test;
      separator = ", ";
    }
    table << " |\n";
  }
  return table.str();
}

constexpr std::string_view table_begin = "<!-- table of tests: begin -->\n";
constexpr std::string_view table_end = "<!-- table of tests: end -->\n";

const fs::path tests_directory = TESTS_DIRECTORY;

// Names the first line of `wanted` that differs, since the whole table is long.
std::string first_difference(const std::string& found, const std::string& wanted) {
  std::istringstream left(found);
  std::istringstream right(wanted);
  for (std::string is, should; std::getline(right, should);) {
    std::getline(left, is);
    if (is != should) return "is      : " + is + "\nshould be: " + should;
  }
  return "there are lines too many";
}

TEST(CoverageTableTest, TheDocumentListsTheTestsThatExist) {
  const Survey survey = survey_tests(tests_directory);
  const std::string table = table_of(survey.coverage);
  const fs::path document = tests_directory / "conformance" / "sections.md";
  std::ifstream file(document);
  ASSERT_TRUE(file) << "cannot read " << document;
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const std::size_t begin = text.find(table_begin);
  const std::size_t end = text.find(table_end);
  ASSERT_NE(begin, std::string::npos);
  ASSERT_NE(end, std::string::npos);
  const std::size_t start = begin + table_begin.size();
  const std::string found = text.substr(start, end - start);
  if (std::getenv("LINTEL_UPDATE_CONFORMANCE_TABLE") != nullptr) {
    text.replace(start, found.size(), table);
    std::ofstream(document) << text;
    return;
  }
  EXPECT_EQ(found == table, true) << first_difference(found, table)
                                  << "\nrun this test with LINTEL_UPDATE_CONFORMANCE_TABLE=1";
}

TEST(CoverageTableTest, EveryTestableSectionHasATest) {
  const Survey survey = survey_tests(tests_directory);
  for (const char* section : testable_sections)
    EXPECT_TRUE(survey.coverage.contains(section)) << "no test names section " << section;
}

TEST(CoverageTableTest, EveryTestNamesItsSection) {
  const Survey survey = survey_tests(tests_directory);
  for (const std::string& test : survey.unmarked) {
    const bool about_this_table = test.find("CoverageTableTest") != std::string::npos;
    EXPECT_TRUE(about_this_table) << test << " has no line '// spec <section>' above it";
  }
}

}  // namespace
}  // namespace lintel::test
