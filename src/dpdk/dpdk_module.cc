// The entry point of the module, and what can be said of a port without opening it. Set-up path.
#include "dpdk/dpdk_module.h"

#include <net/if.h>
#include <rte_version.h>

#include <filesystem>

#include "dpdk/device_limits.h"
#include "dpdk/dpdk_link.h"
#include "dpdk/eal.h"
#include "module_version.h"
#include "util/module.h"
#include "util/near_processors.h"
#include "util/text.h"

namespace lintel {

namespace {

// Drivers of the kernel that leave a device to DPDK, or share it.
constexpr const char* willing_drivers[] = {"vfio-pci", "uio_pci_generic", "igb_uio", "mlx5_core",
                                           "mlx4_core"};

// Its directory; empty: there is no such PCI device.
std::filesystem::path pci_device(const std::string& name) {
  std::error_code ignored;
  for (const char* domain : {"", "0000:"}) {
    const std::filesystem::path device = "/sys/bus/pci/devices/" + (domain + name);
    if (std::filesystem::exists(device, ignored)) return device;
  }
  return {};
}

bool examine_bus_device(const std::string& port, std::string& text) {
  const std::string name = port.substr(0, port.find(','));
  if (name.compare(0, 10, "auxiliary:") == 0) return true;
  std::error_code ignored;
  const std::filesystem::path device = pci_device(name);
  if (device.empty()) return explained(false, text, "there is no PCI device " + name);
  const std::string driver = std::filesystem::read_symlink(device / "driver", ignored).filename();
  for (const char* willing : willing_drivers)
    if (driver == willing) return true;
  text = "PCI device " + name +
         (driver.empty() ? " has no driver" : " belongs to the kernel's driver " + driver) +
         "; bind it to vfio-pci (dpdk-devbind.py --bind=vfio-pci " + name + ")";
  return false;
}

bool examine(const std::string& port, std::string& text) {
  const std::string interface = device_argument(port, "iface");
  if (is_bus_device(port)) {
    if (!examine_bus_device(port, text)) return false;
  } else if (!interface.empty() && if_nametoindex(interface.c_str()) == 0) {
    text = "there is no network interface " + interface;
    return false;
  }
  text = port.substr(0, port.find(','));
  if (const std::filesystem::path device = pci_device(text); is_bus_device(port) && !device.empty())
    text.append(is_near(device) ? ", near" : ", far");
  text.append(", ").append(describe_eal_memory()).append(", ").append(rte_version());
  return true;
}

OpenStatus open(const DpdkSettings& settings, std::unique_ptr<PacketLink>& link,
                std::string& reason) {
  if (!start_eal({settings.ports, settings.eal_arguments}, reason)) return OpenStatus::failed;
  return DpdkLink::open(settings, link, reason);
}

const DpdkModule offer{examine, open};

}  // namespace

}  // namespace lintel

const lintel::Module lintel_module{LINTEL_MODULE_VERSION, &lintel::offer};
