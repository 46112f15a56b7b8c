// The table of transports. Set-up path.
#include "transport/registry.h"

#include <unistd.h>

#include <algorithm>

#include "local/local_transport.h"
#include "portals4.h"
#include "shm/segment_name.h"
#include "shm/shm_transport.h"
#include "transport/node_identity.h"
#include "util/config.h"

namespace lintel {

namespace {

// A transport fixes the pid if it has to make it unique; the later ones take what it chose.
OpenStatus open_shm(const TransportSettings& settings, OpenedTransports& opened) {
  ShmSettings shm;
  shm.nid = settings.nid;
  shm.pid = opened.pid;
  shm.job_key = settings.job_key;
  shm.memory_bytes = settings.shm_memory_bytes;
  shm.cma = settings.shm_cma;
  shm.cma_threshold_bytes = settings.shm_cma_threshold_bytes;
  std::unique_ptr<ShmTransport> transport;
  switch (ShmTransport::open(shm, transport, opened.reason)) {
    case Segment::Status::created:
      opened.pid = transport->id().pid;
      opened.transports.push_back(std::move(transport));
      return OpenStatus::opened;
    case Segment::Status::pid_in_use:
      return OpenStatus::pid_in_use;
    case Segment::Status::failed:
      break;
  }
  return OpenStatus::failed;
}

OpenStatus open_local(const TransportSettings& settings, OpenedTransports& opened) {
  if (opened.pid == PTL_PID_ANY) opened.pid = static_cast<uint32_t>(getpid()) % PTL_PID_MAX;
  auto transport = LocalTransport::open({settings.nid, opened.pid}, settings.uid);
  if (transport == nullptr) {
    opened.reason = "no memory";
    return OpenStatus::failed;
  }
  opened.transports.push_back(std::move(transport));
  return OpenStatus::opened;
}

std::string why_not_shm() {
  const std::string& directory = segment_directory();
  return access(directory.c_str(), R_OK | W_OK | X_OK) == 0 ? "" : directory + " cannot be written";
}

std::string always_usable() { return ""; }

struct Entry {
  const char* name;  // as in PTL_TRANSPORT
  const char* reach;
  OpenStatus (*open)(const TransportSettings&, OpenedTransports&);
  std::string (*why_not)();  // empty: usable here
};

// In the order of opening: those that settle the pid first.
constexpr Entry shm_entry{"shm", "processes of this user on this node", open_shm, why_not_shm};
constexpr Entry local_entry{"local", "this process itself", open_local, always_usable};

struct Interface {
  uint32_t number;
  std::vector<const Entry*> transports;
};

const std::vector<Interface>& interfaces() {
  static const std::vector<Interface> table = {
      {0, {&shm_entry, &local_entry}},  // the best there is
      {1, {&shm_entry, &local_entry}},
      {2, {&local_entry}},
  };
  return table;
}

const Interface* find_interface(uint32_t number) {
  if (number == PTL_IFACE_DEFAULT) return &interfaces().front();
  for (const Interface& interface : interfaces())
    if (interface.number == number) return &interface;
  return nullptr;
}

bool allowed(const TransportSettings& settings, const char* name) {
  return settings.allowed.empty() || std::find(settings.allowed.begin(), settings.allowed.end(),
                                               name) != settings.allowed.end();
}

constexpr const char* not_listed = "PTL_TRANSPORT does not list it";

}  // namespace

TransportSettings transport_settings(uint32_t interface_number, uint32_t pid) {
  TransportSettings settings;
  settings.interface_number = interface_number;
  settings.nid = find_node_identity(config_string(ConfigKey::nid_interface)).nid;
  settings.pid = pid;
  settings.uid = geteuid();
  settings.job_key = config_string(ConfigKey::job_key);
  settings.allowed = config_list(ConfigKey::transport);
  settings.shm_memory_bytes = config_u64(ConfigKey::shm_memory_kib) * 1024;
  settings.shm_cma = config_bool(ConfigKey::shm_cma);
  settings.shm_cma_threshold_bytes =
      static_cast<uint32_t>(config_u64(ConfigKey::shm_cma_threshold));
  return settings;
}

OpenedTransports open_transports(const TransportSettings& settings) {
  OpenedTransports opened;
  const Interface* const interface = find_interface(settings.interface_number);
  if (interface == nullptr) {
    opened.status = OpenStatus::no_such_interface;
    opened.reason = "there is no interface " + std::to_string(settings.interface_number);
    return opened;
  }
  opened.pid = settings.pid;
  std::string skipped;
  for (const Entry* entry : interface->transports) {
    std::string why = allowed(settings, entry->name) ? entry->why_not() : not_listed;
    if (why.empty()) {
      const OpenStatus status = entry->open(settings, opened);
      if (status == OpenStatus::opened) continue;
      if (status == OpenStatus::pid_in_use) {
        opened.transports.clear();
        opened.status = status;
        return opened;
      }
      why = opened.reason;
    }
    skipped += (skipped.empty() ? "" : "; ") + std::string(entry->name) + ": " + why;
  }
  // A process reaches itself first of all.
  std::reverse(opened.transports.begin(), opened.transports.end());
  opened.reason = skipped;
  opened.status = opened.transports.empty() ? OpenStatus::failed : OpenStatus::opened;
  return opened;
}

std::vector<uint32_t> interface_numbers() {
  std::vector<uint32_t> numbers;
  for (const Interface& interface : interfaces()) numbers.push_back(interface.number);
  return numbers;
}

std::vector<TransportChoice> explain_transports(const TransportSettings& settings) {
  std::vector<TransportChoice> choices;
  const Interface* const interface = find_interface(settings.interface_number);
  if (interface == nullptr) return choices;
  for (const Entry* entry : interface->transports) {
    std::string why = allowed(settings, entry->name) ? entry->why_not() : not_listed;
    const bool usable = why.empty();
    choices.push_back({entry->name, usable, usable ? std::string("reaches ") + entry->reach : why});
  }
  return choices;
}

}  // namespace lintel
