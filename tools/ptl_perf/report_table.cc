// Results as a table. Set-up path.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstdio>

#include "common/text.h"
#include "ptl_perf/report.h"

namespace lintel::perf {
namespace {

using tools::format_bytes;
using tools::format_count;
using tools::format_fixed;
using tools::wrap;

struct Column {
  std::string title;
  std::string cell;
};

// Measuring alone brings the load of an idle machine to about 2.
constexpr double busy_load = 3.0;

std::string in_microseconds(double ns) { return format_fixed(ns / 1000.0, ns < 1e6 ? 3 : 1); }

std::vector<Column> columns_of(const Result& result) {
  std::vector<Column> columns;
  const Point& point = result.point;
  if (point.size_bytes) columns.push_back({"size", format_bytes(*point.size_bytes)});
  if (!point.parameter_name.empty()) {
    columns.push_back({point.parameter_name, std::to_string(point.parameter)});
  }
  if (result.times_ns) {
    const Distribution& times = *result.times_ns;
    columns.push_back({"median us", in_microseconds(times.median)});
    columns.push_back({"p99 us", in_microseconds(times.p99)});
    columns.push_back({"max us", in_microseconds(times.maximum)});
    columns.push_back({"mean us", in_microseconds(times.mean)});
  }
  if (result.rate_per_s) columns.push_back({"rate 1/s", format_count(*result.rate_per_s)});
  if (result.bandwidth_bytes_per_s) {
    columns.push_back(
        {"MiB/s", format_fixed(*result.bandwidth_bytes_per_s / (1024.0 * 1024.0), 1)});
  }
  if (result.times_ns) {
    columns.push_back({"batch", std::to_string(result.batch)});
    columns.push_back({"samples", std::to_string(result.times_ns->samples) +
                                      (result.times_ns->has_few_samples() ? " few" : "")});
  }
  for (const Extra& extra : result.extras) {
    columns.push_back({extra.title, format_fixed(extra.value, extra.decimals)});
  }
  return columns;
}

// Rows are printed as they are measured, so a column cannot follow its widest cell.
void print_row(const std::vector<std::string>& cells, const std::vector<std::string>& titles) {
  constexpr std::size_t narrowest = 8;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const auto width = static_cast<int>(std::max(titles[i].size(), narrowest));
    std::printf("  %*s", width, cells[i].c_str());
  }
  std::printf("\n");
  std::fflush(stdout);
}

class TableWriter final : public ReportWriter {
 public:
  TableWriter(const Settings& settings, const Circumstances& circumstances) {
    print_head(settings, circumstances);
  }

  void add(const Result& result) override {
    has_few_samples_ |= result.times_ns && result.times_ns->has_few_samples();
    const Point& point = result.point;
    const std::vector<Column> columns = columns_of(result);
    std::vector<std::string> titles;
    std::vector<std::string> cells;
    for (const Column& column : columns) {
      titles.push_back(column.title);
      cells.push_back(column.cell);
    }
    const std::string section = point.test + ' ' + point.metric + ": " + point.configuration;
    if (section != section_ || titles != titles_) {
      std::printf("\n%s\n%s", section.c_str(), wrap(point.meaning, 2).c_str());
      print_row(titles, titles);
      section_ = section;
      titles_ = titles;
    }
    print_row(cells, titles);
    for (const std::string& remark : result.remarks) {
      std::printf("%s", wrap("note: " + remark, 4).c_str());
    }
    std::fflush(stdout);
  }

  void finish(const std::vector<RailShare>& rails) override {
    std::string shares;
    for (const RailShare& rail : rails)
      shares += (shares.empty() ? "" : ", ") + rail.interface + " " +
                format_fixed(100 * rail.share, 1) + " %";
    if (!rails.empty()) std::printf("\nsent by    %s\n", shares.c_str());
    std::printf(
        "\n%s",
        wrap("median, p99, max: over samples, each the average of as many operations in a "
             "row as 'batch' says. mean: all elapsed time divided by all operations. us: "
             "microseconds; MiB: 2^20 bytes." +
                 std::string(has_few_samples_ ? " few: too few samples to judge by; a longer "
                                                "--time or a smaller --batch gives more."
                                              : ""),
             0)
            .c_str());
    std::fflush(stdout);
  }

 private:
  static void print_line(const char* name, const std::string& value) {
    std::printf("%-10s %s\n", name, value.c_str());
  }

  static void print_head(const Settings& settings, const Circumstances& facts) {
    print_line("library", facts.library);
    print_line("interface", facts.interface);
    print_line("transport", describe_paths(facts.paths));
    const tools::Machine& machine = facts.machine;
    if (facts.load > busy_load)
      print_line("busy",
                 "load " + format_fixed(facts.load, 1) +
                     ": other programs share the processors, these numbers are not reliable");
    print_line("machine", machine.cpu_model + (machine.virtual_machine ? " (virtual)" : "") + ", " +
                              std::to_string(machine.cpus_allowed.size()) + " of " +
                              std::to_string(machine.cpus_online) + " cores, " +
                              format_bytes(machine.memory_bytes) + " memory");
    print_line("kernel", machine.kernel + " on " + facts.host + ", " + facts.date);
    print_line("processes", facts.processes + "; " + facts.pinning);
    print_line("clock", facts.clock);
    std::string per_line = settings.iterations
                               ? std::to_string(*settings.iterations) + " operations"
                               : format_fixed(settings.seconds_per_point, 2) + " s";
    if (settings.buffers > 1) {
      per_line += ", " + std::to_string(settings.buffers) + " buffers in turn";
    } else {
      per_line += ", one buffer reused";
    }
    per_line += settings.huge_pages ? ", huge pages requested" : "";
    print_line("each line", per_line);
    if (settings.verify) print_line("verify", "every byte is checked; the times include that");
    for (const auto& [name, value] : facts.environment) {
      std::printf("%-10s %s=%s\n", "set", name.c_str(), value.c_str());
    }
    std::fflush(stdout);
  }

  bool has_few_samples_ = false;
  std::string section_;
  std::vector<std::string> titles_;
};

}  // namespace

std::unique_ptr<ReportWriter> make_table_writer(const Settings& settings,
                                                const Circumstances& circumstances) {
  return std::make_unique<TableWriter>(settings, circumstances);
}

}  // namespace lintel::perf
