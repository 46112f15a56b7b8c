// Output of results: a table for people, JSON and CSV for programs. Set-up path.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/machine.h"
#include "ptl_perf/paths.h"
#include "ptl_perf/rails.h"
#include "ptl_perf/result.h"
#include "ptl_perf/settings.h"

namespace lintel::perf {

/** Circumstances that a reader needs to judge the numbers. */
struct Circumstances {
  tools::Machine machine;
  std::string library;           // "Lintel 0.1.0, Portals 4.3"
  std::string interface;         // "default, nid 192.0.2.1 pid 7"
  std::vector<PathFacts> paths;  // paths of the pairs
  std::string host;
  std::string date;       // "2026-03-01T12:00:00Z"
  double load = 0;        // load of the machine, before the measurement
  std::string processes;  // number of processes, and how they were started
  std::string pinning;
  std::string clock;
  std::vector<std::pair<std::string, std::string>> environment;  // PTL_* variables that are set
};

class ReportWriter {
 public:
  virtual ~ReportWriter() = default;
  ReportWriter() = default;
  ReportWriter(const ReportWriter&) = delete;
  ReportWriter& operator=(const ReportWriter&) = delete;
  virtual void add(const Result& result) = 0;
  /** `rails`: shares of the network interfaces at the initiator, if there are several. */
  virtual void finish(const std::vector<RailShare>& rails) = 0;
};

/** Sends each result to all the writers that the settings ask for. */
class Reporter {
 public:
  /** Opens the files. Throws if one cannot be written. `interface`: that of the measurement. */
  Reporter(const Settings& settings, const Circumstances& circumstances, ptl_handle_ni_t interface);

  void add(const Result& result);

  /** After the last result. Throws if a file could not be written. */
  void finish();

 private:
  std::vector<std::unique_ptr<ReportWriter>> writers_;
  const RailShares rails_;
};

/** A file that was opened for writing, or standard output for "-". */
class OutputFile {
 public:
  explicit OutputFile(const std::string& name);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(const std::string& text);
  void finish();

 private:
  std::string name_;
  std::FILE* file_;
};

std::unique_ptr<ReportWriter> make_table_writer(const Settings& settings,
                                                const Circumstances& circumstances);
std::unique_ptr<ReportWriter> make_json_writer(const Settings& settings,
                                               const Circumstances& circumstances);
std::unique_ptr<ReportWriter> make_csv_writer(const Settings& settings,
                                              const Circumstances& circumstances);

}  // namespace lintel::perf
