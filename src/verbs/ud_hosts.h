// Ports of other nodes that datagrams go to or come from, each with its number, and its address
// handles: one for each rail. Handles are made by a thread that may wait, as the kernel may have to
// ask the network for a MAC address. Finding a handle by its number, and the number of a sender:
// message path. The rest: connection path.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include <infiniband/verbs.h>

#include "transport/packet_link.h"
#include "util/arena.h"
#include "util/lock.h"
#include "verbs/device.h"

namespace lintel {

// Identifies a port. InfiniBand, same subnet: the LID alone, as packets need not carry more.
struct HostKey {
  ibv_gid gid{};
  uint16_t lid = 0;
  friend bool operator==(const HostKey& a, const HostKey& b) noexcept {
    return a.gid.global.subnet_prefix == b.gid.global.subnet_prefix &&
           a.gid.global.interface_id == b.gid.global.interface_id && a.lid == b.lid;
  }
};

// LinkAddress of datagrams.
struct UdAddress {
  uint32_t queue_pair;
  uint32_t q_key;
  uint32_t host;       // number of the port in UdHosts
  uint32_t unused[5];  // the last byte: LinkAddress::rail()
};
static_assert(sizeof(UdAddress) == sizeof(LinkAddress));

class UdHosts {
 public:
  static constexpr uint32_t most_hosts = 1u << 16;
  static constexpr uint32_t none = UINT32_MAX;

  UdHosts() = default;
  UdHosts(const UdHosts&) = delete;
  UdHosts& operator=(const UdHosts&) = delete;
  ~UdHosts() { close(); }

  // False: no address space. `devices`: one for each rail.
  [[nodiscard]] bool open(std::vector<std::shared_ptr<VerbsDevice>> devices) noexcept;
  // No thread sends any more.
  void close() noexcept;

  [[nodiscard]] HostKey key_of(unsigned rail, const ibv_gid& gid, uint16_t lid) const noexcept;

  // Returns the number of a port with an address handle for a rail; `none`: `reason` receives a
  // clause that says why there is none. Called by the thread that may wait.
  [[nodiscard]] uint32_t make(unsigned rail, const HostKey& key, std::string& reason);
  // Connection path, any thread. Returns the number of a port of a peer; `none`: no memory.
  [[nodiscard]] uint32_t admit(const HostKey& key) noexcept;
  // The same thread: makes the handles that want_handle() requested.
  void make_wanted() noexcept;

  // The poller. Returns the number of the sender of a datagram; `none`: too many strangers.
  [[nodiscard]] uint32_t number_of(const HostKey& key) noexcept {
    Recent& recent = recent_[slot_of(key)];
    if (recent.number == none || !(recent.key == key)) [[unlikely]]
      recent = {key, find_or_add_stranger(key)};
    return recent.number;
  }
  // Returns nullptr if no handle has been made. The number is one that this class has returned.
  [[nodiscard]] ibv_ah* handle(unsigned rail, uint32_t number) const noexcept {
    return hosts_.at(number).handles[rail].load(std::memory_order_acquire);
  }
  [[nodiscard]] bool contains(uint32_t number) const noexcept { return hosts_.contains(number); }
  // Connection path, any thread. True: the handle was not requested before; the caller has
  // make_wanted() called.
  [[nodiscard]] bool want_handle(unsigned rail, uint32_t number) noexcept;
  // Connection path: a peer of that node is connected, so the bound does not apply to it.
  void admit(uint32_t number) noexcept;

 private:
  static constexpr uint32_t most_strangers = 4096;
  static constexpr size_t recent_slots = 256;

  struct Host {
    std::atomic<uint32_t> next_free{0};  // used by the arena
    std::array<std::atomic<ibv_ah*>, most_rails> handles{};
    std::atomic<uint8_t> wanted{0};  // a bit for each rail
    std::atomic<bool> stranger{false};
    HostKey key;
  };
  struct Recent {
    HostKey key;
    uint32_t number = none;
  };
  struct KeyHash {
    size_t operator()(const HostKey& key) const noexcept { return mix(key); }
  };

  static uint64_t mix(const HostKey& key) noexcept {
    const uint64_t word = key.gid.global.interface_id ^ key.gid.global.subnet_prefix * 3 ^ key.lid;
    return word * 0x9e3779b97f4a7c15 ^ (word * 0x9e3779b97f4a7c15) >> 32;
  }
  static size_t slot_of(const HostKey& key) noexcept { return mix(key) % recent_slots; }
  uint32_t find_or_add_stranger(const HostKey& key) noexcept;
  uint32_t find_or_add(const HostKey& key, bool stranger);
  ibv_ah* make_handle(unsigned rail, Host& host) noexcept;

  struct Wanted {
    uint32_t number;
    unsigned rail;
  };

  std::vector<std::shared_ptr<VerbsDevice>> devices_;
  Arena<Host> hosts_;
  std::array<Recent, recent_slots> recent_{};  // used by the poller only
  std::atomic<uint32_t> strangers_{0};

  Mutex mutex_;
  std::unordered_map<HostKey, uint32_t, KeyHash> numbers_ LINTEL_GUARDED_BY(mutex_);
  std::vector<Wanted> wanted_ LINTEL_GUARDED_BY(mutex_);
};

}  // namespace lintel
