// The entry point of the module. Set-up path.
#include "verbs/verbs_module.h"

#include "module_version.h"
#include "reliable/reliable_transport.h"
#include "util/module.h"
#include "verbs/device.h"
#include "verbs/ud_link.h"
#include "verbs/verbs_transport.h"

namespace lintel {

namespace {

bool examine(const VerbsPortWish& wish, VerbsPort& port, std::string& reason) {
  const VerbsDevices devices = VerbsDevice::open_all(wish, reason);
  if (devices.empty()) return false;
  port.nid = devices[0]->nid;
  port.name = devices[0]->name();
  for (const auto& device : devices)
    port.text.append(port.text.empty() ? "" : "; also by ").append(device->description());
  return true;
}

OpenStatus open(const VerbsSettings& settings, std::unique_ptr<Transport>& transport,
                std::string& reason) {
  const VerbsDevices devices = VerbsDevice::open_all(settings.port, reason);
  if (devices.empty()) return OpenStatus::failed;
  const UdSettings ud{settings.id, settings.receive_buffers, settings.reliable.peer_timeout_ns};
  std::unique_ptr<UdLink> link;
  const OpenStatus status = UdLink::open(devices, ud, link, reason);
  if (status != OpenStatus::opened) return status;
  ReliableSettings reliable = settings.reliable;
  reliable.polls_always = true;  // a poll needs no system call
  // A peer that sends no datagrams may use its queue pair, and its link keeps the one below it.
  reliable.reuses_places = false;
  auto datagrams = reliable_over_link(std::move(link), reliable, settings.faults, reason);
  if (datagrams == nullptr) return OpenStatus::failed;
  transport = VerbsTransport::open(devices, std::move(datagrams), settings, reason);
  return transport == nullptr ? OpenStatus::failed : OpenStatus::opened;
}

const VerbsModule offer{examine, open};

}  // namespace

}  // namespace lintel

const lintel::Module lintel_module{LINTEL_MODULE_VERSION, &lintel::offer};
