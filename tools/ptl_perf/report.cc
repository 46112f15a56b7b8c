// Output of results. Set-up path.
// SPDX-License-Identifier: BSD-3-Clause
#include "ptl_perf/report.h"

#include <cerrno>
#include <cstring>

#include "ptl_perf/errors.h"

namespace lintel::perf {

OutputFile::OutputFile(const std::string& name)
    : name_(name), file_(name == "-" ? stdout : std::fopen(name.c_str(), "w")) {
  if (!file_) {
    throw Failure(ExitCode::usage, "cannot write '" + name + "': " + std::strerror(errno));
  }
}

OutputFile::~OutputFile() {
  if (file_ && file_ != stdout) std::fclose(file_);
}

void OutputFile::write(const std::string& text) { std::fwrite(text.data(), 1, text.size(), file_); }

void OutputFile::finish() {
  if (std::fflush(file_) != 0 || std::ferror(file_)) {
    throw Failure(ExitCode::failed, "cannot write '" + name_ + "': " + std::strerror(errno));
  }
}

Reporter::Reporter(const Settings& settings, const Circumstances& circumstances,
                   ptl_handle_ni_t interface)
    : rails_(devices_of(circumstances.paths), interface) {
  if (!settings.json_file.empty()) writers_.push_back(make_json_writer(settings, circumstances));
  if (!settings.csv_file.empty()) writers_.push_back(make_csv_writer(settings, circumstances));
  if (settings.json_file != "-" && settings.csv_file != "-") {
    writers_.push_back(make_table_writer(settings, circumstances));
  }
}

void Reporter::add(const Result& result) {
  for (const auto& writer : writers_) writer->add(result);
}

void Reporter::finish() {
  const std::vector<RailShare> rails = rails_.now();
  for (const auto& writer : writers_) writer->finish(rails);
}

}  // namespace lintel::perf
