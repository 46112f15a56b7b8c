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
  const std::unique_ptr<VerbsDevice> device = VerbsDevice::open(wish, reason);
  if (device == nullptr) return false;
  port.nid = device->nid;
  port.name = device->name();
  port.text = device->description();
  return true;
}

OpenStatus open(const VerbsSettings& settings, std::unique_ptr<Transport>& transport,
                std::string& reason) {
  std::shared_ptr<VerbsDevice> device = VerbsDevice::open(settings.port, reason);
  if (device == nullptr) return OpenStatus::failed;
  const UdSettings ud{settings.id, settings.receive_buffers, settings.reliable.peer_timeout_ns};
  std::unique_ptr<UdLink> link;
  const OpenStatus status = UdLink::open(device, ud, link, reason);
  if (status != OpenStatus::opened) return status;
  ReliableSettings reliable = settings.reliable;
  reliable.polls_always = true;  // a poll needs no system call
  // A peer that sends no datagrams may use its queue pair, and its link keeps the one below it.
  reliable.reuses_places = false;
  auto datagrams = reliable_over_link(std::move(link), reliable, settings.faults, reason);
  if (datagrams == nullptr) return OpenStatus::failed;
  transport = VerbsTransport::open(std::move(device), std::move(datagrams), settings, reason);
  return transport == nullptr ? OpenStatus::failed : OpenStatus::opened;
}

const VerbsModule offer{examine, open};

}  // namespace

}  // namespace lintel

const lintel::Module lintel_module{LINTEL_MODULE_VERSION, &lintel::offer};
