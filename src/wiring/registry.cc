// The table of transports. Set-up path.
#include "wiring/registry.h"

#include <arpa/inet.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <string_view>
#include <utility>

#include "local/local_transport.h"
#include "portals4.h"
#include "reliable/reliable_transport.h"
#include "shm/node_secret.h"
#include "shm/segment_directory.h"
#include "shm/segment_layout.h"
#include "shm/shm_transport.h"
#include "transport/incarnation.h"
#include "udp/udp_link.h"
#include "util/config.h"
#include "util/log.h"
#include "util/text.h"

namespace lintel {

namespace {

ReliableSettings configured_reliability(uint32_t uid, const std::string& job_key) {
  ReliableSettings reliable;
  reliable.uid = uid;
  reliable.node = number_of_machine();
  reliable.job_key = job_key;
  reliable.memory_bytes = config_u64(ConfigKey::network_memory_kib) * 1024;
  reliable.peer_timeout_ns = config_u64(ConfigKey::peer_timeout_ms) * 1'000'000;
  const std::string& security = config_string(ConfigKey::network_security);
  if (security == "encrypted")
    reliable.security = NetworkSecurity::encrypted;
  else if (security == "authenticated" || (security == "auto" && !job_key.empty()))
    reliable.security = NetworkSecurity::authenticated;
  // Without a progress thread held acknowledgements would not be sent when the application makes no
  // more calls.
  reliable.holds_acknowledgements = config_string(ConfigKey::progress) != "caller";
  return reliable;
}

Faults configured_faults() {
  Faults faults;
  std::string reason;
  if (Faults::parse(config_string(ConfigKey::faults), faults, reason)) return faults;
  config_refuse(ConfigKey::faults,
                "drop, dup, reorder and corrupt with probabilities from 0 to 1, and seed, as in "
                "drop=0.01,seed=7");
  return {};
}

// Determines which peers are admitted. Without a job key a network is open to processes of this
// user on this node only, unless the configuration opens it. False: there are no random numbers.
bool settle_admission(ReliableSettings& reliable, const TransportSettings& settings,
                      std::string& reason) {
  if (!settings.job_key.empty() || settings.opens_networks) return true;
  reliable.node_secret = share_node_secret(reason);
  if (reliable.node_secret == nullptr) return false;
  static std::atomic<bool> said{false};
  if (!reason.empty())
    log_once(said, LogLevel::warn,
             "%s; without PTL_JOB_KEY and PTL_UDP_OPEN=1 no process is reached over networks",
             reason.c_str());
  reason.clear();
  return true;
}

// Adds a link with the reliability layer around it, as configured.
OpenStatus add_over_link(std::unique_ptr<PacketLink> link, const TransportSettings& settings,
                         bool polls_always, OpenedTransports& opened) {
  ReliableSettings reliable = settings.reliable;
  reliable.polls_always = polls_always;
  if (!settle_admission(reliable, settings, opened.reason)) return OpenStatus::failed;
  auto transport =
      reliable_over_link(std::move(link), reliable, configured_faults(), opened.reason);
  if (transport == nullptr) return OpenStatus::failed;
  opened.transports.push_back(std::move(transport));
  return OpenStatus::opened;
}

// The functions that open a transport. The pid is fixed by then.
OpenStatus open_shm(const TransportSettings& settings, OpenedTransports& opened, bool) {
  const ShmSettings shm{.nid = settings.nid,
                        .pid = opened.id.pid,
                        .job_key = settings.job_key,
                        .memory_bytes = settings.shm_memory_bytes,
                        .cma = settings.shm_cma,
                        .cma_threshold_bytes = settings.shm_cma_threshold_bytes,
                        .incarnation = settings.reliable.incarnation};
  std::unique_ptr<ShmTransport> transport;
  const OpenStatus status = ShmTransport::open(shm, transport, opened.reason);
  if (status == OpenStatus::opened) opened.transports.push_back(std::move(transport));
  return status;
}

OpenStatus open_udp(const TransportSettings& settings, OpenedTransports& opened,
                    bool polls_always) {
  const UdpSettings udp{settings.udp_host, opened.id.pid, settings.udp_frame_bytes,
                        settings.udp_rails};
  if (udp.host.is_found() && udp.host.nid != settings.nid)
    return explained(OpenStatus::failed, opened.reason,
                     "the nid of this node is not the address of its socket");
  std::unique_ptr<UdpLink> link;
  const OpenStatus status = UdpLink::open(udp, link, opened.reason);
  if (status != OpenStatus::opened) return status;
  // Datagrams to an address of this node do not leave it.
  TransportSettings within = settings;
  within.reliable.node = 0;
  return add_over_link(std::move(link), within, polls_always, opened);
}

OpenStatus open_dpdk(const TransportSettings& settings, OpenedTransports& opened,
                     bool polls_always) {
  std::unique_ptr<PacketLink> link;
  const OpenStatus status = open_dpdk_link(settings.dpdk, opened.id, link, opened.reason);
  return status == OpenStatus::opened
             ? add_over_link(std::move(link), settings, polls_always, opened)
             : status;
}

OpenStatus open_verbs(const TransportSettings& settings, OpenedTransports& opened, bool) {
  ReliableSettings reliable = settings.reliable;
  if (!settle_admission(reliable, settings, opened.reason)) return OpenStatus::failed;
  std::unique_ptr<Transport> transport;
  const OpenStatus status = open_verbs_transport(settings.verbs, opened.id, reliable,
                                                 configured_faults(), transport, opened.reason);
  if (status == OpenStatus::opened) opened.transports.push_back(std::move(transport));
  return status;
}

OpenStatus open_local(const TransportSettings& settings, OpenedTransports& opened, bool) {
  auto transport = LocalTransport::open(opened.id, settings.uid);
  if (transport == nullptr) return explained(OpenStatus::failed, opened.reason, "no memory");
  opened.transports.push_back(std::move(transport));
  return OpenStatus::opened;
}

std::string why_not_shm(const TransportSettings&) {
  const std::string& directory = segment_root();
  if (access(directory.c_str(), R_OK | W_OK | X_OK) != 0) return directory + " cannot be written";
  struct statvfs state {};
  if (statvfs(directory.c_str(), &state) != 0) return "";
  const uint64_t free_bytes = uint64_t{state.f_bavail} * state.f_frsize;
  return free_bytes >= first_lane_offset
             ? ""
             : text_of("no room in ", directory, ": ", free_bytes / 1024, " KiB are left, and the ",
                       "queues of a process take ", first_lane_offset / 1024, " KiB at least");
}

std::string why_not_udp(const TransportSettings& settings) {
  return settings.udp_host.is_found() ? "" : settings.udp_host.reason;
}

std::string why_not_dpdk(const TransportSettings& settings) { return why_not_dpdk(settings.dpdk); }

std::string why_not_verbs(const TransportSettings& settings) {
  return settings.verbs.usable ? "" : settings.verbs.reason;
}

std::string always_usable(const TransportSettings&) { return ""; }

struct Entry {
  const char* name;  // name in PTL_TRANSPORT
  const char* reach;
  // `polls_always`: the interface polls nothing that costs less.
  OpenStatus (*open)(const TransportSettings&, OpenedTransports&, bool polls_always);
  std::string (*why_not)(const TransportSettings&);  // empty: usable here
  bool is_network = false;
};

constexpr Entry shm_entry{"shm", "processes of this user on this node", open_shm, why_not_shm};
constexpr Entry udp_entry{"udp", "processes of this user on nodes of the IP network", open_udp,
                          why_not_udp, true};
constexpr Entry local_entry{"local", "this process itself", open_local, always_usable};

constexpr Entry dpdk_entry{"dpdk", "processes of this user on nodes of the same Ethernet",
                           open_dpdk, why_not_dpdk, true};
constexpr Entry verbs_entry{"verbs", "processes of this user on nodes of the same RDMA network",
                            open_verbs, why_not_verbs, true};
constexpr const Entry* all_entries[] = {&local_entry, &shm_entry, &verbs_entry, &dpdk_entry,
                                        &udp_entry};

struct Interface {
  uint32_t number;
  std::vector<const Entry*> transports;  // ordered by opening
};

const std::vector<Interface>& interfaces() {
  static const std::vector<Interface> table = {
      // The best there is. A port takes longest to open, when the pid is settled.
      {0, {&udp_entry, &shm_entry, &verbs_entry, &dpdk_entry, &local_entry}},
      {1, {&shm_entry, &local_entry}},
      {2, {&local_entry}},
      {3, {&udp_entry, &local_entry}},
      {4, {&dpdk_entry, &local_entry}},
      {5, {&verbs_entry, &local_entry}},
  };
  return table;
}

// Why a network would reach no process; empty: it reaches some. See settle_admission().
std::string why_nobody_is_admitted(const TransportSettings& settings) {
  const std::string& directory = segment_root();
  if (!settings.job_key.empty() || settings.opens_networks ||
      access(directory.c_str(), R_OK | W_OK | X_OK) == 0)
    return "";
  return "it reaches no process: without PTL_JOB_KEY a secret in " + directory +
         " shows which processes are of this user, and " + directory + " cannot be written";
}

// Returns the protection of frames of all networks, as a part of a sentence.
std::string protection_of(const TransportSettings& settings) {
  if (settings.reliable.security == NetworkSecurity::encrypted) return "; frames are encrypted";
  if (settings.reliable.security == NetworkSecurity::authenticated)
    return "; frames are authenticated";
  return settings.job_key.empty() && !settings.opens_networks
             ? "; without PTL_JOB_KEY only those on this node"
             : "; frames are not protected";
}

const Interface* find_interface(uint32_t number) {
  if (number == PTL_IFACE_DEFAULT) return &interfaces().front();
  for (const Interface& interface : interfaces())
    if (interface.number == number) return &interface;
  return nullptr;
}

size_t usual_rank_of(std::string_view name) {
  size_t rank = 0;
  while (name != all_entries[rank]->name) ++rank;
  return rank;
}

// Returns the place of a transport in PTL_TRANSPORT, which is the order in which connect() is
// tried. The transport to the process itself is always used, and is the first.
constexpr size_t unlisted = SIZE_MAX;
size_t rank_of(const TransportSettings& settings, std::string_view name) {
  if (name == local_entry.name) return 0;
  if (settings.allowed.empty()) return usual_rank_of(name);
  const auto found = std::find(settings.allowed.begin(), settings.allowed.end(), name);
  return found == settings.allowed.end()
             ? unlisted
             : 1 + static_cast<size_t>(found - settings.allowed.begin());
}

// Compares places in the list. A transport that is not listed has its usual place.
bool comes_before(const TransportSettings& settings, std::string_view first,
                  std::string_view second) {
  const size_t rank = rank_of(settings, second);
  return rank == unlisted ? usual_rank_of(first) < usual_rank_of(second)
                          : rank_of(settings, first) < rank;
}

// The first name in PTL_TRANSPORT that means nothing, with those that mean something; or nothing.
std::string unknown_name(const TransportSettings& settings) {
  std::string known;
  for (const Entry* entry : all_entries)
    known += std::string(known.empty() ? "" : ", ") + entry->name;
  for (const std::string& name : settings.allowed) {
    const bool is_known = std::any_of(std::begin(all_entries), std::end(all_entries),
                                      [&](const Entry* entry) { return name == entry->name; });
    if (!is_known)
      return "PTL_TRANSPORT names \"" + name + "\", which is not a transport; there are " + known;
  }
  return "";
}

constexpr const char* not_listed = "PTL_TRANSPORT does not list it";

std::string why_not(const TransportSettings& settings, const Entry& entry) {
  return rank_of(settings, entry.name) == unlisted ? not_listed : entry.why_not(settings);
}

// Whether a transport with this fault should have none: it was requested by name, or nodes usually
// have it.
bool should_be_usable(const TransportSettings& settings, const Interface& interface,
                      const std::string& why) {
  if (why == not_listed) return false;
  const bool is_asked_for = settings.chooses_transports || interface.number != 0;
  return is_asked_for || (why != no_dpdk_ports && why != no_verbs_devices);
}

// Pids that PTL_PID_ANY may give: small numbers are left to those who choose their own, and UDP
// ports from 32768 on are given out by the kernel.
constexpr uint32_t first_any_pid = 16384;
constexpr uint32_t any_pids = 14000;
// Number of these pids that are tried first. Processes keep a record of each address of a peer, so
// few addresses save memory in processes with many short-lived peers.
constexpr uint32_t usual_pids = 1024;

// All transports of the interface, with the pid in `opened`.
OpenStatus open_all(const TransportSettings& settings, const Interface& interface,
                    OpenedTransports& opened) {
  const bool polls_always = std::find(interface.transports.begin(), interface.transports.end(),
                                      &shm_entry) == interface.transports.end() ||
                            !why_not(settings, shm_entry).empty();
  opened.unused.clear();
  for (const Entry* entry : interface.transports) {
    std::string why = why_not(settings, *entry);
    if (why.empty()) {
      const OpenStatus status = entry->open(settings, opened, polls_always);
      if (status == OpenStatus::opened) continue;
      if (status == OpenStatus::pid_in_use) {
        opened.transports.clear();
        return status;
      }
      why = opened.reason;
    }
    opened.unused.push_back({entry->name, why, 0, should_be_usable(settings, interface, why)});
  }
  std::sort(opened.transports.begin(), opened.transports.end(),
            [&](const std::unique_ptr<Transport>& a, const std::unique_ptr<Transport>& b) {
              return rank_of(settings, a->capabilities().name) <
                     rank_of(settings, b->capabilities().name);
            });
  for (OpenedTransports::Unused& unused : opened.unused)
    unused.place = static_cast<size_t>(
        std::count_if(opened.transports.begin(), opened.transports.end(), [&](const auto& used) {
          return comes_before(settings, used->capabilities().name, unused.transport);
        }));
  opened.reason.clear();
  for (const OpenedTransports::Unused& unused : opened.unused)
    opened.reason += (opened.reason.empty() ? "" : "; ") + unused.transport + ": " + unused.reason;
  return opened.transports.empty() ? OpenStatus::failed : OpenStatus::opened;
}

// Returns the nid that PTL_NID requests; reason is empty if it is not set. UDP uses its network
// interface if it has one.
NodeIdentity requested_nid(TransportSettings& settings) {
  const std::string& wanted = config_string(ConfigKey::nid);
  if (wanted.empty()) return {};
  if (NodeIdentity host = find_udp_host(wanted); host.is_found())
    return settings.udp_host = std::move(host);
  in_addr address{};
  if (inet_pton(AF_INET, wanted.c_str(), &address) == 1 && address.s_addr != INADDR_ANY) {
    settings.udp_host = find_node_identity();
    return {ntohl(address.s_addr), wanted + " (PTL_NID)"};
  }
  config_refuse(
      ConfigKey::nid,
      "a network interface that is up, one of its addresses, or four numbers from 0 to 255 "
      "with dots between them");
  return {};
}

// Determines the nid, the address for UDP, and the RDMA port that would be used: its address is the
// nid unless another was requested, and UDP uses it as well.
NodeIdentity settle_nid(TransportSettings& settings) {
  NodeIdentity requested = requested_nid(settings);
  if (rank_of(settings, verbs_entry.name) != unlisted)
    settings.verbs = configured_verbs(requested.nid);
  if (!requested.reason.empty()) return requested;
  const VerbsPort& port = settings.verbs.port;
  if (!settings.verbs.usable || port.nid == 0) return settings.udp_host = find_node_identity();
  const std::string address = nid_text(port.nid);
  settings.udp_host = find_udp_host(address);
  settings.udp_host.reason = address + ", the address of RDMA port " + port.name;
  return {port.nid, settings.udp_host.reason};
}

}  // namespace

TransportSettings transport_settings(uint32_t interface_number, uint32_t pid) {
  TransportSettings settings;
  settings.interface_number = interface_number;
  settings.pid = pid;
  settings.uid = geteuid();
  settings.job_key = config_string(ConfigKey::job_key);
  settings.opens_networks = config_bool(ConfigKey::udp_open);
  settings.allowed = config_list(ConfigKey::transport);
  settings.chooses_transports = config_origin(ConfigKey::transport) != ConfigOrigin::default_value;
  settings.shm_memory_bytes = config_u64(ConfigKey::shm_memory_kib) * 1024;
  settings.shm_cma = config_bool(ConfigKey::shm_cma);
  settings.shm_cma_threshold_bytes =
      static_cast<uint32_t>(config_u64(ConfigKey::shm_cma_threshold));
  settings.udp_frame_bytes = static_cast<uint32_t>(config_u64(ConfigKey::udp_frame_bytes));
  settings.reliable = configured_reliability(settings.uid, settings.job_key);
  settings.dpdk = configured_dpdk();
  settings.nid = settle_nid(settings).nid;
  if (!is_rail_choice(config_string(ConfigKey::rails)))
    config_refuse(ConfigKey::rails,
                  "auto, a number from 1 to 4, or network interfaces of this host with commas "
                  "between them");
  settings.udp_rails =
      find_udp_rails(settings.udp_host, config_string(ConfigKey::rails), find_local_rank());
  return settings;
}

NodeIdentity configured_node_identity() {
  TransportSettings settings;
  settings.allowed = config_list(ConfigKey::transport);
  return settle_nid(settings);
}

OpenedTransports open_transports(const TransportSettings& wanted) {
  TransportSettings settings = wanted;
  settings.reliable.incarnation = new_incarnation();
  OpenedTransports opened;
  opened.id.nid = settings.nid;
  const Interface* const interface = find_interface(settings.interface_number);
  if (interface == nullptr) {
    opened.no_such_interface = true;
    opened.reason = "there is no interface " + std::to_string(settings.interface_number);
    return opened;
  }
  if (const std::string unknown = unknown_name(settings); !unknown.empty()) {
    opened.reason = unknown;
    opened.is_misconfigured = true;
    return opened;
  }
  if (settings.pid != PTL_PID_ANY) {
    opened.id.pid = settings.pid;
    opened.status = open_all(settings, *interface, opened);
    return opened;
  }
  // PTL_PID_ANY: searches a pid that is free for all transports.
  const auto start = static_cast<uint32_t>(getpid());
  for (uint32_t i = 0; i < any_pids; ++i) {
    opened.id.pid = first_any_pid + (i == 0 ? start % usual_pids : (start + i) % any_pids);
    opened.status = open_all(settings, *interface, opened);
    if (opened.status != OpenStatus::pid_in_use) return opened;
  }
  return opened;
}

OpenedTransports open_configured_transports(uint32_t interface_number, uint32_t pid) {
  return open_transports(transport_settings(interface_number, pid));
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
    std::string why = why_not(settings, *entry);
    if (why.empty() && entry->is_network) why = why_nobody_is_admitted(settings);
    const bool usable = why.empty();
    if (usable) why = std::string("reaches ") + entry->reach;
    if (usable && entry->is_network) why += protection_of(settings);
    if (usable && entry == &udp_entry && !settings.udp_rails.reason.empty())
      why.append("; ").append(settings.udp_rails.reason);
    if (usable && entry == &dpdk_entry) why.append(": ").append(describe_dpdk(settings.dpdk));
    if (usable && entry == &verbs_entry) why.append(": ").append(settings.verbs.port.text);
    const bool is_unexpected = !usable && should_be_usable(settings, *interface, why);
    choices.push_back({entry->name, usable, std::move(why), is_unexpected});
  }
  std::sort(choices.begin(), choices.end(),
            [&](const TransportChoice& a, const TransportChoice& b) {
              return rank_of(settings, a.name) < rank_of(settings, b.name);
            });
  return choices;
}

}  // namespace lintel
