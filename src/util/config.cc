// The table of configuration variables, and the values in force. Set-up path.
#include "util/config.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <set>

#include "util/config_parse.h"
#include "util/log.h"

namespace lintel {

namespace {

constexpr size_t key_count = static_cast<size_t>(ConfigKey::count);

constexpr std::array<ConfigVariable, key_count> table{{
    {ConfigKey::log_level, "PTL_LOG_LEVEL", ConfigType::choice, "", "warn", 0, 0,
     "error|warn|info|debug|trace",
     "Least important messages that are still written to standard error."},
    {ConfigKey::progress, "PTL_PROGRESS", ConfigType::choice, "", "auto", 0, 0,
     "auto|thread|caller",
     "Who handles arriving messages: waiting threads, else a progress thread (auto), a progress thread "
     "that always polls (thread), or only threads that call Portals (caller)."},
    {ConfigKey::progress_cpus, "PTL_PROGRESS_CPUS", ConfigType::cpu_list, "", "", 0, 0, nullptr,
     "Processors that progress threads may run on; empty means wherever the process may run."},
    {ConfigKey::progress_tick_us, "PTL_PROGRESS_TICK_US", ConfigType::u64, "us", "50", 10, 100000,
     nullptr, "How soon the progress thread takes over after the application stopped polling.",
     ConfigAudience::tests},
    {ConfigKey::spin_us, "PTL_SPIN_US", ConfigType::u64, "us", "50", 0, 1000000, nullptr,
     "How long a waiting thread polls before it sleeps."},
    {ConfigKey::wait_without, "PTL_WAIT_WITHOUT", ConfigType::text, "", "", 0, 0, nullptr,
     "Heuristics of waiting that are switched off, by name, separated by commas.",
     ConfigAudience::tests},
    {ConfigKey::stats, "PTL_STATS", ConfigType::report, "", "0", 0, 0, nullptr,
     "Write the counters of an interface at its last PtlNIFini: to standard error, or as a line of JSON "
     "at the end of a file."},
    {ConfigKey::transport, "PTL_TRANSPORT", ConfigType::list, "", "local,shm,verbs,dpdk,udp", 0, 0,
     nullptr, "Transports that may be used, in the order in which they are tried for a process."},
    {ConfigKey::job_key, "PTL_JOB_KEY", ConfigType::secret, "", "", 0, 0, nullptr,
     "Secret that the processes of a job share; processes with another one are refused."},
    {ConfigKey::job_key_file, "PTL_JOB_KEY_FILE", ConfigType::text, "", "", 0, 0, nullptr,
     "File that holds the job key if PTL_JOB_KEY is not set; only its owner may have access to it."},
    {ConfigKey::udp_open, "PTL_UDP_OPEN", ConfigType::boolean, "", "0", 0, 0, nullptr,
     "Without a job key, admit on networks every process that claims to be of this user; otherwise "
     "only those of this user on this node."},
    {ConfigKey::network_security, "PTL_NETWORK_SECURITY", ConfigType::choice, "", "auto", 0, 0,
     "auto|off|authenticated|encrypted",
     "What protects frames on networks, the same in all processes; auto is authenticated with a job "
     "key, else off."},
    {ConfigKey::peer_timeout_ms, "PTL_PEER_TIMEOUT_MS", ConfigType::u64, "ms", "10000", 50, 3600000,
     nullptr,
     "Silence after which a process that has to answer counts as dead; within a node at most 2 s."},
    {ConfigKey::segv_handler, "PTL_SEGV_HANDLER", ConfigType::boolean, "", "1", 0, 0, nullptr,
     "Report faults of the library's own copies to and from memory that is not there as PTL_NI_SEGV; "
     "without it such a fault ends the process."},
    {ConfigKey::shm_memory_kib, "PTL_SHM_MEMORY_KIB", ConfigType::u64, "KiB", "16384", 1024, 16384,
     nullptr,
     "Shared memory that a process sets aside for its queues, whatever the number of peers."},
    {ConfigKey::shm_cma, "PTL_SHM_CMA", ConfigType::boolean, "", "1", 0, 0, nullptr,
     "Copy large payloads straight from the memory of the peer (process_vm_readv) where the kernel "
     "permits it; otherwise everything goes through shared memory.",
     ConfigAudience::tests},
    {ConfigKey::shm_cma_threshold, "PTL_SHM_CMA_THRESHOLD", ConfigType::u64, "bytes", "8192", 1,
     8192, nullptr, "Payloads of more than this go by one copy from the peer's memory.",
     ConfigAudience::tests},
    {ConfigKey::network_memory_kib, "PTL_NETWORK_MEMORY_KIB", ConfigType::u64, "KiB", "32768", 2048,
     uint64_t{1} << 22, nullptr,
     "Memory for frames that wait for acknowledgement or for earlier ones, of all peers together."},
    {ConfigKey::udp_frame_bytes, "PTL_UDP_FRAME_BYTES", ConfigType::u64, "bytes", "0", 0, 65507,
     nullptr, "Largest UDP payload that is sent; 0 means what the route to the peer takes whole.",
     ConfigAudience::tests},
    {ConfigKey::rails, "PTL_RAILS", ConfigType::text, "", "", 0, 0, nullptr,
     "Network interfaces for UDP, up to 4: auto, a number, or names separated by commas. RDMA "
     "ports: auto or a number. Processes of a node begin with different near ones. Empty means that "
     "of the nid."},
    {ConfigKey::nid, "PTL_NID", ConfigType::text, "", "", 0, 0, nullptr,
     "Network interface by name or by one of its IPv4 or IPv6 addresses: its address is the node "
     "identifier, and UDP uses it. Or a node identifier written like an IPv4 address. Empty means the "
     "address of the RDMA port, else of the default route, else of the first interface with carrier that leads to other nodes."},
    {ConfigKey::local_rank, "PTL_LOCAL_RANK", ConfigType::optional, "", "", 0, 0xffffffff, nullptr,
     "Position of the process among those of its job on this node, from 0; empty means what the "
     "launcher says."},
    {ConfigKey::dpdk_ports, "PTL_DPDK_PORTS", ConfigType::text, "", "", 0, 0, nullptr,
     "Ethernet ports for DPDK, separated by semicolons, each a PCI address (0000:3b:02.1) or a device "
     "with its arguments (net_af_packet0,iface=eth1); the processes of a node take them in turn. Plus "
     "signs join up to 4 ports of one process."},
    {ConfigKey::dpdk_mtu, "PTL_DPDK_MTU", ConfigType::u64, "bytes", "0", 0, 16000, nullptr,
     "Largest payload of an Ethernet frame, 9000 for jumbo frames; 0 means what the port is set up for."},
    {ConfigKey::dpdk_ring, "PTL_DPDK_RING", ConfigType::u64, "frames", "1024", 64, 16384, nullptr,
     "Frames that may wait in the port to be received, and as many to be sent, up to the limit of "
     "the device.",
     ConfigAudience::tests},
    {ConfigKey::dpdk_eal, "PTL_DPDK_EAL", ConfigType::text, "", "", 0, 0, nullptr,
     "Further arguments for the start of DPDK, separated by blanks, such as --iova-mode=va."},
    {ConfigKey::device_memory, "PTL_DEVICE_MEMORY", ConfigType::list, "", "auto", 0, 0, nullptr,
     "Accelerators whose memory is accessed: those of drivers that the program has loaded (auto), none "
     "(off), or those of drivers to load: cuda, hip, ze."},
    {ConfigKey::registration_regions, "PTL_REGISTRATION_REGIONS", ConfigType::u64, "regions",
     "4096", 0, 65536, nullptr,
     "Regions of memory that stay registered with devices after use; 0 registers anew for each transfer.",
     ConfigAudience::tests},
    {ConfigKey::registration_bytes, "PTL_REGISTRATION_BYTES", ConfigType::u64, "bytes", "0", 0,
     uint64_t{1} << 60, nullptr,
     "Memory that stays registered with devices after use; 0 means half of the machine's."},
    {ConfigKey::verbs_device, "PTL_VERBS_DEVICE", ConfigType::text, "", "", 0, 0, nullptr,
     "RDMA device, or device and port as in mlx5_0:1; plus signs join up to 4. Empty means the active port "
     "with the node's address, else the first active one, or a near one (PTL_RAILS)."},
    {ConfigKey::verbs_gid_index, "PTL_VERBS_GID_INDEX", ConfigType::optional, "", "", 0, 255,
     nullptr,
     "Index of the GID that the port uses; empty means RoCE v2 before v1, and with an IPv4 address before "
     "others."},
    {ConfigKey::verbs_pkey, "PTL_VERBS_PKEY", ConfigType::u64, "", "0xffff", 1, 0xffff, nullptr,
     "Partition key, by its value."},
    {ConfigKey::verbs_service_level, "PTL_VERBS_SERVICE_LEVEL", ConfigType::u64, "", "0", 0, 15,
     nullptr, "Service level of everything that is sent through an RDMA port."},
    {ConfigKey::verbs_traffic_class, "PTL_VERBS_TRAFFIC_CLASS", ConfigType::u64, "", "0", 0, 255,
     nullptr,
     "Traffic class of everything that is sent through an RDMA port: over Ethernet the byte with the DSCP."},
    {ConfigKey::verbs_max_rc, "PTL_VERBS_MAX_RC", ConfigType::u64, "peers", "1024", 0, 65536,
     nullptr, "Peers at most that have a connected queue pair; others are served by datagrams."},
    {ConfigKey::verbs_receive_buffers, "PTL_VERBS_RECEIVE_BUFFERS", ConfigType::u64, "buffers",
     "512", 64, 16384, nullptr,
     "Buffers for messages that arrive, and as many for datagrams, up to the limit of the device.",
     ConfigAudience::tests},
    {ConfigKey::faults, "PTL_FAULTS", ConfigType::text, "", "", 0, 0, nullptr,
     "Faults to inject into the frames of networks, for tests: drop, dup, reorder and corrupt with "
     "their probabilities, and the seed of the random numbers, as in drop=0.01,dup=0.01,seed=7.",
     ConfigAudience::tests},
    {ConfigKey::module_path, "PTL_MODULE_PATH", ConfigType::text, "", "", 0, 0, nullptr,
     "Directories, separated by colons, in which modules of the library are looked for before "
     "the directory lintel beside it."},
}};

constexpr bool rows_follow_keys() {
  for (size_t i = 0; i < key_count; ++i)
    if (table[i].key != static_cast<ConfigKey>(i)) return false;
  return true;
}
static_assert(rows_follow_keys());

constexpr std::string_view runtime_names[] = {"PTL_MY_RID", "PTL_NIDMAP", "PTL_PIDMAP",
                                              "PTL_MY_JID", "PTL_WAIT_S", "PTL_JOB_MEMORY"};

struct Value {
  uint64_t number = 0;
  std::string text;
  ConfigOrigin origin = ConfigOrigin::default_value;
  std::string place;  // file and line
};

struct File {
  ConfigOrigin origin;
  std::vector<ConfigSetting> settings;
};

struct State {
  std::array<Value, key_count> values;
  std::vector<File> files;       // ordered by precedence
  std::set<std::string> warned;  // names already warned about
  std::vector<std::string> complaints;
  bool loaded = false;
};

const ConfigVariable& row(ConfigKey key) { return table[static_cast<size_t>(key)]; }

void set_default(State& state, ConfigKey key) {
  const ConfigVariable& variable = row(key);
  state.values[static_cast<size_t>(key)] = {
      parse_value(variable, variable.default_value).value_or(0), variable.default_value,
      ConfigOrigin::default_value, ""};
}

// Lives until the process ends: other threads may still read values while it exits.
State& state() {
  static State& instance = []() -> State& {
    State& fresh = *new State;
    for (const ConfigVariable& variable : table) set_default(fresh, variable.key);
    return fresh;
  }();
  return instance;
}

std::string& system_file() {
  static std::string& path = *new std::string(system_config_file);
  return path;
}

const Value& value(ConfigKey key) { return state().values[static_cast<size_t>(key)]; }

void complain(std::string text) {
  log_message(LogLevel::warn, "%s", text.c_str());
  state().complaints.push_back(std::move(text));
}

// `place`: that of a line in a file, else empty.
void warn_refused(const ConfigVariable& variable, std::string_view text, const std::string& place,
                  std::string_view allowed) {
  const bool is_secret = variable.type == ConfigType::secret;
  complain(place + (place.empty() ? "" : ": ") + variable.name + "=" +
           (is_secret ? "..." : std::string(text)) +
           " is not usable; allowed: " + std::string(allowed) + ". Using " +
           (*variable.default_value ? variable.default_value : "nothing"));
}

const char* text_of(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr || *text == '\0' ? nullptr : text;  // `PTL_X= program` unsets it
}

// Setting of a variable, before it is checked.
struct Found {
  const char* text = nullptr;  // nullptr: the variable is not set
  ConfigOrigin origin = ConfigOrigin::environment;
  std::string place;
};

// The environment goes before the file of the user, and that before the file of the system.
Found find_name(const State& current, const char* name) {
  if (const char* const text = text_of(name)) return {text, ConfigOrigin::environment, ""};
  for (const File& file : current.files)
    for (const ConfigSetting& setting : file.settings)
      if (setting.name == name && !setting.value.empty())
        return {setting.value.c_str(), file.origin, setting.place};
  return {};
}

void read_variable(State& current, const ConfigVariable& variable) {
  set_default(current, variable.key);
  const Found found = find_name(current, variable.name);
  if (found.text == nullptr) return;
  // Others may read files of the system, and copies of those of users.
  if (variable.type == ConfigType::secret && found.origin != ConfigOrigin::environment) {
    complain(found.place + ": " + variable.name +
             " is not taken from a file; PTL_JOB_KEY_FILE may be set there");
    return;
  }
  const std::optional<uint64_t> number = parse_value(variable, found.text);
  if (!number) {
    warn_refused(variable, found.text, found.place, config_allowed(variable));
    return;
  }
  Value& value = current.values[static_cast<size_t>(variable.key)];
  value = {*number, found.text, found.origin, found.place};
  // The word as the table has it, whatever case it was given in.
  if (variable.type == ConfigType::choice) value.text = split_words(variable.choices, '|')[*number];
}

// A name that begins like `name` does but for its last letter, as PTL_UDP_FRAME_BYTES and
// PTL_UDP_FRAMES.
const char* name_with_same_start(std::string_view name) {
  constexpr size_t shortest = 8;
  if (name.size() <= shortest) return nullptr;
  for (const ConfigVariable& variable : table)
    if (std::string_view(variable.name).starts_with(name.substr(0, name.size() - 1)))
      return variable.name;
  return nullptr;
}

// The known name that resembles `name` most, or nullptr if none is close.
const char* closest_name(std::string_view name) {
  const char* best = nullptr;
  unsigned best_distance = std::max(2u, static_cast<unsigned>(name.size() / 3)) + 1;
  for (const ConfigVariable& variable : table) {
    const unsigned distance = edit_distance(name, variable.name);
    if (distance < best_distance) {
      best = variable.name;
      best_distance = distance;
    }
  }
  return best != nullptr ? best : name_with_same_start(name);
}

bool is_known(std::string_view name) {
  return std::any_of(table.begin(), table.end(),
                     [&](const ConfigVariable& variable) { return name == variable.name; }) ||
         std::find(std::begin(runtime_names), std::end(runtime_names), name) !=
             std::end(runtime_names);
}

// `where`: in front of the line; empty for the environment.
void warn_unknown_name(State& current, const std::string& name, const std::string& where) {
  if (is_known(name) || !current.warned.insert(where + name).second) return;
  const char* const closest = closest_name(name);
  complain((where.empty() ? name : where + ": " + name) + " is not a variable of this library; " +
           (closest != nullptr ? "did you mean " + std::string(closest) + "?"
                               : "`ptl_info --config --all` lists them"));
}

void warn_unknown_names(State& current) {
  for (const File& file : current.files)
    for (const ConfigSetting& setting : file.settings)
      warn_unknown_name(current, setting.name, setting.place);
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    if (std::strncmp(*entry, "PTL_", 4) != 0) continue;
    warn_unknown_name(current, std::string(*entry, std::strcspn(*entry, "=")), "");
  }
}

std::vector<File> read_files(std::vector<std::string>& complaints) {
  return {{ConfigOrigin::user_file, read_config_file(user_config_file(), complaints)},
          {ConfigOrigin::system_file, read_config_file(system_file(), complaints)}};
}

// config_find_log_level() has read the files.
std::atomic<bool> files_searched{false};

}  // namespace

std::span<const ConfigVariable> config_table() noexcept { return table; }
std::span<const std::string_view> config_runtime_names() noexcept { return runtime_names; }

void config_load() {
  if (!state().loaded) config_reload();
}

void config_reload() {
  State& current = state();
  current.complaints.clear();
  std::vector<std::string> about_files;
  current.files = read_files(about_files);
  // The level comes first, so that it already applies to warnings about the others.
  read_variable(current, row(ConfigKey::log_level));
  set_log_level(static_cast<LogLevel>(config_choice(ConfigKey::log_level)));
  for (std::string& text : about_files) complain(std::move(text));
  for (const ConfigVariable& variable : table)
    if (variable.key != ConfigKey::log_level) read_variable(current, variable);
  warn_unknown_names(current);
  current.loaded = true;
}

void config_find_log_level() noexcept {
  try {
    const ConfigVariable& variable = row(ConfigKey::log_level);
    State searched;
    if (text_of(variable.name) == nullptr) {
      if (files_searched.exchange(true, std::memory_order_relaxed)) return;
      searched.files = read_files(searched.complaints);  // PtlInit says them
    }
    const Found found = find_name(searched, variable.name);
    if (found.text == nullptr) return;
    if (const std::optional<uint64_t> number = parse_value(variable, found.text))
      set_log_level(static_cast<LogLevel>(*number));
  } catch (const std::exception&) {  // out of memory: the level stays
  }
}

uint64_t config_u64(ConfigKey key) noexcept { return value(key).number; }
std::optional<uint64_t> config_optional(ConfigKey key) noexcept {
  return value(key).text.empty() ? std::nullopt : std::optional(value(key).number);
}
bool config_bool(ConfigKey key) noexcept { return value(key).number != 0; }
unsigned config_choice(ConfigKey key) noexcept { return static_cast<unsigned>(value(key).number); }
const std::string& config_string(ConfigKey key) noexcept { return value(key).text; }
ConfigOrigin config_origin(ConfigKey key) noexcept { return value(key).origin; }

std::string config_origin_text(ConfigKey key) {
  switch (config_origin(key)) {
    case ConfigOrigin::default_value:
      return "default";
    case ConfigOrigin::system_file:
    case ConfigOrigin::user_file:
      return value(key).place;
    case ConfigOrigin::environment:
      return "environment";
    case ConfigOrigin::program:
      return "program";
  }
  return {};
}

void config_use_system_file(std::string path) {
  system_file() = std::move(path);
  files_searched = false;
}

std::vector<std::string> config_list(ConfigKey key) { return split_words(value(key).text, ','); }

std::vector<unsigned> config_cpus(ConfigKey key) {
  return parse_cpu_list(value(key).text).value_or(std::vector<unsigned>{});
}

void config_set(ConfigKey key, std::string text) {
  const uint64_t number = parse_value(row(key), text).value_or(0);
  state().values[static_cast<size_t>(key)] = {number, std::move(text), ConfigOrigin::program, ""};
}

void config_refuse(ConfigKey key, std::string_view allowed) {
  warn_refused(row(key), value(key).text, value(key).place, allowed);
  set_default(state(), key);
}

const std::vector<std::string>& config_complaints() noexcept { return state().complaints; }

std::string config_display(ConfigKey key) {
  const std::string& text = value(key).text;
  if (row(key).type == ConfigType::secret) return text.empty() ? "unset" : "set";
  return text;
}

std::string config_allowed(const ConfigVariable& variable) {
  switch (variable.type) {
    case ConfigType::u64:
    case ConfigType::optional: {
      std::string range =
          std::to_string(variable.minimum) + " to " + std::to_string(variable.maximum);
      if (*variable.unit) range += std::string(" ") + variable.unit;
      return range;
    }
    case ConfigType::boolean:
      return "1 or 0";
    case ConfigType::report:
      return "1, 0 or file:PATH";
    case ConfigType::choice: {
      std::string words;
      for (const std::string& word : split_words(variable.choices, '|'))
        words += (words.empty() ? "" : ", ") + word;
      return words;
    }
    case ConfigType::list:
      return "words separated by commas";
    case ConfigType::cpu_list:
      return "processor numbers such as 0,2-5";
    case ConfigType::text:
    case ConfigType::secret:
      return "any text";
  }
  return {};
}

}  // namespace lintel
