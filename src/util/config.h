// The configuration: environment variables PTL_..., each defined once, in the table in config.cc.
// Set-up path: read values when an object is made and keep them; do not look them up per message.
//
// To add a variable: add a key here and a row to the table. Parsing, range checks, warnings,
// `ptl_info --config` and the manual follow from the row.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// Exported for modules and programs of this version, see cmake/portals.map.in.
#pragma GCC visibility push(default)
namespace lintel {

enum class ConfigKey : uint8_t {
  log_level,
  progress,
  progress_cpus,
  progress_tick_us,
  spin_us,
  wait_without,
  stats,
  transport,
  job_key,
  job_key_file,
  udp_open,
  network_security,
  peer_timeout_ms,
  segv_handler,
  shm_memory_kib,
  shm_cma,
  shm_cma_threshold,
  network_memory_kib,
  udp_frame_bytes,
  rails,
  nid,
  local_rank,
  dpdk_ports,
  dpdk_mtu,
  dpdk_ring,
  dpdk_eal,
  device_memory,
  registration_regions,
  registration_bytes,
  verbs_device,
  verbs_gid_index,
  verbs_pkey,
  verbs_service_level,
  verbs_traffic_class,
  verbs_max_rc,
  verbs_receive_buffers,
  faults,
  module_path,
  count,  // number of variables
};

enum class ConfigType : uint8_t {
  u64,       // a number; of bytes: may end in K, M or G; without unit: may be hexadecimal (0x)
  optional,  // the same, or not set
  boolean,   // 1, 0, true, false, yes, no, on, off
  report,    // the same, or file:PATH, which is true
  choice,    // a word of a list
  text,      // any string
  list,      // words separated by commas
  cpu_list,  // processor numbers, as in "0,2-5"
  secret,    // any string; shown only as set or unset
};

enum class ConfigAudience : uint8_t { users, tests };

struct ConfigVariable {
  ConfigKey key;
  const char* name;  // "PTL_..."
  ConfigType type;
  const char* unit;           // unit of a number, or ""
  const char* default_value;  // text as in the environment
  uint64_t minimum;           // limits of a number
  uint64_t maximum;
  const char* choices;  // words of a choice, separated by '|'
  const char* help;     // one sentence
  // tests: only tests and measurements need it; `ptl_info --config` leaves it out.
  ConfigAudience audience = ConfigAudience::users;
};

enum class ConfigOrigin : uint8_t { default_value, system_file, user_file, environment, program };

// Prefix of the name of a file in a report variable.
inline constexpr std::string_view stats_file_prefix = "file:";

// Names that start with PTL_ and belong to a runtime system or to the library portals_runtime.
[[nodiscard]] std::span<const std::string_view> config_runtime_names() noexcept;

// All variables, in the order of their keys.
[[nodiscard]] std::span<const ConfigVariable> config_table() noexcept;

// Reads the files and the environment, which goes before them, on the first call; does nothing
// later. Called from PtlInit, under its lock: neither this nor config_reload() may run while
// another thread reads values. Until then, and for values that are refused (with a warning), the
// accessors return the defaults.
void config_load();
// Reads files and environment again. For a forked child that initializes the library, and for
// tests.
void config_reload();
// Before PtlInit: sets the log level as config_load() will, from the environment, or from the files
// (read once). Changes no value; any thread may call it.
void config_find_log_level() noexcept;

// The value of a number (in the unit of the table).
[[nodiscard]] uint64_t config_u64(ConfigKey key) noexcept;
// The value of an optional number; nullopt if it is not set.
[[nodiscard]] std::optional<uint64_t> config_optional(ConfigKey key) noexcept;
[[nodiscard]] bool config_bool(ConfigKey key) noexcept;
// The position of the chosen word among the choices of the table.
[[nodiscard]] unsigned config_choice(ConfigKey key) noexcept;
// The text of any variable. A reference stays valid until the next reload.
[[nodiscard]] const std::string& config_string(ConfigKey key) noexcept;
// The words of a list, without blanks and empty words.
[[nodiscard]] std::vector<std::string> config_list(ConfigKey key);
// The processors of a cpu_list, ascending; empty if it is empty.
[[nodiscard]] std::vector<unsigned> config_cpus(ConfigKey key);
[[nodiscard]] ConfigOrigin config_origin(ConfigKey key) noexcept;
// The origin as text: "environment", "/etc/lintel.conf:3".
[[nodiscard]] std::string config_origin_text(ConfigKey key);

// Replaces /etc/lintel.conf by another file, from the next reload on. For tests.
void config_use_system_file(std::string path);

// The texts of the warnings of the last reading of the configuration.
[[nodiscard]] const std::vector<std::string>& config_complaints() noexcept;

// Sets a value that the program chose, or that was derived from another variable. It lasts until
// the next reload.
void config_set(ConfigKey key, std::string text);

// Refuses a value that only its user can judge, such as the name of a transport: warns like the
// parser and sets the default. `allowed` completes the sentence "allowed: ...".
void config_refuse(ConfigKey key, std::string_view allowed);

// Texts of the current value ("set" or "unset" for a secret), and of the allowed values.
[[nodiscard]] std::string config_display(ConfigKey key);
[[nodiscard]] std::string config_allowed(const ConfigVariable& variable);

}  // namespace lintel
#pragma GCC visibility pop
