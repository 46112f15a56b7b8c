// The facts of the library and of an interface that is opened for that. Set-up path.
// SPDX-License-Identifier: BSD-3-Clause
#include <portals4_lintel.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <sstream>

#include "hand_environment.h"
#include "memory_kind/drivers.h"
#include "ptl_info/facts.h"
#include "util/config.h"
#include "util/descriptor.h"
#include "util/log.h"
#include "util/module.h"
#include "util/node_identity.h"
#include "wiring/registry.h"

namespace lintel::info {
namespace {

template <auto Member>
std::uint64_t limit_value(const ptl_ni_limits_t& limits) {
  return static_cast<std::uint64_t>(limits.*Member);
}

std::vector<InterfaceFacts> gather_interfaces() {
  const auto default_choices = explain_transports(transport_settings(PTL_IFACE_DEFAULT, 0));
  std::vector<InterfaceFacts> interfaces;
  bool first = true;
  for (const std::uint32_t number : interface_numbers()) {
    InterfaceFacts facts;
    facts.number = number;
    facts.is_default = first;
    first = false;
    const auto choices = facts.is_default
                             ? default_choices
                             : explain_transports(transport_settings(number, PTL_PID_ANY));
    for (const TransportChoice& choice : choices) {
      facts.transports.push_back({choice.name, choice.usable, choice.reason, choice.is_unexpected});
    }
    interfaces.push_back(std::move(facts));
  }
  return interfaces;
}

const char* origin_name(ConfigOrigin origin) {
  switch (origin) {
    case ConfigOrigin::default_value:
      return "default";
    case ConfigOrigin::system_file:
      return "system file";
    case ConfigOrigin::user_file:
      return "user file";
    case ConfigOrigin::environment:
      return "environment";
    case ConfigOrigin::program:
      return "program";
  }
  return "";
}

std::string place_of(ConfigKey key) {
  const ConfigOrigin origin = config_origin(key);
  return origin == ConfigOrigin::user_file || origin == ConfigOrigin::system_file
             ? config_origin_text(key)
             : "";
}

// Threads of the library write, too.
std::mutex log_mutex;
struct Warnings {
  std::vector<std::string> lines;
  std::string last_error;
};
Warnings& warnings() {
  static Warnings all;
  return all;
}

// Errors and warnings are shown with the facts, once.
bool keep_warning(LogLevel level, const char* text) noexcept {
  if (level > LogLevel::warn) return true;
  const std::lock_guard guard(log_mutex);
  std::vector<std::string>& lines = warnings().lines;
  if (std::find(lines.begin(), lines.end(), text) == lines.end()) lines.emplace_back(text);
  if (level == LogLevel::error) warnings().last_error = text;
  return false;
}

// Ignores warnings: those about the largest limits are no fault of the node.
bool ignore_warning(LogLevel level, const char*) noexcept { return level > LogLevel::warn; }

std::vector<std::string> gather_missing_module_directories() {
  std::vector<std::string> missing;
  std::istringstream path(config_string(ConfigKey::module_path));
  for (std::string directory; std::getline(path, directory, ':');)
    if (!directory.empty() && !std::filesystem::is_directory(directory))
      missing.push_back(directory);
  return missing;
}

// A transport that could not be opened, although nothing spoke against it before.
void correct_transports(Facts& facts) {
  for (InterfaceFacts& interface : facts.interfaces) {
    for (TransportFacts& transport : interface.transports) {
      const std::string sentence = "interface " + std::to_string(interface.number) +
                                   " opens without " + transport.name + ": ";
      for (const std::string& line : facts.log_lines) {
        if (!transport.usable || !line.starts_with(sentence)) continue;
        transport.usable = false;
        transport.is_unexpected = true;
        transport.reason = line.substr(sentence.size());
      }
    }
  }
}

std::string nid_map_fault(const HandEnvironment& by_hand, std::uint32_t nid) {
  const std::vector<std::uint32_t>& nids = by_hand.nids;
  if (by_hand.rank && *by_hand.rank < nids.size() && nids[*by_hand.rank] != nid)
    return "PTL_NIDMAP gives rank " + std::to_string(*by_hand.rank) + ", this process, nid " +
           nid_text(nids[*by_hand.rank]) + ", but the nid of this node is " + nid_text(nid);
  if (!nids.empty() && std::find(nids.begin(), nids.end(), nid) == nids.end())
    return "PTL_NIDMAP does not have the nid of this node, " + nid_text(nid);
  return "";
}

std::vector<ModuleFacts> gather_modules() {
  std::vector<ModuleFacts> modules;
  for (const char* name : {"crypto", "verbs", "dpdk", "pmix"}) {
    modules.push_back({name, module_is_installed(name)});
  }
  return modules;
}

// Tries with a little memory of the first device what its driver can do.
void find_ways(MemoryKind& kind, AcceleratorFacts& facts) {
  constexpr std::uint64_t bytes = 1 << 16;
  void* const memory = kind.allocate(0, bytes);
  DeviceAllocation allocation;
  if (memory == nullptr || !kind.describe(memory, &allocation)) {
    facts.within_node = facts.by_networks = "not known, since the device has no memory for a test";
    return;
  }
  ExportedAllocation exported;
  facts.within_node =
      kind.export_allocation(allocation, &exported)
          ? "the device copies"
          : "through buffers of the host, since the driver lends no memory to other processes";
  std::uint64_t offset = 0;
  const Descriptor dmabuf(kind.dmabuf(memory, bytes, &offset));
  facts.by_networks =
      dmabuf.is_open()
          ? "verbs by RDMA where the RDMA device registers a dmabuf; otherwise through buffers of "
            "the host"
          : "verbs by RDMA where the kernel knows the memory (peer memory), since the driver gives "
            "no dmabuf; otherwise through buffers of the host";
  kind.release(memory);
}

std::vector<AcceleratorFacts> gather_accelerators() {
  std::vector<AcceleratorFacts> accelerators;
  for (const DriverReport& report : load_drivers()) {
    AcceleratorFacts facts{report.name, report.kind != nullptr, report.text, {}, {}, {}};
    const int count = facts.usable ? report.kind->device_count() : 0;
    for (int device = 0; device < count; ++device) {
      char name[256];
      report.kind->device_name(device, name, sizeof name);
      char pci[32];
      report.kind->pci_address(device, pci, sizeof pci);
      const std::string distances = port_distances(pci);
      facts.devices.push_back(
          distances.empty() ? name : name + std::string(" (ports: ") + distances + ")");
    }
    if (count != 0) find_ways(*report.kind, facts);
    accelerators.push_back(facts);
  }
  return accelerators;
}

std::vector<ConfigFacts> gather_configuration() {
  std::vector<ConfigFacts> all;
  for (const ConfigVariable& variable : config_table()) {
    all.push_back({variable.name, config_display(variable.key), variable.default_value,
                   variable.unit, config_allowed(variable),
                   origin_name(config_origin(variable.key)), place_of(variable.key), variable.help,
                   variable.audience == ConfigAudience::tests});
  }
  return all;
}

NameFacts gather_names() {
  NameFacts names;
  names.runtime_names.assign(config_runtime_names().begin(), config_runtime_names().end());
  return names;
}

ptl_ni_limits_t all_largest() {
  ptl_ni_limits_t limits{};
  limits.max_entries = limits.max_unexpected_headers = limits.max_mds = limits.max_eqs =
      limits.max_cts = limits.max_pt_index = limits.max_iovecs = limits.max_list_size =
          limits.max_triggered_ops = INT_MAX;
  limits.max_msg_size = limits.max_atomic_size = limits.max_fetch_atomic_size =
      limits.max_waw_ordered_size = limits.max_war_ordered_size = limits.max_volatile_size =
          PTL_SIZE_MAX;
  limits.features = UINT_MAX;
  return limits;
}

// Opens the interface for a moment with these desires; returns what goes wrong, or nothing.
// Desires hold for the first opening of a logical interface (spec 3.6.2), so each uses another one.
template <class Use>
std::string with_interface(ptl_interface_t number, unsigned options, const ptl_ni_limits_t* desired,
                           Use&& use) {
  ptl_ni_limits_t actual{};
  ptl_handle_ni_t handle = PTL_INVALID_HANDLE;
  const int code = PtlNIInit(number, options, PTL_PID_ANY, desired, &actual, &handle);
  if (code != PTL_OK) return std::string("PtlNIInit returned ") + PtlLintelStrError(code);
  use(handle, actual);
  PtlNIFini(handle);
  return {};
}

void gather_opened(Facts& facts, ptl_interface_t number) {
  OpenedFacts opened;
  opened.requested = number == PTL_IFACE_DEFAULT ? "default" : std::to_string(number);
  const ptl_ni_limits_t desired = all_largest();
  facts.open_problem =
      with_interface(number, PTL_NI_MATCHING | PTL_NI_PHYSICAL, nullptr,
                     [&](ptl_handle_ni_t handle, const ptl_ni_limits_t& actual) {
                       opened.default_limits = opened.largest_limits = actual;
                       PtlGetPhysId(handle, &opened.id);
                       PtlGetUid(handle, &opened.uid);
                       for (StatusRegister& each : facts.registers)
                         PtlNIStatus(handle, each.index, &each.value);
                       // Within the first one, so that the transports are opened once.
                       set_log_listener(ignore_warning);
                       facts.fits_largest_limits =
                           with_interface(number, PTL_NI_NO_MATCHING | PTL_NI_PHYSICAL, &desired,
                                          [&](ptl_handle_ni_t, const ptl_ni_limits_t& largest) {
                                            opened.largest_limits = largest;
                                          })
                               .empty();
                       set_log_listener(keep_warning);
                     });
  if (facts.open_problem.empty()) facts.opened = opened;
}

}  // namespace

std::vector<std::string> feature_names(unsigned features) {
  std::vector<std::string> names;
  if (features & PTL_TARGET_BIND_INACCESSIBLE) names.push_back("PTL_TARGET_BIND_INACCESSIBLE");
  if (features & PTL_TOTAL_DATA_ORDERING) names.push_back("PTL_TOTAL_DATA_ORDERING");
  if (features & PTL_COHERENT_ATOMICS) names.push_back("PTL_COHERENT_ATOMICS");
  return names;
}

const std::vector<LimitField>& limit_fields() {
  using L = ptl_ni_limits_t;
  static const std::vector<LimitField> fields{
      {"max_entries", "list entries or match list entries", limit_value<&L::max_entries>},
      {"max_unexpected_headers", "headers on unexpected lists",
       limit_value<&L::max_unexpected_headers>},
      {"max_mds", "memory descriptors", limit_value<&L::max_mds>},
      {"max_eqs", "event queues", limit_value<&L::max_eqs>},
      {"max_cts", "counting events", limit_value<&L::max_cts>},
      {"max_pt_index", "largest portal table index", limit_value<&L::max_pt_index>},
      {"max_iovecs", "elements of an I/O vector", limit_value<&L::max_iovecs>},
      {"max_list_size", "entries of one list", limit_value<&L::max_list_size>},
      {"max_triggered_ops", "pending triggered operations", limit_value<&L::max_triggered_ops>},
      {"max_msg_size", "bytes of a message", limit_value<&L::max_msg_size>},
      {"max_atomic_size", "bytes of an atomic", limit_value<&L::max_atomic_size>},
      {"max_fetch_atomic_size", "bytes of a fetch-atomic or swap",
       limit_value<&L::max_fetch_atomic_size>},
      {"max_waw_ordered_size", "bytes ordered, write or read after write",
       limit_value<&L::max_waw_ordered_size>},
      {"max_war_ordered_size", "bytes ordered, write after read",
       limit_value<&L::max_war_ordered_size>},
      {"max_volatile_size", "bytes that may change after the call",
       limit_value<&L::max_volatile_size>},
  };
  return fields;
}

Facts gather_facts(ptl_interface_t interface) {
  Facts facts;
  facts.library_version = LINTEL_VERSION;
  set_log_listener(keep_warning);
  facts.node = gather_node_facts();
  facts.registers = known_registers();
  const int code = PtlInit();
  if (code != PTL_OK) {
    config_load();
    facts.open_problem = std::string("PtlInit returned ") + PtlLintelStrError(code);
  }
  const NodeIdentity node = configured_node_identity();
  facts.node.nid = node.nid;
  facts.node.nid_choice = node.reason;
  facts.node.nid_fault = why_not_reached(node);
  facts.node.shm_needed_bytes = config_u64(ConfigKey::shm_memory_kib) * 1024;
  facts.devices = gather_devices();
  facts.modules = gather_modules();
  facts.accelerators = gather_accelerators();
  facts.libfabric = gather_libfabric();
  facts.progress_cpus = config_cpus(ConfigKey::progress_cpus);
  facts.job_key_is_set = !config_string(ConfigKey::job_key).empty();
  facts.dpdk_is_wanted = !config_string(ConfigKey::dpdk_ports).empty();
  facts.is_launched_by_pmix = std::getenv("PMIX_NAMESPACE") != nullptr;
  facts.interfaces = gather_interfaces();
  facts.missing_module_directories = gather_missing_module_directories();
  facts.configuration = gather_configuration();
  facts.names = gather_names();
  const std::vector<std::uint32_t> numbers = interface_numbers();
  facts.is_no_interface = interface != PTL_IFACE_DEFAULT &&
                          std::find(numbers.begin(), numbers.end(), interface) == numbers.end();
  if (facts.is_no_interface) {
    facts.open_problem = "there is no interface " + std::to_string(interface);
  } else if (code == PTL_OK) {
    gather_opened(facts, interface);
  }
  if (code == PTL_OK) PtlFini();
  set_log_listener(nullptr);
  facts.log_lines = warnings().lines;
  facts.log_error = warnings().last_error;
  correct_transports(facts);
  facts.configuration_complaints = config_complaints();
  HandEnvironment by_hand;
  const std::string complaint = read_hand_environment(by_hand);
  if (!complaint.empty()) facts.configuration_complaints.push_back(complaint);
  facts.nid_map_fault = nid_map_fault(by_hand, node.nid);
  facts.findings = find_problems(facts);
  return facts;
}

}  // namespace lintel::info
