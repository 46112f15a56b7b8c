// The command line of ptl_perf. Set-up path.
// SPDX-License-Identifier: BSD-3-Clause
#include "ptl_perf/options.h"

#include "common/text.h"
#include "ptl_perf/errors.h"
#include "ptl_perf/socket.h"
#include "ptl_perf/tests.h"

#if !__has_include(<CLI/CLI.hpp>)
#error "ptl_perf needs CLI11: install libcli11-dev"
#endif
#include <algorithm>
#include <iostream>
#include <map>

#include <CLI/CLI.hpp>

namespace lintel::perf {
namespace {

using tools::parse_bytes;

constexpr const char* size_hint =
    "write bytes, or a number with KiB, MiB or GiB, for example 8 or 64KiB";

std::uint64_t read_size(const std::string& option, const std::string& text) {
  const auto bytes = parse_bytes(text);
  if (!bytes || *bytes > (std::uint64_t{2} << 30)) {
    throw CLI::ValidationError(option, "'" + text + "' is not a size up to 2 GiB: " + size_hint);
  }
  return *bytes;
}

void add_size(CLI::App* group, const std::string& name, std::uint64_t& value,
              const std::string& help) {
  group
      ->add_option_function<std::string>(
          name, [name, &value](const std::string& text) { value = read_size(name, text); }, help)
      ->type_name("SIZE")
      ->default_str(tools::format_bytes(value));
}

// Accepts "host", and a driver with the number of a device.
void check_memory(const std::string& text) {
  if (text == "host") return;
  const std::size_t colon = text.find(':');
  const std::string kind = text.substr(0, colon);
  const std::string number = colon == std::string::npos ? "" : text.substr(colon + 1);
  const bool is_number = !number.empty() && number.size() <= 3 &&
                         number.find_first_not_of("0123456789") == std::string::npos;
  if ((kind != "cuda" && kind != "hip" && kind != "ze") || !is_number) {
    throw CLI::ValidationError("--memory", "'" + text +
                                               "' is not one of host|cuda:NUMBER|"
                                               "hip:NUMBER|ze:NUMBER");
  }
}

template <class Enum>
void add_choice(CLI::App* group, const std::string& name, Enum& value,
                const std::map<std::string, Enum>& choices, const std::string& help) {
  std::string names;
  std::string current;
  for (const auto& [choice, meaning] : choices) {
    names += (names.empty() ? "" : "|") + choice;
    if (meaning == value) current = choice;
  }
  group
      ->add_option_function<std::string>(
          name,
          [name, names, choices, &value](const std::string& text) {
            const auto found = choices.find(text);
            if (found == choices.end()) {
              throw CLI::ValidationError(name, "'" + text + "' is not one of " + names);
            }
            value = found->second;
          },
          help)
      ->type_name(names)
      ->default_str(current);
}

void add_word(CLI::App* group, const std::string& name, std::string& value,
              const std::vector<std::string>& words, const std::string& help) {
  std::map<std::string, std::string> choices;
  for (const auto& word : words) choices.emplace(word, word);
  add_choice(group, name, value, choices, help);
}

void add_measurement_options(CLI::App& app, Settings& settings) {
  auto* group = app.add_option_group("What is measured");
  group
      ->add_option_function<std::vector<std::string>>(
          "--metric",
          [&settings](const std::vector<std::string>& names) {
            for (const auto& name : names) {
              const auto& known = metric_names();
              if (std::find(known.begin(), known.end(), name) == known.end()) {
                std::string all;
                for (const auto& each : known) all += (all.empty() ? "" : "|") + each;
                throw CLI::ValidationError("--metric", "'" + name + "' is not one of " + all);
              }
            }
            settings.metrics = names;
          },
          "Of put, get, atomic, fetch-atomic and swap; completion (put and atomic): until "
          "the acknowledgment; default: latency, rate (of 8 bytes) and bandwidth")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("latency|completion|rate|bandwidth,...");
  group
      ->add_option_function<std::vector<std::string>>(
          "--sizes",
          [&settings](const std::vector<std::string>& texts) {
            settings.sizes_bytes.clear();
            for (const auto& text : texts) {
              settings.sizes_bytes.push_back(read_size("--sizes", text));
            }
          },
          "Message sizes, instead of a sweep")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("SIZE,...");
  add_size(group, "--min", settings.min_bytes, "First size of the sweep");
  add_size(group, "--max", settings.max_bytes, "Last size of the sweep");
  group->add_option("--factor", settings.size_factor, "Ratio of neighbouring sizes of the sweep")
      ->check(CLI::Range(2, 1024))
      ->capture_default_str();
  group->add_option("--window", settings.window, "Operations in flight (rate, bandwidth)")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  add_size(group, "--window-bytes", settings.window_bytes,
           "Payload in flight, at most; the window shrinks for large messages, but not below 2");
  group
      ->add_option("--buffers", settings.buffers,
                   "Slots at both ends over which the messages rotate; 1: one buffer reused")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  group->add_flag("--huge-pages", settings.huge_pages,
                  "Ask the kernel for huge pages under the buffers (MADV_HUGEPAGE)");
  group
      ->add_option_function<std::vector<std::string>>(
          "--memory",
          [&settings](const std::vector<std::string>& places) {
            for (const auto& place : places) check_memory(place);
            if (places.size() > 2) {
              throw CLI::ValidationError("--memory", "takes two kinds at most");
            }
            settings.initiator_memory = places.front();
            settings.target_memory = places.back();
          },
          "Of put and get: memory at the initiator and, if it is another kind, at the target")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("host|cuda:NUMBER|hip:NUMBER|ze:NUMBER,...")
      ->default_str("host");
  add_word(group, "--operation", settings.operation,
           {"min", "max", "sum", "diff", "prod", "lor", "land", "bor", "band", "lxor", "bxor"},
           "Of atomic and fetch-atomic");
  add_word(group, "--swap-operation", settings.swap_operation, {"swap", "cswap", "mswap"},
           "Of swap");
  add_word(group, "--datatype", settings.datatype, {"int32", "int64", "float", "double"},
           "Of atomic, fetch-atomic and swap");
  group->add_flag("--verify", settings.verify,
                  "Check every byte of every message; the times then include filling and checking");
}

void add_portals_options(CLI::App& app, Settings& settings) {
  auto* group = app.add_option_group("How Portals is used");
  group
      ->add_option_function<std::string>(
          "--interface",
          [&settings](const std::string& text) {
            if (text == "default") {
              settings.interface = PTL_IFACE_DEFAULT;
              return;
            }
            std::size_t used = 0;
            try {
              const unsigned long number = std::stoul(text, &used, 10);
              if (used == text.size() && number <= 0xffff) {
                settings.interface = static_cast<ptl_interface_t>(number);
                return;
              }
            } catch (const std::exception&) {
              // The text is no number: the error below says what is permitted.
            }
            throw CLI::ValidationError("--interface",
                                       "'" + text +
                                           "' is neither 'default' nor a number that "
                                           "ptl_info lists");
          },
          "Interface number; ptl_info lists them")
      ->type_name("default|NUMBER")
      ->default_str("default");
  group->add_flag_callback(
      "--matching", [&settings] { settings.matching = true; }, "Use match list entries (default)");
  group->add_flag_callback(
      "--no-matching", [&settings] { settings.matching = false; }, "Use list entries");
  group->add_flag_callback(
      "--physical", [&settings] { settings.logical = false; }, "Address by nid and pid (default)");
  group->add_flag_callback(
      "--logical", [&settings] { settings.logical = true; }, "Address by rank");
  add_choice<Events>(group, "--events", settings.events,
                     {{"full", Events::full}, {"counting", Events::counting}},
                     "What reports that a message arrived or a reply came");
  add_choice<Wait>(group, "--wait", settings.wait,
                   {{"block", Wait::blocking}, {"poll", Wait::polling}},
                   "PtlEQWait and PtlCTWait, or PtlEQGet and PtlCTGet in a loop");
  add_choice<Ack>(group, "--ack", settings.ack,
                  {{"none", Ack::none},
                   {"full", Ack::full},
                   {"ct", Ack::counting},
                   {"oc", Ack::operation_complete}},
                  "Acknowledgment of puts and atomics in rate, bandwidth and completion; with none "
                  "the target returns a credit twice per window");
}

void add_duration_options(CLI::App& app, Settings& settings) {
  auto* group = app.add_option_group("How long");
  group->add_option("--time", settings.seconds_per_point, "Seconds for each line of the result")
      ->check(CLI::Range(0.001, 3600.0))
      ->capture_default_str();
  group->add_option("--iterations", settings.iterations, "Operations, instead of a time")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40));
  group
      ->add_option("--warm-up", settings.warm_up,
                   "Operations before the timed ones; default: "
                   "about 10 ms of them, or 10 % of --iterations")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 40));
  group
      ->add_option(
          "--batch", settings.batch,
          "Operations per sample of median, p99 and maximum; default: about 2.5 us of them")
      ->check(CLI::Range(1, 1 << 20));
  group
      ->add_option("--deadline", settings.deadline_s,
                   "Give up when no line gets finished for so many seconds (beyond --time)")
      ->check(CLI::Range(1, 86400))
      ->capture_default_str();
}

void add_process_options(CLI::App& app, Settings& settings) {
  auto* group = app.add_option_group("Processes");
  group->add_flag("--listen", settings.listen,
                  "Wait for `ptl_perf HOST` at other hosts and take part in what they measure; no "
                  "launcher is needed");
  group->add_option("--port", settings.port, "TCP port of --listen, and of HOST")
      ->check(CLI::Range(1u, 65535u))
      ->capture_default_str();
  group
      ->add_option("--pairs", settings.pairs,
                   "Pairs of processes to start on this machine, all at work at once")
      ->check(CLI::Range(1, 512))
      ->capture_default_str();
  group->add_flag(
      "--across-nodes", settings.across_nodes,
      "In a job: make pairs of processes on different nodes; else ranks 0 and 1, 2 and 3, "
      "... are pairs");
  group->add_flag_callback(
      "--pin", [&settings] { settings.pinning = Pinning::automatic; },
      "Give each process, with all its threads, a core of its own if there are enough (default)");
  group->add_flag_callback(
      "--no-pin", [&settings] { settings.pinning = Pinning::off; },
      "Leave the choice of cores to the kernel");
}

void add_special_options(CLI::App& app, Settings& settings) {
  auto* group = app.add_option_group("Of single tests");
  group
      ->add_option("--depths", settings.depths,
                   "match-depth: non-matching entries before the matching one; unexpected-depth: "
                   "headers that stay unexpected")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::Range(0, 10'000'000))
      ->type_name("COUNT,...");
  add_choice<Shapes>(group, "--shapes", settings.shapes,
                     {{"exact", Shapes::exact}, {"mixed", Shapes::mixed}},
                     "match-depth: entries without wildcards, or of four wildcard shapes in turn");
  add_choice<ClaimOrder>(group, "--claim", settings.claim_order,
                         {{"oldest", ClaimOrder::oldest},
                          {"newest", ClaimOrder::newest},
                          {"random", ClaimOrder::random}},
                         "unexpected-depth: which of the unexpected headers an append claims");
  group
      ->add_option("--chain", settings.chain_length,
                   "triggered: increments in a chain (a multiple of 16), puts in a "
                   "ping-pong")
      ->check(CLI::Range(16, 1'000'000))
      ->capture_default_str();
  group
      ->add_option("--compute-ms", settings.compute_ms,
                   "overlap: milliseconds for which the target computes")
      ->check(CLI::Range(1, 60'000))
      ->capture_default_str();
  group
      ->add_option("--idle-seconds", settings.idle_seconds, "idle: how long each state is measured")
      ->check(CLI::Range(0.1, 3600.0))
      ->capture_default_str();
}

void add_output_options(CLI::App& app, Settings& settings) {
  auto* group = app.add_option_group("Output");
  group
      ->add_option("--json", settings.json_file,
                   "Write JSON; '-': to standard output, without "
                   "the table")
      ->type_name("FILE|-");
  group->add_option("--csv", settings.csv_file, "Write comma separated values; '-' as above")
      ->type_name("FILE|-");
}

bool contains(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Checks options that some tests cannot use.
void check_tests(const Settings& settings) {
  const bool only_latency = settings.metrics == std::vector<std::string>{"latency"};
  if (settings.ack == Ack::none && contains(settings.metrics, "completion")) {
    throw CLI::ValidationError("--ack",
                               "'none' leaves nothing to wait for in --metric completion: "
                               "use full|ct|oc");
  }
  if (settings.ack == Ack::none && contains(settings.tests, "atomic") && !only_latency) {
    throw CLI::ValidationError("--ack",
                               "'none' goes with atomic only in --metric latency: "
                               "use full|ct|oc");
  }
  for (const auto& test : settings.tests) {
    if (settings.has_device_memory() && test != "put" && test != "get") {
      throw CLI::ValidationError("--memory", "does not go with " + test + ": use put|get");
    }
  }
  if (settings.has_device_memory() && settings.short_run()) {
    throw CLI::ValidationError("--memory", "needs a test: put|get");
  }
  // A stream issues a window with the operand of the moment, so each compare-and-swap cannot have
  // the operand that --verify needs to know its outcome.
  if (settings.verify && settings.swap_operation == "cswap" && contains(settings.tests, "swap") &&
      !only_latency) {
    throw CLI::ValidationError("--verify", "checks 'cswap' only one by one: use --metric latency");
  }
  for (const char* test : {"match-depth", "unexpected-depth"}) {
    if (!settings.matching && contains(settings.tests, test)) {
      throw CLI::ValidationError("--no-matching", std::string("does not go with ") + test +
                                                      ", which needs match list entries");
    }
  }
}

// Checks options that exclude each other.
void check_together(const Settings& settings) {
  check_tests(settings);
  if (settings.sizes_bytes.empty() && settings.min_bytes > settings.max_bytes) {
    throw CLI::ValidationError("--min", "must not be larger than --max");
  }
  if (settings.listen && (!settings.host.empty() || !settings.tests.empty())) {
    throw CLI::ValidationError("--listen", "leaves the choice of tests to the other host");
  }
  if (!settings.host.empty() && settings.pairs > 1) {
    throw CLI::ValidationError("--pairs", "does not go with a host: there is one process at each");
  }
  if (settings.json_file == "-" && settings.csv_file == "-") {
    throw CLI::ValidationError("--csv", "only one of --json and --csv can go to standard output");
  }
  const bool floating = settings.datatype == "float" || settings.datatype == "double";
  const bool arithmetic = settings.operation == "min" || settings.operation == "max" ||
                          settings.operation == "sum" || settings.operation == "diff" ||
                          settings.operation == "prod";
  if (floating && !arithmetic) {
    throw CLI::ValidationError(
        "--operation", "'" + settings.operation + "' needs an integral --datatype: int32|int64");
  }
  if (floating && settings.swap_operation == "mswap") {
    throw CLI::ValidationError("--swap-operation",
                               "'mswap' needs an integral --datatype: int32|int64");
  }
  if (settings.iterations && settings.batch && *settings.iterations % *settings.batch != 0) {
    throw CLI::ValidationError("--batch", "must divide --iterations");
  }
}

}  // namespace

std::variant<Settings, ExitNow> parse_command_line(int argc, char** argv) {
  Settings settings;
  CLI::App app(
      "Measures Portals between two processes that it starts by itself, or between the processes "
      "of a job that srun or mpirun started or that PTL_MY_RID, PTL_NIDMAP and PTL_PIDMAP describe, or "
      "with the process that `ptl_perf --listen` waits in at another host. "
      "Without a test it takes about 5 seconds to show latency, message rate and bandwidth.",
      "ptl_perf");
  app.footer(
      "Exit codes:\n"
      "  0  success\n"
      "  1  a Portals call failed, or the machine lacks something\n"
      "  2  wrong option\n"
      "  3  wrong data\n"
      "  4  another process ended\n"
      "  5  nothing finished within --deadline seconds");
  std::string test_help =
      "The host where `ptl_perf --listen` runs, to measure with that; and tests, 'all' or any of:";
  for (const auto& test : all_tests()) {
    test_help += "\n  " + test.name + ": " + test.summary;
  }
  app.add_option_function<std::vector<std::string>>(
         "TEST",
         [&settings](const std::vector<std::string>& names) {
           for (const auto& name : names) {
             if (name == "all") {
               for (const auto& test : all_tests()) settings.tests.push_back(test.name);
             } else if (find_test(name)) {
               settings.tests.push_back(name);
             } else if (settings.host.empty() && is_host(name)) {
               settings.host = name;
             } else {
               std::string known = "all";
               for (const auto& test : all_tests()) known += "|" + test.name;
               throw CLI::ValidationError("TEST",
                                          "'" + name + "' is neither a host nor one of " + known);
             }
           }
         },
         test_help)
      ->type_name("");
  add_measurement_options(app, settings);
  add_portals_options(app, settings);
  add_duration_options(app, settings);
  add_process_options(app, settings);
  add_special_options(app, settings);
  add_output_options(app, settings);
  app.get_formatter()->column_width(34);
  app.set_version_flag("--version", "ptl_perf " LINTEL_VERSION " (Portals 4.3)");

  try {
    app.parse(argc, argv);
    check_together(settings);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error, std::cout, std::cerr);
    return ExitNow{code == 0 ? 0 : static_cast<int>(ExitCode::usage)};
  }
  return settings;
}

}  // namespace lintel::perf
