// Finds the MAC address of a nid and pid on an Ethernet, without a launcher or server: questions by
// broadcast, answers by their owner. Connection path; any thread; uses no port and no clock.
//
// An answer counts if it repeats the number of a question that is still open. The handshake that
// follows proves whether its sender belongs to the job. A process that starts asks for its own nid
// and pid first: an answer means that they are taken. Several ports of a process on one Ethernet
// all answer; what they have in common is its instance.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <unordered_map>

#include "dpdk/ethernet_frame.h"
#include "util/lock.h"

namespace lintel {

inline constexpr uint8_t discovery_version = 2;

enum class DiscoveryType : uint8_t {
  who_has = 1,  // broadcast: the process with this nid and pid answers
  is_here,      // answer to the process that asked
  claim,        // broadcast: the sender takes this nid and pid; a process that has them answers
};

struct DiscoveryBody {
  uint32_t check;  // CRC-32C of what follows
  uint8_t version;
  DiscoveryType type;
  uint16_t reserved;  // zero
  uint32_t nid, pid;  // the process that is searched, or that answers
  uint64_t number;    // number of the question; repeated in the answer
  uint64_t instance;  // number of the sending process, the same at all its ports
};
static_assert(sizeof(DiscoveryBody) == 32 && offsetof(DiscoveryBody, nid) == 8 &&
              offsetof(DiscoveryBody, instance) == 24);

// A message that is to be sent, if `wanted`.
struct DiscoveryMessage {
  bool wanted = false;
  MacAddress to{};
  DiscoveryBody body{};
};

class Discovery {
 public:
  // Time for which an answer is used; open connections send no further question.
  static constexpr uint64_t fresh_ns = 1'000'000'000;
  static constexpr uint64_t question_gap_ns = 1'000'000;
  static constexpr size_t most_known = 1u << 18;

  // `instance`: unpredictable, the same for all ports of the process.
  Discovery(ProcessId own, const MacAddress& own_mac, uint64_t instance, uint64_t seed) noexcept
      : own_(own), own_mac_(own_mac), instance_(instance), random_state_(seed) {}

  // Makes questions until there is an answer; the caller decides for how long.
  [[nodiscard]] ResolveStatus resolve(ProcessId peer, uint64_t now_ns, MacAddress& mac,
                                      DiscoveryMessage& message) noexcept;
  // A process at `mac` has proven that it receives what is sent there, and says that it is `peer`.
  [[nodiscard]] bool adopt(ProcessId peer, const MacAddress& mac, uint64_t now_ns,
                           DiscoveryMessage& message) noexcept;

  // Called before the process uses its nid and pid. Each call makes one message of type claim.
  [[nodiscard]] DiscoveryMessage claim() noexcept;
  // Has claims of other processes for this nid and pid answered from now on.
  void settle() noexcept;
  // Whether another process has this nid and pid.
  [[nodiscard]] bool disputed() noexcept;

  // A discovery frame has come. False: it is malformed.
  [[nodiscard]] bool handle(const MacAddress& from, const std::byte* data, uint32_t length,
                            uint64_t now_ns, DiscoveryMessage& answer) noexcept;

  [[nodiscard]] size_t known() noexcept;

 private:
  struct Entry {
    std::array<MacAddress, most_rails> macs{};
    uint8_t mac_count = 0;
    bool answered = false;
    bool asking = false;
    bool contested = false;  // two have answered one question
    bool doubtful = false;   // a process elsewhere claims to be that process
    uint64_t number = 0;     // number of the open question
    uint64_t asked_ns = 0;
    uint64_t answered_ns = 0;
    uint64_t instance = 0;  // of the process that answered; 0: not known

    [[nodiscard]] bool has(const MacAddress& mac) const noexcept {
      return std::find(macs.begin(), macs.begin() + mac_count, mac) != macs.begin() + mac_count;
    }
    void add(const MacAddress& mac) noexcept {
      if (!has(mac) && mac_count < macs.size()) macs[mac_count++] = mac;
    }
  };

  [[nodiscard]] uint64_t random() noexcept LINTEL_REQUIRES(mutex_);
  [[nodiscard]] DiscoveryBody make_body(DiscoveryType type, ProcessId process,
                                        uint64_t number) const noexcept;
  Entry* entry_for(ProcessId peer, uint64_t now_ns) noexcept LINTEL_REQUIRES(mutex_);
  void ask(Entry& entry, ProcessId peer, uint64_t now_ns, DiscoveryMessage& message) noexcept
      LINTEL_REQUIRES(mutex_);
  void handle_answer(const MacAddress& from, const DiscoveryBody& body, uint64_t now_ns) noexcept
      LINTEL_REQUIRES(mutex_);
  void handle_claim(const MacAddress& from, const DiscoveryBody& body,
                    DiscoveryMessage& answer) noexcept LINTEL_REQUIRES(mutex_);

  const ProcessId own_;
  const MacAddress own_mac_;
  const uint64_t instance_;
  Mutex mutex_;
  uint64_t random_state_ LINTEL_GUARDED_BY(mutex_);
  uint64_t claim_number_ LINTEL_GUARDED_BY(mutex_) = 0;  // 0: nothing claimed yet
  bool settled_ LINTEL_GUARDED_BY(mutex_) = false;
  bool disputed_ LINTEL_GUARDED_BY(mutex_) = false;
  std::unordered_map<uint64_t, Entry> entries_ LINTEL_GUARDED_BY(mutex_);
};

}  // namespace lintel
