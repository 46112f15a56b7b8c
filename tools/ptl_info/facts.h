// What ptl_info tells, gathered before it is printed in one form or another. Set-up path.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <portals4.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/machine.h"

namespace lintel::info {

struct TransportFacts {
  std::string name;
  bool usable = false;
  std::string reason;  // what it reaches, or why it would not be used
};

struct InterfaceFacts {
  ptl_interface_t number = 0;
  bool is_default = false;  // what PTL_IFACE_DEFAULT means
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
  std::string origin;  // "default" or "environment"
  std::string help;
  bool for_tests = false;
};

// Names that are no variables of the table, but known.
struct NameFacts {
  std::map<std::string, std::string> former_names;  // and what they are called now
  std::vector<std::string> runtime_names;
};

struct NodeFacts {
  tools::Machine machine;
  std::string nid_choice;         // "192.0.2.1, the address of eth0, ..."
  std::string read_other_memory;  // whether process_vm_readv between own processes is permitted
  bool can_read_other_memory = false;
  bool membarrier_available = false;
  std::string shared_memory;  // state of /dev/shm
};

struct Facts {
  std::string library_version;
  NodeFacts node;
  std::vector<InterfaceFacts> interfaces;
  std::optional<OpenedFacts> opened;
  std::string open_problem;  // why `opened` is empty
  std::vector<StatusRegister> registers;
  std::vector<ConfigFacts> configuration;
  NameFacts names;
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

/** Without Portals: forks processes for a moment to see what the kernel permits. Call it before
 *  PtlInit. */
NodeFacts gather_node_facts();

/** Everything. `interface`: the one to open. Initializes Portals and finalizes it. */
Facts gather_facts(ptl_interface_t interface);

/** The status registers of portals4.h and portals4_lintel.h, without values. */
std::vector<StatusRegister> known_registers();

void print_text(const Facts& facts);
// All: also what only tests and measurements need.
void print_configuration(const Facts& facts, bool all);
void print_json(const Facts& facts);

}  // namespace lintel::info
