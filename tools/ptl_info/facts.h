// Facts that ptl_info shows, gathered before they are printed in one form or another. Set-up path.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <portals4.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/machine.h"

namespace lintel::info {

struct TransportFacts {
  std::string name;
  bool usable = false;
  std::string reason;          // processes that it reaches, or why it would not be used
  bool is_unexpected = false;  // not usable, although it should be or was requested
};

struct InterfaceFacts {
  ptl_interface_t number = 0;
  bool is_default = false;  // the interface that PTL_IFACE_DEFAULT means
  std::vector<TransportFacts> transports;
};

/** An interface that was opened to see what it gives. */
struct OpenedFacts {
  std::string requested;  // "default" or a number
  ptl_process_t id{};
  ptl_uid_t uid = 0;
  ptl_ni_limits_t default_limits{};  // granted when nothing is desired
  ptl_ni_limits_t largest_limits{};  // granted when the largest value of each type is desired
};

struct StatusRegister {
  ptl_sr_index_t index = 0;
  std::string name;  // the constant of portals4.h or portals4_lintel.h
  std::string meaning;
  ptl_sr_value_t value = 0;
};

struct ConfigFacts {
  std::string name;
  std::string value;
  std::string default_value;
  std::string unit;
  std::string allowed;
  std::string origin;  // "default", "environment", or "user file" or "system file"
  std::string place;   // file and line of the setting
  std::string help;
  bool for_tests = false;
};

// Names that are no variables of the table, but known.
struct NameFacts {
  std::vector<std::string> runtime_names;
};

struct NodeFacts {
  tools::Machine machine;
  std::uint32_t nid = 0;
  std::string nid_choice;         // "192.0.2.1, the address of eth0, ..."
  std::string nid_fault;          // why other nodes cannot reach it; empty: nothing is known
  std::string read_other_memory;  // whether process_vm_readv between own processes is permitted
  bool can_read_other_memory = false;
  bool membarrier_available = false;
  std::string shared_memory;  // state of /dev/shm
  bool shm_usable = false;
  std::uint64_t shm_total_bytes = 0;
  std::uint64_t shm_free_bytes = 0;
  std::uint64_t shm_needed_bytes = 0;  // need of a process with many peers: PTL_SHM_MEMORY_KIB
  int ptrace_scope = -1;               // setting of Yama; negative: the kernel has none
  bool userfaultfd_available = false;
  bool is_root = false;
  std::uint64_t receive_buffer_limit_bytes = 0;  // net.core.rmem_max
  std::uint64_t locked_memory_limit_bytes = 0;   // ulimit -l; UINT64_MAX: none
  std::uint64_t address_space_limit_bytes = 0;   // ulimit -v; UINT64_MAX: none
};

struct DeviceFacts {
  std::string kind;   // "network" or "rdma"
  std::string name;   // "eth0", "mlx5_0:1"
  std::string layer;  // link layer of an RDMA port: "InfiniBand" or "Ethernet"
  std::string link;   // "up", "ACTIVE"
  bool is_up = false;
  std::string address;           // IPv4 addresses, or GIDs
  std::uint64_t mtu_bytes = 0;   // 0: not known
  std::uint64_t speed_mbit = 0;  // 0: not known
};

struct ModuleFacts {
  std::string name;
  bool installed = false;
};

// A driver of accelerators.
struct AcceleratorFacts {
  std::string driver;                // "cuda"
  bool usable = false;               // the library accesses memory of its devices
  std::string reason;                // path of its library, or why it would not be used
  std::vector<std::string> devices;  // names
  std::string within_node;           // way of long messages; empty without devices
  std::string by_networks;
};

// The provider for libfabric, which libfabric loads from a directory.
struct LibfabricFacts {
  std::string directory;     // of the provider beside the library; empty: it is not installed
  std::string found_in;      // where libfabric finds a provider of this name; empty: nowhere
  bool path_is_set = false;  // FI_PROVIDER_PATH says where libfabric looks
};

enum class Severity { problem, note };
struct Finding {
  std::string id;  // the same for the same fault, for programs
  Severity severity;
  std::string what;
  std::string advice;
};

struct Facts {
  std::string library_version;
  NodeFacts node;
  std::vector<DeviceFacts> devices;
  std::vector<ModuleFacts> modules;
  std::vector<AcceleratorFacts> accelerators;
  LibfabricFacts libfabric;
  std::vector<std::string> configuration_complaints;
  std::vector<std::string> log_lines;  // errors and warnings, each once
  std::string log_error;               // the last error of them
  std::string nid_map_fault;           // contradiction between PTL_NIDMAP and this node
  std::vector<std::string> missing_module_directories;
  std::vector<unsigned> progress_cpus;
  bool job_key_is_set = false;
  bool dpdk_is_wanted = false;
  bool is_launched_by_pmix = false;
  std::vector<InterfaceFacts> interfaces;
  std::optional<OpenedFacts> opened;
  std::string open_problem;         // why `opened` is empty
  bool is_no_interface = false;     // there is no interface of that number
  bool fits_largest_limits = true;  // otherwise those of `opened` are the default ones
  std::vector<StatusRegister> registers;
  std::vector<ConfigFacts> configuration;
  NameFacts names;
  std::vector<Finding> findings;  // problems first
};

/** Names of the bits of ptl_ni_limits_t::features. */
std::vector<std::string> feature_names(unsigned features);

/** A field of ptl_ni_limits_t by name, for printing. */
struct LimitField {
  const char* name;
  const char* meaning;
  std::uint64_t (*get)(const ptl_ni_limits_t& limits);
};
const std::vector<LimitField>& limit_fields();

/** Gathers facts without Portals: forks processes for a moment to test what the kernel permits.
 * Call it before PtlInit. */
NodeFacts gather_node_facts();

/** Gathers all facts. `interface`: the one to open. Initializes Portals and finalizes it. */
Facts gather_facts(ptl_interface_t interface);

/** The status registers of portals4.h and portals4_lintel.h, without values. */
std::vector<StatusRegister> known_registers();

// Distances of network ports from the accelerator at that address of the PCI bus; empty if nothing
// is known.
std::string port_distances(const std::string& pci_address);
std::vector<DeviceFacts> gather_devices();
LibfabricFacts gather_libfabric();
std::vector<Finding> find_problems(const Facts& facts);
const char* severity_name(Severity severity);

void print_screen(const Facts& facts);
void print_text(const Facts& facts);
// All: also what only tests and measurements need.
void print_configuration(const Facts& facts, bool all);
void print_json(const Facts& facts);

}  // namespace lintel::info
