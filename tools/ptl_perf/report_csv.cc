// Results as comma separated values: the same columns for all tests, empty where a test has none.
// Set-up path.
// SPDX-License-Identifier: BSD-3-Clause
#include <array>

#include "common/text.h"
#include "ptl_perf/report.h"

namespace lintel::perf {
namespace {

constexpr std::array extra_columns{"in_time_percent", "processor_percent", "context_switches_per_s",
                                   "resident_before_init_mib", "resident_mib"};

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

std::string number(double value) { return tools::format_fixed(value, 3); }

class CsvWriter final : public ReportWriter {
 public:
  CsvWriter(const Settings& settings, const Circumstances& facts)
      : file_(settings.csv_file),
        path_(',' + transports_of(facts.paths) + ',' + quoted(devices_of(facts.paths))) {
    std::string head =
        "test,metric,configuration,size_bytes,parameter,parameter_value,operations,batch,median_ns,"
        "p99_ns,max_ns,mean_ns,rate_per_s,bandwidth_bytes_per_s";
    for (const char* column : extra_columns) head += std::string(",") + column;
    file_.write(head + ",transport,device\n");
  }

  void add(const Result& result) override {
    const Point& point = result.point;
    std::string row = point.test + ',' + quoted(point.metric) + ',' + quoted(point.configuration);
    row += ',' + (point.size_bytes ? std::to_string(*point.size_bytes) : "");
    row += ',' + point.parameter_name;
    row += ',' + (point.parameter_name.empty() ? "" : std::to_string(point.parameter));
    if (result.times_ns) {
      const Distribution& times = *result.times_ns;
      row += ',' + std::to_string(result.operations) + ',' + std::to_string(result.batch);
      row += ',' + number(times.median) + ',' + number(times.p99) + ',' + number(times.maximum) +
             ',' + number(times.mean);
    } else {
      row += ",,,,,,";
    }
    row += ',' + (result.rate_per_s ? number(*result.rate_per_s) : "");
    row += ',' + (result.bandwidth_bytes_per_s ? number(*result.bandwidth_bytes_per_s) : "");
    for (const std::string column : extra_columns) {
      row += ',';
      for (const Extra& extra : result.extras) {
        if (extra.name == column) row += number(extra.value);
      }
    }
    file_.write(row + path_ + '\n');
    file_.finish();
  }

  void finish(const std::vector<RailShare>&) override { file_.finish(); }

 private:
  OutputFile file_;
  std::string path_;  // the last columns
};

}  // namespace

std::unique_ptr<ReportWriter> make_csv_writer(const Settings& settings,
                                              const Circumstances& circumstances) {
  return std::make_unique<CsvWriter>(settings, circumstances);
}

}  // namespace lintel::perf
