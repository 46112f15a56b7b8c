// Results as JSON. Set-up path.
// SPDX-License-Identifier: BSD-3-Clause
#include "ptl_perf/report.h"

#if !__has_include(<nlohmann/json.hpp>)
#error "ptl_perf needs JSON for Modern C++: install nlohmann-json3-dev"
#endif
#include <nlohmann/json.hpp>

namespace lintel::perf {
namespace {

using Json = nlohmann::ordered_json;

Json head(const Settings& settings, const Circumstances& facts) {
  Json json;
  json["tool"] = "ptl_perf";
  json["version"] = 2;
  json["date"] = facts.date;
  json["host"] = facts.host;
  json["library"] = facts.library;
  json["interface"] = facts.interface;
  json["transport"] = transports_of(facts.paths);
  json["device"] = devices_of(facts.paths);
  json["paths"] = Json::array();
  for (const PathFacts& path : facts.paths) {
    json["paths"].push_back({{"from", path.from},
                             {"to", path.to},
                             {"transport", path.transport},
                             {"device", path.device},
                             {"reason", path.reason}});
  }
  json["machine"] = {{"cpu", facts.machine.cpu_model},
                     {"virtual", facts.machine.virtual_machine},
                     {"cores_online", facts.machine.cpus_online},
                     {"cores_allowed", facts.machine.cpus_allowed.size()},
                     {"memory_bytes", facts.machine.memory_bytes},
                     {"kernel", facts.machine.kernel}};
  json["load_before"] = facts.load;
  json["processes"] = facts.processes;
  json["pinning"] = facts.pinning;
  json["clock"] = facts.clock;
  Json environment = Json::object();
  for (const auto& [name, value] : facts.environment) environment[name] = value;
  json["environment"] = environment;
  Json used = {{"matching", settings.matching},
               {"addressing", settings.logical ? "logical" : "physical"},
               {"events", settings.events == Events::full ? "full" : "counting"},
               {"wait", settings.wait == Wait::blocking ? "block" : "poll"},
               {"ack", ack_name(settings.ack)},
               {"window", settings.window},
               {"window_bytes", settings.window_bytes},
               {"buffers", settings.buffers},
               {"huge_pages", settings.huge_pages},
               {"verify", settings.verify}};
  if (settings.iterations) {
    used["iterations"] = *settings.iterations;
  } else {
    used["seconds_per_line"] = settings.seconds_per_point;
  }
  json["settings"] = used;
  json["terms"] = {
      {"median_ns, lower_quartile_ns, upper_quartile_ns, p99_ns, max_ns, min_ns",
       "over samples, each the average of 'batch' operations in a row"},
      {"mean_ns", "all elapsed time divided by all operations"},
      {"half round trip", "from sending until the answer of the peer is reported, divided by two"}};
  return json;
}

Json line(const Result& result) {
  const Point& point = result.point;
  Json json = {{"test", point.test},
               {"metric", point.metric},
               {"configuration", point.configuration},
               {"meaning", point.meaning}};
  if (point.size_bytes) json["size_bytes"] = *point.size_bytes;
  if (!point.parameter_name.empty()) {
    json["parameter"] = point.parameter_name;
    json["parameter_value"] = point.parameter;
  }
  if (result.times_ns) {
    const Distribution& times = *result.times_ns;
    json["operations"] = result.operations;
    json["batch"] = result.batch;
    json["samples"] = times.samples;
    if (times.has_few_samples()) json["few_samples"] = true;
    json["min_ns"] = times.minimum;
    json["lower_quartile_ns"] = times.lower_quartile;
    json["median_ns"] = times.median;
    json["upper_quartile_ns"] = times.upper_quartile;
    json["p99_ns"] = times.p99;
    json["max_ns"] = times.maximum;
    json["mean_ns"] = times.mean;
  }
  if (result.rate_per_s) json["rate_per_s"] = *result.rate_per_s;
  if (result.bandwidth_bytes_per_s) {
    json["bandwidth_bytes_per_s"] = *result.bandwidth_bytes_per_s;
  }
  for (const Extra& extra : result.extras) json[extra.name] = extra.value;
  if (!result.remarks.empty()) json["remarks"] = result.remarks;
  return json;
}

class JsonWriter final : public ReportWriter {
 public:
  JsonWriter(const Settings& settings, const Circumstances& circumstances)
      : file_(settings.json_file), document_(head(settings, circumstances)) {
    document_["results"] = Json::array();
  }

  void add(const Result& result) override { document_["results"].push_back(line(result)); }

  void finish(const std::vector<RailShare>& rails) override {
    for (const RailShare& rail : rails)
      document_["rails"].push_back(
          {{"interface", rail.interface}, {"bytes_sent", rail.bytes}, {"share", rail.share}});
    file_.write(document_.dump(2, ' ', false, Json::error_handler_t::replace) + '\n');
    file_.finish();
  }

 private:
  OutputFile file_;
  Json document_;
};

}  // namespace

std::unique_ptr<ReportWriter> make_json_writer(const Settings& settings,
                                               const Circumstances& circumstances) {
  return std::make_unique<JsonWriter>(settings, circumstances);
}

}  // namespace lintel::perf
